//! What the owner of a sandbox has settled for it: short texts by name, such as its policy. They are no part of any version.
//!
//! The table is created with the first setting. A program that does not know it refuses the file, so that nobody overlooks a
//! policy.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Error;
use crate::reader::Reader;
use crate::store::write;
use crate::transaction::Transaction;

pub(crate) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS sandlite_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
";

/// The longest value, and the longest name.
pub(crate) const VALUE_MAX: usize = 256 << 10;
const NAME_MAX: usize = 512;
/// Settings of one file.
const COUNT_MAX: i64 = 1000;

pub(crate) fn exists(connection: &Connection, schema: &str) -> rusqlite::Result<bool> {
    connection
        .prepare(&format!("SELECT 1 FROM {schema}.sqlite_schema WHERE type='table' AND name='sandlite_setting'"))?
        .exists([])
}

fn get(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    // Preparing notices a table that another connection has just created; asking whether there is one does not.
    match connection.prepare_cached("SELECT value FROM sandlite_setting WHERE name=?1") {
        Ok(mut statement) => statement.query_row([name], |row| row.get(0)).optional(),
        Err(_) if !exists(connection, "main")? => Ok(None),
        Err(error) => Err(error),
    }
}

impl Reader {
    /// A setting.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.rows(|connection| Ok(get(connection, name)?))?)
    }
}

impl Transaction {
    /// A setting, as this transaction has it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        self.with(|store| Ok(store.run(|store| Ok(get(&store.connection, name)?))?))
    }

    /// Keeps a setting, or removes it with `None`. It is no change of files: no version comes of it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the text is too long, or if there are too many settings.
    pub fn set_setting(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        if name.len() > NAME_MAX || value.is_some_and(|value| value.len() > VALUE_MAX) {
            return Err(Error::Invalid {
                what: "setting",
                reason: format!("its name or its text is longer than {VALUE_MAX} bytes"),
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
        if is_kept { Ok(()) } else { Err(Error::Invalid { what: "setting", reason: format!("there are more than {COUNT_MAX}") }) }
    }
}
