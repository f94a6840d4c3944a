//! Sandlite's runtime: WebAssembly guests on a SQLite filesystem, with enforced limits.
//!
//! The reading order is the journey of a command: [`Sandbox`] admits it, `process` gives it a pid, descriptors and a wasm
//! instance, `wasi` decodes its requests, `vfs` finds the files, `sqlite-fs` stores them, and the run is recorded in the same
//! transaction.
//!
//! ```no_run
//! use sandlite_runtime::{Preset, Sandbox};
//!
//! let sandbox = Sandbox::builder().database("agent.db").preset(Preset::Normal).open()?;
//! let output = sandbox.bash("echo hello | tr a-z A-Z")?;
//! assert_eq!(output.stdout, b"HELLO\n");
//! # Ok::<(), sandlite_runtime::Error>(())
//! ```
//!
//! # Results and errors
//!
//! A command that exits with 1, is killed by a signal or reaches a limit is an [`Output`] with an [`ExitStatus`], not an [`Error`].
//! An [`Error`] means that the command could not be run, or its changes could not be stored; nothing was changed then.
//! [`Error::kind`] returns one of the twelve [`ErrorKind`]s, which lists the cause of each; [`Error::hint`] returns what to do.
//!
//! # Threads
//!
//! [`Host`], [`Sandbox`] and [`Cancel`] are `Send`, `Sync` and cheap to clone: clones share the engine and the database.
//! [`Command`] and [`Child`] are `Send`. No function needs an async runtime. [`Sandbox::run`] blocks its thread;
//! [`Sandbox::spawn`] returns a [`Child`] at once. Guests run on threads of the host, one for each process of the sandbox.
//!
//! - One command or change at a time runs in a database. Others wait, in no particular order, for at most ten minutes, then fail
//!   with [`ErrorKind::Busy`].
//! - Reads ([`Sandbox::fs`], [`Sandbox::kv`], [`Sandbox::history`]) never wait for a command. They return the last committed state;
//!   changes of a running command become visible all at once when it ends.
//! - Sandboxes in different databases do not wait for each other. Share one [`Host`] between them: an engine takes some
//!   milliseconds to start, and its compiled guests are loaded once.
//! - Callbacks ([`Tool`], [`Builder::command`], [`Provider`], [`Sandbox::on_commit`]) run on the host's threads, possibly several
//!   at once, while the command waits. A callback that runs a command or changes files in the same sandbox would wait for itself:
//!   use the context that it receives ([`ToolContext`], [`CommandCall`], [`NodeContext`]), or another sandbox.
//! - A panic in a callback is caught and returned to the guest as an error.
//!
//! # Processes
//!
//! Several processes may open the same file. One of them at a time runs a command; another waits for as long as
//! [`Builder::wait`] allows (ten seconds by default), then fails with [`ErrorKind::Busy`]. Reading never waits. The file must be on
//! a local file system: locks of network file systems are not reliable, and such a file is rejected. Do not copy, move or replace
//! the file while it is open; use [`Sandbox::export`] or [`Sandbox::fork_to`]. After `fork(2)`, the child process must not use
//! handles of its parent.
//!
//! A process that is killed loses its running command and nothing else: the next open rolls back. [`Builder::power_safe`] extends
//! this to power failures.
//!
//! # Closing
//!
//! Dropping the last handle closes the sandbox and ignores errors; [`Sandbox::close`] reports them.
//!
//! # Limits
//!
//! [`Builder::preset`] selects one of three sets of limits. [`Builder::limits`] and [`Command::limits`] lower some of them;
//! [`Builder::custom_limits`] sets any value, for the owner of a sandbox.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::cast_possible_truncation,
        clippy::missing_errors_doc
    )
)]

pub mod actions;
pub mod agent;
mod cancel;
mod clock;
mod defaults;
mod error;
mod history;
mod host;
mod limits;
mod packages;
mod process;
mod programs;
mod random;
mod run;
mod sandbox;
mod session;
mod tools;
mod versions;
mod vfs;
mod wasi;

pub use cancel::Cancel;
pub use defaults::HOME;
pub use error::{Error, ErrorKind, causes};
pub use guests::PYTHON_LICENSES as LICENSES;
/// The package of the scientific Python, and its version: [`Host::add_python_sci`] installs it.
pub use guests::scientific::PACKAGE as SCIENTIFIC_PACKAGE;
pub use history::{Commit, FileChange, HistoryFilter, Json, Run};
#[cfg(feature = "unmetered")]
pub use host::Metering;
pub use host::{GuestStatus, Host, HostBuilder, InstalledProgram, Progress, Starting};
pub use limits::{LimitReached, Usage};
pub use packages::{Fetched, Installation, PIP_PROGRAM, Package, Packages, Refused, Sources, requirements};
pub use presets::{
    Access, ByteSize, Labels, LimitName, LimitValue, Limits, Overrides, Policy, PolicyError, Preset, Rule, WallTime,
};
pub use programs::{CommandCall, CommandInput, CommandOutput};
pub use run::{Child, ChildOutput, ChildStdin, Command, ExitStatus, Output, RESTARTED, RunningFiles, Shown, Stream};
pub use sandbox::{
    Builder, Content, FilePage, Files, Found, Kv, KvEntry, Mount, Python, Sandbox, Side, Summary, Update, absolute,
};
pub use session::{PythonSession, Session};
pub use sqlite_fs::{
    Compat, Entry, Export, FileType, FsError, Keep, KeyPage, Label, NewFile, Pruned, Stat, Version, VersionKind, Violation,
};
pub use tools::{JsonSchema, Tool, ToolContext, ToolPause};
pub use versions::{
    Applied, AppliedFile, Apply, BisectStep, Bisection, Blame, Comparison, Difference, DifferenceKind, Event, EventPage,
    GitExport, GitExported, GitForm, GitImport, GitImported, LoggedVersion, Refusal, ReplayDifference, Replayed, ShownRun,
    ValueDifference, ValueKind, Verdict, Versions,
};
pub use vfs::{NodeContext, ProvidedNode, Provider, TreeCopy, TreeMark};
