//! Work limits: SQLite may do as much work for one operation as the size of the file explains.
//!
//! Damaged pages can make a small file look endless: a table page can refer to the same page below it a thousand times, on every
//! level (T-SNAP-03). Work is counted in steps of SQLite's virtual machine, so that a slow disk or a busy machine does not
//! matter.

#![expect(clippy::disallowed_methods, reason = "the size of a file bounds the work on it")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use crate::error::{Error, Fault, damaged};

/// Number of steps between two checks.
const STEPS_PER_LOOK: std::ffi::c_int = 1000;
/// Minimum number of checks of every operation: some seconds of work.
const LOOKS: u64 = 100_000;
/// Number of bytes of the file that explain one more check. A row of 40 bytes explains 800 steps; the most expensive rule takes
/// 50.
const BYTES_PER_LOOK: u64 = 50;
/// The same for a copy. The shortest row has 12 bytes and takes 16 steps.
const BYTES_PER_LOOK_OF_COPY: u64 = 200;
/// Number of checks for reading the schema: some ten thousand tables and indexes.
const LOOKS_FOR_SCHEMA: u64 = 200;

/// The remaining work of one connection's current operation.
#[derive(Clone)]
pub(crate) struct Patience {
    left: Arc<AtomicU64>,
    full: u64,
}

impl Patience {
    /// Creates a limit for operations on a file.
    pub(crate) fn for_file(path: &Path) -> Self {
        Self::new(LOOKS + stored_bytes(path) / BYTES_PER_LOOK)
    }

    /// Creates a limit for copying every row of a file: each is read once for its table and once for an index. Smaller than
    /// [`for_file`](Self::for_file), because one step can copy a whole chunk.
    pub(crate) fn for_copy(path: &Path) -> Self {
        Self::new(LOOKS_FOR_SCHEMA + stored_bytes(path) / BYTES_PER_LOOK_OF_COPY)
    }

    /// Creates no limit: for a database in memory, whose pages are our own.
    pub(crate) fn endless() -> Self {
        Self::new(u64::MAX)
    }

    fn new(full: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(LOOKS_FOR_SCHEMA.min(full))), full }
    }

    /// Installs the limit on a connection. Until the first [`refill`](Self::refill) it allows reading the schema.
    pub(crate) fn watch(&self, connection: &mut Connection, also: impl Fn() -> bool + Send + 'static) -> rusqlite::Result<()> {
        let left = Arc::clone(&self.left);
        let is_spent = move || {
            let now = left.load(Ordering::Relaxed);
            left.store(now.saturating_sub(1), Ordering::Relaxed);
            now == 0
        };
        connection.progress_handler(STEPS_PER_LOOK, Some(move || is_spent() || also()))
    }

    /// Resets the limit for another operation.
    pub(crate) fn refill(&self) {
        self.left.store(self.full, Ordering::Relaxed);
    }

    /// Resets the limit for an operation on another database.
    pub(crate) fn refill_as(&self, other: &Self) {
        self.left.store(other.full, Ordering::Relaxed);
    }

    /// Converts the interruption of an operation that exceeded the limit to an error about damage.
    pub(crate) fn explain(&self, fault: Fault) -> Fault {
        let interrupted = Some(rusqlite::ErrorCode::OperationInterrupted);
        match fault {
            Fault::Sql(error) if error.sqlite_error_code() == interrupted && self.left.load(Ordering::Relaxed) == 0 => {
                Fault::Sql(damaged("its pages form a cycle"))
            }
            fault => fault,
        }
    }

    /// Same as [`explain`](Self::explain), for an operation of the embedder.
    pub(crate) fn explained<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match result {
            Err(Error::Interrupted) if self.left.load(Ordering::Relaxed) == 0 => {
                Err(Error::Damaged("its pages form a cycle".to_owned()))
            }
            result => result,
        }
    }
}

/// Maximum compression ratio of a filesystem; smaller files have holes.
const COMPRESSION: u64 = 64;
/// Up to here the size is trusted, because some filesystems take seconds to report the allocation of a new file.
const SIZE_BELIEVED: u64 = 64 << 20;

/// Returns the bytes of a database and its log. Holes take no space on the disk and do not count.
pub(crate) fn stored_bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    [path, Path::new(&log)].iter().map(|path| bytes_on_disk(path)).fold(0, u64::saturating_add)
}

/// Returns the bytes of one file.
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
