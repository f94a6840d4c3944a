//! The temporary directory of a service: files of forks, imports and temporary snapshots.
//!
//! A file is removed with its sandbox, and all files with the service. A service that was killed leaves its directory behind; the
//! next service recognizes it by its name and its released lock, and removes it.

#![expect(clippy::disallowed_methods, reason = "this is the place for temporary files")]

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The prefix of the directory names.
const PREFIX: &str = "sandlite-mcp-";
/// The lock file in each directory, held as long as the service lives.
const LOCK: &str = "lock";

/// The directory of this service.
pub(super) struct Scratch {
    directory: TempDir,
    // Held but not used: the system releases it however the process ends.
    _lock: File,
}

impl Scratch {
    /// Creates the directory, and removes those of services that have exited.
    pub(super) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::create_new(directory.path().join(LOCK))?;
        lock.lock()?;
        sweep(parent, directory.path());
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes the content now. Dropping also removes it, but may not happen when a server exits.
    pub(super) fn empty(&self) {
        let _ = std::fs::remove_dir_all(self.path());
    }
}

// Best effort: the next service tries again to remove the rest.
fn sweep(parent: &Path, ours: &Path) {
    let (Ok(entries), Ok(us)) = (std::fs::read_dir(parent), std::fs::symlink_metadata(ours)) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path != ours && entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&path, us.uid()) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

// A directory of our own user whose lock exists and is free. A directory without a lock is still being created.
fn is_abandoned(path: &Path, user: u32) -> bool {
    let Ok(found) = std::fs::symlink_metadata(path) else { return false };
    let lock = path.join(LOCK);
    let is_file = std::fs::symlink_metadata(&lock).is_ok_and(|lock| lock.is_file());
    found.is_dir() && found.uid() == user && is_file && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
}

/// A database in the directory, removed when it is dropped.
pub(super) struct TemporaryDatabase(pub(super) PathBuf);

impl Drop for TemporaryDatabase {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal", "-running"] {
            let mut name = self.0.as_os_str().to_owned();
            name.push(suffix);
            let _ = std::fs::remove_file(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-REL-06
    #[test]
    fn t_rel_06_the_directory_of_a_killed_service_goes_and_that_of_a_living_one_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::new_in(parent.path()).unwrap();
        let killed = Scratch::new_in(parent.path()).unwrap();
        let left = killed.directory.keep();
        drop(killed._lock);
        std::fs::write(left.join("0.db"), vec![0; 100_000]).unwrap();
        let foreign = parent.path().join("sandlite-mcp-unlocked");
        std::fs::create_dir(&foreign).unwrap();
        let next = Scratch::new_in(parent.path()).unwrap();
        assert!(!left.exists() && living.path().exists() && foreign.exists());
        next.empty();
        assert!(!next.path().exists());
    }
}
