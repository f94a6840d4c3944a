//! `kv_get`, `kv_set`, `kv_delete` and `kv_keys`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Context, Request, quoted};
use crate::Error;

/// Maximum size of a value's JSON text in one result.
const VALUE: usize = 128 << 10;

/// Selects the key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvGet {
    /// The key.
    pub key: String,
    /// The offset in the JSON text of a value that is too large for one result, in bytes.
    #[serde(default)]
    pub offset: Option<usize>,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvValue {
    /// The key.
    pub key: String,
    /// Whether the key exists.
    pub found: bool,
    /// The JSON value; null if only a part of its text is returned.
    pub value: Value,
    /// A part of the value's JSON text, if the value is too large for one result or an offset is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The offset of the next part, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

impl Request for KvGet {
    type Data = KvValue;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let Some(value) = context.sandbox().kv().get(&self.key)? else {
            let text = format!("key `{}` does not exist", quoted(&self.key));
            return Ok(Answer::new(text, &KvValue { found: false, ..KvValue::whole(self.key, Value::Null) }));
        };
        let text = value.to_string();
        if text.len() <= VALUE && self.offset.is_none() {
            return Ok(Answer::new(text, &KvValue::whole(self.key, value)));
        }
        drop(value);
        let start = text.floor_char_boundary(self.offset.unwrap_or(0).min(text.len()));
        let end = text.floor_char_boundary(start.saturating_add(VALUE).min(text.len()));
        let part = text.get(start..end).unwrap_or_default().to_owned();
        let next_offset = (end < text.len()).then_some(end);
        let note = next_offset
            .map_or_else(String::new, |next| format!("\n[{} more bytes: continue with offset={next}]", text.len() - end));
        let text = format!("{part}{note}");
        Ok(Answer::new(text, &KvValue { part: Some(part), next_offset, ..KvValue::whole(self.key, Value::Null) }))
    }
}

impl KvValue {
    /// Creates a result with the whole value.
    #[must_use]
    pub fn whole(key: String, value: Value) -> Self {
        Self { key, found: true, value, part: None, next_offset: None }
    }
}

/// A key and its value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvSet {
    /// The key.
    pub key: String,
    /// Any JSON value.
    pub value: Value,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvStored {
    /// The key.
    pub key: String,
    /// Its version, incremented at each change.
    pub version: u64,
}

impl Request for KvSet {
    type Data = KvStored;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let version = context.sandbox().kv().set(&self.key, self.value)?;
        Ok(Answer::new(format!("set {}", quoted(&self.key)), &KvStored { key: self.key, version }))
    }
}

/// Selects the key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvDelete {
    /// The key.
    pub key: String,
}

/// The result of deleting keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvDeleted {
    /// Whether all keys existed.
    pub found: bool,
    /// The deleted keys.
    pub deleted: Vec<String>,
    /// The keys that did not exist.
    pub missing: Vec<String>,
}

impl KvDeleted {
    /// Creates the result for some keys, of which these existed.
    #[must_use]
    pub fn new(keys: Vec<String>, found: &[bool]) -> Self {
        let mut found = found.iter();
        let (deleted, missing): (Vec<_>, Vec<_>) = keys.into_iter().partition(|_| found.next() == Some(&true));
        Self { found: missing.is_empty(), deleted, missing }
    }
}

impl Request for KvDelete {
    type Data = KvDeleted;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let found = context.sandbox().kv().delete(&self.key)?;
        let key = quoted(&self.key);
        let text = if found { format!("deleted {key}") } else { format!("key `{key}` does not exist") };
        Ok(Answer::new(text, &KvDeleted::new(vec![self.key], &[found])))
    }
}

/// Selects the keys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvKeys {
    /// List only keys with this prefix; defaults to all keys.
    #[serde(default)]
    pub prefix: String,
    /// List only keys after this one: the last one of the previous page.
    #[serde(default)]
    pub after: Option<String>,
}

/// A page of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvNames {
    /// The keys, sorted.
    pub keys: Vec<String>,
    /// Whether there are more.
    pub truncated: bool,
}

impl Request for KvKeys {
    type Data = KvNames;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let page = context.sandbox().kv().keys_after(&self.prefix, self.after.as_deref())?;
        let mut text = if page.keys.is_empty() { "no keys".to_owned() } else { page.keys.join("\n") };
        if let Some(last) = page.keys.last().filter(|_| page.more) {
            text.push_str(&format!(
                "\n[only the first {}: continue with after={}, or use a longer prefix]",
                page.keys.len(),
                quoted(last)
            ));
        }
        Ok(Answer::new(text, &KvNames { keys: page.keys, truncated: page.more }))
    }
}
