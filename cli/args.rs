//! The words of the command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use runtime::Preset;

/// The SQLite of sandboxes: one .db file is a whole small computer for an AI agent.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  sandlite bash -c 'echo hello | tr a-z A-Z'      run in memory, keep nothing
  sandlite --db agent.db bash -c 'date > /now'    keep files and history in agent.db
  sandlite --db agent.db history                  what ran, how it ended
  sandlite --db agent.db export snapshot.db       a compact copy to share
";

/// Options of every verb.
#[derive(Debug, ClapArgs)]
pub(crate) struct Global {
    /// The sandbox's file, created if missing [default: ./sandlite.db if it exists, else in memory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
    /// What commands may use: strict, normal or permissive
    #[arg(long, global = true, default_value_t = Preset::Normal, value_name = "PRESET")]
    pub(crate) preset: Preset,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run bash
    Bash(Bash),
    /// Run Python
    Python(Python),
    /// List what ran, newest first
    History(History),
    /// Write a compact copy of the sandbox to a new file
    Export(Export),
    /// Fill a new sandbox from a snapshot; its rows are checked and copied
    Import(Import),
    /// Show what each preset allows
    Presets(Presets),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Bash {
    /// The command line to run
    #[arg(short = 'c', value_name = "COMMAND", required = true)]
    pub(crate) command: String,
    /// $0, $1, … of the command line
    #[arg(value_name = "ARG", trailing_var_arg = true)]
    pub(crate) args: Vec<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Python {
    /// The code to run
    #[arg(short = 'c', value_name = "CODE")]
    pub(crate) command: Option<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// A script of the sandbox, or - for standard input, and its arguments
    #[arg(value_name = "ARG", trailing_var_arg = true)]
    pub(crate) args: Vec<String>,
}

/// Options of everything that runs.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunOptions {
    /// The directory to start in
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Set a variable for the command
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Tighten the wall clock, such as `2 s`
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Undo the command's file changes when it fails
    #[arg(long)]
    pub(crate) rollback_on_fail: bool,
    /// Make the run repeatable: fixed clock, random bytes from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) deterministic: Option<u64>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct History {
    /// How many
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    /// Show one run with its output
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<i64>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Export {
    /// The file to write; must not exist
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Import {
    /// The snapshot to read: Sandlite's, AgentFS's or LocalSandbox's
    #[arg(value_name = "FILE")]
    pub(crate) from: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Presets {
    /// Only this one, with the reason of each limit
    #[arg(value_name = "PRESET")]
    pub(crate) name: Option<Preset>,
}
