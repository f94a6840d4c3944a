//! One database: the single writer and the readers' connections.

mod idle;
mod open;
mod spare;
mod tidy;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use self::open::{Start, described, open_for_reading, open_for_writing};
use self::spare::Tables;
use self::tidy::Tidy;

use crate::checkpoint::Checkpoint;
use crate::clock;
use crate::contents::Contents;
use crate::error::Error;
use crate::gauge::Gauge;
use crate::interrupt::Interrupter;
use crate::memory::Memory;
use crate::memory::layer::Named;
use crate::options::Options;
use crate::patience::{Patience, stored_bytes};
use crate::place::Place;
use crate::reader::Reader;
use crate::schema;
use crate::store::Store;
use crate::transaction::Transaction;
use crate::turn::{self, Turn, Watch};
use crate::{beside, gather, medium, small};

/// Maximum number of idle reader connections.
const IDLE_READERS: usize = 4;

/// A filesystem, a key-value store and a history. Cheap to clone, shared between threads.
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
}

/// A weak reference to a [`Database`], which does not keep it open.
#[derive(Clone)]
pub struct WeakDatabase(Weak<Shared>);

impl WeakDatabase {
    /// Returns the database if it is still open.
    #[must_use]
    pub fn upgrade(&self) -> Option<Database> {
        self.0.upgrade().map(|shared| Database { shared })
    }
}

pub(crate) struct Shared {
    /// Joins its thread when dropped. Declared first, because a connection that is open elsewhere prevents the removal of the
    /// log.
    checkpoint: Option<Checkpoint>,
    /// Idle ones. Declared before the writer because fields are dropped in order: the last connection to close copies the
    /// write-ahead log into the file, which a read-only one cannot.
    readers: Mutex<Vec<(Connection, Patience)>>,
    writer: Arc<Writer>,
    gauge: Arc<Gauge>,
    pub(crate) contents: Arc<Contents>,
    source: Source,
    /// The identity of the file; `None` in memory.
    place: Option<Place>,
    /// What a reader of the file removes when it closes.
    tidy: Option<Tidy>,
    /// Detects commits of other processes; `None` in memory and in read-only mode.
    watch: Option<Watch>,
    read_only: bool,
    chunk_bytes: usize,
    interrupter: Interrupter,
    pub(crate) options: Options,
    /// The tables of a database in memory, as they were last asked for.
    tables: Mutex<Option<Arc<Tables>>>,
    /// Those of a fork in memory: its connections are kept when it is closed.
    kept_for: Option<Arc<Tables>>,
}

/// The result of [`Database::compact`], in bytes of the database with its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// The slot of the writer.
#[derive(Default)]
pub(crate) struct Writer {
    slot: Mutex<Slot>,
    returned: Condvar,
}

impl Writer {
    /// Returns the store to the slot and wakes a waiter.
    pub(crate) fn put_back(&self, mut store: Box<Store>) {
        store.give_turn_back();
        let mut slot = lock(&self.slot);
        slot.store = Some(store);
        if slot.waiting > 0 {
            self.returned.notify_one();
        }
    }
}

#[derive(Default)]
struct Slot {
    /// Absent while a transaction uses it, or always if the database is read-only.
    store: Option<Box<Store>>,
    /// Number of waiting threads; if zero, the system call to wake them is skipped.
    waiting: u32,
}

/// The location that SQLite opens.
pub(crate) enum Source {
    File(std::path::PathBuf),
    Memory(Named),
}

impl Source {
    fn of(options: &Options) -> Result<Self, Error> {
        match &options.path {
            Some(path) => Ok(Self::File(path.clone())),
            None => Named::new(Memory::fresh())
                .map(Self::Memory)
                .ok_or_else(|| Error::Damaged("SQLite rejected the file layer".to_owned())),
        }
    }

    pub(crate) fn connect(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        small::reserve_no_pages();
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match self {
            Self::File(path) => match gather::layer() {
                Some(layer) => Connection::open_with_flags_and_vfs(path, flags, layer),
                None => Connection::open_with_flags(path, flags),
            },
            Self::Memory(named) => {
                let uri = if flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE) {
                    named.uri_for_writing()
                } else {
                    named.uri_for_reading()
                };
                Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
            }
        }?;
        small::reserve_little(&connection);
        Ok(connection)
    }

    fn patience(&self) -> Patience {
        match self {
            Self::File(path) => Patience::for_file(path),
            Self::Memory(_) => Patience::endless(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Database {
    /// Creates options for a database; [`Options::open`] opens it.
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn open(options: Options) -> Result<Self, Error> {
        let source = Source::of(&options)?;
        Self::open_at(options, source, Start::New, Vec::new(), None)
    }

    /// Opens a copy in memory of a database in memory, which is `None` for one in a file. Their pages are shared until they change.
    pub(crate) fn fork_memory(&self, options: &Options) -> Result<Option<Self>, Error> {
        let Some(memory) = self.shared.memory() else { return Ok(None) };
        let tables = self.shared.tables()?;
        let (source, start, readers) = match spare::take(&tables) {
            Some(spare::Spare { named, writer, readers, .. }) => (Source::Memory(named), Start::Kept(writer), readers),
            None => (Source::of(options)?, Start::Copy, Vec::new()),
        };
        if let Source::Memory(named) = &source {
            named.memory.replace_by(memory);
        }
        Self::open_at(options.clone(), source, start, readers, Some(tables)).map(Some)
    }

    fn open_at(
        options: Options,
        source: Source,
        start: Start,
        readers: Vec<(Connection, Patience)>,
        kept_for: Option<Arc<Tables>>,
    ) -> Result<Self, Error> {
        if let Some(path) = &options.path {
            if path.is_dir() {
                return Err(Error::Disk { path: path.clone(), source: std::io::ErrorKind::IsADirectory.into() });
            }
            medium::refuse_network(path)?;
            beside::refuse_traps(path)?;
        }
        let interrupter = Interrupter::default();
        let read_only = options.read_only && options.path.is_some();
        let (mut gauge, mut contents, mut watch) = Default::default();
        let tidy = options.path.as_deref().filter(|_| read_only).map(Tidy::before);
        let (store, chunk_bytes, checkpoint, place) = match (&options.path, read_only) {
            (Some(path), true) => {
                let opened = described(open_for_reading(&source, path), path);
                let chunk_bytes = opened.inspect_err(|_| tidy.iter().for_each(|tidy| tidy.after(&source, path)))?;
                (None, chunk_bytes, None, Some(Place::of_reader(path)?))
            }
            (path, _) => {
                let name = path.as_deref().unwrap_or(Path::new(":memory:"));
                let mut store = described(open_for_writing(&source, &options, &interrupter, start), name)?;
                let chunk_bytes = store.chunk_bytes();
                gauge = Arc::clone(&store.gauge);
                contents = Arc::clone(&store.contents);
                watch = store.turn.as_ref().map(Turn::watch);
                let frames = store.turn.as_ref().map(Turn::frames).unwrap_or_default();
                let place = path.as_deref().map(|path| Place::of_writer(path, &store.connection)).transpose()?;
                let checkpoint = path.clone().map(|path| Checkpoint::new(&mut store.connection, path, frames)).transpose()?;
                (Some(Box::new(store)), chunk_bytes, checkpoint, place)
            }
        };
        Ok(Self {
            shared: Arc::new(Shared {
                checkpoint,
                writer: Arc::new(Writer { slot: Mutex::new(Slot { store, waiting: 0 }), returned: Condvar::new() }),
                gauge,
                contents,
                readers: Mutex::new(readers),
                source,
                place,
                tidy,
                watch,
                read_only,
                chunk_bytes,
                interrupter,
                options,
                tables: Mutex::new(kept_for.clone()),
                kept_for,
            }),
        })
    }

    /// Starts the single writing transaction, waiting until `deadline` for another one of this process to end, and as long as the
    /// options allow for one of another process.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the deadline passes, [`Error::Locked`] if another process takes longer than the options allow,
    /// [`Error::ReadOnly`] if the database was opened read-only, and [`Error::Moved`] if the file was replaced or removed.
    pub fn begin(&self, deadline: Option<Instant>) -> Result<Transaction, Error> {
        if self.shared.read_only {
            return Err(Error::ReadOnly);
        }
        self.shared.still_there()?;
        let store = self.wait_for_store(deadline)?;
        self.shared.interrupter.clear();
        Ok(Transaction::new(store, Arc::clone(&self.shared)))
    }

    fn wait_for_store(&self, deadline: Option<Instant>) -> Result<Box<Store>, Error> {
        let mut store = self.wait_in_process(deadline)?;
        match store.take_turn(deadline) {
            Ok(()) => Ok(store),
            Err(error) => {
                self.shared.writer.put_back(store);
                Err(error)
            }
        }
    }

    fn wait_in_process(&self, deadline: Option<Instant>) -> Result<Box<Store>, Error> {
        let mut slot = lock(&self.shared.writer.slot);
        loop {
            if let Some(store) = slot.store.take() {
                return Ok(store);
            }
            slot.waiting += 1;
            slot = match deadline {
                None => self.shared.writer.returned.wait(slot).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(clock::instant());
                    if left.is_zero() {
                        slot.waiting -= 1;
                        return Err(Error::Busy);
                    }
                    self.shared.writer.returned.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            slot.waiting -= 1;
        }
    }

    /// Rewrites the file without its free pages and empties the log, however long that takes. Waits until `deadline` for a
    /// transaction of this process to end. A transaction that starts meanwhile waits.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the deadline passes, [`Error::ReadOnly`] if the database was opened read-only, [`Error::Moved`]
    /// if the file was replaced or removed, and an error if the disk has no room for the copy, in which case the file is
    /// unchanged.
    pub fn compact(&self, deadline: Option<Instant>) -> Result<Compacted, Error> {
        if self.shared.read_only {
            return Err(Error::ReadOnly);
        }
        self.shared.still_there()?;
        let mut store = self.wait_for_store(deadline)?;
        if let Some(checkpoint) = &self.shared.checkpoint {
            checkpoint.wait();
        }
        let compacted = self.shared.compact(&mut store);
        self.shared.end(store);
        compacted
    }

    /// Copies the whole log into the file.
    pub(crate) fn bring_log_back(&self) -> Result<(), Error> {
        if let Some(checkpoint) = &self.shared.checkpoint {
            checkpoint.wait();
        }
        self.fill(|store| {
            let busy: i64 = store.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if busy == 0 { Ok(()) } else { Err(Error::Busy) }
        })
    }

    /// Lets `work` write rows outside a transaction, to fill a fresh database.
    pub(crate) fn fill(&self, work: impl FnOnce(&Store) -> Result<(), Error>) -> Result<(), Error> {
        // The checkpoint thread may still use it.
        let store = self.wait_for_store(None)?;
        let result = work(&store);
        self.shared.end(store);
        result
    }

    /// Lets `work` write rows if no transaction is running, and otherwise does nothing.
    pub(crate) fn fill_now(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> Result<(), Error> {
        if self.shared.read_only {
            return Err(Error::ReadOnly);
        }
        let store = self.wait_for_store(Some(clock::instant()))?;
        store.patience.refill();
        let result = work(&store.connection);
        self.shared.end(store);
        Ok(result?)
    }

    /// Returns a reader of the last committed state, for one thread. It does not wait for a transaction and does not see its
    /// changes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Moved`] if the file was replaced or removed. An existing reader continues with the old file.
    pub fn reader(&self) -> Result<Reader, Error> {
        self.shared.reader()
    }

    /// Returns a handle that interrupts the running operation of the transaction from another thread.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        self.shared.interrupter.clone()
    }

    /// Returns the estimated maximum duration of a commit of the running transaction, without waiting for it.
    #[must_use]
    pub fn settling(&self) -> Duration {
        self.shared.gauge.settling()
    }

    /// Returns a weak reference to the database.
    #[must_use]
    pub fn downgrade(&self) -> WeakDatabase {
        WeakDatabase(Arc::downgrade(&self.shared))
    }

    /// Returns the path of the file; `None` in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.options.path.as_deref()
    }

    /// Returns a number that changes whenever this handle notices commits of other processes: each new reader and each new
    /// transaction does. `None` if it is read-only and notices none.
    #[must_use]
    pub fn visits(&self) -> Option<u64> {
        (!self.shared.is_read_only()).then(|| self.shared.contents.visits())
    }

    /// Closes this handle and reports errors that dropping it would hide. The last handle of this process copies the log into the
    /// file, as far as readers of other processes allow. Waits until `deadline` for a transaction to end.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Moved`] if the file was replaced or removed, [`Error::Busy`] if the deadline passes, and an error if the
    /// log cannot be copied. Committed data is safe in the log then.
    pub fn close(self, deadline: Option<Instant>) -> Result<(), Error> {
        if self.shared.read_only || self.path().is_none() {
            return Ok(());
        }
        self.shared.still_there()?;
        if Arc::strong_count(&self.shared) > 1 {
            return Ok(());
        }
        let store = self.wait_for_store(deadline)?;
        if let Some(checkpoint) = &self.shared.checkpoint {
            checkpoint.wait();
        }
        let copied = store.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0));
        self.shared.end(store);
        copied?;
        Ok(())
    }
}

impl Shared {
    /// Returns a reader of the last committed state, for one thread.
    pub(crate) fn reader(self: &Arc<Self>) -> Result<Reader, Error> {
        if self.watch.as_ref().is_some_and(turn::notices) {
            self.contents.forget();
        }
        let idle = lock(&self.readers).pop();
        let idle = match idle {
            Some(idle) => Ok(idle),
            None => self.connect_reader(),
        };
        // A missing file is reported as such, not as SQLite's error for its replacement.
        self.still_there()?;
        let (connection, patience) = idle?;
        Ok(Reader::new(connection, patience, Arc::clone(self)))
    }

    /// Returns the tables of this database.
    fn tables(&self) -> Result<Arc<Tables>, Error> {
        let idle = lock(&self.readers).pop();
        let (connection, patience) = idle.map_or_else(|| self.connect_reader(), Ok)?;
        let known = lock(&self.tables).clone();
        let tables = Tables::of(&connection, known);
        self.return_reader(connection, patience);
        let tables = tables?;
        *lock(&self.tables) = Some(Arc::clone(&tables));
        Ok(tables)
    }

    /// Returns the URI that another connection attaches to read this database.
    pub(crate) fn uri_for_reading(&self) -> Result<String, Error> {
        match &self.source {
            // Explicit, because the other connection may use a layer that does not support files.
            Source::File(path) => Ok(gather::in_layer(crate::copy::file_uri(path, "ro")?)),
            Source::Memory(named) => Ok(named.uri_for_reading()),
        }
    }

    fn connect_reader(&self) -> Result<(Connection, Patience), Error> {
        let mut connection = self.source.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let patience = self.source.patience();
        patience.watch(&mut connection, || false)?;
        schema::tune_reader(&connection)?;
        Ok((connection, patience))
    }

    /// Returns the work limit for copying this database.
    pub(crate) fn patience_for_copy(&self) -> Patience {
        match &self.source {
            Source::File(path) => Patience::for_copy(path),
            Source::Memory(_) => Patience::endless(),
        }
    }

    /// Returns whether the database was opened read-only, so that another process may be writing.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Frees the memory of removed rows if it is substantial. An error loses nothing: the memory is reused.
    fn make_compact(&self, store: &mut Store) {
        let Source::Memory(named) = &self.source else { return };
        if !named.memory.has_much_free() {
            return;
        }
        let Some(copy) = Named::new(Memory::empty()) else { return };
        if store.connection.execute("VACUUM INTO ?1", [copy.uri_for_writing()]).is_ok() {
            named.memory.replace_by(&copy.memory);
            store.expect_replacement();
        }
    }

    fn compact(&self, store: &mut Store) -> Result<Compacted, Error> {
        match &self.source {
            Source::File(path) => {
                let before = stored_bytes(path);
                store.compact()?;
                Ok(Compacted { before, after: stored_bytes(path) })
            }
            Source::Memory(_) => {
                let before = store.page_bytes()?;
                self.make_compact(store);
                Ok(Compacted { before, after: store.page_bytes()? })
            }
        }
    }

    /// Returns the memory used by a database in memory.
    pub(crate) fn memory(&self) -> Option<&Arc<Memory>> {
        match &self.source {
            Source::File(_) => None,
            Source::Memory(named) => Some(&named.memory),
        }
    }

    /// Returns an error if the file was replaced or removed since it was opened.
    pub(crate) fn still_there(&self) -> Result<(), Error> {
        self.place.as_ref().map_or(Ok(()), Place::check)
    }

    /// Releases the writer after a transaction.
    pub(crate) fn end(&self, mut store: Box<Store>) {
        store.clock = Arc::clone(&self.options.clock);
        match &self.checkpoint {
            Some(checkpoint) => checkpoint.after_transaction(store, &self.writer),
            None => {
                self.make_compact(&mut store);
                self.writer.put_back(store);
            }
        }
    }

    pub(crate) fn return_reader(&self, connection: Connection, patience: Patience) {
        let mut idle = lock(&self.readers);
        if idle.len() < IDLE_READERS {
            idle.push((connection, patience));
        }
    }
}

impl Shared {
    // Keeps the connections of a fork for the next one.
    fn keep_connections(&mut self) {
        let Some(tables) = self.kept_for.take() else { return };
        let store = lock(&self.writer.slot).store.take();
        let readers = std::mem::take(self.readers.get_mut().unwrap_or_else(PoisonError::into_inner));
        let source = std::mem::replace(&mut self.source, Source::File(std::path::PathBuf::new()));
        if let (Some(store), Source::Memory(named)) = (store, source) {
            spare::put(named, store.into_connection(), readers, tables);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Some(place) = &self.place else { return self.keep_connections() };
        // Joins its thread, which may use the store.
        self.checkpoint = None;
        let slot = lock(&self.writer.slot);
        if let Some(store) = &slot.store {
            place.leave(&store.connection);
        }
        if let (Some(tidy), Source::File(path)) = (&self.tidy, &self.source)
            && place.check().is_ok()
        {
            self.readers.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            tidy.after(&self.source, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each compact copy begins with the same number, so the same number of commits after two of them gives two states that
    // SQLite's own numbers cannot tell apart.
    #[test]
    fn a_reader_notices_every_compaction() {
        let database = Database::options().versions(false).open().unwrap();
        let change = |work: &dyn Fn(&Transaction)| {
            let transaction = database.begin(None).unwrap();
            work(&transaction);
            transaction.commit().unwrap();
        };
        let resident = || database.shared.memory().unwrap().resident();
        for round in 0..6u8 {
            change(&|transaction| transaction.fs().write("/large", vec![1; 24 << 20]).unwrap());
            let before = resident();
            change(&|transaction| {
                transaction.fs().remove("/large").unwrap();
            });
            assert!(resident() < before / 2, "not compacted");
            change(&|transaction| transaction.fs().write("/small", vec![round; 9000]).unwrap());
            let reader = database.reader().unwrap();
            assert!(reader.fs().read("/small").unwrap() == [round; 9000], "{round}");
            assert_eq!(database.check().unwrap(), []);
        }
    }
}
