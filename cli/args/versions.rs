//! The words of the verbs about versions.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use runtime::{ByteSize, Mount, WallTime};

use super::run::{Mounts, mounted};

const REFERENCES: &str = "\
A version is named by the number of the run that made it, HEAD (the newest), HEAD~3 (three versions before),
a checkpoint, or a time: '@{2 hours ago}', '@{2026-01-31T12:00}'.";

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db log                    every run that changed something, newest first
  sandlite --db agent.db log /src -n 5          the last five that changed /src")]
pub(crate) struct Log {
    /// List only versions that changed this path or something below it
    pub(crate) path: Option<String>,
    /// Maximum number of versions to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Compute and print the digest of each version's files: equal trees have equal digests
    #[arg(long)]
    pub(crate) digest: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = REFERENCES)]
pub(crate) struct Diff {
    /// The older version
    pub(crate) from: String,
    /// The newer version (defaults to HEAD), then the paths to compare
    #[arg(value_name = "[VERSION] [PATH]...")]
    pub(crate) rest: Vec<String>,
    /// Print the number of added and removed lines per file
    #[arg(long, conflicts_with = "name_only")]
    pub(crate) stat: bool,
    /// Print the names of the files that differ
    #[arg(long)]
    pub(crate) name_only: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db changes                                   everything since the first run
  sandlite --db agent.db changes before --patch > agent.patch      since a checkpoint, for `git apply`
  sandlite --db agent.db changes --mount .:/src:overlay            what commands changed in this directory")]
pub(crate) struct Changes {
    /// The version since which changes count [default: the mounted directories, else the state before the first run]
    #[arg(value_name = "VERSION")]
    pub(crate) since: Option<String>,
    /// List only changes of this path and below it; a patch's names are relative to it
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Compare with a directory of this machine that commands had as an overlay
    #[arg(long, value_name = "HOST:GUEST:overlay", value_parser = mounted)]
    pub(crate) mount: Vec<Mount>,
    /// Print a patch that `git apply` takes, binary files included
    #[arg(long, conflicts_with_all = ["stat", "name_only"])]
    pub(crate) patch: bool,
    /// Print the number of added and removed lines per file
    #[arg(long, conflicts_with = "name_only")]
    pub(crate) stat: bool,
    /// Print the names of the files that differ
    #[arg(long)]
    pub(crate) name_only: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db apply . --mount .:/src:overlay --dry-run     what would be done to this directory
  sandlite --db agent.db apply . --mount .:/src:overlay               do it
  sandlite --db agent.db apply ./project --path /work --since before  changes of /work since a checkpoint

All changes are made or none. A file that was edited in the directory meanwhile is a conflict: it is named, and nothing is
changed. Whatever is below .git, links that lead out of the directory and names of keys (.ssh, .aws) are left out and named.")]
pub(crate) struct Apply {
    /// The directory of this machine
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: PathBuf,
    /// The version since which changes count [default: the mounted directory, else the state before the first run]
    #[arg(long, value_name = "VERSION")]
    pub(crate) since: Option<String>,
    /// The directory of the sandbox that it corresponds to [default: where it is mounted, else /]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// The directory that commands had as an overlay
    #[arg(long, value_name = "HOST:GUEST:overlay", value_parser = mounted)]
    pub(crate) mount: Vec<Mount>,
    /// Print what would be done, with the conflicts, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print a patch that `git apply` takes instead of changing the directory
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) patch: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = REFERENCES)]
pub(crate) struct Show {
    /// The run's number, or a version
    #[arg(value_name = "RUN", default_value = "HEAD")]
    pub(crate) run: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Blame {
    /// The text file
    pub(crate) path: String,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db bisect --good HEAD~40 -- make test
  sandlite --db agent.db bisect --good start --bad 57 -- 'grep -q fine /state'

The command runs in a throw-away copy of each version that is tried. Exit code 0: good, 125: skip this version,
1 to 127: bad, 128 and more: stop searching.")]
pub(crate) struct Bisect {
    /// A version at which the command succeeds
    #[arg(long, value_name = "VERSION")]
    pub(crate) good: String,
    /// A later version at which it fails
    #[arg(long, value_name = "VERSION", default_value = "HEAD")]
    pub(crate) bad: String,
    /// The command: one word is a command line, several are its words
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db bash --record -c 'python3 build.py'    keep what the run is given
  sandlite replay agent.db                                       run it again and compare

Each run has the limits of --preset, whatever the recording says. Exit code 1: a run differs.")]
pub(crate) struct Replay {
    /// The sandbox's file, which is only read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The version to begin with [default: the state before the first recorded run]
    #[arg(long, value_name = "VERSION")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Undo {
    /// How many changing runs to undo
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Print what would change and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = REFERENCES)]
pub(crate) struct Restore {
    /// The version to bring back
    pub(crate) version: String,
    /// Bring back only these paths and what is below them
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Print what would change and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db update --base base.db                            onto the newest version of base.db
  sandlite --db agent.db update /lib --mount db:lib.db:/lib:overlay       an overlay that is mounted elsewhere
  sandlite --db agent.db update --base base.db --to before --theirs       what both sides changed is the base's")]
pub(crate) struct Update {
    /// Where the overlay is
    #[arg(default_value = "/")]
    pub(crate) path: String,
    #[command(flatten)]
    pub(crate) mounts: Mounts,
    /// The version to move onto [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: Option<String>,
    /// Keep the sandbox's own where both sides have changed a path
    #[arg(long, conflicts_with = "theirs")]
    pub(crate) ours: bool,
    /// Take the newer version where both sides have changed a path
    #[arg(long)]
    pub(crate) theirs: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Checkpoint {
    /// The name, which no other checkpoint has
    pub(crate) name: String,
    /// What to remember about it
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = true)]
pub(crate) struct Prune {
    /// Maximum number of versions to keep
    #[arg(long, value_name = "N")]
    pub(crate) keep_runs: Option<u64>,
    /// Keep versions younger than this: 30d, 12h
    #[arg(long, value_name = "AGE")]
    pub(crate) keep_age: Option<WallTime>,
    /// Maximum number of bytes of earlier versions to keep: 1GB
    #[arg(long, value_name = "SIZE")]
    pub(crate) keep_bytes: Option<ByteSize>,
}
