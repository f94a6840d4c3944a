//! Recorded JSON, parsed when it is first read: a list of runs has far more of it than its readers look at.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Deserializer, Value};

/// Recorded JSON. It dereferences to its [`Value`], which is `null` if the text is not JSON.
///
/// ```
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// sandbox.fs().write("/note", "text")?;
/// let changes = sandbox.history(1)?.remove(0).changes.unwrap();
/// assert_eq!(changes[0]["path"], "/note");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Json {
    text: String,
    value: OnceLock<Value>,
}

impl Json {
    /// Takes a text that is parsed when it is read.
    pub(super) fn of_text(text: String) -> Self {
        Self { text, value: OnceLock::new() }
    }

    /// Takes a text that is too long to be parsed: its value is a string.
    pub(super) fn of_long_text(text: String) -> Self {
        Self::from(Value::from(text))
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first elements of a list, without parsing the others.
    #[must_use]
    pub fn first(&self, most: usize) -> Vec<Value> {
        if let Some(value) = self.value.get() {
            return value.as_array().into_iter().flatten().take(most).cloned().collect();
        }
        let mut first = Vec::new();
        // The rest of the text is reported as an error.
        let _ = Deserializer::from_str(&self.text).deserialize_seq(First { first: &mut first, most });
        first
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self { text: value.to_string(), value: value.into() }
    }
}

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value.get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// Collects the first elements of a list.
struct First<'a> {
    first: &'a mut Vec<Value>,
    most: usize,
}

impl<'de> Visitor<'de> for First<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while self.first.len() < self.most {
            let Some(value) = list.next_element()? else { break };
            self.first.push(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, most: usize, expected: Value) {
        let json = Json::of_text(text.to_owned());
        assert_eq!(Value::from(json.first(most)), expected, "{text}");
        assert!(json.value.get().is_none(), "all of it was parsed");
    }

    #[test]
    fn the_first_elements_are_read_without_the_others() {
        check("[1, {\"a\": 2}, 3]", 2, json!([1, { "a": 2 }]));
        check("[1, 2]", 5, json!([1, 2]));
        check("[1, 2, this is not JSON", 2, json!([1, 2]));
        check("[]", 2, json!([]));
        check("{}", 2, json!([]));
        check("", 2, json!([]));
    }

    #[test]
    fn a_text_is_parsed_when_it_is_read() {
        let json = Json::of_text("[1]".to_owned());
        assert_eq!((json[0].as_i64(), json.first(1)), (Some(1), vec![Value::from(1)]));
        assert_eq!(*Json::of_text("no".to_owned()), Value::Null);
        assert_eq!(*Json::of_long_text("[1]".to_owned()), Value::from("[1]"));
        assert_eq!(json, Json::from(json!([1])));
    }
}
