//! The files of a command that runs, as its programs see them: what they changed and what is not stored yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use sqlite_fs::{Entry, Fs, Stat, Transaction};

use crate::Error;
use crate::process::Job;
use crate::vfs::View;

/// The files of a running command. A [`Cancel`](crate::Cancel) gives them, and so does the context of a tool's call.
///
/// Permissions count as they do for programs. Once the command is over there is nothing to look at any more, and the sandbox's own
/// files have what it did.
#[derive(Clone, Default)]
pub struct RunningFiles {
    job: Weak<Job>,
    /// Set when the call that they were given to has ended, which may be sooner than the command.
    call_over: Arc<AtomicBool>,
}

impl RunningFiles {
    pub(crate) fn new(job: &Arc<Job>) -> Self {
        Self { job: Arc::downgrade(job), call_over: Arc::default() }
    }

    /// The same until a call is over.
    pub(crate) fn until(self, call_over: &Arc<AtomicBool>) -> Self {
        Self { call_over: Arc::clone(call_over), ..self }
    }

    /// Whether the command is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.call_over.load(Ordering::Acquire) || self.job.upgrade().is_none_or(|job| job.is_over())
    }

    fn look<T>(&self, work: impl FnOnce(&Fs<'_, View<Transaction>>) -> Result<T, sqlite_fs::Error>) -> Result<T, Error> {
        // The job is taken apart once nobody holds it: each look is short.
        let job = self.job.upgrade().filter(|job| !job.is_over() && !self.call_over.load(Ordering::Acquire));
        let job = job.ok_or_else(|| Error::Invalid("the command has ended".to_owned()))?;
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

    /// Writes a file, created if it does not exist. What is written is part of the run, as what its programs write is.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written, and once the command is over.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.look(|fs| fs.write(path, bytes))
    }

    /// Adds to the end of a file, created if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written, and once the command is over.
    pub fn append(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.look(|fs| fs.append(path, bytes))
    }

    /// Creates a directory, and those above it.
    ///
    /// # Errors
    ///
    /// Returns an error if something else is there, and once the command is over.
    pub fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        self.look(|fs| fs.create_dir_all(path))
    }

    /// Removes a file, or a directory with all that is in it.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exist, and once the command is over.
    pub fn remove(&self, path: &str) -> Result<(), Error> {
        self.look(|fs| fs.remove(path).map(drop))
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
