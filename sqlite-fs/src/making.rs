//! Atomic creation of files: each is written in a private directory next to its target and renamed at the end.
//!
//! The directory is locked while its creator lives. A killed process leaves it behind unlocked, and the next creator in the same
//! place removes it. Knows nothing about the content of the files.

#![expect(clippy::disallowed_methods, reason = "this is the place that makes files")]

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::side::{self, Side};

/// The prefix of the directory names, followed by the creator's process ID and a number.
const PREFIX: &str = ".sandlite-new-";
/// The name of the new file in its directory.
const NAME: &str = "new";
/// The files that SQLite and we keep next to a database.
const BESIDE: [&str; 4] = ["-journal", "-wal", "-shm", "-running"];

/// A directory that only we can enter, locked while it is in use and removed when dropped.
pub(crate) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Creates a directory in `parent`, and removes those that killed processes left there.
    pub(crate) fn new_in(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        loop {
            let path = parent.join(next_name());
            let mut builder = DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(&path) {
                // Left by a process with this ID in another container, or by one that died.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            // Until it is locked, another creator may remove the directory as a leftover: then a new one is needed.
            match lock(&path) {
                Ok(Some(lock)) => return Ok(Self { path, _lock: lock }),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let _ = std::fs::remove_dir(&path);
                    return Err(error);
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Removed while still locked, so that no other process removes it at the same time.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Returns a name that this process has not used yet.
fn next_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{PREFIX}{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Locks a directory that is still at its path; `None` if it is in use.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let directory = File::open(path)?;
    match directory.try_lock() {
        Ok(()) if side::is_at(&directory, path) => Ok(Some(directory)),
        Ok(()) | Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the leftovers of this user's killed processes in a directory, as far as possible.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(is_ours) || !is_own_directory(&entry) {
            continue;
        }
        if let Ok(Some(_lock)) = lock(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_ours(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).is_some_and(|(pid, count)| number(pid) && number(count))
}

// In a directory that many users can write, such as `/tmp`, a name proves nothing.
fn is_own_directory(entry: &std::fs::DirEntry) -> bool {
    let Ok(metadata) = entry.metadata() else { return false };
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
    }
    #[cfg(not(target_os = "linux"))]
    metadata.is_dir()
}

/// A file or directory being created: written at [`path`](Self::path), visible at its target once published. Dropping it earlier
/// removes everything.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// let target = dir.path().join("page.html");
/// let new = sqlite_fs::NewFile::beside(&target)?;
/// std::fs::write(new.path(), "whole")?;
/// assert!(!target.exists());
/// new.replace()?;
/// assert_eq!(std::fs::read(&target)?, b"whole");
/// assert_eq!(std::fs::read_dir(dir.path())?.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NewFile {
    target: PathBuf,
    path: PathBuf,
    scratch: Scratch,
}

impl NewFile {
    /// Starts creating a file or directory at `target`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Disk`] if the target's directory is not writable.
    pub fn beside(target: &Path) -> Result<Self, Error> {
        let disk = |source| Error::Disk { path: target.to_owned(), source };
        let parent = parent(target).map_err(disk)?;
        let scratch = Scratch::new_in(&parent).map_err(disk)?;
        Ok(Self { target: target.to_owned(), path: scratch.path().join(NAME), scratch })
    }

    /// Returns the path to write to.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything that this process is creating next to `target`, for a process that is about to exit.
    pub fn abandon(target: &Path) {
        let own = format!("{PREFIX}{}-", std::process::id());
        let Ok(parent) = parent(target) else { return };
        let Ok(entries) = std::fs::read_dir(&parent) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&own))) {
            // Another thread may be about to publish it: under another name it finds nothing to publish.
            let aside = parent.join(next_name());
            if std::fs::rename(entry.path(), &aside).is_ok() {
                let _ = std::fs::remove_dir_all(&aside).or_else(|_| std::fs::remove_dir_all(&aside));
            }
        }
    }

    /// Returns the private directory.
    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Moves it to its target, which must not exist.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Disk`] if the target exists, or if it cannot be moved.
    pub fn publish(self) -> Result<(), Error> {
        rename_to_free(&self.path, &self.target).map_err(|source| self.failed(source))
    }

    /// Moves it to its target, replacing an existing file and keeping that file's permissions.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Disk`] if it cannot be moved.
    pub fn replace(self) -> Result<(), Error> {
        let replace = || {
            if let Ok(there) = std::fs::metadata(&self.target) {
                std::fs::set_permissions(&self.path, there.permissions())?;
            }
            File::open(&self.path)?.sync_all()?;
            std::fs::rename(&self.path, &self.target)
        };
        replace().map_err(|source| self.failed(source))
    }

    /// Publishes a closed database. Files that an earlier database of that name left next to it are removed, because SQLite would
    /// read them as part of the new one (T-SNAP-04).
    pub(crate) fn publish_database(self, power_safe: bool) -> Result<(), Error> {
        Side::refuse_if_held(&self.target)?;
        let publish = || {
            if power_safe {
                File::open(&self.path)?.sync_all()?;
            }
            if self.target.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            for suffix in BESIDE {
                remove_if_there(&with_suffix(&self.target, suffix))?;
            }
            rename_to_free(&self.path, &self.target)?;
            if power_safe {
                File::open(parent(&self.target)?)?.sync_all()?;
            }
            Ok(())
        };
        publish().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Disk { path: self.target.clone(), source }
    }
}

/// Removes a database with all its files.
pub(crate) fn remove_database(path: &Path) {
    for suffix in BESIDE.iter().chain(&[""]) {
        let _ = std::fs::remove_file(with_suffix(path, suffix));
    }
}

/// Appends a suffix to a path.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn parent(target: &Path) -> io::Result<PathBuf> {
    std::path::absolute(target)?.parent().map(Path::to_owned).ok_or_else(|| io::ErrorKind::IsADirectory.into())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(target_os = "linux")]
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags};
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every filesystem supports it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::hard_link(from, to),
        result => Ok(result?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let new = NewFile::beside(&dir.path().join("a")).unwrap();
        std::fs::write(new.path(), "half").unwrap();
        drop(new);
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn nothing_is_replaced_by_publishing() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        std::fs::write(&target, "old").unwrap();
        let new = NewFile::beside(&target).unwrap();
        std::fs::write(new.path(), "new").unwrap();
        let error = new.publish().unwrap_err();
        assert!(matches!(&error, Error::Disk { source, .. } if source.kind() == io::ErrorKind::AlreadyExists), "{error:?}");
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["a"]);
    }

    /// T-REL-01
    #[test]
    fn the_next_file_removes_leftovers_of_a_killed_process() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(".sandlite-new-1-0");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("new-wal"), "x").unwrap();
        for other in [".sandlite-new-", ".sandlite-new-1-x", ".sandlite-new-1", "sandlite-new-1-0"] {
            std::fs::create_dir(dir.path().join(other)).unwrap();
        }
        drop(NewFile::beside(&dir.path().join("a")).unwrap());
        assert_eq!(names(dir.path()), [".sandlite-new-", ".sandlite-new-1", ".sandlite-new-1-x", "sandlite-new-1-0"]);
    }

    #[test]
    fn a_living_process_is_not_swept() {
        let dir = tempfile::tempdir().unwrap();
        let first = NewFile::beside(&dir.path().join("a")).unwrap();
        std::fs::write(first.path(), "a").unwrap();
        let second = NewFile::beside(&dir.path().join("b")).unwrap();
        std::fs::write(second.path(), "b").unwrap();
        first.publish().unwrap();
        second.publish().unwrap();
        assert_eq!(names(dir.path()), ["a", "b"]);
    }

    #[test]
    fn makers_side_by_side_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let dir = dir.path();
                scope.spawn(move || {
                    for round in 0..50 {
                        let target = dir.join(format!("{thread}-{round}"));
                        let new = NewFile::beside(&target).unwrap();
                        std::fs::write(new.path(), "whole").unwrap();
                        new.publish().unwrap();
                    }
                });
            }
        });
        assert_eq!(names(dir.path()).len(), 400);
    }

    #[test]
    fn an_abandoned_file_cannot_be_published() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let new = NewFile::beside(&target).unwrap();
        std::fs::create_dir(new.path()).unwrap();
        NewFile::abandon(&target);
        assert_eq!(names(dir.path()), [""; 0]);
        new.publish().unwrap_err();
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn a_thread_cannot_publish_while_another_abandons() {
        const FILES: usize = 200;
        for _ in 0..10 {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("a");
            let new = NewFile::beside(&target).unwrap();
            std::fs::create_dir(new.path()).unwrap();
            for number in 0..FILES {
                std::fs::write(new.path().join(number.to_string()), "x").unwrap();
            }
            let is_abandoned = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // The first missing file is the moment at which an incomplete directory could be published.
                    let files = |path: &Path| std::fs::read_dir(path).map_or(0, Iterator::count);
                    while files(new.path()) == FILES && !is_abandoned.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    new.publish().unwrap_err();
                });
                NewFile::abandon(&target);
                is_abandoned.store(true, Ordering::Relaxed);
            });
            assert_eq!(names(dir.path()), [""; 0]);
        }
    }

    #[test]
    fn only_files_of_this_process_are_abandoned() {
        let dir = tempfile::tempdir().unwrap();
        let new = NewFile::beside(&dir.path().join("c")).unwrap();
        let own = std::process::id();
        let others = [format!("{PREFIX}{own}"), format!("{PREFIX}{own}0-0"), format!("a{PREFIX}{own}-0"), "b".to_owned()];
        for other in &others {
            std::fs::create_dir(dir.path().join(other)).unwrap();
        }
        assert_eq!(names(dir.path()).len(), others.len() + 1);
        NewFile::abandon(&dir.path().join("c"));
        assert_eq!(names(dir.path()), others);
        drop(new);
    }

    #[test]
    fn a_link_with_our_name_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = tempfile::tempdir().unwrap();
        std::fs::write(kept.path().join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(kept.path(), dir.path().join(".sandlite-new-1-0")).unwrap();
        drop(NewFile::beside(&dir.path().join("a")).unwrap());
        assert_eq!(names(kept.path()), ["kept"]);
    }
}
