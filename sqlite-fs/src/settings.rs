//! Settings of a sandbox by its owner: short texts by name, such as its policy. They are not part of any version.
//!
//! The table is created with the first setting. A program that does not support it rejects the file, so that a policy is never
//! ignored.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Error;
use crate::reader::Reader;
use crate::store::write;
use crate::transaction::Transaction;

pub(crate) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS sandlite_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
";

/// Maximum length of a value, and of a name.
pub(crate) const VALUE_MAX: usize = 256 << 10;
const NAME_MAX: usize = 512;
/// Maximum number of settings in one file.
const COUNT_MAX: i64 = 1000;

pub(crate) fn exists(connection: &Connection, schema: &str) -> rusqlite::Result<bool> {
    connection
        .prepare(&format!("SELECT 1 FROM {schema}.sqlite_schema WHERE type='table' AND name='sandlite_setting'"))?
        .exists([])
}

fn get(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    // Preparing a statement detects a table that another connection has just created; looking it up does not.
    match connection.prepare_cached("SELECT value FROM sandlite_setting WHERE name=?1") {
        Ok(mut statement) => statement.query_row([name], |row| row.get(0)).optional(),
        Err(_) if !exists(connection, "main")? => Ok(None),
        Err(error) => Err(error),
    }
}

impl Reader {
    /// Returns a setting.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.rows(|connection| Ok(get(connection, name)?))?)
    }
}

impl Transaction {
    /// Returns a setting as seen by this transaction.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        self.with(|store| Ok(store.run(|store| Ok(get(&store.connection, name)?))?))
    }

    /// Stores a setting, or removes it with `None`. This is not a change of files and does not create a version.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the text is too long, or if there are too many settings.
    pub fn set_setting(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        if name.len() > NAME_MAX || value.is_some_and(|value| value.len() > VALUE_MAX) {
            return Err(Error::Invalid {
                what: "setting",
                reason: format!("the name or value is longer than {VALUE_MAX} bytes"),
            });
        }
        let is_kept = self.with(|store| {
            Ok(store.run(|store| {
                let connection = &store.connection;
                if value.is_some() {
                    connection.execute_batch(TABLE)?;
                } else if !exists(connection, "main")? {
                    return Ok(true);
                }
                write::put_setting(connection, name, value)?;
                let count: i64 = connection.query_row("SELECT count(*) FROM sandlite_setting", [], |row| row.get(0))?;
                Ok(count <= COUNT_MAX)
            })?)
        })?;
        if is_kept { Ok(()) } else { Err(Error::Invalid { what: "setting", reason: format!("more than {COUNT_MAX} settings") }) }
    }
}
