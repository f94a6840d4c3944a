//! JSON values as filters see them: shared when copied, ordered and compared as jq does.
//!
//! Knows nothing of texts; `json` reads values and `print` writes them.

use std::cmp::Ordering;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use indexmap::IndexMap;

use super::number::Literal;

/// A value. Copying one copies a pointer.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    /// A number whose digits say more than a double can.
    Literal(Rc<Literal>),
    String(Rc<String>),
    Array(Rc<List>),
    Object(Rc<Object>),
}

/// The elements of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct List(pub Vec<Json>);

/// The fields of an object in the order of their creation.
#[derive(Clone, Debug, Default)]
pub(super) struct Object(pub IndexMap<Rc<String>, Json, BuildHasherDefault<Fnv>>);

/// FNV-1a: keys are short, and only the sandbox's own program could choose them badly.
#[derive(Debug)]
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Deeply nested values are taken apart in a loop: the stack of a process is small.
fn take_apart(mut waiting: Vec<Json>) {
    while let Some(value) = waiting.pop() {
        match value {
            Json::Array(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    waiting.append(&mut list.0);
                }
            }
            Json::Object(object) => {
                if let Some(mut object) = Rc::into_inner(object) {
                    waiting.extend(object.0.drain(..).map(|(_, value)| value));
                }
            }
            _ => {}
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.0.iter().any(Json::is_container) {
            take_apart(std::mem::take(&mut self.0));
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if self.0.values().any(Json::is_container) {
            take_apart(self.0.drain(..).map(|(_, value)| value).collect());
        }
    }
}

impl Object {
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.get(&key.to_string())
    }
}

impl Json {
    pub fn string(text: impl Into<String>) -> Self {
        Self::String(Rc::new(text.into()))
    }

    /// Creates a string of any bytes: what is not UTF-8 is replaced.
    pub fn text(bytes: &[u8]) -> Self {
        Self::string(String::from_utf8_lossy(bytes))
    }

    pub fn array(items: Vec<Self>) -> Self {
        Self::Array(Rc::new(List(items)))
    }

    pub fn object(fields: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self::Object(Rc::new(Object(fields.into_iter().map(|(key, value)| (Rc::new(key), value)).collect())))
    }

    fn is_container(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Returns whether it is neither false nor null.
    pub fn is_true(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Literal(literal) => Some(literal.value()),
            _ => None,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) | Self::Literal(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(false) => 1,
            Self::Bool(true) => 2,
            Self::Number(_) | Self::Literal(_) => 3,
            Self::String(_) => 4,
            Self::Array(_) => 5,
            Self::Object(_) => 6,
        }
    }

    /// Returns whether both are the very same value, and not one that looks alike.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a.to_bits() == b.to_bits(),
            (Self::Literal(a), Self::Literal(b)) => Rc::ptr_eq(a, b),
            (Self::String(a), Self::String(b)) => Rc::ptr_eq(a, b),
            (Self::Array(a), Self::Array(b)) => Rc::ptr_eq(a, b),
            (Self::Object(a), Self::Object(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Compares in jq's order of all values; `nan` is less than any number, itself included.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Array(a), Self::Array(b)) => {
                for (a, b) in a.0.iter().zip(&b.0) {
                    let order = a.order(b);
                    if order != Ordering::Equal {
                        return order;
                    }
                }
                a.0.len().cmp(&b.0.len())
            }
            (Self::Object(a), Self::Object(b)) => {
                let (one, two) = (sorted_keys(a), sorted_keys(b));
                let order = one.cmp(&two);
                if order != Ordering::Equal {
                    return order;
                }
                for key in one {
                    let order = a.0.get(key).unwrap_or(&Self::Null).order(b.0.get(key).unwrap_or(&Self::Null));
                    if order != Ordering::Equal {
                        return order;
                    }
                }
                Ordering::Equal
            }
            (Self::Literal(a), Self::Literal(b)) => a.order(b),
            _ => match (self.as_number(), other.as_number()) {
                (Some(a), Some(b)) if a.is_nan() || b.is_nan() => {
                    if a.is_nan() {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                }
                (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }

    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => {
                Rc::ptr_eq(a, b) || a.0.len() == b.0.len() && a.0.iter().zip(&b.0).all(|(a, b)| a.equals(b))
            }
            (Self::Object(a), Self::Object(b)) => {
                Rc::ptr_eq(a, b)
                    || a.0.len() == b.0.len()
                        && a.0.iter().all(|(key, value)| b.0.get(key).is_some_and(|other| value.equals(other)))
            }
            (Self::Literal(a), Self::Literal(b)) => a.order(b) == Ordering::Equal,
            _ => match (self.as_number(), other.as_number()) {
                (Some(a), Some(b)) => a == b,
                _ => self.rank() == other.rank(),
            },
        }
    }
}

/// Returns the keys of an object in order.
pub(super) fn sorted_keys(object: &Object) -> Vec<&Rc<String>> {
    let mut keys: Vec<&Rc<String>> = object.0.keys().collect();
    keys.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    keys
}
