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
pub use error::{Error, ErrorKind};
pub use guests::PYTHON_LICENSES as LICENSES;
/// The package of the scientific Python, and its version: [`Host::add_python_sci`] installs it.
pub use guests::scientific::PACKAGE as SCIENTIFIC_PACKAGE;
pub use history::{Commit, FileChange, HistoryFilter, Run};
#[cfg(feature = "unmetered")]
pub use host::Metering;
pub use host::{GuestStatus, Host, HostBuilder, InstalledProgram, Progress, Starting};
pub use limits::{LimitReached, Usage};
pub use packages::{Fetched, Installation, Package, Packages, Refused, Sources, requirements};
pub use presets::{
    Access, ByteSize, Labels, LimitName, LimitValue, Limits, Overrides, Policy, PolicyError, Preset, Rule, WallTime,
};
pub use programs::{CommandCall, CommandInput, CommandOutput};
pub use run::{Child, ChildOutput, ChildStdin, Command, ExitStatus, Output, RESTARTED, RunningFiles, Shown, Stream};
pub use sandbox::{Builder, Content, FilePage, Files, Found, Kv, KvEntry, Mount, Python, Sandbox, Side, Summary, Update};
pub use session::{PythonSession, Session};
pub use sqlite_fs::{
    Compat, Entry, Export, FileType, FsError, Keep, KeyPage, Label, NewFile, Pruned, Stat, Version, VersionKind, Violation,
};
pub use tools::{JsonSchema, Tool, ToolContext, ToolPause};
pub use versions::{
    Applied, AppliedFile, Apply, BisectStep, Bisection, Blame, Comparison, Difference, DifferenceKind, Event, EventPage,
    GitExport, GitExported, GitForm, GitImport, GitImported, LoggedVersion, Refusal, ReplayDifference, Replayed, ShownRun,
    Verdict, Versions,
};
pub use vfs::{NodeContext, ProvidedNode, Provider, TreeCopy, TreeMark};
