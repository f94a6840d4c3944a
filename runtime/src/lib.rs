//! Sandlite's runtime: WebAssembly guests over a SQLite filesystem, with limits that hold.
//!
//! The reading order is the journey of a command: [`Sandbox`] admits it, `process` gives it a pid, descriptors and a wasm
//! instance, `wasi` decodes what it asks, `vfs` finds the files, `sqlite-fs` stores them, and the run is recorded in the
//! same transaction.
//!
//! ```no_run
//! use sandlite_runtime::{Preset, Sandbox};
//!
//! let sandbox = Sandbox::builder().database("agent.db").preset(Preset::Normal).open()?;
//! let output = sandbox.bash("echo hello | tr a-z A-Z")?;
//! assert_eq!(output.stdout, b"HELLO\n");
//! # Ok::<(), sandlite_runtime::Error>(())
//! ```

pub mod actions;
mod clock;
mod error;
mod history;
mod host;
mod limits;
mod process;
mod random;
mod sandbox;
mod tools;
mod vfs;
mod wasi;

pub use error::Error;
pub use guests::PYTHON_LICENSES as LICENSES;
/// The package that holds the scientific Python, and its version: [`Host::add_python_sci`] installs it.
pub use guests::scientific::PACKAGE as SCIENTIFIC_PACKAGE;
pub use history::{HistoryFilter, Run};
#[cfg(feature = "unmetered")]
pub use host::Metering;
pub use host::{GuestStatus, Host, HostBuilder, Progress, Starting};
pub use limits::{LimitReached, Usage};
pub use presets::{ByteSize, LimitName, Limits, Overrides, Preset, WallTime};
pub use sandbox::agent;
pub use sandbox::{
    Builder, Child, ChildOutput, ChildStdin, Command, Content, ExitStatus, FilePage, Files, Found, HOME, Killer, Kv, KvEntry,
    Mount, Output, Package, Packages, Python, PythonSession, Sandbox, Session, Stream, Summary,
};
pub use sqlite_fs::{Compat, Entry, Export, FileType, FsError, KeyPage, NewFile, Stat, Violation};
pub use tools::{Tool, ToolContext};
pub use vfs::TreeCopy;
