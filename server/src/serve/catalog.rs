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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params};

pub(crate) use audit::AuditRow;
pub(crate) use executions::{Execution, ExecutionFilter, Finished, NewExecution};
pub(crate) use files::{FileFilter, FileRow};
pub(crate) use idempotency::{Begun, KeptAnswer};
pub(crate) use keys::NewKey;
pub use keys::{KeyRow, Role};
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
}

impl Catalog {
    /// Opens the catalog of a data directory, created if it is missing.
    pub(crate) fn open(data: &Path) -> rusqlite::Result<Self> {
        random_hex::<16>().map_err(|error| fault(error.to_string()))?;
        let path = data.join(FILE);
        let writer = Self::writer(Connection::open(&path)?)?;
        let reader = Self::reader(&path)?;
        Ok(Self(Arc::new(Connections { writer: Mutex::new(writer), reader: Some(Mutex::new(reader)), path: Some(path) })))
    }

    /// Returns a catalog in memory.
    #[cfg(test)]
    fn new(connection: Connection) -> rusqlite::Result<Self> {
        let writer = Self::writer(connection)?;
        Ok(Self(Arc::new(Connections { writer: Mutex::new(writer), reader: None, path: None })))
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
        let reader = self.0.reader.as_ref().unwrap_or(&self.0.writer);
        work(&reader.lock().unwrap_or_else(PoisonError::into_inner))
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
}
