//! The files of a command that runs, as its programs see them: what they changed and what is not stored yet.

use std::sync::{Arc, Weak};

use sqlite_fs::{Entry, Fs, Stat, Transaction};

use crate::Error;
use crate::process::Job;
use crate::vfs::View;

/// The files of a running command, for reading. A [`Cancel`](crate::Cancel) gives them, and so does the context of a tool's call.
///
/// Permissions count as they do for programs. Once the command is over there is nothing to look at any more, and the sandbox's own
/// files have what it did.
#[derive(Clone, Default)]
pub struct RunningFiles(Weak<Job>);

impl RunningFiles {
    pub(crate) fn new(job: &Arc<Job>) -> Self {
        Self(Arc::downgrade(job))
    }

    /// Whether the command is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.upgrade().is_none_or(|job| job.is_over())
    }

    fn look<T>(&self, work: impl FnOnce(&Fs<'_, View<Transaction>>) -> Result<T, sqlite_fs::Error>) -> Result<T, Error> {
        // The job is taken apart once nobody holds it: each look is short.
        let job = self.0.upgrade().filter(|job| !job.is_over());
        let job = job.ok_or_else(|| Error::Invalid("the command is over".to_owned()))?;
        Ok(work(&job.view.fs())?)
    }

    /// The content of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is a directory, and once the command is over.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.look(|fs| fs.read(path))
    }

    /// Whether a path leads somewhere.
    ///
    /// # Errors
    ///
    /// Returns an error once the command is over.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        self.look(|fs| fs.exists(path))
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a directory, and once the command is over.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.look(|fs| fs.list(path))
    }

    /// Everything below a path and the path itself.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, and once the command is over.
    pub fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Error> {
        self.look(|fs| fs.walk(path))
    }

    /// The metadata of a file, links followed.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, and once the command is over.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        self.look(|fs| fs.metadata(path))
    }

    /// The metadata of the path itself, be it a link.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, and once the command is over.
    pub fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        self.look(|fs| fs.symlink_metadata(path))
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a link, and once the command is over.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        self.look(|fs| fs.read_link(path))
    }
}

impl std::fmt::Debug for RunningFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningFiles").field("is_over", &self.is_over()).finish()
    }
}
