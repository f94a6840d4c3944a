//! Reading the last committed state through a separate connection.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use rusqlite::Connection;

use crate::budget;
use crate::calls::{self, Call, Filter};
use crate::contents::Content;
use crate::database::Shared;
use crate::error::{Error, Fault, FsError};
use crate::fs::{Fs, Volume};
use crate::kv::{self, KeyPage, Value};
use crate::node::{Entry, FileType, Ino, ROOT, Stat};
use crate::past::at::{self, At, ChangedValues, Listed};
use crate::past::remembered::Remembered;
use crate::path::Tree;
use crate::patience::Patience;
use crate::quota::{Counts, Usage};
use crate::rows;
use crate::sessions;

/// Reads the committed state. Each call sees one state even if it reads many rows; the next call sees the newest.
pub struct Reader {
    /// `None` only while dropping.
    connection: Option<(Connection, Patience)>,
    shared: Arc<Shared>,
    depth: Cell<u32>,
    /// Whether one state is read until the end.
    is_held: bool,
    /// The commits that the last state included.
    mark: Cell<u64>,
    /// The version being read; `None`: the committed state.
    at: Cell<Option<At>>,
    listed: RefCell<Listed>,
    /// The cache of that version.
    seen: RefCell<Remembered>,
}

impl Reader {
    pub(crate) fn new(connection: Connection, patience: Patience, shared: Arc<Shared>) -> Self {
        Self {
            connection: Some((connection, patience)),
            shared,
            depth: Cell::new(0),
            is_held: false,
            mark: Cell::new(0),
            at: Cell::new(None),
            listed: RefCell::default(),
            seen: RefCell::default(),
        }
    }

    /// Reads a version from now on, with the same operations.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoVersion`] if the version does not exist.
    pub fn at(mut self, version: i64) -> Result<Self, Error> {
        let (connection, patience) = self.connection.as_ref().ok_or(FsError::Io)?;
        patience.refill();
        self.at = Cell::new(Some(patience.explained(at::open(connection, version))?));
        (self.listed, self.seen) = Default::default();
        Ok(self)
    }

    /// Reads one state from now on, for the lifetime of the reader. An operation fails with [`FsError::Interrupted`] once
    /// `is_over` returns true; it is called every few microseconds.
    ///
    /// ```
    /// # use sqlite_fs::Database;
    /// # let database = Database::options().open()?;
    /// let held = database.reader()?.hold(|| false)?;
    /// let transaction = database.begin(None)?;
    /// transaction.fs().write("/new", b"1")?;
    /// transaction.commit()?;
    /// assert!(!held.fs().exists("/new")? && database.reader()?.fs().exists("/new")?);
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the state cannot be read, or if its version was pruned.
    pub fn hold(mut self, is_over: impl Fn() -> bool + Send + 'static) -> Result<Self, Error> {
        let (connection, patience) = self.connection.as_mut().ok_or(FsError::Io)?;
        patience.watch(connection, is_over)?;
        self.is_held = true;
        self.mark.set(self.shared.contents.mark());
        patience.refill();
        connection.prepare_cached("BEGIN")?.execute([])?;
        self.depth.set(1);
        // The first row that is read fixes the state.
        connection.prepare_cached("SELECT 1 FROM fs_inode WHERE ino=1")?.exists([])?;
        if let Some(version) = self.at.get() {
            self.at.set(Some(at::refresh(connection, version)?));
        }
        Ok(self)
    }

    /// Returns the attributes of the node with a name in a directory.
    pub fn entry_stat(&self, dir: Ino, name: &str) -> Result<Stat, FsError> {
        self.rows(|connection| {
            let ino = self.entry(connection, dir, name)?.ok_or(FsError::NoEntry)?;
            self.node(ino)
        })
        .map_err(|fault| fault.as_fs())
    }

    /// Runs `work` outside a state.
    pub(crate) fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let (connection, patience) = self.connection.as_ref().ok_or(FsError::Io)?;
        patience.refill();
        patience.explained(work(connection))
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.shared.chunk_bytes()
    }

    /// Returns the version being read.
    pub(crate) fn version_read(&self) -> Option<At> {
        self.at.get()
    }

    /// Returns operations on paths.
    #[must_use]
    pub fn fs(&self) -> Fs<'_, Self> {
        Fs::new(self)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Result<Option<Value>, Error> {
        Ok(self.rows(|connection| match self.at.get() {
            None => Ok(kv::get(connection, key)?),
            Some(version) => at::key(connection, version, key),
        })?)
    }

    /// Returns the keys that start with `prefix`, in order.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        Ok(self.rows(|connection| match self.at.get() {
            None => Ok(kv::keys(connection, prefix)?),
            Some(version) => Ok(at::keys_after(connection, version, prefix, None, usize::MAX, usize::MAX)?.keys),
        })?)
    }

    /// Returns the keys that start with `prefix` and sort after `after`, in order: at most `most` keys with at most `bytes` in
    /// total, but always one.
    pub fn keys_after(&self, prefix: &str, after: Option<&str>, most: usize, bytes: usize) -> Result<KeyPage, Error> {
        Ok(self.rows(|connection| match self.at.get() {
            None => Ok(kv::keys_after(connection, prefix, after, most, bytes)?),
            Some(version) => at::keys_after(connection, version, prefix, after, most, bytes),
        })?)
    }

    /// Returns the state of a part of a session.
    pub fn session(&self, name: &str, part: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.rows(|connection| match self.at.get() {
            None => Ok(sessions::get(connection, name, part)?),
            Some(version) => at::session(connection, version, name, part),
        })?)
    }

    /// Returns the names of all sessions, in order.
    pub fn sessions(&self) -> Result<Vec<String>, Error> {
        Ok(self.rows(|connection| match self.at.get() {
            None => Ok(sessions::names(connection)?),
            Some(version) => at::sessions(connection, version),
        })?)
    }

    /// Returns the keys and sessions that changed after the version being read, up to another version or the newest, at the cost of
    /// the changes; `None` if this is unknown because another program wrote to the file.
    pub fn changed_values(&self, until: Option<i64>) -> Result<Option<ChangedValues>, Error> {
        Ok(self.rows(|connection| match self.at.get() {
            None => Ok(Some(ChangedValues::default())),
            Some(version) => at::changed_values(connection, version, until),
        })?)
    }

    /// Returns recorded calls, newest first.
    pub fn calls(&self, filter: &Filter) -> Result<Vec<Call>, Error> {
        Ok(self.rows(|connection| Ok(calls::list(connection, filter)?))?)
    }

    /// Returns one recorded call.
    pub fn call(&self, id: i64) -> Result<Option<Call>, Error> {
        Ok(self.rows(|connection| Ok(calls::get(connection, id)?))?)
    }

    /// Returns the first `most` bytes of a call's standard output and standard error, each with its total length. Only these
    /// bytes are read.
    pub fn output(&self, id: i64, most: usize) -> Result<[(Vec<u8>, u64); 2], Error> {
        Ok(self.rows(|connection| Ok(calls::output(connection, id, most)?))?)
    }

    /// Returns the usage.
    pub fn used(&self) -> Result<Usage, Error> {
        let used = self.rows(|connection| Ok(budget::used(connection)?))?;
        if self.at.get().is_some() { self.used_at(used) } else { Ok(used) }
    }

    /// Returns the number of objects.
    pub fn counts(&self) -> Result<Counts, Error> {
        let counts = self.rows(|connection| Ok(rows::counts(connection)?))?;
        self.at.get().map_or(Ok(counts), |version| self.counts_at(version, counts))
    }

    /// Grants the next part of a longer operation its full work limit.
    pub(crate) fn refill(&self) {
        if let Some((_, patience)) = &self.connection {
            patience.refill();
        }
    }

    /// Runs `work` on one state.
    pub(crate) fn rows<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let (connection, patience) = self.connection.as_ref().ok_or(FsError::Io)?;
        patience.refill();
        if self.depth.get() > 0 {
            return work(connection).map_err(|fault| if self.is_held { patience.explain(fault) } else { fault });
        }
        self.mark.set(self.shared.contents.mark());
        connection.prepare_cached("BEGIN")?.execute([])?;
        self.depth.set(1);
        let looked = self.at.get().map_or(Ok(()), |version| at::refresh(connection, version).map(|at| self.at.set(Some(at))));
        let result = looked.and_then(|()| work(connection)).map_err(|fault| patience.explain(fault));
        self.depth.set(0);
        connection.prepare_cached("COMMIT")?.execute([])?;
        result
    }

    /// Returns the cached facts about a file's content.
    pub(crate) fn known_content(&self, stat: &Stat) -> Option<Content> {
        self.shared.contents.get(stat).filter(|_| self.at.get().is_none())
    }

    /// Caches facts about a file in the last state.
    pub(crate) fn keep_known_content(&self, stat: &Stat, content: Content) {
        if self.at.get().is_none() {
            self.shared.contents.keep(self.mark.get(), stat, content);
        }
    }

    /// Returns whether a file may have several names, if that is known.
    pub(crate) fn known_links(&self) -> Option<bool> {
        if self.shared.is_read_only() { None } else { self.shared.contents.known_links() }
    }

    /// Returns whether a file may have several names. A read-only database is not notified of commits and determines it each time.
    pub(crate) fn links_known(&self, find: impl FnOnce() -> rusqlite::Result<bool>) -> rusqlite::Result<bool> {
        if self.shared.is_read_only() { find() } else { self.shared.contents.links(self.mark.get(), find) }
    }

    fn entry(&self, connection: &Connection, dir: Ino, name: &str) -> Result<Option<Ino>, Fault> {
        match self.at.get() {
            None => Ok(rows::dentry(connection, dir, name)?),
            Some(version) => {
                let known = self.seen.borrow().name(dir, name);
                if let Some(known) = known {
                    return Ok(known);
                }
                let found = at::dentry(connection, version, dir, name)?;
                self.seen.borrow_mut().keep_name(dir, name, found);
                Ok(found)
            }
        }
    }

    fn node(&self, ino: Ino) -> Result<Stat, Fault> {
        self.rows(|connection| {
            let stat = match self.at.get() {
                None => rows::inode(connection, ino)?,
                Some(version) => {
                    let known = self.seen.borrow().stat(ino);
                    if let Some(known) = known {
                        return Ok(known.ok_or(FsError::NoEntry)?);
                    }
                    at::inode(connection, version, ino)?
                }
            };
            if let Some(stat) = &stat {
                rows::check_size(connection, stat)?;
            }
            if self.at.get().is_some() {
                self.seen.borrow_mut().keep_stat(ino, stat);
            }
            Ok(stat.ok_or(FsError::NoEntry)?)
        })
    }
}

impl Tree for Reader {
    type Node = Ino;

    fn lookup(&self, dir: Ino, name: &str) -> Result<(Ino, FileType), FsError> {
        self.rows(|connection| match self.entry(connection, dir, name)? {
            Some(ino) => Ok((ino, self.node(ino)?.file_type())),
            None if !self.node(dir)?.is_dir() => Err(FsError::NotDirectory.into()),
            None if name.len() > self.shared.options.quota.name => Err(FsError::NameTooLong.into()),
            None => Err(FsError::NoEntry.into()),
        })
        .map_err(|fault| fault.as_fs())
    }

    fn parent(&self, dir: Ino) -> Result<Ino, FsError> {
        if dir == ROOT {
            return Ok(ROOT);
        }
        self.rows(|connection| {
            let place = match self.at.get() {
                None => rows::place(connection, dir)?,
                Some(version) => at::place(connection, version, dir)?,
            };
            Ok(place.ok_or(FsError::NoEntry)?.0)
        })
        .map_err(|fault| fault.as_fs())
    }

    fn readlink(&self, link: Ino) -> Result<String, FsError> {
        self.rows(|connection| {
            let target = match self.at.get() {
                None => rows::target(connection, link)?,
                Some(version) => at::target(connection, version, link)?,
            };
            Ok(target.ok_or(FsError::Invalid)?)
        })
        .map_err(|fault| fault.as_fs())
    }

    /// A reader belongs to the host.
    fn search(&self, _: Ino) -> Result<(), FsError> {
        Ok(())
    }
}

impl Volume for Reader {
    fn root(&self) -> Ino {
        ROOT
    }

    fn child(&self, _: Ino, entry: &Entry) -> Result<Ino, FsError> {
        Ok(entry.ino)
    }

    fn stat(&self, ino: Ino) -> Result<Stat, FsError> {
        self.node(ino).map_err(|fault| fault.as_fs())
    }

    fn read(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        self.rows(|connection| {
            let stat = self.node(ino)?;
            if stat.is_dir() {
                return Err(FsError::IsDirectory.into());
            }
            let chunk = self.shared.chunk_bytes() as u64;
            let total = usize::try_from(stat.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
            let mut done = 0;
            while let Some(rest) = buffer.get_mut(done..total).filter(|rest| !rest.is_empty()) {
                let from = offset + done as u64;
                let start = usize::try_from(from % chunk).unwrap_or(0);
                let len = rest.len().min(self.shared.chunk_bytes() - start);
                let Some(out) = rest.get_mut(..len) else { break };
                let stored = match self.at.get() {
                    None => rows::part(connection, ino, from / chunk, start, out)?,
                    Some(version) => at::part(connection, version, ino, from / chunk, start, out)?,
                };
                if stored != Some(len) {
                    return Err(rows::short_chunk(ino, from / chunk).into());
                }
                done += len;
            }
            Ok(total)
        })
        .map_err(|fault| fault.as_fs())
    }

    fn readdir(&self, dir: Ino, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        self.rows(|connection| {
            if !self.node(dir)?.is_dir() {
                return Err(FsError::NotDirectory.into());
            }
            match self.at.get() {
                None => Ok(rows::entries(connection, dir, cookie, limit, |_| FileType::File)?),
                Some(version) => {
                    let entries = at::entries(connection, version, &mut self.listed.borrow_mut(), dir, cookie, limit)?;
                    self.seen.borrow_mut().keep_entries(dir, &entries);
                    Ok(entries)
                }
            }
        })
        .map_err(|fault| fault.as_fs())
    }

    fn at_once<T>(&self, work: impl FnOnce() -> Result<T, FsError>) -> Result<T, FsError> {
        self.rows(|_| Ok(work()?)).map_err(|fault| fault.as_fs())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some((mut connection, patience)) = self.connection.take() else { return };
        if self.is_held {
            // The next user of the connection must not be interrupted.
            patience.refill();
            let is_free = patience.watch(&mut connection, || false).is_ok() && connection.execute_batch("COMMIT").is_ok();
            if !is_free {
                return;
            }
        }
        self.shared.return_reader(connection, patience);
    }
}
