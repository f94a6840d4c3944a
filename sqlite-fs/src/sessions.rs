//! State of sessions between commands: opaque bytes by session name and part.

use rusqlite::{Connection, OptionalExtension};

use crate::budget::{Values, session_bytes};
use crate::error::Error;
use crate::rows;
use crate::store::write;
use crate::transaction::Transaction;

/// The sessions within a transaction.
pub struct Sessions<'a> {
    pub(crate) transaction: &'a Transaction,
}

impl Sessions<'_> {
    /// Returns the state of a part of a session.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read, or [`Error::Interrupted`] if the transaction was interrupted.
    pub fn get(&self, name: &str, part: &str) -> Result<Option<Vec<u8>>, Error> {
        self.transaction.with(|store| Ok(store.run(|store| Ok(get(&store.connection, name, part)?))?))
    }

    /// Stores the state of a part of a session.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Quota`] if the budget for sessions is exhausted.
    pub fn set(&self, name: &str, part: &str, state: &[u8]) -> Result<(), Error> {
        self.transaction.with(|store| {
            let now = store.now();
            let replaced = store.run(|store| {
                let mut statement = store
                    .connection
                    .prepare_cached("SELECT octet_length(state) FROM sandlite_session WHERE name=?1 AND part=?2")?;
                let bytes: Option<u64> = statement.query_row([name, part], |row| rows::bytes(row, 0)).optional()?;
                Ok(bytes.map_or(0, |bytes| session_bytes(name, part, bytes)))
            })?;
            store.charge_values(Values::Sessions, session_bytes(name, part, state.len() as u64), replaced)?;
            Ok(store.run(|store| Ok(write::put_session(&store.connection, &store.past, (name, part), state, now)?))?)
        })
    }

    /// Removes a session, and returns whether it existed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read, or [`Error::Interrupted`] if the transaction was interrupted.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        self.transaction.with(|store| {
            let (parts, bytes) = store.run(|store| {
                let (parts, bytes) = store
                    .connection
                    .prepare_cached(
                        "SELECT count(*), coalesce(sum(64+2*octet_length(name)+2*octet_length(part)+octet_length(state)), 0)
                         FROM sandlite_session WHERE name=?1",
                    )?
                    .query_row([name], |row| Ok((rows::bytes(row, 0)?, rows::bytes(row, 1)?)))?;
                write::remove_session(&store.connection, &store.past, name)?;
                Ok((parts, bytes))
            })?;
            store.charge_values(Values::Sessions, 0, bytes)?;
            Ok(parts > 0)
        })
    }
}

/// Returns the state of a part of a session.
pub(crate) fn get(connection: &Connection, name: &str, part: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    // A file that was only ever read may be older than the table.
    if !rows::has_table(connection, "sandlite_session")? {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached("SELECT state FROM sandlite_session WHERE name=?1 AND part=?2")?;
    statement.query_row([name, part], |row| row.get(0)).optional()
}

/// Returns the names of all sessions, in order.
pub(crate) fn names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    // A file that was only ever read may be older than the table.
    if !rows::has_table(connection, "sandlite_session")? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached("SELECT DISTINCT name FROM sandlite_session ORDER BY name")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}
