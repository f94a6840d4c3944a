//! The arguments of the verbs for versions.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use runtime::{ByteSize, Mount, WallTime};

use super::run::{Mounts, mounted};

const REFERENCES: &str = "\
 A version is identified by the number of the run that created it, HEAD (the newest), HEAD~3 (three versions earlier), \
a checkpoint, or a time: '@{2 hours ago}', '@{2026-01-31T12:00}'.";

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db log             list the versions, newest first
  sandlite --db agent.db log /src -n 5   list the last five that changed /src")]
pub(crate) struct Log {
    /// List only versions that changed this path or a path below it
    pub(crate) path: Option<String>,
    /// Maximum number of versions to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print the number of added and removed lines per file
    #[arg(long)]
    pub(crate) stat: bool,
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
    #[arg(value_name = "VERSION|PATH")]
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
  sandlite --db agent.db changes                                   show all changes
  sandlite --db agent.db changes before --patch > agent.patch      for `git apply`
  sandlite --db agent.db changes --mount .:/src:overlay            show those to this directory")]
pub(crate) struct Changes {
    /// Show changes since this version [default: the mounted directories, else the state before the first run]
    #[arg(value_name = "VERSION")]
    pub(crate) since: Option<String>,
    /// Show only changes of this path and below it; names in a patch are relative to it
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Compare with a directory on this machine that commands used as an overlay
    #[arg(long, value_name = "HOST:GUEST:overlay", value_parser = mounted)]
    pub(crate) mount: Vec<Mount>,
    /// Print a patch for `git apply`, including binary files
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
  sandlite --db agent.db apply . --mount .:/src:overlay --dry-run     show the changes
  sandlite --db agent.db apply . --mount .:/src:overlay               apply them
  sandlite --db agent.db apply ./out --path /work --since before      apply the changes of /work

Either all changes are applied or none. A file that was also edited in the directory is a conflict: \
its name is printed and nothing is changed. Paths below .git, links that lead out of the directory and names of keys (.ssh, .aws) are skipped and listed.")]
pub(crate) struct Apply {
    /// The directory on this machine
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: PathBuf,
    /// Apply changes since this version [default: the mounted directory, else the state before the first run]
    #[arg(long, value_name = "VERSION")]
    pub(crate) since: Option<String>,
    /// The corresponding directory in the sandbox [default: where it is mounted, else /]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// The directory that commands used as an overlay
    #[arg(long, value_name = "HOST:GUEST:overlay", value_parser = mounted)]
    pub(crate) mount: Vec<Mount>,
    /// Print the changes and conflicts without applying anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print a patch for `git apply` instead of changing the directory
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) patch: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = REFERENCES)]
pub(crate) struct Show {
    /// The run number, or a version
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

The command runs in a temporary copy of each version tried. Exit codes: 0: good; 125: skip this version; \
1 to 127: bad; 128 and above: stop searching.")]
pub(crate) struct Bisect {
    /// A version at which the command succeeds
    #[arg(long, value_name = "VERSION")]
    pub(crate) good: String,
    /// A later version at which it fails
    #[arg(long, value_name = "VERSION", default_value = "HEAD")]
    pub(crate) bad: String,
    /// The command: one argument is a command line, several are its words
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db bash --record -c 'python3 build.py'    record the inputs of a run
  sandlite replay agent.db                                       replay it and compare

Every run uses the limits of --preset, not those of the recording. Exit code 1: a run differs.")]
pub(crate) struct Replay {
    /// The sandbox file, which is only read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The version to start from [default: the state before the first recorded run]
    #[arg(long, value_name = "VERSION")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Undo {
    /// Number of runs to undo, counting only runs that changed something
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Print what would change without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = REFERENCES)]
pub(crate) struct Restore {
    /// The version to restore
    pub(crate) version: String,
    /// Restore only these paths and everything below them
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Print what would change without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite --db agent.db update --base base.db                        move onto its newest version
  sandlite --db agent.db update /lib --mount db:lib.db:/lib:overlay   update a mounted overlay
  sandlite --db agent.db update --base base.db --to before --theirs   prefer the base")]
pub(crate) struct Update {
    /// The path of the overlay
    #[arg(default_value = "/")]
    pub(crate) path: String,
    #[command(flatten)]
    pub(crate) mounts: Mounts,
    /// The version to move onto [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: Option<String>,
    /// Resolve conflicts in favor of the sandbox
    #[arg(long, conflicts_with = "theirs")]
    pub(crate) ours: bool,
    /// Resolve conflicts in favor of the newer version
    #[arg(long)]
    pub(crate) theirs: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Checkpoint {
    /// The name, which must be unique
    pub(crate) name: String,
    /// A message to store with the checkpoint
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = true)]
pub(crate) struct Prune {
    /// Maximum number of versions to keep
    #[arg(long, value_name = "N")]
    pub(crate) keep_runs: Option<u64>,
    /// Keep versions younger than this, such as 30d or 12h
    #[arg(long, value_name = "AGE")]
    pub(crate) keep_age: Option<WallTime>,
    /// Maximum size of earlier versions to keep, such as 1GB
    #[arg(long, value_name = "SIZE")]
    pub(crate) keep_bytes: Option<ByteSize>,
}
