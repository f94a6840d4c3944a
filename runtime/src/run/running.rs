//! The files of a running command as its programs see them, including uncommitted changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use sqlite_fs::{Entry, Fs, Stat, Transaction};

use crate::Error;
use crate::process::Job;
use crate::vfs::View;

/// The files of a running command, from a [`Cancel`](crate::Cancel) or the context of a tool call.
///
/// Permissions apply as for programs. After the command has ended access fails, and the sandbox's own files contain its changes.
#[derive(Clone, Default)]
pub struct RunningFiles {
    job: Weak<Job>,
    /// Set when the call that received them has ended, which may be earlier than the command.
    call_over: Arc<AtomicBool>,
}

impl RunningFiles {
    pub(crate) fn new(job: &Arc<Job>) -> Self {
        Self { job: Arc::downgrade(job), call_over: Arc::default() }
    }

    /// Returns the same, limited to the duration of a call.
    pub(crate) fn until(self, call_over: &Arc<AtomicBool>) -> Self {
        Self { call_over: Arc::clone(call_over), ..self }
    }

    /// Returns whether the command has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.call_over.load(Ordering::Acquire) || self.job.upgrade().is_none_or(|job| job.is_over())
    }

    fn look<T>(&self, work: impl FnOnce(&Fs<'_, View<Transaction>>) -> Result<T, sqlite_fs::Error>) -> Result<T, Error> {
        // The job is torn down once it is not referenced, so each access is short.
        let job = self.job.upgrade().filter(|job| !job.is_over() && !self.call_over.load(Ordering::Acquire));
        let job = job.ok_or_else(|| Error::Invalid("the command has ended".to_owned()))?;
        Ok(work(&job.view.fs())?)
    }

    /// Returns the content of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist or is a directory, or if the command has ended.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.look(|fs| fs.read(path))
    }

    /// Returns whether a path exists.
    ///
    /// # Errors
    ///
    /// Returns an error if the command has ended.
    pub fn exists(&self, path: &str) -> Result<bool, Error> {
        self.look(|fs| fs.exists(path))
    }

    /// Returns the names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a directory, or if the command has ended.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        self.look(|fs| fs.list(path))
    }

    /// Returns a path and everything below it.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, or if the command has ended.
    pub fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Error> {
        self.look(|fs| fs.walk(path))
    }

    /// Returns the metadata of a file, following links.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, or if the command has ended.
    pub fn metadata(&self, path: &str) -> Result<Stat, Error> {
        self.look(|fs| fs.metadata(path))
    }

    /// Returns the metadata of the path itself, even if it is a link.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, or if the command has ended.
    pub fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        self.look(|fs| fs.symlink_metadata(path))
    }

    /// Writes a file, which is created if missing. The change is part of the run, like those of its programs.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written, or if the command has ended.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.look(|fs| fs.write(path, bytes))
    }

    /// Appends to a file, which is created if missing.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written, or if the command has ended.
    pub fn append(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.look(|fs| fs.append(path, bytes))
    }

    /// Creates a directory and its missing parents.
    ///
    /// # Errors
    ///
    /// Returns an error if the path is not a directory, or if the command has ended.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        self.look(|fs| fs.create_dir_all(path))
    }

    /// Removes a file, or a directory with its content.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, or if the command has ended.
    pub fn remove(&self, path: &str) -> Result<(), Error> {
        self.look(|fs| fs.remove(path).map(drop))
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a link, or if the command has ended.
    pub fn read_link(&self, path: &str) -> Result<String, Error> {
        self.look(|fs| fs.read_link(path))
    }
}

impl std::fmt::Debug for RunningFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningFiles").field("is_over", &self.is_over()).finish()
    }
}
