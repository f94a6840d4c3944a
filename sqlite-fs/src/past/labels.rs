//! Labels: names for versions. They are removed with their version.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::LABELS;
use super::save::ROW_BYTES;
use crate::error::Error;
use crate::reader::Reader;
use crate::rows::{self, signed};
use crate::store::Store;
use crate::transaction::Transaction;

/// Maximum length of a label, and of its message.
const LABEL_MAX: usize = 255;
const MESSAGE_MAX: usize = 64 << 10;
/// Maximum size of all labels: one version can have any number of them, and no other budget includes them.
pub(crate) const LABELS_BYTES: u64 = 16 << 20;

/// A name for a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The number of the version.
    pub version: i64,
    /// The message.
    pub message: Option<String>,
    /// When it was created, in nanoseconds since 1970.
    pub time: i64,
}

fn label(row: &Row<'_>) -> rusqlite::Result<Label> {
    Ok(Label { name: row.get(0)?, version: row.get(1)?, message: row.get(2)?, time: row.get(3)? })
}

/// Removes the labels of versions below one.
pub(super) fn remove_labels(connection: &Connection, below: i64) -> rusqlite::Result<()> {
    if rows::has_table(connection, LABELS)? {
        connection.prepare_cached("DELETE FROM sandlite_label WHERE version<?1")?.execute([below])?;
    }
    Ok(())
}

/// Returns the size of a label.
pub(crate) fn label_bytes(name: &str, message: Option<&str>) -> u64 {
    ROW_BYTES + name.len() as u64 + message.map_or(0, |message| message.len() as u64)
}

/// Returns the size of all labels.
fn used(connection: &Connection) -> rusqlite::Result<u64> {
    let query = "SELECT coalesce(sum(?1+octet_length(name)+coalesce(octet_length(message), 0)), 0) FROM sandlite_label";
    connection.prepare_cached(query)?.query_row([signed(ROW_BYTES)], |row| rows::bytes(row, 0))
}

impl Reader {
    /// Returns one label, if it exists.
    pub fn label(&self, name: &str) -> Result<Option<Label>, Error> {
        Ok(self.rows(|connection| {
            if !rows::has_table(connection, LABELS)? {
                return Ok(None);
            }
            let query = "SELECT name, version, message, time_ns FROM sandlite_label WHERE name=?1";
            Ok(connection.prepare_cached(query)?.query_row([name], label).optional()?)
        })?)
    }

    /// Returns all labels, those of the newest versions first.
    pub fn labels(&self) -> Result<Vec<Label>, Error> {
        Ok(self.rows(|connection| {
            if !rows::has_table(connection, LABELS)? {
                return Ok(Vec::new());
            }
            let query = "SELECT name, version, message, time_ns FROM sandlite_label ORDER BY version DESC, name";
            let mut statement = connection.prepare_cached(query)?;
            let found = statement.query_map([], label)?;
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?)
        })?)
    }
}

impl Transaction {
    /// Adds a label to a version. The running transaction's own is not a version yet.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoVersion`] if the version does not exist, and [`Error::Invalid`] if the label exists, is empty, a number
    /// or too long, or if all labels together are too large.
    pub fn label(&self, name: &str, version: i64, message: Option<&str>) -> Result<(), Error> {
        self.with(|store| store.label(name, version, message))
    }

    /// Removes a label, and returns whether it existed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupted`] if the transaction was interrupted.
    pub fn remove_label(&self, name: &str) -> Result<bool, Error> {
        self.with(|store| {
            Ok(store.run(|store| {
                if !rows::has_table(&store.connection, LABELS)? {
                    return Ok(false);
                }
                Ok(store.connection.prepare_cached("DELETE FROM sandlite_label WHERE name=?1")?.execute([name])? > 0)
            })?)
        })
    }
}

impl Store {
    fn label(&mut self, name: &str, version: i64, message: Option<&str>) -> Result<(), Error> {
        let invalid = |reason: &str| Error::Invalid { what: "checkpoint name", reason: reason.to_owned() };
        refuse_label(name, message).map_err(invalid)?;
        let now = self.now();
        let problem = self.run(|store| {
            if !store.connection.prepare_cached("SELECT 1 FROM sandlite_version WHERE id=?1")?.exists([version])? {
                return Ok(Some(super::at::none(&store.connection, version)?));
            }
            if !rows::has_table(&store.connection, LABELS)? {
                store.connection.execute_batch(&super::making(LABELS))?;
            }
            if store.connection.prepare_cached("SELECT 1 FROM sandlite_label WHERE name=?1")?.exists([name])? {
                return Ok(Some(invalid(&format!("`{name}` already exists"))));
            }
            if used(&store.connection)?.saturating_add(label_bytes(name, message)) > LABELS_BYTES {
                let reason = "all checkpoints together exceed 16 MB: delete old versions, which deletes their checkpoints";
                return Ok(Some(Error::Invalid { what: "checkpoint", reason: reason.to_owned() }));
            }
            store
                .connection
                .prepare_cached("INSERT INTO sandlite_label (name, version, message, time_ns) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![name, version, message, now])?;
            Ok(None)
        })?;
        problem.map_or(Ok(()), Err)
    }
}

/// Returns the reason a text is not a valid label.
fn refuse_label(name: &str, message: Option<&str>) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > LABEL_MAX || name.chars().any(char::is_control) {
        return Err("expected 1 to 255 printable bytes");
    }
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a number already denotes a version");
    }
    if message.is_some_and(|message| message.len() > MESSAGE_MAX) {
        return Err("the message is longer than 64 KB");
    }
    Ok(())
}

/// Returns whether a text is a valid label.
pub(crate) fn is_label(name: &str, message: Option<&str>) -> bool {
    refuse_label(name, message).is_ok()
}
