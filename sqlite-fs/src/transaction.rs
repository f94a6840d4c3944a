//! A transaction: all changes of a command become visible together, or not at all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::calls::Calls;
use crate::clock::Clock;
use crate::database::Shared;
use crate::error::{Error, Fault, FsError};
use crate::fs::Fs;
use crate::kv::Kv;
use crate::memory::MemoryBudget;
use crate::node::{Entry, FileType, Ino, Stat};
use crate::path::Tree;
use crate::quota::Usage;
use crate::sessions::Sessions;
use crate::store::{Change, Mark, SEARCH, Store};

/// The single writing transaction, shared by all threads of a command. Dropping it rolls everything back.
///
/// Each operation can also fail with [`FsError::Interrupted`] after [`Interrupter::interrupt`](crate::Interrupter::interrupt),
/// with [`FsError::Damaged`] if rows are inconsistent, and with [`FsError::Io`] if the database fails.
pub struct Transaction {
    /// `None` only after `commit`.
    store: Mutex<Option<Box<Store>>>,
    shared: Arc<Shared>,
}

/// A savepoint of a transaction.
pub struct Savepoint(Mark);

impl Transaction {
    pub(crate) fn new(store: Box<Store>, shared: Arc<Shared>) -> Self {
        Self { store: Mutex::new(Some(store)), shared }
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        work(store.as_mut().ok_or(Error::Busy)?)
    }

    pub(crate) fn run<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, Fault>) -> Result<T, FsError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.as_mut().ok_or(FsError::Io)?.run(work).map_err(|fault| fault.as_fs())
    }

    /// Makes all changes durable and visible; on an error, none.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Moved`] if the file was replaced or removed since it was opened.
    pub fn commit(self) -> Result<(), Error> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(Error::Busy)?;
        let result = store.interrupt_calls().map_err(Error::from).and_then(|()| {
            self.shared.still_there()?;
            store.commit()?;
            // The file may have been replaced meanwhile: success is reported only for data that others can find.
            self.shared.still_there()
        });
        if result.is_err() {
            store.rollback();
        }
        if let Some(turn) = &store.turn {
            turn.clear();
        }
        self.shared.end(store);
        result
    }

    /// Commits if that can be done by `until`. Otherwise everything except the calls is rolled back, and the transaction is
    /// returned to continue from there. The call that was finished last is reopened.
    ///
    /// ```
    /// use std::time::Instant;
    /// # let directory = tempfile::tempdir()?;
    /// # let database = sqlite_fs::Database::options().path(directory.path().join("a.db")).open()?;
    /// let transaction = database.begin(None)?;
    /// transaction.fs().write("/large", vec![7; 20 << 20])?;
    /// let long_ago = Instant::now() - std::time::Duration::from_secs(1);
    /// let transaction = transaction.commit_by(long_ago)?.expect("it is too late");
    /// assert!(!transaction.fs().exists("/large")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Moved`] if the file was replaced or removed since it was opened, and [`Error::DiskFull`] or
    /// [`Error::DiskFailed`] if the rows cannot be written.
    pub fn commit_by(self, until: Instant) -> Result<Option<Self>, Error> {
        let mut place = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let store = place.as_mut().ok_or(Error::Busy)?;
        let committed = self.shared.still_there().and_then(|()| store.commit_by(until)).and_then(|is_committed| {
            // The file may have been replaced meanwhile: success is reported only for data that others can find.
            self.shared.still_there()?;
            Ok(is_committed)
        });
        if committed.is_err() {
            store.rollback();
        }
        if let Ok(false) = committed {
            drop(place);
            return Ok(Some(self));
        }
        if let Some(store) = place.take() {
            if let Some(turn) = &store.turn {
                turn.clear();
            }
            self.shared.end(store);
        }
        committed.map(|_| None)
    }

    /// Leaves a long log of this transaction next to the file instead of copying it at once, for a caller that has run out of
    /// time. The next transaction or the next process that opens the file copies it; until then both files belong together.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the transaction has ended.
    pub fn leave_log(&self) -> Result<(), Error> {
        self.with(|store| {
            store.set_leaves_log(true);
            Ok(())
        })
    }

    /// Rolls everything back except the calls: completed ones keep their numbers, because their side effects have happened.
    /// Unlike [`rollback_to`](Self::rollback_to) this needs no memory for the previous state.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the transaction has ended.
    pub fn restart(&self) -> Result<(), Error> {
        self.with(|store| store.restart())
    }

    /// Takes the times of files and calls from another clock until it is changed again or the transaction ends; `None` selects
    /// the database's own.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the transaction has ended.
    pub fn set_clock(&self, clock: Option<Arc<dyn Clock>>) -> Result<(), Error> {
        self.with(|store| {
            store.clock = clock.unwrap_or_else(|| Arc::clone(&self.shared.options.clock));
            Ok(())
        })
    }

    /// Sets the memory limit of a database in memory until the transaction ends: files that would exceed it fail with `NoSpace`.
    /// It is first called with the current size of the database. Does nothing for a database in a file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the transaction has ended.
    pub fn set_memory_budget(&self, budget: Arc<dyn MemoryBudget>) -> Result<(), Error> {
        let Some(memory) = self.shared.memory() else { return Ok(()) };
        budget.hold(memory.resident());
        self.with(|store| {
            store.memory = Some((Arc::clone(memory), budget));
            Ok(())
        })
    }

    /// Enforces the owner's permission bits until this is changed again or the transaction ends: for a user who owns everything
    /// and is not root. Paths lead only through directories with search permission, and names are added, removed and changed only
    /// in directories with write permission. Operations on inode numbers are not checked, because access was checked when the
    /// number was obtained.
    ///
    /// ```
    /// use sqlite_fs::{Database, FsError};
    ///
    /// let transaction = Database::options().open()?.begin(None)?;
    /// transaction.fs().create_dir("/closed")?;
    /// let closed = transaction.fs().metadata("/closed")?.ino;
    /// transaction.chmod(closed, 0o555)?;
    /// transaction.obey_modes(true)?;
    /// assert_eq!(transaction.create(closed, "name", 0o644, 1000, 1000), Err(FsError::Access));
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the transaction has ended.
    pub fn obey_modes(&self, obeyed: bool) -> Result<(), Error> {
        self.with(|store| {
            store.obeys_modes = obeyed;
            Ok(())
        })
    }

    /// Checks that the owner has all of these permission bits (0400, 0200, 0100) on a file: always true, unless [modes are
    /// enforced](Self::obey_modes).
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Access`] if a bit is missing, and [`FsError::NoEntry`] if the inode does not exist.
    pub fn permit(&self, ino: Ino, bits: u32) -> Result<(), FsError> {
        self.run(|store| store.permit(ino, bits))
    }

    /// Creates a savepoint.
    ///
    /// # Errors
    ///
    /// Returns [`Error::DiskFull`] or [`Error::DiskFailed`] if data in memory cannot be written.
    pub fn savepoint(&self) -> Result<Savepoint, Error> {
        self.with(|store| Ok(Savepoint(store.run(Store::savepoint)?)))
    }

    /// Rolls back everything since the savepoint, which stays usable. Calls started since are discarded.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Sqlite`] if the savepoint belongs to another transaction.
    pub fn rollback_to(&self, savepoint: &Savepoint) -> Result<(), Error> {
        self.with(|store| Ok(store.run(|store| store.rollback_to(&savepoint.0))?))
    }

    /// Returns operations on paths.
    #[must_use]
    pub fn fs(&self) -> Fs<'_, Self> {
        Fs::new(self)
    }

    /// Returns the key-value store.
    #[must_use]
    pub fn kv(&self) -> Kv<'_> {
        Kv { transaction: self }
    }

    /// Returns the state of sessions.
    #[must_use]
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { transaction: self }
    }

    /// Returns the history.
    #[must_use]
    pub fn calls(&self) -> Calls<'_> {
        Calls { transaction: self }
    }

    /// Returns the inode of a name with its type, also for `.` and `..`.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the name does not exist, [`FsError::NotDirectory`] if `dir` is not a directory, and
    /// [`FsError::Access`] if it may not be searched.
    pub fn lookup(&self, dir: Ino, name: &str) -> Result<(Ino, FileType), FsError> {
        self.run(|store| store.lookup(dir, name))
    }

    /// Returns the parent directory; the root is its own parent.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NotDirectory`] if `dir` is not a directory.
    pub fn parent(&self, dir: Ino) -> Result<Ino, FsError> {
        self.run(|store| store.parent(dir))
    }

    /// Returns the attributes of an inode.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the inode does not exist.
    pub fn stat(&self, ino: Ino) -> Result<Stat, FsError> {
        self.run(|store| store.stat(ino))
    }

    /// Creates an empty file; fails if the name exists.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Exists`] if the name exists, [`FsError::NoEntry`] or [`FsError::NotDirectory`] if `dir` is not a
    /// directory with a name, [`FsError::NameTooLong`] or [`FsError::Invalid`] if the name is invalid, and [`FsError::NoSpace`]
    /// if the quota is exhausted.
    pub fn create(&self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.create(dir, name, mode, uid, gid))
    }

    /// Creates a named pipe. Only its type is stored; data written to it is up to the caller.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`create`](Self::create).
    pub fn mkfifo(&self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.mkfifo(dir, name, mode, uid, gid))
    }

    /// Creates a directory.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`create`](Self::create), and [`FsError::NameTooLong`] if the tree would be deeper than the quota
    /// allows.
    pub fn mkdir(&self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.mkdir(dir, name, mode, uid, gid))
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`create`](Self::create), and [`FsError::NoEntry`], [`FsError::NameTooLong`] or [`FsError::Invalid`]
    /// if the target is empty, too long or contains a NUL.
    pub fn symlink(&self, dir: Ino, name: &str, target: &str, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.symlink(dir, name, target, uid, gid))
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Invalid`] if it is not a symbolic link.
    pub fn readlink(&self, ino: Ino) -> Result<String, FsError> {
        self.run(|store| store.readlink(ino))
    }

    /// Creates another name for a file or symbolic link.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NotPermitted`] if it is a directory, [`FsError::TooManyLinks`] if it has too many names, and the errors
    /// of [`create`](Self::create) for the name.
    pub fn link(&self, ino: Ino, dir: Ino, name: &str) -> Result<(), FsError> {
        self.run(|store| store.link(ino, dir, name))
    }

    /// Removes a name that is not a directory.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the name does not exist, and [`FsError::IsDirectory`] if it is a directory.
    pub fn unlink(&self, dir: Ino, name: &str) -> Result<(), FsError> {
        self.run(|store| store.unlink(dir, name))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the name does not exist, [`FsError::NotDirectory`] if it is not a directory, and
    /// [`FsError::NotEmpty`] if it is not empty.
    pub fn rmdir(&self, dir: Ino, name: &str) -> Result<(), FsError> {
        self.run(|store| store.rmdir(dir, name))
    }

    /// Moves a name, replacing the node at the new name.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the name does not exist, [`FsError::Busy`] for `.` and `..`, [`FsError::Invalid`] if a
    /// directory would be below itself, [`FsError::NotDirectory`], [`FsError::IsDirectory`] or [`FsError::NotEmpty`] if the node
    /// at the new name cannot be replaced, and the errors of [`create`](Self::create) for the new name.
    pub fn rename(&self, old_dir: Ino, old_name: &str, new_dir: Ino, new_name: &str) -> Result<(), FsError> {
        self.run(|store| store.rename(old_dir, old_name, new_dir, new_name))
    }

    /// Reads from `offset`; returns fewer bytes than requested only at the end of the file.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file.
    pub fn read(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        self.run(|store| store.read(ino, offset, buffer))
    }

    /// Writes at `offset`; writes fewer bytes than given only when the quota is reached.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file, and [`FsError::NoSpace`] or
    /// [`FsError::FileTooBig`] if the quota has no room for a single byte.
    pub fn write(&self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, FsError> {
        self.run(|store| store.write(ino, offset, bytes))
    }

    /// Appends to a file and returns the new offset.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file, and [`FsError::NoSpace`] or
    /// [`FsError::FileTooBig`] if the quota has no room for a single byte.
    pub fn append(&self, ino: Ino, bytes: &[u8]) -> Result<u64, FsError> {
        self.run(|store| store.append(ino, bytes))
    }

    /// Truncates a file or extends it with zeros to `size`.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file, and [`FsError::NoSpace`] or
    /// [`FsError::FileTooBig`] if the new size exceeds the quota.
    pub fn truncate(&self, ino: Ino, size: u64) -> Result<(), FsError> {
        self.run(|store| store.truncate(ino, size))
    }

    /// Returns at most `limit` entries after `cookie` (0: from the start), without `.` and `..`.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NotDirectory`] if `dir` is not a directory.
    pub fn readdir(&self, dir: Ino, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        self.run(|store| store.readdir(dir, cookie, limit))
    }

    /// Changes the permissions; the type stays.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the inode does not exist.
    pub fn chmod(&self, ino: Ino, mode: u32) -> Result<(), FsError> {
        self.run(|store| store.chmod(ino, mode))
    }

    /// Changes owner and group; `None` leaves one unchanged.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the inode does not exist.
    pub fn chown(&self, ino: Ino, uid: Option<u32>, gid: Option<u32>) -> Result<(), FsError> {
        self.run(|store| store.chown(ino, uid, gid))
    }

    /// Sets access and modification time in nanoseconds; `None` leaves one unchanged.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the inode does not exist.
    pub fn set_times(&self, ino: Ino, atime: Option<i64>, mtime: Option<i64>) -> Result<(), FsError> {
        self.run(|store| store.set_times(ino, atime, mtime))
    }

    /// Keeps an inode usable after its last name is removed, until [`release`](Self::release) or the end of the transaction.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if the inode does not exist.
    pub fn hold(&self, ino: Ino) -> Result<(), FsError> {
        self.run(|store| store.hold(ino))
    }

    /// Ends one [`hold`](Self::hold).
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Io`] if the rows of a file without a name cannot be removed.
    pub fn release(&self, ino: Ino) -> Result<(), FsError> {
        self.run(|store| store.release(ino))
    }

    /// Returns the usage, including this transaction's changes.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows cannot be counted.
    pub fn used(&self) -> Result<Usage, FsError> {
        self.run(Store::used)
    }

    /// Returns the size of all files, including this transaction's changes. Unlike [`used`](Self::used) it counts no other rows.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows cannot be counted.
    pub fn file_bytes(&self) -> Result<u64, FsError> {
        self.run(|store| Ok(store.usage()?.bytes))
    }

    /// Returns the changes of this transaction so far, by path, and whether the list is complete: not if more than 100 000 names
    /// or files changed.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows are inconsistent.
    pub fn changes(&self) -> Result<(Vec<Change>, bool), FsError> {
        self.run(|store| store.changes(None))
    }

    /// Returns the changes that can be listed by `until`, at most about 10 000, and whether the list is complete.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows are inconsistent.
    pub fn changes_by(&self, until: Instant) -> Result<(Vec<Change>, bool), FsError> {
        self.run(|store| store.changes(Some(until)))
    }
}

impl Tree for Transaction {
    type Node = Ino;

    fn lookup(&self, dir: Ino, name: &str) -> Result<(Ino, FileType), FsError> {
        Self::lookup(self, dir, name)
    }

    fn parent(&self, dir: Ino) -> Result<Ino, FsError> {
        Self::parent(self, dir)
    }

    fn readlink(&self, link: Ino) -> Result<String, FsError> {
        Self::readlink(self, link)
    }

    fn search(&self, dir: Ino) -> Result<(), FsError> {
        self.permit(dir, SEARCH)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(mut store) = self.store.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let open = std::mem::take(&mut store.open_calls);
        store.rollback();
        if !open.is_empty() {
            store.open_calls = open;
            // Best effort: errors cannot be reported here, and the note next to the file still records the call.
            let recorded = store.interrupt_calls().is_ok() && store.commit().is_ok();
            if let Some(turn) = store.turn.as_ref().filter(|_| recorded) {
                turn.clear();
            }
            store.rollback();
        }
        self.shared.end(store);
    }
}
