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
mod sandboxes;
mod schema;
mod sessions;
mod spent;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

pub(crate) use audit::AuditRow;
pub(crate) use executions::{Execution, ExecutionFilter, Finished, NewExecution};
pub(crate) use files::{FileFilter, FileRow};
pub(crate) use idempotency::{Begun, KeptAnswer};
pub(crate) use keys::NewKey;
pub use keys::{KeyRow, Role};
pub(crate) use retention::Kept;
pub(crate) use sandboxes::{SandboxRow, Taken};
pub(crate) use spent::HOUR;

use super::clock::now;
use crate::http::random_hex;

/// The database's name in the data directory.
const FILE: &str = "catalog.db";
/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The catalog. Clones share it.
#[derive(Clone)]
pub(crate) struct Catalog(Arc<Mutex<Connection>>);

impl Catalog {
    /// Opens the catalog of a data directory, created if it is missing.
    pub(crate) fn open(data: &Path) -> rusqlite::Result<Self> {
        Self::new(Connection::open(data.join(FILE))?)
    }

    fn new(mut connection: Connection) -> rusqlite::Result<Self> {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        schema::create(&mut connection)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        work(&self.connection())
    }

    /// Changes something: all of it or nothing.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// The name of a tenant's directory: random, so that no path is made from a client's text (T-NET-05).
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

    /// The secret that signs addresses of artifacts, made at the first start.
    pub(crate) fn secret(&self) -> rusqlite::Result<Vec<u8>> {
        self.change(|transaction| {
            let known =
                transaction.query_row("SELECT value FROM setting WHERE name = 'secret'", [], |row| row.get(0)).optional()?;
            if let Some(secret) = known {
                return Ok(secret);
            }
            let secret = format!("{}{}", new_id(), new_id()).into_bytes();
            transaction.execute("INSERT INTO setting (name, value) VALUES ('secret', ?1)", [&secret])?;
            Ok(secret)
        })
    }
}

/// An error of the catalog that SQLite has no word for.
fn fault(text: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(text.into())
}

/// A new id: 128 random bits in the form of a UUID. Nobody can guess it.
pub(crate) fn new_id() -> String {
    let hex = random_hex::<16>().unwrap_or_default();
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    format!("{}-{}-4{}-a{}-{}", part(0..8), part(8..12), part(13..16), part(17..20), part(20..32))
}
