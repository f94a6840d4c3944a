//! The catalog of a server: tenants, keys, executions, files, sandboxes and the audit log, in one SQLite database.
//!
//! Every look-up is by tenant and id, so that nothing of another tenant can be reached (T-NET-05). Knows nothing of wasm and HTTP. The methods
//! are the interface that a second catalog for many machines will have; each is one transaction.

mod audit;
mod executions;
mod files;
mod idempotency;
mod keys;
mod retention;
mod room;
mod sandboxes;
mod schema;
mod sessions;
mod spent;
mod tenants;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params};

pub(crate) use audit::AuditRow;
pub(crate) use executions::{Execution, ExecutionFilter, Finished, NewExecution};
pub(crate) use files::{FileFilter, FileRow};
pub(crate) use idempotency::{Begun, KeptAnswer};
pub use keys::{KeyRow, NewKey, Role};
pub(crate) use retention::Kept;
pub(crate) use sandboxes::{SandboxRow, Taken};
pub(crate) use spent::HOUR;
pub(crate) use tenants::is_tenant;
pub use tenants::{Quota, TenantRow};

use super::clock::now;
use crate::http::random_hex;

/// The database's name in the data directory.
const FILE: &str = "catalog.db";
/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a reader that is in use is tried again: a look-up by a key ends within that time.
const TRIES: usize = 200;

/// Size of the log, in pages, at which SQLite copies it into the file as part of a commit. [`Catalog::checkpoint`] usually runs earlier.
const LONG_LOG: i64 = 20_000;

/// The catalog. Clones share it.
#[derive(Clone)]
pub(crate) struct Catalog(Arc<Connections>);

struct Connections {
    writer: Mutex<Connection>,
    /// A separate connection, so that readers do not wait for commits; `None` in memory.
    reader: Option<Mutex<Connection>>,
    /// `None` in memory.
    path: Option<PathBuf>,
    /// Reads and changes so far.
    #[cfg(test)]
    queries: std::sync::atomic::AtomicUsize,
}

impl Catalog {
    /// Opens the catalog of a data directory, created if it is missing.
    pub(crate) fn open(data: &Path) -> rusqlite::Result<Self> {
        random_hex::<16>().map_err(|error| fault(error.to_string()))?;
        let path = data.join(FILE);
        let writer = Self::writer(Connection::open(&path)?)?;
        let reader = Self::reader(&path)?;
        Ok(Self::of(writer, Some(reader), Some(path)))
    }

    /// Returns a catalog in memory.
    #[cfg(test)]
    fn new(connection: Connection) -> rusqlite::Result<Self> {
        let writer = Self::writer(connection)?;
        Ok(Self::of(writer, None, None))
    }

    fn of(writer: Connection, reader: Option<Connection>, path: Option<PathBuf>) -> Self {
        Self(Arc::new(Connections {
            writer: Mutex::new(writer),
            reader: reader.map(Mutex::new),
            path,
            #[cfg(test)]
            queries: std::sync::atomic::AtomicUsize::new(0),
        }))
    }

    fn writer(mut connection: Connection) -> rusqlite::Result<Connection> {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "wal_autocheckpoint", LONG_LOG)?;
        schema::create(&mut connection)?;
        Ok(connection)
    }

    fn reader(path: &Path) -> rusqlite::Result<Connection> {
        let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        reader.busy_timeout(PATIENCE)?;
        reader.pragma_update(None, "trusted_schema", false)?;
        Ok(reader)
    }

    /// Reads committed rows.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        #[cfg(test)]
        self.0.queries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let reader = self.0.reader.as_ref().unwrap_or(&self.0.writer);
        work(&reader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether a read would wait for another one that takes longer than a look-up.
    pub(crate) fn is_busy(&self) -> bool {
        let reader = self.0.reader.as_ref().unwrap_or(&self.0.writer);
        (0..TRIES).all(|_| {
            let is_taken = matches!(reader.try_lock(), Err(TryLockError::WouldBlock));
            if is_taken {
                std::hint::spin_loop();
            }
            is_taken
        })
    }

    /// Copies the log into the file. Not within a commit, where every request would wait for the disk.
    pub(crate) fn checkpoint(&self) -> rusqlite::Result<()> {
        let Some(path) = &self.0.path else { return Ok(()) };
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
    }

    /// Changes something: all of it or nothing.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        #[cfg(test)]
        self.0.queries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut connection = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Returns an error if the database does not answer.
    pub(crate) fn check(&self) -> rusqlite::Result<()> {
        self.read(|connection| connection.prepare_cached("SELECT 1")?.query_row([], |_| Ok(())))
    }

    /// Returns the name of a tenant's directory: random, so that no path is made from a client's text (T-NET-05).
    pub(crate) fn tenant_directory(&self, tenant: &str) -> rusqlite::Result<String> {
        let known = |connection: &Connection| {
            let sql = "SELECT directory FROM tenant WHERE name = ?1";
            connection.prepare_cached(sql)?.query_row([tenant], |row| row.get(0)).optional()
        };
        if let Some(directory) = self.read(known)? {
            return Ok(directory);
        }
        self.change(|transaction| match known(transaction)? {
            Some(directory) => Ok(directory),
            None => {
                let directory = new_id();
                let sql = "INSERT INTO tenant (name, directory, created_at) VALUES (?1, ?2, ?3)";
                transaction.execute(sql, params![tenant, directory, now()])?;
                Ok(directory)
            }
        })
    }

    /// Returns the secret that signs addresses of artifacts, made at the first start.
    pub(crate) fn secret(&self) -> rusqlite::Result<Vec<u8>> {
        self.change(|transaction| {
            let known =
                transaction.query_row("SELECT value FROM setting WHERE name = 'secret'", [], |row| row.get(0)).optional()?;
            if let Some(secret) = known {
                return Ok(secret);
            }
            let secret = random_hex::<32>().map_err(|error| fault(error.to_string()))?.into_bytes();
            transaction.execute("INSERT INTO setting (name, value) VALUES ('secret', ?1)", [&secret])?;
            Ok(secret)
        })
    }
}

/// Returns an error of the catalog that SQLite has no word for.
fn fault(text: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(text.into())
}

/// Returns a new id: 120 random bits in the form of a UUID. Nobody can guess it. Empty if the system has no random bytes, which no server starts without.
pub(crate) fn new_id() -> String {
    let Ok(hex) = random_hex::<16>() else { return String::new() };
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    format!("{}-{}-4{}-a{}-{}", part(0..8), part(8..12), part(13..16), part(17..20), part(20..32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_does_not_wait_for_a_change_and_sees_it_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path()).unwrap();
        let (sender, read) = std::sync::mpsc::channel();
        let before = catalog.change(|transaction| {
            transaction.execute("INSERT INTO tenant (name, directory, created_at) VALUES ('a', 'd', 0)", [])?;
            let catalog = catalog.clone();
            std::thread::spawn(move || sender.send(catalog.tenant_names()));
            Ok(read.recv_timeout(Duration::from_secs(10)))
        });
        assert_eq!(before.unwrap().unwrap().unwrap(), Vec::<String>::new());
        assert_eq!(catalog.tenant_names().unwrap(), ["a"]);
        catalog.checkpoint().unwrap();
        drop(catalog);
        assert_eq!(Catalog::open(directory.path()).unwrap().tenant_names().unwrap(), ["a"]);
    }

    #[test]
    fn a_catalog_is_busy_while_somebody_reads() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path()).unwrap();
        assert!(!catalog.is_busy());
        assert!(catalog.read(|_| Ok(catalog.is_busy())).unwrap());
        // A change keeps nobody from reading.
        assert!(!catalog.change(|_| Ok(catalog.is_busy())).unwrap());
        assert!(!catalog.is_busy());
    }

    type Find = fn(&Catalog, &str, &str) -> bool;

    // T-NET-05: also by its time. Each look-up is one query for the tenant and the id together.
    #[test]
    fn what_belongs_to_another_tenant_takes_the_same_queries_as_what_does_not_exist() {
        let catalog = Catalog::new(Connection::open_in_memory().unwrap()).unwrap();
        let text = |text: &str| text.to_owned();
        let (at, base) = (now(), None);
        let row = SandboxRow {
            id: text("box"),
            tenant: text("a"),
            name: Some(text("name")),
            preset: text("normal"),
            base,
            created_at: at,
            used_at: at,
            expires_at: None,
        };
        catalog.add_sandbox(&row, 9).unwrap().unwrap();
        let (id, skill, version) = (text("run"), text("s"), text("1.0.0"));
        catalog.begin_execution("a", &NewExecution { id, skill, version, session: None, input: None }).unwrap();
        catalog.add_files(&[FileRow::new(text("file"), "a", "name", "text/plain", 1)]).unwrap();
        catalog.use_session("a", "session").unwrap();
        let (tenant, role, name) = (text("a"), Role::Consumer, String::new());
        let new = NewKey { tenant, role, view: None, name, lifetime: None, is_service: false };
        let (_, key) = catalog.create_key(&new, None).unwrap();
        let look_ups: [(&str, &str, Find); 8] = [
            ("sandbox", "box", |catalog, tenant, id| catalog.sandbox(tenant, id).unwrap().is_some()),
            ("sandbox by name", "name", |catalog, tenant, name| {
                !catalog.sandboxes(tenant, Some(name), (i64::MIN, ""), 1).unwrap().is_empty()
            }),
            ("execution", "run", |catalog, tenant, id| catalog.execution(tenant, id).unwrap().is_some()),
            ("file", "file", |catalog, tenant, id| catalog.file(tenant, id).unwrap().is_some()),
            ("session", "session", |catalog, tenant, name| catalog.has_session(tenant, name).unwrap()),
            ("key", &key, |catalog, tenant, id| catalog.revoke_key(Some(tenant), id).unwrap()),
            ("changed sandbox", "box", |catalog, tenant, id| {
                catalog.change_sandbox(tenant, id, Some(None), None).unwrap().is_ok()
            }),
            ("removed session", "session", |catalog, tenant, name| catalog.remove_session(tenant, name).unwrap().is_some()),
        ];
        for (what, theirs, find) in look_ups {
            let queries = |tenant: &str, id: &str, expected: bool| {
                let before = catalog.0.queries.load(std::sync::atomic::Ordering::Relaxed);
                assert_eq!(find(&catalog, tenant, id), expected, "{what}");
                catalog.0.queries.load(std::sync::atomic::Ordering::Relaxed) - before
            };
            assert_eq!((queries("b", theirs, false), queries("b", "none", false)), (1, 1), "{what}");
            assert_eq!(queries("a", theirs, true), 1, "{what}");
        }
    }
}
