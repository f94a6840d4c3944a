//! Keys and values: AgentFS's `kv_store`, JSON text, with versions for compare-and-set.

use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

use crate::budget::{Values, key_bytes};
use crate::error::{Error, FsError};
use crate::quota::Quota;
use crate::rows::{self, split};
use crate::store::{Store, write};
use crate::transaction::Transaction;

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// JSON text.
    pub json: String,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970.
    pub updated: i64,
    /// Starts at 1 and increases with each change made here; AgentFS's own SDKs do not count theirs.
    pub version: u64,
    /// Excluded from exports.
    pub secret: bool,
}

/// The key-value store within a transaction.
pub struct Kv<'a> {
    pub(crate) transaction: &'a Transaction,
}

impl Kv<'_> {
    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read, or [`Error::Interrupted`] if the transaction was interrupted.
    pub fn get(&self, key: &str) -> Result<Option<Value>, Error> {
        self.transaction.with(|store| Ok(store.run(|store| Ok(get(&store.connection, key)?))?))
    }

    /// Stores JSON text and returns its version.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the key is too long or the text is not JSON, and [`Error::Quota`] if the budget for keys is
    /// exhausted.
    pub fn set(&self, key: &str, json: &str) -> Result<u64, Error> {
        self.transaction.with(|store| store.put(key, json, None))
    }

    /// Stores JSON text if the key has this version; 0 means that it must not exist.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Conflict`] if the key has another version, and the errors of [`set`](Self::set).
    pub fn compare_and_set(&self, key: &str, version: u64, json: &str) -> Result<u64, Error> {
        self.transaction.with(|store| store.put(key, json, Some(version)))
    }

    /// Excludes a key from exports.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Node`] with [`FsError::NoEntry`] if the key does not exist.
    pub fn set_secret(&self, key: &str, secret: bool) -> Result<(), Error> {
        self.transaction.with(|store| {
            Ok(store.run(|store| {
                let version = get(&store.connection, key)?.ok_or(FsError::NoEntry)?.version;
                Ok(write::put_key_version(&store.connection, &store.past, key, version, secret)?)
            })?)
        })
    }

    /// Removes a key and returns whether it existed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read, or [`Error::Interrupted`] if the transaction was interrupted.
    pub fn delete(&self, key: &str) -> Result<bool, Error> {
        self.transaction.with(|store| {
            let removed = store.run(|store| {
                let mut statement = store.connection.prepare_cached("SELECT octet_length(value) FROM kv_store WHERE key=?1")?;
                let bytes: Option<u64> = statement.query_row([key], |row| rows::bytes(row, 0)).optional()?;
                write::remove_key(&store.connection, &store.past, key)?;
                Ok(bytes)
            })?;
            if let Some(bytes) = removed {
                store.charge_values(Values::Keys, 0, key_bytes(key, bytes))?;
            }
            Ok(removed.is_some())
        })
    }

    /// Returns the keys that start with `prefix`, in order.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read, or [`Error::Interrupted`] if the transaction was interrupted.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        self.transaction.with(|store| Ok(store.run(|store| Ok(keys(&store.connection, prefix)?))?))
    }
}

impl Store {
    fn put(&mut self, key: &str, json: &str, expected: Option<u64>) -> Result<u64, Error> {
        if key.len() > Quota::KEY_MAX {
            let reason = format!("the key has {} bytes; the maximum is {}", key.len(), Quota::KEY_MAX);
            return Err(Error::Invalid { what: "key", reason });
        }
        let now = split(self.now()).0;
        let (valid, before) = self.run(|store| {
            let valid: bool = store.connection.prepare_cached("SELECT json_valid(?1)")?.query_row([json], |row| row.get(0))?;
            Ok((valid, get(&store.connection, key)?))
        })?;
        if !valid {
            return Err(Error::Invalid { what: "value", reason: "not JSON".to_owned() });
        }
        let found = before.as_ref().map_or(0, |value| value.version);
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::Conflict { key: key.to_owned(), expected, found });
        }
        let replaced = before.as_ref().map_or(0, |value| key_bytes(key, value.json.len() as u64));
        let secret = before.is_some_and(|value| value.secret);
        self.charge_values(Values::Keys, key_bytes(key, json.len() as u64), replaced)?;
        self.run(|store| {
            write::put_key(&store.connection, &store.past, key, json, now)?;
            Ok(write::put_key_version(&store.connection, &store.past, key, found + 1, secret)?)
        })?;
        Ok(found + 1)
    }
}

pub(crate) fn get(connection: &Connection, key: &str) -> rusqlite::Result<Option<Value>> {
    connection
        .prepare_cached(
            "SELECT k.value, k.created_at, k.updated_at, s.version, s.secret
             FROM kv_store k LEFT JOIN sandlite_kv s ON s.key=k.key WHERE k.key=?1",
        )?
        .query_row([key], value)
        .optional()
}

/// Reads the value from a row with the columns above.
pub(crate) fn value(row: &Row<'_>) -> rusqlite::Result<Value> {
    Ok(Value {
        json: row.get(0)?,
        created: row.get::<_, Option<i64>>(1)?.unwrap_or(0),
        updated: row.get::<_, Option<i64>>(2)?.unwrap_or(0),
        version: row.get::<_, Option<i64>>(3)?.map_or(1, |version| u64::try_from(version).unwrap_or(1)),
        secret: row.get::<_, Option<bool>>(4)?.unwrap_or(false),
    })
}

/// A page of keys, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys.
    pub keys: Vec<String>,
    /// Whether there are more after them.
    pub more: bool,
}

/// Returns the keys that start with `prefix` and sort after `after`: at most `most` keys with at most `bytes` in total, but
/// always one. Reads only one row more than it returns.
pub(crate) fn keys_after(
    connection: &Connection,
    prefix: &str,
    after: Option<&str>,
    most: usize,
    bytes: usize,
) -> rusqlite::Result<KeyPage> {
    let mut statement =
        connection.prepare_cached("SELECT key FROM kv_store WHERE key>=?1 AND (?2 IS NULL OR key>?2) ORDER BY key")?;
    let rows = statement.query(params![after.filter(|after| *after > prefix).unwrap_or(prefix), after])?;
    page(rows, prefix, most, bytes)
}

/// Returns the first of some ordered keys.
pub(crate) fn page(mut rows: Rows<'_>, prefix: &str, most: usize, bytes: usize) -> rusqlite::Result<KeyPage> {
    let (mut page, mut left) = (KeyPage::default(), bytes);
    while let Some(row) = rows.next()? {
        // The text is checked in SQLite's memory, so that a key that does not fit is not copied.
        let key = row.get_ref(0)?.as_str()?;
        if !key.starts_with(prefix) {
            break;
        }
        if page.keys.len() == most || (key.len() > left && !page.keys.is_empty()) {
            page.more = true;
            break;
        }
        left = left.saturating_sub(key.len());
        page.keys.push(key.to_owned());
    }
    Ok(page)
}

pub(crate) fn keys(connection: &Connection, prefix: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached("SELECT key FROM kv_store WHERE key>=?1 ORDER BY key")?;
    let mut rows = statement.query([prefix])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        if !key.starts_with(prefix) {
            break;
        }
        keys.push(key);
    }
    Ok(keys)
}
