//! How much work SQLite may do for one operation: as much as the size of the file explains, and no more.
//!
//! Damaged pages can make a small file look endless: a page of a table can name the same page below it a thousand times, on
//! every level (T-SNAP-03). Work is counted in steps of SQLite's machine, so that a slow disk or a busy machine spends none.

#![expect(clippy::disallowed_methods, reason = "the size of a file bounds the work on it")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use crate::error::{Error, Fault, damaged};

/// Steps of SQLite's machine between two looks.
const STEPS_PER_LOOK: std::ffi::c_int = 1000;
/// Looks that every operation has: some seconds of work.
const LOOKS: u64 = 100_000;
/// Bytes of the file that explain one more look. A row of 40 bytes explains 800 steps; the hungriest rule takes 50.
const BYTES_PER_LOOK: u64 = 50;
/// The same for a copy. The shortest row has 12 bytes and takes 16 steps.
const BYTES_PER_LOOK_OF_COPY: u64 = 200;
/// Looks for reading the schema: some ten thousand tables and indexes.
const LOOKS_FOR_SCHEMA: u64 = 200;

/// What is left of it for one connection's current operation.
#[derive(Clone)]
pub(crate) struct Patience {
    left: Arc<AtomicU64>,
    full: u64,
}

impl Patience {
    /// As much as a file explains.
    pub(crate) fn for_file(path: &Path) -> Self {
        Self::new(LOOKS + stored_bytes(path) / BYTES_PER_LOOK)
    }

    /// As much as copying every row of a file takes: each is looked at once for its table and once for an index. Less than
    /// [`for_file`](Self::for_file) has, for one step can move a whole chunk.
    pub(crate) fn for_copy(path: &Path) -> Self {
        Self::new(LOOKS_FOR_SCHEMA + stored_bytes(path) / BYTES_PER_LOOK_OF_COPY)
    }

    /// Without an end: for a database in memory, whose pages nobody else made.
    pub(crate) fn endless() -> Self {
        Self::new(u64::MAX)
    }

    fn new(full: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(LOOKS_FOR_SCHEMA.min(full))), full }
    }

    /// Looks on while a connection works. Until the first [`refill`](Self::refill) there is enough for the schema.
    pub(crate) fn watch(&self, connection: &mut Connection, also: impl Fn() -> bool + Send + 'static) -> rusqlite::Result<()> {
        let left = Arc::clone(&self.left);
        let is_spent = move || {
            let now = left.load(Ordering::Relaxed);
            left.store(now.saturating_sub(1), Ordering::Relaxed);
            now == 0
        };
        connection.progress_handler(STEPS_PER_LOOK, Some(move || is_spent() || also()))
    }

    /// Another operation begins.
    pub(crate) fn refill(&self) {
        self.left.store(self.full, Ordering::Relaxed);
    }

    /// The next operation is about another database, and takes as much as that one explains.
    pub(crate) fn refill_as(&self, other: &Self) {
        self.left.store(other.full, Ordering::Relaxed);
    }

    /// What an interrupted operation really met.
    pub(crate) fn explain(&self, fault: Fault) -> Fault {
        let interrupted = Some(rusqlite::ErrorCode::OperationInterrupted);
        match fault {
            Fault::Sql(error) if error.sqlite_error_code() == interrupted && self.left.load(Ordering::Relaxed) == 0 => {
                Fault::Sql(damaged("its pages lead round in circles"))
            }
            fault => fault,
        }
    }

    /// The same for an operation of the embedder.
    pub(crate) fn explained<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match result {
            Err(Error::Interrupted) if self.left.load(Ordering::Relaxed) == 0 => {
                Err(Error::Damaged("its pages lead round in circles".to_owned()))
            }
            result => result,
        }
    }
}

/// How much smaller a filesystem that compresses may make a database. What is smaller still has holes.
const COMPRESSION: u64 = 64;
/// Up to here the size is believed: some filesystems take seconds to say what a new file takes.
const SIZE_BELIEVED: u64 = 64 << 20;

/// Bytes of a database and its log. A hole takes no place on the disk and does not count, whatever the size says.
pub(crate) fn stored_bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    [path, Path::new(&log)].iter().map(|path| bytes_on_disk(path)).fold(0, u64::saturating_add)
}

/// The same for one file.
#[cfg(unix)]
pub(crate) fn bytes_on_disk(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path)
        .map_or(0, |metadata| metadata.len().min(metadata.blocks().saturating_mul(512 * COMPRESSION).max(SIZE_BELIEVED)))
}

#[cfg(not(unix))]
pub(crate) fn bytes_on_disk(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
