//! How a database is opened.

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

/// Bytes of the past that a database in memory keeps even where its files may be few.
const PAST_IN_MEMORY: u64 = 16 << 20;

/// What a commit survives once it has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The process being killed, and a power cut: SQLite syncs on every commit.
    #[default]
    PowerSafe,
    /// The process being killed. A power cut or a crash of the system may lose the last commits, in order, and never
    /// damages the file.
    CrashSafe,
}

/// A database about to be opened; see [`Database::options`].
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
    /// Keeps the database in this file, made if it is missing. Without a path it lives in memory.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Only readers; works while another process writes.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// What a commit survives.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What transactions may fill.
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Memory for contents that a transaction has not written back yet, 8 MiB unless told; inodes and names have their
    /// own share beside it, about as much again.
    pub fn cache(mut self, bytes: usize) -> Self {
        self.cache = bytes;
        self
    }

    /// Overwrites with zeros whatever is deleted, in the file itself too, at the price of writing it once more. Without
    /// this, deleted rows are overwritten where their page is written anyway, and pages that become free keep their bytes
    /// until they are used again. What versions save stays until they are pruned. An export has none of these.
    pub fn secure_delete(mut self) -> Self {
        self.secure_delete = true;
        self
    }

    /// How long a transaction waits for one of another process that has the same file open. Defaults to not at all.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Whether each commit is a version that can be read later, which is the default. Without this, the first commit that
    /// changes anything drops the versions that are there.
    pub fn versions(mut self, kept: bool) -> Self {
        self.versions = kept;
        self
    }

    /// Where times come from.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Bytes of the past that are kept.
    pub(crate) fn past_allowed(&self) -> u64 {
        if self.path.is_some() { self.quota.past } else { self.quota.past.min((self.quota.bytes / 8).max(PAST_IN_MEMORY)) }
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Locked`] if another process is creating or upgrading the file, [`Error::Foreign`], [`Error::TooNew`],
    /// [`Error::Tampered`] or [`Error::NotADatabase`] if the file is not one that this version made,
    /// [`Error::NetworkFilesystem`] if it is on another machine, or [`Error::Disk`], [`Error::Unwritable`] or
    /// [`Error::CannotOpen`] if it cannot be opened.
    pub fn open(self) -> Result<Database, Error> {
        Database::open(self)
    }

    /// Opens a database that was published just now; one that cannot be opened is not left behind, unless another process
    /// was quicker and has it.
    pub(crate) fn open_published(self) -> Result<Database, Error> {
        let path = self.path.clone();
        self.open().inspect_err(|error| {
            if let Some(path) = path.filter(|_| !matches!(error, Error::Locked { .. })) {
                making::remove_database(&path);
            }
        })
    }
}
