//! Options for opening a database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::database::Database;
use crate::error::Error;
use crate::making;
use crate::quota::Quota;

/// Default of [`Options::cache`].
const CACHE_BYTES: usize = 8 << 20;

/// Minimum size of the past that a database in memory keeps, even with a small file quota.
const PAST_IN_MEMORY: u64 = 16 << 20;

/// The events that a returned commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The process being killed, and a power failure: SQLite syncs on every commit.
    #[default]
    PowerSafe,
    /// The process being killed. A power failure or a system crash may lose the last commits, in order, but never damages the
    /// file.
    CrashSafe,
}

/// Options for opening a database; see [`Database::options`].
#[derive(Clone)]
#[must_use]
pub struct Options {
    pub(crate) path: Option<PathBuf>,
    pub(crate) read_only: bool,
    pub(crate) durability: Durability,
    pub(crate) quota: Quota,
    pub(crate) cache: usize,
    pub(crate) secure_delete: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) wait: Duration,
    pub(crate) versions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: None,
            read_only: false,
            durability: Durability::default(),
            quota: Quota::default(),
            cache: CACHE_BYTES,
            secure_delete: false,
            clock: Arc::new(SystemClock),
            wait: Duration::ZERO,
            versions: true,
        }
    }
}

impl Options {
    /// Stores the database in this file, which is created if missing. Without a path it is in memory.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Allows only readers; works while another process writes.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Sets the events that a commit survives.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the quota of transactions.
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Sets the memory for contents that a transaction has not written back yet; defaults to 8 MiB. Inodes and names use a
    /// separate cache of about the same size.
    pub fn cache(mut self, bytes: usize) -> Self {
        self.cache = bytes;
        self
    }

    /// Overwrites deleted data with zeros, also in the file itself, at the cost of writing it once more. Otherwise deleted rows
    /// are overwritten only if their page is written anyway, and freed pages keep their bytes until they are reused. Data saved
    /// by versions remains until they are pruned. An export contains none of these.
    pub fn secure_delete(mut self) -> Self {
        self.secure_delete = true;
        self
    }

    /// Sets how long a transaction waits for another process that has the same file open. Defaults to not waiting.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets whether each commit becomes a version that can be read later, which is the default. Otherwise the first commit that
    /// changes anything drops the existing versions.
    pub fn versions(mut self, kept: bool) -> Self {
        self.versions = kept;
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the maximum size of the past.
    pub(crate) fn past_allowed(&self) -> u64 {
        if self.path.is_some() { self.quota.past } else { self.quota.past.min((self.quota.bytes / 8).max(PAST_IN_MEMORY)) }
    }

    /// Opens the database.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Locked`] if another process is creating or upgrading the file; [`Error::Foreign`], [`Error::TooNew`],
    /// [`Error::Tampered`] or [`Error::NotADatabase`] if this version cannot use the file; [`Error::NetworkFilesystem`] if it is
    /// on another machine; and [`Error::Disk`], [`Error::Unwritable`] or [`Error::CannotOpen`] if it cannot be opened.
    pub fn open(self) -> Result<Database, Error> {
        Database::open(self)
    }

    /// Opens a database that was just published; if it cannot be opened it is removed, unless another process already uses it.
    pub(crate) fn open_published(self) -> Result<Database, Error> {
        let path = self.path.clone();
        self.open().inspect_err(|error| {
            if let Some(path) = path.filter(|_| !matches!(error, Error::Locked { .. })) {
                making::remove_database(&path);
            }
        })
    }
}
