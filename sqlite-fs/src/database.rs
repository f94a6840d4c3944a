//! One database: the place of the single writer, the readers' connections, and how a file is opened.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rusqlite::{Connection, OpenFlags};

use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::format::{self, FORMAT};
use crate::interrupt::Interrupter;
use crate::memory::Memory;
use crate::memory::layer::Named;
use crate::options::Options;
use crate::reader::Reader;
use crate::schema::{self, Found};
use crate::side::Side;
use crate::store::Store;
use crate::transaction::Transaction;
use crate::{Clock, calls, gather, medium};

/// Idle reader connections that are kept.
const IDLE_READERS: usize = 4;

/// A filesystem, a key-value store and a history; cheap to clone, one and the same for all threads.
#[derive(Clone)]
pub struct Database {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    /// Waits for its thread when dropped, so first: a connection that is open elsewhere keeps the log from being removed.
    checkpoint: Option<Checkpoint>,
    /// Idle ones. Before the writer, for fields are dropped in order: the last connection to close empties the
    /// write-ahead log into the file, and one that only reads cannot.
    readers: Mutex<Vec<Connection>>,
    slot: Mutex<Slot>,
    returned: Condvar,
    source: Source,
    read_only: bool,
    chunk_bytes: usize,
    interrupter: Interrupter,
    pub(crate) options: Options,
}

/// The writer's place.
#[derive(Default)]
struct Slot {
    /// Absent while a transaction has it, or for good if the database is read-only.
    store: Option<Box<Store>>,
    /// Threads that wait for it: without any, waking is a system call for nothing.
    waiting: u32,
}

/// What SQLite opens.
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
                .ok_or_else(|| Error::Damaged("SQLite takes no file layer".to_owned())),
        }
    }

    pub(crate) fn connect(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match self {
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
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Database {
    /// Starts describing a database; [`Options::open`] opens it.
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn open(options: Options) -> Result<Self, Error> {
        let source = Source::of(&options)?;
        if let Some(path) = &options.path {
            medium::refuse_network(path)?;
        }
        let interrupter = Interrupter::default();
        let read_only = options.read_only && options.path.is_some();
        let (store, chunk_bytes, checkpoint) = match (&options.path, read_only) {
            (Some(path), true) => (None, open_for_reading(&source, path)?, None),
            (path, _) => {
                let mut store = open_for_writing(&source, &options, &interrupter)?;
                let chunk_bytes = store.chunk_bytes();
                let checkpoint = path.clone().map(|path| Checkpoint::new(&mut store.connection, path)).transpose()?;
                (Some(Box::new(store)), chunk_bytes, checkpoint)
            }
        };
        Ok(Self {
            shared: Arc::new(Shared {
                checkpoint,
                slot: Mutex::new(Slot { store, waiting: 0 }),
                returned: Condvar::new(),
                readers: Mutex::new(Vec::new()),
                source,
                read_only,
                chunk_bytes,
                interrupter,
                options,
            }),
        })
    }

    /// Begins the single writing transaction, waiting until `deadline` for another one of this process to end.
    pub fn begin(&self, deadline: Option<Instant>) -> Result<Transaction, Error> {
        if self.shared.read_only {
            return Err(Error::ReadOnly);
        }
        let mut slot = lock(&self.shared.slot);
        loop {
            if let Some(store) = slot.store.take() {
                self.shared.interrupter.clear();
                return Ok(Transaction::new(store, Arc::clone(&self.shared)));
            }
            slot.waiting += 1;
            slot = match deadline {
                None => self.shared.returned.wait(slot).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        slot.waiting -= 1;
                        return Err(Error::Busy);
                    }
                    self.shared.returned.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            slot.waiting -= 1;
        }
    }

    /// Lets `work` write rows that no transaction knows of: the filling of a fresh database.
    pub(crate) fn fill(&self, work: impl FnOnce(&Connection) -> Result<(), Error>) -> Result<(), Error> {
        let store = lock(&self.shared.slot).store.take().ok_or(Error::Busy)?;
        let result = work(&store.connection);
        self.shared.return_store(store);
        result
    }

    /// The last committed state, for one thread; does not wait for a transaction and does not see its changes.
    pub fn reader(&self) -> Result<Reader, Error> {
        let idle = lock(&self.shared.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.shared.connect_reader()?,
        };
        Ok(Reader::new(connection, Arc::clone(&self.shared)))
    }

    /// Ends the running operation of the transaction from another thread.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        self.shared.interrupter.clone()
    }

    /// The file, unless it is in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.options.path.as_deref()
    }
}

impl Shared {
    /// What another connection attaches to read this database.
    pub(crate) fn uri_for_reading(&self) -> Result<String, Error> {
        match &self.source {
            // Named, for the other connection may have a layer that knows no files.
            Source::File(path) => Ok(gather::in_layer(crate::copy::file_uri(path, "ro")?)),
            Source::Memory(named) => Ok(named.uri_for_reading()),
        }
    }

    fn connect_reader(&self) -> Result<Connection, Error> {
        let connection = self.source.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::tune_reader(&connection)?;
        Ok(connection)
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Gives the memory of removed rows back, where that is much. An error loses nothing: they stay, and are used again.
    pub(crate) fn make_compact(&self, store: &Store) {
        let Source::Memory(named) = &self.source else { return };
        if !named.memory.has_much_free() {
            return;
        }
        let Some(copy) = Named::new(Memory::empty()) else { return };
        if store.connection.execute("VACUUM INTO ?1", [copy.uri_for_writing()]).is_ok() {
            named.memory.replace_by(&copy.memory);
        }
    }

    /// The memory that a database in memory holds.
    pub(crate) fn memory(&self) -> Option<&Arc<Memory>> {
        match &self.source {
            Source::File(_) => None,
            Source::Memory(named) => Some(&named.memory),
        }
    }

    /// Before the writer's place is given back.
    pub(crate) fn after_commit(&self) {
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.after_commit();
        }
    }

    pub(crate) fn return_store(&self, mut store: Box<Store>) {
        store.clock = Arc::clone(&self.options.clock);
        let mut slot = lock(&self.slot);
        slot.store = Some(store);
        if slot.waiting > 0 {
            self.returned.notify_one();
        }
    }

    pub(crate) fn return_reader(&self, connection: Connection) {
        let mut idle = lock(&self.readers);
        if idle.len() < IDLE_READERS {
            idle.push(connection);
        }
    }
}

fn refuse(found: Found, path: Option<&Path>) -> Result<bool, Error> {
    let path = path.unwrap_or(Path::new(":memory:")).to_owned();
    match found {
        Found::Empty => Ok(true),
        Found::Ours => Ok(false),
        Found::TooNew(format) => Err(Error::TooNew { path, found: format, known: FORMAT }),
        Found::Foreign(reason) => Err(Error::Foreign { path, reason }),
    }
}

fn open_for_reading(source: &Source, path: &Path) -> Result<usize, Error> {
    let connection = source.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    schema::harden(&connection)?;
    if refuse(schema::inspect(&connection)?, Some(path))? {
        return Err(Error::Foreign { path: path.to_owned(), reason: "it is empty".to_owned() });
    }
    schema::chunk_bytes(&connection)
}

fn open_for_writing(source: &Source, options: &Options, interrupter: &Interrupter) -> Result<Store, Error> {
    let path = options.path.as_deref();
    let (side, left) = match path.map(Side::acquire).transpose()? {
        Some((side, left)) => (Some(side), left),
        None => (None, crate::side::Left::default()),
    };
    let clock: Arc<dyn Clock> = Arc::clone(&options.clock);
    let connection = source.connect(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    schema::tune_writer(&connection, path.is_some(), options.durability, options.secure_delete)?;
    if path.is_none() {
        schema::begin_at(&connection, clock.now())?;
    } else if refuse(schema::inspect(&connection)?, path)? {
        schema::use_log(&connection)?;
        schema::create(&connection, clock.now())?;
    } else {
        // An export is in the plain mode, as is a file that another tool has changed.
        schema::use_log(&connection)?;
        if left.unclean {
            quick_check(&connection)?;
        }
        connection.execute_batch(format::SESSIONS)?;
        connection.execute_batch(format::USAGE)?;
        schema::after_visit(&connection)?;
        if let Some(note) = &left.note {
            calls::recover(&connection, note, clock.now())?;
        }
    }
    let is_oversized = schema::limit_pages(&connection, &options.quota)?;
    let chunk_bytes = schema::chunk_bytes(&connection)?;
    let mut store = Store::new(connection, chunk_bytes, options, interrupter.clone(), side)?;
    store.is_oversized = is_oversized;
    Ok(store)
}

fn quick_check(connection: &Connection) -> Result<(), Error> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(Error::Damaged(verdict)) }
}
