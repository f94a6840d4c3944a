//! `kv_get`, `kv_set`, `kv_delete` and `kv_keys`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Context, Request, quoted};
use crate::Error;

/// Bytes of a value's JSON text in one answer.
const VALUE: usize = 128 << 10;

/// Which key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvGet {
    /// The key.
    pub key: String,
    /// Where to begin in the JSON text of a value that is too long for one answer, in bytes.
    #[serde(default)]
    pub offset: Option<usize>,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvValue {
    /// The key.
    pub key: String,
    /// Whether there is such a key.
    pub found: bool,
    /// Its JSON value; null when only a part of its text is returned.
    pub value: Value,
    /// A part of the value's JSON text, when the value is too long for one answer or an offset is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Where the next part begins, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

impl Request for KvGet {
    type Data = KvValue;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let Some(value) = context.sandbox().kv().get(&self.key)? else {
            let text = format!("there is no key `{}`", quoted(&self.key));
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
        let note =
            next_offset.map_or_else(String::new, |next| format!("\n[{} more bytes: go on with offset={next}]", text.len() - end));
        let text = format!("{part}{note}");
        Ok(Answer::new(text, &KvValue { part: Some(part), next_offset, ..KvValue::whole(self.key, Value::Null) }))
    }
}

impl KvValue {
    /// A key and its whole value.
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

/// A value that was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvStored {
    /// The key.
    pub key: String,
    /// Its version, counted up at each change.
    pub version: u64,
}

impl Request for KvSet {
    type Data = KvStored;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let version = context.sandbox().kv().set(&self.key, self.value)?;
        Ok(Answer::new(format!("set {}", quoted(&self.key)), &KvStored { key: self.key, version }))
    }
}

/// Which key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvDelete {
    /// The key.
    pub key: String,
}

/// What became of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KvDeleted {
    /// Whether there was every key.
    pub found: bool,
    /// The keys that were deleted.
    pub deleted: Vec<String>,
    /// The keys that were not there.
    pub missing: Vec<String>,
}

impl KvDeleted {
    /// What became of some keys, of which these were there.
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
        let text = if found { format!("deleted {key}") } else { format!("there was no key `{key}`") };
        Ok(Answer::new(text, &KvDeleted::new(vec![self.key], &[found])))
    }
}

/// Which keys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvKeys {
    /// List only keys with this prefix; defaults to all keys.
    #[serde(default)]
    pub prefix: String,
    /// List only keys after this one: the last one of the page before.
    #[serde(default)]
    pub after: Option<String>,
}

/// Keys.
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
                "\n[only the first {}: go on with after={}, or use a longer prefix]",
                page.keys.len(),
                quoted(last)
            ));
        }
        Ok(Answer::new(text, &KvNames { keys: page.keys, truncated: page.more }))
    }
}
