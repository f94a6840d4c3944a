//! The key-value store: JSON values by name.

use serde_json::{Value, json};
use sqlite_fs::{KeyPage, Quota, Reader, Volume as _};

use super::Sandbox;
use crate::Error;
use crate::history::LibraryCall as Call;

/// Maximum number of keys on a page, and their maximum size.
const PAGE_KEYS: usize = 1000;
const PAGE_BYTES: usize = 64 << 10;

/// A sandbox's key-value store. Every call is recorded in the history, with the key but without the value.
///
/// ```
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// let version = sandbox.kv().set("step", 3)?;
/// assert_eq!(sandbox.kv().get("step")?, Some(3.into()));
/// sandbox.kv().compare_and_set("step", version, 4)?;
/// assert!(sandbox.kv().compare_and_set("step", version, 5).is_err());
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Kv<'a> {
    sandbox: &'a Sandbox,
}

/// A value longer than any preset allows is foreign, and stays text.
const PARSED_BYTES: usize = 16 << 20;

/// A value with its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvEntry {
    /// The value.
    pub value: Value,
    /// Starts at 1 and increases with each change.
    pub version: u64,
    /// When it was first set, in seconds since 1970.
    pub created: i64,
    /// When it was last set.
    pub updated: i64,
    /// Excluded from exports.
    pub secret: bool,
}

// A key of an invalid length is not recorded in full.
fn named(key: &str) -> &str {
    &key[..key.floor_char_boundary(Quota::KEY_MAX)]
}

fn items_of(rows: &Reader, prefix: &str) -> Result<Vec<(String, Value)>, Error> {
    let mut items = Vec::new();
    for key in rows.keys(prefix)? {
        items.extend(rows.get(&key)?.map(|stored| (key, KvEntry::from(stored).value)));
    }
    Ok(items)
}

impl<'a> Kv<'a> {
    pub(super) fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox }
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<Value>, Error> {
        Ok(self.entry(key)?.map(|entry| entry.value))
    }

    /// Returns the value of a key with its version, for [`compare_and_set`](Self::compare_and_set).
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn entry(&self, key: &str) -> Result<Option<KvEntry>, Error> {
        self.sandbox.recorder.read_answering(Call::new("kv_get", named(key), json!({ "key": named(key) })), || {
            let found = self.sandbox.reader()?.get(key)?;
            let exists = json!({ "exists": found.is_some() });
            Ok((found.map(KvEntry::from), exists))
        })
    }

    /// Sets a key and returns its new version.
    ///
    /// # Errors
    ///
    /// Returns an error if the key is longer than 1024 bytes, the value or the whole store exceeds the preset, or the database
    /// cannot be written.
    pub fn set(&self, key: &str, value: impl Into<Value>) -> Result<u64, Error> {
        self.put(key, None, &value.into())
    }

    /// Sets a key if it has this version; 0 means that it must not exist. Returns the new version.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`set`](Self::set), and an error if the key has another version.
    pub fn compare_and_set(&self, key: &str, version: u64, value: impl Into<Value>) -> Result<u64, Error> {
        self.put(key, Some(version), &value.into())
    }

    fn put(&self, key: &str, version: Option<u64>, value: &Value) -> Result<u64, Error> {
        let json = value.to_string();
        let (used, largest) = (json.len() as u64, self.sandbox.limits.value);
        if used > largest.0 {
            return Err(Error::Invalid(format!("the value of `{key}` has {used} bytes; the preset allows {largest}")));
        }
        let call = Call::new("kv_set", named(key), json!({ "key": named(key), "contentLength": used, "version": version }));
        self.sandbox.change_answering(call, |run| {
            let kv = run.transaction()?.kv();
            let new = match version {
                None => kv.set(key, &json)?,
                Some(version) => kv.compare_and_set(key, version, &json)?,
            };
            Ok((new, json!({ "version": new })))
        })
    }

    /// Excludes a key from exports, or includes it again.
    ///
    /// # Errors
    ///
    /// Returns an error if the key does not exist.
    pub fn set_secret(&self, key: &str, secret: bool) -> Result<(), Error> {
        let call = Call::new("kv_set_secret", named(key), json!({ "key": named(key), "secret": secret }));
        self.sandbox.change(call, |run| Ok(run.transaction()?.kv().set_secret(key, secret)?))
    }

    /// Removes a key and returns whether it existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be written.
    pub fn delete(&self, key: &str) -> Result<bool, Error> {
        self.sandbox.change_answering(Call::new("kv_delete", named(key), json!({ "key": named(key) })), |run| {
            let found = run.transaction()?.kv().delete(key)?;
            Ok((found, json!({ "existed": found })))
        })
    }

    /// Removes several keys at once and returns those that existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be written; none is removed then.
    pub fn delete_all(&self, keys: &[String]) -> Result<Vec<bool>, Error> {
        if let [key] = keys {
            return Ok(vec![self.delete(key)?]);
        }
        self.sandbox.change_answering(Call::new("kv_delete", &keys.join(" "), json!({ "keys": keys })), |run| {
            let kv = run.transaction()?.kv();
            let found = keys.iter().map(|key| Ok(kv.delete(key)?)).collect::<Result<Vec<bool>, Error>>()?;
            let answer = json!({ "existed": found });
            Ok((found, answer))
        })
    }

    /// Returns some of the keys with a prefix, sorted: those after `after`, at most 1000 and at most 64 KB. If there are more,
    /// the last one is the `after` of the next page.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn keys_after(&self, prefix: &str, after: Option<&str>) -> Result<KeyPage, Error> {
        let call = Call::new("kv_keys", prefix, json!({ "prefix": prefix, "after": after }));
        self.sandbox.recorder.read(call, || Ok(self.sandbox.reader()?.keys_after(prefix, after, PAGE_KEYS, PAGE_BYTES)?))
    }

    /// Returns all keys with a prefix and their values, sorted by key, from one state of the store.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.kv().set("plan/1", "think")?;
    /// assert_eq!(sandbox.kv().items("plan/")?, [("plan/1".to_owned(), "think".into())]);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn items(&self, prefix: &str) -> Result<Vec<(String, Value)>, Error> {
        let call = Call::new("kv_items", named(prefix), json!({ "prefix": named(prefix) }));
        self.sandbox.recorder.read(call, || {
            let rows = self.sandbox.reader()?;
            let mut items = Ok(Vec::new());
            rows.at_once(|| {
                items = items_of(&rows, prefix);
                Ok(())
            })
            .map_err(sqlite_fs::Error::from)?;
            items
        })
    }

    /// Returns all keys with a prefix, sorted; [`keys_after`](Self::keys_after) returns them in pages.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let call = Call::new("kv_keys", named(prefix), json!({ "prefix": named(prefix) }));
        self.sandbox.recorder.read(call, || Ok(self.sandbox.reader()?.keys(prefix)?))
    }
}

impl From<sqlite_fs::Value> for KvEntry {
    fn from(stored: sqlite_fs::Value) -> Self {
        let sqlite_fs::Value { json, created, updated, version, secret } = stored;
        // Parsed JSON takes up to thirty times its size.
        let parsed = (json.len() <= PARSED_BYTES).then(|| serde_json::from_str(&json).ok()).flatten();
        Self { value: parsed.unwrap_or(Value::String(json)), version, created, updated, secret }
    }
}
