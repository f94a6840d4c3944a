//! The key-value store: JSON values by name, beside the files.

use presets::ByteSize;
use sqlite_fs::Database;

use crate::Error;

/// A sandbox's key-value store.
///
/// ```no_run
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// sandbox.kv().set("step", 3)?;
/// assert_eq!(sandbox.kv().get("step")?, Some(3.into()));
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Kv<'a> {
    database: &'a Database,
    largest: ByteSize,
}

impl<'a> Kv<'a> {
    pub(super) fn new(database: &'a Database, largest: ByteSize) -> Self {
        Self { database, largest }
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<serde_json::Value>, Error> {
        let value = self.database.reader()?.get(key)?;
        Ok(value.map(|value| serde_json::from_str(&value.json).unwrap_or(serde_json::Value::String(value.json))))
    }

    /// Sets a key.
    ///
    /// # Errors
    ///
    /// When the value is larger than the preset allows, or the database cannot be written.
    pub fn set(&self, key: &str, value: impl Into<serde_json::Value>) -> Result<(), Error> {
        let json = value.into().to_string();
        if json.len() as u64 > self.largest.0 {
            return Err(Error::Invalid(format!(
                "the value of `{key}` has {} bytes, and the preset allows {}",
                json.len(),
                self.largest
            )));
        }
        let transaction = self.database.begin(None)?;
        transaction.kv().set(key, &json)?;
        Ok(transaction.commit()?)
    }

    /// Removes a key and answers whether it was there.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn delete(&self, key: &str) -> Result<bool, Error> {
        let transaction = self.database.begin(None)?;
        let found = transaction.kv().delete(key)?;
        transaction.commit()?;
        Ok(found)
    }

    /// The keys that begin with a prefix, sorted.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        Ok(self.database.reader()?.keys(prefix)?)
    }
}
