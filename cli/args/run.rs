//! The arguments of verbs that run commands: `bash` and `python`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use runtime::{Builder, ByteSize, Mount, WallTime};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite bash -c 'ls -l /bin | head -n 3'                  run in memory, store nothing
  sandlite --db a.db bash --session work -c 'cd src; x=1'    keep the shell's state
  sandlite bash --mount .:/src:overlay -c 'ls /src'          keep changes in the sandbox
  sandlite bash --timeout 2s --memory 64MB < script.sh       run a script on this machine

Without a command, bash is interactive on a terminal and otherwise reads a script from standard input.
Exit codes: the command's own; 124: out of time or compute; 137: out of memory; 125: Sandlite itself failed.")]
pub(crate) struct Bash {
    /// The command line to run
    #[arg(short = 'c', value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Print each command before it runs
    #[arg(short = 'x')]
    pub(crate) trace: bool,
    /// Exit when a command fails
    #[arg(short = 'e')]
    pub(crate) exit_on_error: bool,
    /// Treat unset variables as errors
    #[arg(short = 'u')]
    pub(crate) no_unset: bool,
    /// Start as a login shell
    #[arg(short = 'l')]
    pub(crate) login: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// With -c: $0, $1, …; otherwise a script in the sandbox and its arguments
    #[arg(value_name = "ARG", trailing_var_arg = true)]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite python -c 'print(6 * 7)'                       run in memory, store nothing
  sandlite --db agent.db python /work/report.py 2026      run a script in the sandbox
  sandlite python --file data.csv:/data.csv < count.py    run a script and copy a file in
  sandlite python -m json.tool < data.json                run a module

Without code, Python is interactive on a terminal and otherwise reads a script from standard input.
Exit codes: Python's own; 124: out of time or compute; 137: out of memory; 125: Sandlite itself failed.")]
pub(crate) struct Python {
    /// The code to run
    #[arg(short = 'c', value_name = "CODE", conflicts_with = "module")]
    pub(crate) command: Option<String>,
    /// The module to run
    #[arg(short = 'm', value_name = "MODULE")]
    pub(crate) module: Option<String>,
    /// Write output unbuffered
    #[arg(short = 'u')]
    pub(crate) unbuffered: bool,
    /// Print Python's version
    #[arg(short = 'V', conflicts_with_all = ["command", "module", "args"])]
    pub(crate) version: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// A script in the sandbox, or - for standard input, and its arguments
    #[arg(value_name = "ARG", trailing_var_arg = true)]
    pub(crate) args: Vec<String>,
}

/// Options of verbs that run commands.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Run options")]
pub(crate) struct RunOptions {
    /// Start in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Set an environment variable for the command
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Resume the named session: directory, variables, functions, options
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Copy a file from this machine into the sandbox first
    #[arg(long, value_name = "HOST:GUEST", value_parser = copied)]
    pub(crate) file: Vec<(PathBuf, String)>,
    #[command(flatten)]
    pub(crate) mounts: Mounts,
    /// Show the skills of a catalog in /skills [default: $SANDLITE_SKILLS, else the user's own]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub(crate) skills: Option<PathBuf>,
    /// Add a program to the sandbox: one installed with `sandlite guests add`, or a program for wasm32-wasip1 or wasm32-wasip2
    #[arg(long, value_name = "NAME[=FILE.wasm]", value_parser = program)]
    pub(crate) program: Vec<(String, Option<PathBuf>)>,
    /// Allow these programs of this machine to run on copies of the sandbox's directories, under bubblewrap: git,pytest
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) allow_host: Vec<String>,
    /// Give the sandbox the tools of MCP servers, from a file with {"mcpServers": {…}}
    #[cfg(feature = "mcp")]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) mcp_servers: Option<PathBuf>,
    /// Accept the current tool descriptions of these MCP servers, which re-enables changed tools
    #[cfg(feature = "mcp")]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "mcp_servers")]
    pub(crate) mcp_confirm: Vec<String>,
    /// Read the command's standard input from FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Select `python3`: core, or sci with NumPy and more, after `sandlite guests add python-sci`
    #[arg(long, value_enum, default_value_t = PythonKind::Core, value_name = "PYTHON")]
    pub(crate) python: PythonKind,
    /// Lower the wall-clock limit, such as `2s` or `500ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<WallTime>,
    /// Lower the compute limit, in wasm fuel
    #[arg(long, value_name = "FUEL")]
    pub(crate) fuel: Option<u64>,
    /// Lower the memory limit, such as `64MB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Roll back the command's file changes if it fails
    #[arg(long)]
    pub(crate) rollback_on_fail: bool,
    /// Make the run repeatable: fixed clock, random bytes from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) deterministic: Option<u64>,
    /// Record all inputs of the command for `sandlite replay`; standard input is read to its end first
    #[arg(long, conflicts_with = "mount")]
    pub(crate) record: bool,
    /// First fork the sandbox, or its version --at, into FILE, and run there
    #[arg(long, value_name = "FILE")]
    pub(crate) onto: Option<PathBuf>,
    /// Let the command control the terminal: colors, cursor, title
    #[arg(long)]
    pub(crate) raw: bool,
}

/// The mounts.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Run options")]
pub(crate) struct Mounts {
    /// Mount a directory, another sandbox (db:FILE[@VERSION]:GUEST) or a past version (at:VERSION:GUEST) in the sandbox,
    /// read-only or as an overlay that keeps changes in the sandbox
    #[arg(long, value_name = "HOST:GUEST[:ro|overlay]", value_parser = mounted)]
    pub(crate) mount: Vec<Mount>,
    /// Lay the sandbox over another one, which is only read
    #[arg(long, value_name = "FILE[@VERSION]")]
    pub(crate) base: Option<PathBuf>,
}

impl Mounts {
    /// Applies the mounts to the sandbox.
    pub(crate) fn give(&self, builder: Builder) -> Builder {
        let builder = match &self.base {
            Some(file) => builder.base(file),
            None => builder,
        };
        self.mount.iter().cloned().fold(builder, Builder::mount)
    }
}

/// The Python selected by `--python`. The option lists the values itself because documented values would make every help text
/// long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PythonKind {
    Core,
    Sci,
}

impl From<PythonKind> for runtime::Python {
    fn from(kind: PythonKind) -> Self {
        match kind {
            PythonKind::Core => Self::Core,
            PythonKind::Sci => Self::Scientific,
        }
    }
}

pub(super) fn variable(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        None => Err("missing `=` between name and value"),
        Some(("", _)) => Err("missing name before `=`"),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
    }
}

pub(super) fn program(text: &str) -> Result<(String, Option<PathBuf>), &'static str> {
    let (name, file) = text.split_once('=').map_or((text, None), |(name, file)| (name, Some(file)));
    match (name, file) {
        ("", _) => Err("missing name"),
        (_, Some("")) => Err("missing file after `=`"),
        _ => Ok((name.to_owned(), file.map(PathBuf::from))),
    }
}

pub(super) fn copied(text: &str) -> Result<(PathBuf, String), &'static str> {
    let (host, guest) = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).ok_or("missing `:`")?;
    if guest.starts_with('/') { Ok((host.into(), guest.to_owned())) } else { Err("the path in the sandbox must start with `/`") }
}

pub(super) fn mounted(text: &str) -> Result<Mount, String> {
    Mount::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_name_and_a_value() {
        assert_eq!(variable("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(variable("a="), Ok(("a".to_owned(), String::new())));
        assert_eq!(variable("=x"), Err("missing name before `=`"));
        assert_eq!(variable("x"), Err("missing `=` between name and value"));
    }

    #[test]
    fn a_place_is_two_paths() {
        assert_eq!(copied("a:b:/c"), Ok(("a:b".into(), "/c".to_owned())));
        assert!(copied("a").is_err() && copied("a:b").is_err() && copied(":/b").is_err());
        assert!(mounted("src:/src").is_ok() && mounted("src:/src:overlay").is_ok() && mounted("src:/src:ro").is_ok());
        assert!(mounted("src:/src:rw").is_err_and(|error| error.starts_with("unknown mode `rw`: expected `ro`")));
        assert!(mounted("src:ro").is_err_and(|error| error == "missing `:`"));
        assert!(mounted("db:base.db:/b").is_ok() && mounted("at:HEAD~1:/then:overlay").is_ok());
        assert!(mounted("src:dst").is_err_and(|error| error == "the path in the sandbox must start with `/`"));
    }
}
