//! A POSIX filesystem, a key-value store and a call history in one SQLite file.
//!
//! The tables are those of AgentFS 0.4, so AgentFS's own SDKs can open the file; our additions have the prefix `sandlite_`. One
//! command is one [`Transaction`]; other threads read the last committed state through a [`Reader`].
//!
//! ```
//! use sqlite_fs::Database;
//!
//! let database = Database::options().open()?; // in memory; `.path("agent.db")` stores it in a file
//! let transaction = database.begin(None)?;
//! transaction.fs().write("/notes.txt", b"hi")?;
//! transaction.commit()?;
//! assert_eq!(database.reader()?.fs().read("/notes.txt")?, b"hi");
//! # Ok::<(), sqlite_fs::Error>(())
//! ```
//!
//! # Threads and processes
//!
//! [`Database`] is `Send`, `Sync` and cheap to clone. One [`Transaction`] at a time is open in a file; [`Database::begin`] waits for
//! the one of another thread until its deadline, and for one of another process as long as [`Options::wait`] allows. A [`Reader`]
//! belongs to one thread, never waits, and returns the last committed state. Dropping a transaction rolls it back.
//! [`Database::close`] reports errors that dropping the last handle would hide.
//!
//! Knows nothing about wasm, processes or descriptors.

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
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files of their own and wait for time to pass"))]

mod beside;
mod budget;
mod calls;
mod check;
mod checkpoint;
mod clock;
mod compat;
mod contents;
mod copy;
mod database;
mod digest;
mod error;
mod format;
#[allow(clippy::missing_errors_doc, reason = "its operations fail as those of `std::fs` do, with an `FsError`")]
mod fs;
mod fs_path;
mod gather;
mod gauge;
mod import;
mod interrupt;
mod known;
mod kv;
mod making;
mod medium;
mod memory;
mod node;
mod options;
#[allow(clippy::missing_errors_doc, reason = "reading fails if the database does, and in no other way")]
mod past;
#[allow(clippy::missing_errors_doc, reason = "a walk fails as Linux's does, with an `FsError`")]
pub mod path;
mod patience;
mod place;
mod quota;
#[allow(clippy::missing_errors_doc, reason = "reading fails if the database does, and in no other way")]
mod reader;
mod rows;
mod schema;
mod sessions;
mod settings;
mod side;
mod small;
mod store;
mod stranger;
mod transaction;
mod turn;
#[allow(clippy::missing_errors_doc, reason = "reading fails if the database does, and in no other way")]
mod whiteout;

pub use calls::{Call, CallStatus, Calls, Filter, NewCall, Outcome, Run};
pub use check::Violation;
pub use clock::{Clock, SystemClock};
pub use compat::Compat;
pub use contents::Content;
pub use copy::Export;
pub use database::{Compacted, Database, WeakDatabase};
pub use error::{Error, FsError};
pub use fs::{Fs, Owner, Step, Visited, Volume, VolumeMut};
pub use fs_path::FsPath;
pub use import::{Import, Imported};
pub use interrupt::Interrupter;
pub use kv::{KeyPage, Kv, Value};
pub use making::NewFile;
pub use memory::MemoryBudget;
pub use node::{Entry, FileType, Ino, ROOT, Stat};
pub use options::{Durability, Options};
pub use past::{ChangedValues, Keep, Label, Pruned, Version, VersionKind};
pub use quota::{Counts, Quota, Usage};
pub use reader::Reader;
pub use sessions::Sessions;
pub use store::{Change, ChangeKind};
pub use transaction::{Savepoint, Transaction};
pub use whiteout::Rows;
