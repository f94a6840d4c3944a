//! The words of the command line.

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
pub(crate) use serve::{CreateKey, Keys, KeysVerb, Serve};
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

/// What is said most often. All the words take half a millisecond to set up; these, a quarter of that.
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

/// The variable that names the sandbox's file where `--db` does not.
const DATABASE_VARIABLE: &str = "SANDLITE_DB";

const EXAMPLES: &str = "\
Examples:
  sandlite bash -c 'echo hello | tr a-z A-Z'      run in memory, keep nothing
  sandlite --db agent.db bash                     an interactive shell on agent.db
  sandlite --db agent.db python -c 'print(6*7)'   Python on the same files
  sandlite --db agent.db fs put ./src /work       copy a directory in
  sandlite --db agent.db history                  what ran, how it ended
  sandlite --db agent.db export snapshot.db       a compact copy to share
  sandlite --server URL --key KEY bash -c ls      on a sandbox of a server; see `sandlite --server --help`
";

/// Options of every verb.
#[derive(Debug, ClapArgs)]
pub(crate) struct Global {
    /// The sandbox's file, created if missing [default: $SANDLITE_DB, else ./sandlite.db if it exists, else in memory]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) db: Option<PathBuf>,
    /// What commands may use: strict, normal or permissive, or a file such as ./mine.toml
    #[arg(long, global = true, default_value_t = Chosen::Preset(Preset::Normal), value_name = "PRESET", help_heading = "Global options")]
    pub(crate) preset: Chosen,
    /// Wait for a command of another process in this file
    #[arg(long, global = true, default_value = "10s", value_name = "TIME", help_heading = "Global options")]
    pub(crate) wait: WallTime,
    /// Look at a past version: a run's number, HEAD~3, a checkpoint, '@{2 hours ago}'; commands run in a throw-away copy
    #[arg(long, global = true, value_name = "VERSION", help_heading = "Global options")]
    pub(crate) at: Option<String>,
    /// Bind commands and files by the rules of this file: see docs/policies.md
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) policy: Option<GivenPolicy>,
    /// Look as a principal, NAME or NAME:LABEL,LABEL: what the policy hides from it does not exist
    #[arg(long, global = true, value_name = "VIEW", help_heading = "Global options")]
    pub(crate) view: Option<View>,
    /// Print one JSON object instead of text
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Say on standard error what is done, such as which file is used
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run bash: a command line, a script, or interactively
    Bash(Bash),
    /// Run Python: code, a script, a module, or interactively
    Python(Python),
    /// Run a WebAssembly module for wasm32-wasip1
    Wasm(Wasm),
    /// Install, list and remove the sandbox's Python packages
    Pip(Pip),
    /// Look at, copy and change the sandbox's files
    Fs(Files),
    /// Read and write the key-value store
    Kv(Kv),
    /// List what ran, newest first
    History(History),
    /// List the versions of the sandbox, newest first
    Log(Log),
    /// Compare the files of two versions; exits with 1 if they differ
    Diff(Diff),
    /// Show one run: its command, its output and what it changed
    Show(Show),
    /// Print the lines of a file with the runs that wrote them
    Blame(Blame),
    /// Find the run that broke something by trying a command at past versions
    Bisect(Bisect),
    /// Run recorded runs again and compare; exits with 1 at the first difference
    Replay(Replay),
    /// Show what commands changed; exits with 1 if they changed something
    Changes(Changes),
    /// Apply what commands changed to a directory of this machine
    Apply(Apply),
    /// Bring everything back to what it was before the last changing runs
    Undo(Undo),
    /// Bring everything, or some paths, back to what it was at a version
    Restore(Restore),
    /// Move a sandbox onto a newer version of its base and keep its changes
    Update(Update),
    /// Name the present version
    Checkpoint(Checkpoint),
    /// List the checkpoints
    Checkpoints,
    /// Drop old versions
    Prune(Prune),
    /// Keep, check and run skills: packages that an agent can find, read and run
    Skill(Skill),
    /// Exchange versions with git: export them as commits, import commits as versions
    Git(Git),
    /// Print each change of the sandbox's files as it is committed
    Watch(Watch),
    /// Show, set or clear the policy that is stored with the sandbox
    Policy(PolicyArgs),
    /// Write a compact copy of the sandbox to a new file
    Export(Export),
    /// Fill a new sandbox from a snapshot; its rows are checked and copied
    Import(Import),
    /// Start a second sandbox that goes on from here, in a new file
    Fork(Fork),
    /// Check that the sandbox's file is sound
    Check,
    /// Give the space of deleted files back to the disk
    Compact,
    /// Show what the sandbox holds
    Info(Info),
    /// Show what each preset allows
    Presets(Presets),
    /// Give the sandbox to an agent as tools of the Model Context Protocol
    #[cfg(feature = "mcp")]
    Mcp(Mcp),
    /// Serve sandboxes and skills over HTTP to many tenants
    #[cfg(feature = "mcp")]
    Serve(Serve),
    /// Create, list and revoke the API keys of a server
    #[cfg(feature = "mcp")]
    Keys(Keys),
    /// Show the programs' modules that come with Sandlite
    Guests(Guests),
    /// Measure what the presets cost on this machine
    Bench(Bench),
    /// Check this machine and this installation, and say what to fix
    Doctor,
    /// Print the licences of everything that comes with Sandlite
    Licenses,
    /// Print the completion script of a shell
    Completions(Completions),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man(Man),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db pip install ./NAME.whl   a wheel of this machine
  sandlite --db agent.db pip install rich         by name, with what it needs
  sandlite --db agent.db pip uninstall rich       gone again")]
pub(crate) struct Pip {
    #[command(subcommand)]
    pub(crate) verb: PipVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PipVerb {
    /// Install packages of pure Python
    Install(PipInstall),
    /// List the installed packages
    List,
    /// Remove packages
    Uninstall {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PipInstall {
    /// A .whl file, or a name such as six or six==1.17.0 that this machine's own pip fetches with what it needs
    #[arg(required_unless_present = "requirement", value_name = "PACKAGE")]
    pub(crate) packages: Vec<String>,
    /// Install the packages listed in FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) requirement: Vec<PathBuf>,
    /// Also look for wheels in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) find_links: Vec<PathBuf>,
    /// Take wheels only from the directories of --find-links
    #[arg(long)]
    pub(crate) offline: bool,
    /// Fetch only what is named, not what it needs
    #[arg(long)]
    pub(crate) no_deps: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db kv set step 3            a number, for 3 is JSON
  sandlite --db agent.db kv set plan 007 --text   text, whatever it looks like
  sandlite --db agent.db kv get step              prints 3
  sandlite --db agent.db kv keys user:            the keys that begin so")]
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
        /// The value: JSON if it reads as JSON, else text; - reads standard input
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Take the value as text, whatever it looks like
        #[arg(long)]
        text: bool,
    },
    /// Remove keys
    Delete {
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// List the keys
    Keys {
        /// Only those that begin so
        #[arg(default_value = "", hide_default_value = true)]
        prefix: String,
    },
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  sandlite history --since 2h --grep pytest   what ran in the last two hours
  sandlite history show 12                    how run 12 ended, what it printed and changed
  sandlite history show 12 --html run.html    the same as a page
  sandlite --json history --limit 1000        for programs")]
pub(crate) struct History {
    /// At most so many
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) limit: usize,
    /// Only what began since then: `10m`, `2h` or `3d` ago, or a date such as 2026-11-16T08:30
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<i64>,
    /// Only commands that contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    #[command(subcommand)]
    pub(crate) verb: Option<HistoryVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryVerb {
    /// Show one run: how it ended, what it printed, used and changed
    Show {
        /// Its number
        run: i64,
        /// Write it as an HTML page instead; - for standard output
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db export snapshot.db   files, keys and history, without what was deleted
  sandlite --db twin.db import snapshot.db    goes on from it elsewhere")]
pub(crate) struct Export {
    /// The file to write; must not exist
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Tell the digest of what it says, too: to sign, or to send another way than the file
    #[arg(long)]
    pub(crate) digest: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db twin.db import snapshot.db   twin.db is made; snapshot.db is left as it is")]
pub(crate) struct Import {
    /// The snapshot to read: Sandlite's, AgentFS's or LocalSandbox's
    #[arg(value_name = "FILE")]
    pub(crate) from: PathBuf,
    /// Refuse it unless this is its digest, as `export --digest` told
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db fork attempt.db         try something in a copy
  sandlite --db attempt.db bash -c 'make test'   agent.db knows nothing of it")]
pub(crate) struct Fork {
    /// The file to create; must not exist
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db info                    size, counts, the last commands
  sandlite --db agent.db info --html page.html   timeline, diffs, files and keys in a browser")]
pub(crate) struct Info {
    /// Write everything as one HTML page instead; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite presets                          all limits side by side
  sandlite presets show strict              each limit with its reason
  sandlite presets diff normal permissive   what the wider one gives
  sandlite --preset ./mine.toml bash        limits of your own: see docs/limits.md")]
pub(crate) struct Presets {
    #[command(subcommand)]
    pub(crate) verb: Option<PresetsVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PresetsVerb {
    /// All presets side by side
    List,
    /// One preset, with the reason of each limit
    Show {
        /// Which one: a name or a file
        preset: Chosen,
    },
    /// Where two presets differ
    Diff {
        /// The first: a name or a file
        from: Chosen,
        /// The second
        to: Chosen,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite guests                   what there is, and what is compiled
  sandlite guests add python-sci    NumPy, pandas, SciPy, scikit-learn, Matplotlib
  sandlite python --python sci -c 'import pandas; print(pandas.__version__)'
  sandlite guests add ./count.wasm --as count
  sandlite bash --program count -c 'ls /bin | count'")]
pub(crate) struct Guests {
    #[command(subcommand)]
    pub(crate) verb: Option<GuestsVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuestsVerb {
    /// Which there are, and whether they are compiled for this machine
    List,
    /// Install one that does not come with Sandlite, and compile it
    Add {
        /// python-sci: CPython 3.15 with NumPy, pandas, SciPy and more; or a module for wasm32-wasip1
        #[arg(value_name = "GUEST|FILE.wasm")]
        guest: PathBuf,
        /// The name of the module's program [default: that of the file]
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
        /// The file of the package python-sci, instead of one that this machine's own pip fetches
        #[arg(long, value_name = "FILE", conflicts_with = "name")]
        from: Option<PathBuf>,
    },
    /// Remove an installed program
    Remove {
        /// Its name
        name: String,
    },
    /// Where they are kept compiled
    Path,
    /// Compile those that come with Sandlite for any machine of this architecture, to be shipped beside the program
    #[command(hide = true)]
    Compile {
        /// The directory to write to
        directory: PathBuf,
    },
    /// Remove compiled ones that this version has no use for
    Prune,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite bench --save before.json --svg chart.svg   takes half a minute
  sandlite bench --compare before.json                what became slower or faster since")]
pub(crate) struct Bench {
    /// Measure for minutes instead of seconds
    #[arg(long)]
    pub(crate) thorough: bool,
    /// Keep the figures as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Draw a chart as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Compare with figures that were kept
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
  sandlite --db agent.db mcp                         what an agent program starts: see docs/mcp.md
  sandlite --db agent.db mcp --http 127.0.0.1:8808   over HTTP, with a key that is printed once
  sandlite --db agent.db mcp --tools bash,read_file  two tools and no others")]
pub(crate) struct Mcp {
    /// Serve HTTP on this address, such as 127.0.0.1:8808, instead of standard input and output
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// The file with the key that clients must show; made if missing [default: a new key, printed once]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) key_file: Option<PathBuf>,
    /// Answer to this host name too, besides this machine's own
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) allow_host: Vec<String>,
    /// Let web pages of this origin in, such as https://example.com
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,
    /// What `python3` is: core, or sci with NumPy and more, once `sandlite guests add python-sci` has installed it
    #[arg(long, value_enum, default_value_t = PythonKind::Core, value_name = "PYTHON")]
    pub(crate) python: PythonKind,
    /// Give the sandbox a program: one that `sandlite guests add` installed, or a module for wasm32-wasip1
    #[arg(long, value_name = "NAME[=FILE.wasm]", value_parser = run::program)]
    pub(crate) program: Vec<(String, Option<PathBuf>)>,
    /// Offer only these tools, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Offer the skills of a catalog, also as files in /skills [default: $SANDLITE_SKILLS, else the user's own]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub(crate) skills: Option<PathBuf>,
    /// Offer each skill as a tool of its own besides
    #[arg(long, requires = "skills")]
    pub(crate) skill_tools: bool,
    /// The directory that snapshots are kept in [default: beside the sandbox's file]
    #[arg(long, value_name = "DIR")]
    pub(crate) snapshots: Option<PathBuf>,
}
