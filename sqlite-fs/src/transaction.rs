//! One command's view of the database: everything it does becomes visible together, or not at all.

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

/// The single writing transaction, shared by all threads of a command. Dropping it takes everything back.
///
/// Each operation can also fail with [`FsError::Interrupted`] after [`Interrupter::interrupt`](crate::Interrupter::interrupt),
/// with [`FsError::Damaged`] if rows contradict each other, and with [`FsError::Io`] if the database fails.
pub struct Transaction {
    /// `None` only after `commit`.
    store: Mutex<Option<Box<Store>>>,
    shared: Arc<Shared>,
}

/// A point inside a transaction to return to.
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

    /// Makes everything durable and visible; on an error nothing is.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Moved`] if the file was replaced or removed since it was opened.
    pub fn commit(self) -> Result<(), Error> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(Error::Busy)?;
        let result = store.interrupt_calls().map_err(Error::from).and_then(|()| {
            self.shared.still_there()?;
            store.commit()?;
            // It may have gone meanwhile: success is reported only for what is in the file that others find.
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

    /// Commits if that can be done by `until`. If not, everything is taken back except the calls, and the
    /// transaction is returned to resume from there. The call that was finished last is open again.
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
    /// Returns [`Error::Moved`] if the file was replaced or removed since it was opened, or [`Error::DiskFull`] or
    /// [`Error::DiskFailed`] if the rows cannot be written.
    pub fn commit_by(self, until: Instant) -> Result<Option<Self>, Error> {
        let mut place = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let store = place.as_mut().ok_or(Error::Busy)?;
        let committed = self.shared.still_there().and_then(|()| store.commit_by(until)).and_then(|is_committed| {
            // It may have gone meanwhile: success is reported only for what is in the file that others find.
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

    /// Lets a long log of this transaction stay beside the file, instead of being copied into it at once: for a caller whose time
    /// is over. The next transaction has it copied, and so has the next process that opens the file; until then both files belong
    /// together.
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

    /// Takes everything back except the calls: those that are over stay under their numbers, what they asked for was done. Unlike
    /// [`rollback_to`](Self::rollback_to) this needs no memory for what was there before.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the transaction has ended.
    pub fn restart(&self) -> Result<(), Error> {
        self.with(|store| store.restart())
    }

    /// Takes the times of files and calls from another clock until it is told otherwise or ends; `None`: the database's own.
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

    /// Sets what a database in memory may hold, until the transaction ends: files that would take more than that fail with
    /// `NoSpace`. It is first asked for what the database holds already. Does nothing to a database in a file.
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

    /// Lets the owner's permission bits count until it is told otherwise or the transaction ends: for a user who owns everything and is not
    /// root. Paths lead only through directories that may be searched, and names are added, removed and changed only in
    /// directories that may be written. What is done to an inode by its number is not asked: who has it was permitted to.
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

    /// Whether the owner may do to a file what all of these permission bits stand for (0400, 0200, 0100): always, unless
    /// [modes are obeyed](Self::obey_modes).
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Access`] if a bit is missing, or [`FsError::NoEntry`] if there is no such inode.
    pub fn permit(&self, ino: Ino, bits: u32) -> Result<(), FsError> {
        self.run(|store| store.permit(ino, bits))
    }

    /// Marks a point to return to.
    ///
    /// # Errors
    ///
    /// Returns [`Error::DiskFull`] or [`Error::DiskFailed`] if what is only in memory cannot be written.
    pub fn savepoint(&self) -> Result<Savepoint, Error> {
        self.with(|store| Ok(Savepoint(store.run(Store::savepoint)?)))
    }

    /// Takes back everything since the savepoint, which stays usable. Calls begun since are forgotten.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Sqlite`] if the savepoint is one of another transaction.
    pub fn rollback_to(&self, savepoint: &Savepoint) -> Result<(), Error> {
        self.with(|store| Ok(store.run(|store| store.rollback_to(&savepoint.0))?))
    }

    /// Operations on paths.
    #[must_use]
    pub fn fs(&self) -> Fs<'_, Self> {
        Fs::new(self)
    }

    /// Keys and values.
    #[must_use]
    pub fn kv(&self) -> Kv<'_> {
        Kv { transaction: self }
    }

    /// What sessions leave behind.
    #[must_use]
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { transaction: self }
    }

    /// The history.
    #[must_use]
    pub fn calls(&self) -> Calls<'_> {
        Calls { transaction: self }
    }

    /// The inode behind a name, with its type; `.` and `..` too.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such name, [`FsError::NotDirectory`] if `dir` is not a directory, or
    /// [`FsError::Access`] if it may not be searched.
    pub fn lookup(&self, dir: Ino, name: &str) -> Result<(Ino, FileType), FsError> {
        self.run(|store| store.lookup(dir, name))
    }

    /// The directory above; the root is its own.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NotDirectory`] if `dir` is not a directory.
    pub fn parent(&self, dir: Ino) -> Result<Ino, FsError> {
        self.run(|store| store.parent(dir))
    }

    /// The attributes of an inode.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such inode.
    pub fn stat(&self, ino: Ino) -> Result<Stat, FsError> {
        self.run(|store| store.stat(ino))
    }

    /// A new empty file; fails if the name exists.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Exists`] if the name is taken, [`FsError::NoEntry`] or [`FsError::NotDirectory`] if `dir` is not a
    /// directory with a name, [`FsError::NameTooLong`] or [`FsError::Invalid`] if the name cannot be stored, or
    /// [`FsError::NoSpace`] if the quota is used up.
    pub fn create(&self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.create(dir, name, mode, uid, gid))
    }

    /// A new pipe with a name. Its rows say that it is one; what goes through it is the caller's business.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Exists`] if the name is taken, [`FsError::NoEntry`] or [`FsError::NotDirectory`] if `dir` is not a
    /// directory with a name, [`FsError::NameTooLong`] or [`FsError::Invalid`] if the name cannot be stored, or
    /// [`FsError::NoSpace`] if the quota is used up.
    pub fn mkfifo(&self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.mkfifo(dir, name, mode, uid, gid))
    }

    /// A new directory.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Exists`] if the name is taken, [`FsError::NoEntry`] or [`FsError::NotDirectory`] if `dir` is not a
    /// directory with a name, [`FsError::NameTooLong`] or [`FsError::Invalid`] if the name cannot be stored, or
    /// [`FsError::NoSpace`] if the quota is used up. A tree that is as deep as the quota allows is
    /// [`FsError::NameTooLong`], too.
    pub fn mkdir(&self, dir: Ino, name: &str, mode: u32, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.mkdir(dir, name, mode, uid, gid))
    }

    /// A new symbolic link.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Exists`] if the name is taken, [`FsError::NoEntry`] or [`FsError::NotDirectory`] if `dir` is not a
    /// directory with a name, [`FsError::NameTooLong`] or [`FsError::Invalid`] if the name cannot be stored, or
    /// [`FsError::NoSpace`] if the quota is used up. A target that is empty, too long or has a NUL is
    /// [`FsError::NoEntry`], [`FsError::NameTooLong`] or [`FsError::Invalid`].
    pub fn symlink(&self, dir: Ino, name: &str, target: &str, uid: u32, gid: u32) -> Result<Ino, FsError> {
        self.run(|store| store.symlink(dir, name, target, uid, gid))
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Invalid`] if it is not a symbolic link.
    pub fn readlink(&self, ino: Ino) -> Result<String, FsError> {
        self.run(|store| store.readlink(ino))
    }

    /// Another name for a file or symbolic link.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NotPermitted`] if it is a directory, [`FsError::TooManyLinks`] if it has too many names, or what
    /// [`create`](Self::create) returns for the name.
    pub fn link(&self, ino: Ino, dir: Ino, name: &str) -> Result<(), FsError> {
        self.run(|store| store.link(ino, dir, name))
    }

    /// Removes a name that is not a directory's.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such name, or [`FsError::IsDirectory`] if it is a directory's.
    pub fn unlink(&self, dir: Ino, name: &str) -> Result<(), FsError> {
        self.run(|store| store.unlink(dir, name))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such name, [`FsError::NotDirectory`] if it is not a directory's, or
    /// [`FsError::NotEmpty`] if there is something in it.
    pub fn rmdir(&self, dir: Ino, name: &str) -> Result<(), FsError> {
        self.run(|store| store.rmdir(dir, name))
    }

    /// Moves a name, replacing what the new one led to.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such name, [`FsError::Busy`] for `.` and `..`, [`FsError::Invalid`] if a
    /// directory would be below itself, [`FsError::NotDirectory`], [`FsError::IsDirectory`] or [`FsError::NotEmpty`] if the new
    /// name leads to a node that cannot be replaced, or what [`create`](Self::create) returns for the new name.
    pub fn rename(&self, old_dir: Ino, old_name: &str, new_dir: Ino, new_name: &str) -> Result<(), FsError> {
        self.run(|store| store.rename(old_dir, old_name, new_dir, new_name))
    }

    /// Reads from `offset`; fewer bytes than asked for only at the end of the file.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file.
    pub fn read(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        self.run(|store| store.read(ino, offset, buffer))
    }

    /// Writes at `offset`; fewer bytes than given only when the quota is reached.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file, [`FsError::NoSpace`] or
    /// [`FsError::FileTooBig`] if the quota has no room for a single byte.
    pub fn write(&self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize, FsError> {
        self.run(|store| store.write(ino, offset, bytes))
    }

    /// Writes at the end, wherever that is now, and returns the offset after it.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file, [`FsError::NoSpace`] or
    /// [`FsError::FileTooBig`] if the quota has no room for a single byte.
    pub fn append(&self, ino: Ino, bytes: &[u8]) -> Result<u64, FsError> {
        self.run(|store| store.append(ino, bytes))
    }

    /// Cuts a file or fills it with zeros up to `size`.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::IsDirectory`] or [`FsError::Invalid`] if it is not a regular file, [`FsError::NoSpace`] or
    /// [`FsError::FileTooBig`] if the quota has no room for so many bytes.
    pub fn truncate(&self, ino: Ino, size: u64) -> Result<(), FsError> {
        self.run(|store| store.truncate(ino, size))
    }

    /// At most `limit` entries after `cookie` (0: from the start), without `.` and `..`.
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
    /// Returns [`FsError::NoEntry`] if there is no such inode.
    pub fn chmod(&self, ino: Ino, mode: u32) -> Result<(), FsError> {
        self.run(|store| store.chmod(ino, mode))
    }

    /// Changes owner and group; `None` leaves one as it is.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such inode.
    pub fn chown(&self, ino: Ino, uid: Option<u32>, gid: Option<u32>) -> Result<(), FsError> {
        self.run(|store| store.chown(ino, uid, gid))
    }

    /// Sets access and modification time in nanoseconds; `None` leaves one as it is.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such inode.
    pub fn set_times(&self, ino: Ino, atime: Option<i64>, mtime: Option<i64>) -> Result<(), FsError> {
        self.run(|store| store.set_times(ino, atime, mtime))
    }

    /// Keeps an inode usable after its last name is gone, until [`release`](Self::release) or the transaction's end.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::NoEntry`] if there is no such inode.
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

    /// What is used now, this transaction's changes included.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows cannot be counted.
    pub fn used(&self) -> Result<Usage, FsError> {
        self.run(Store::used)
    }

    /// What this transaction changed so far, by path; at most about 10 000.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows contradict each other.
    pub fn changes(&self) -> Result<Vec<Change>, FsError> {
        self.run(|store| Ok(store.changes(None)?.0))
    }

    /// The same as far as it can be listed by `until`, and whether that is all.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows contradict each other.
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
            // Best effort: there is nobody to tell, and the note beside the file still says it.
            let recorded = store.interrupt_calls().is_ok() && store.commit().is_ok();
            if let Some(turn) = store.turn.as_ref().filter(|_| recorded) {
                turn.clear();
            }
            store.rollback();
        }
        self.shared.end(store);
    }
}
