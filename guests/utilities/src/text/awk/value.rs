//! awk's values: numbers, strings, and strings from outside that may be numbers.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

/// A shared string of bytes that can grow in place while it has one owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text(Rc<Vec<u8>>);

impl Text {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Rc::new(bytes))
    }

    pub fn from_slice(bytes: &[u8]) -> Self {
        Self::new(bytes.to_vec())
    }

    pub fn append(&mut self, more: &[u8]) {
        Rc::make_mut(&mut self.0).extend_from_slice(more);
    }
}

impl std::ops::Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_slice().hash(state);
    }
}

/// A fast hash for short keys; the keys are the guest's own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FastHasher(u64);

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        const SEED: u64 = 0x517c_c1b7_2722_0a95;
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SEED);
        }
        for &byte in chunks.remainder() {
            self.0 = (self.0.rotate_left(5) ^ u64::from(byte)).wrapping_mul(SEED);
        }
    }

    fn write_usize(&mut self, length: usize) {
        self.0 ^= length as u64;
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

/// An associative array; remembers the order in which its elements came.
#[derive(Debug, Default)]
pub(super) struct Array {
    map: HashMap<Text, (u64, Value), BuildHasherDefault<FastHasher>>,
    next: u64,
}

pub(super) type ArrayRef = Rc<RefCell<Array>>;

impl Array {
    pub fn get(&self, key: &[u8]) -> Option<&Value> {
        self.map.get(key).map(|entry| &entry.1)
    }

    /// Returns the element, made when it is not there.
    pub fn entry(&mut self, key: &[u8]) -> &mut Value {
        if !self.map.contains_key(key) {
            self.insert(Text::from_slice(key), Value::Uninit);
        }
        match self.map.get_mut(key) {
            Some(entry) => &mut entry.1,
            None => unreachable!("inserted above"),
        }
    }

    pub fn insert(&mut self, key: Text, value: Value) {
        match self.map.get_mut::<[u8]>(&key) {
            Some(entry) => entry.1 = value,
            None => {
                self.next += 1;
                self.map.insert(key, (self.next, value));
            }
        }
    }

    pub fn remove(&mut self, key: &[u8]) {
        self.map.remove(key);
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.map.contains_key(key)
    }

    pub fn clear(&mut self) {
        self.map.clear();
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Keys in the order they came.
    pub fn keys(&self) -> Vec<Text> {
        let mut keys: Vec<(u64, Text)> = self.map.iter().map(|(key, entry)| (entry.0, key.clone())).collect();
        keys.sort_unstable_by_key(|entry| entry.0);
        keys.into_iter().map(|entry| entry.1).collect()
    }

    pub fn pairs(&self) -> Vec<(Text, Value)> {
        self.keys().into_iter().map(|key| (key.clone(), self.get(&key).cloned().unwrap_or_default())).collect()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) enum Value {
    #[default]
    Uninit,
    Num(f64),
    Str(Text),
    /// From outside: a number when it looks like one.
    Input(Text),
    /// Only as an element of an array.
    Array(ArrayRef),
}

impl Value {
    pub fn number(&self) -> f64 {
        match self {
            Self::Uninit | Self::Array(_) => 0.0,
            Self::Num(number) => *number,
            Self::Str(text) | Self::Input(text) => to_number(text),
        }
    }

    pub fn truth(&self) -> bool {
        match self {
            Self::Uninit | Self::Array(_) => false,
            Self::Num(number) => *number != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::Input(text) => match looks_numeric(text) {
                Some(number) => number != 0.0,
                None => !text.is_empty(),
            },
        }
    }

    /// Returns the number, when this compares as one.
    pub fn as_numeric(&self) -> Option<f64> {
        match self {
            Self::Uninit => Some(0.0),
            Self::Num(number) => Some(*number),
            Self::Str(_) | Self::Array(_) => None,
            Self::Input(text) => looks_numeric(text),
        }
    }

    pub fn text(&self, format: &[u8]) -> Text {
        match self {
            Self::Uninit | Self::Array(_) => Text::new(Vec::new()),
            Self::Num(number) => Text::new(number_text(*number, format)),
            Self::Str(text) | Self::Input(text) => text.clone(),
        }
    }

    /// Appends the string form.
    pub fn append_to(&self, out: &mut Vec<u8>, format: &[u8]) {
        match self {
            Self::Uninit | Self::Array(_) => {}
            Self::Num(number) => append_number(out, *number, format),
            Self::Str(text) | Self::Input(text) => out.extend_from_slice(text),
        }
    }
}

/// Returns the length of the number that `text` starts with (after blanks), and its value.
fn prefix(text: &[u8]) -> (usize, f64) {
    let mut at = 0;
    while at < text.len() && matches!(text[at], b' ' | b'\t' | b'\n' | b'\r' | 11 | 12) {
        at += 1;
    }
    let start = at;
    let negative = text.get(at) == Some(&b'-');
    let signed = negative || text.get(at) == Some(&b'+');
    at += usize::from(signed);
    let digits = at;
    let mut value = 0u64;
    while let Some(digit @ b'0'..=b'9') = text.get(at) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    let whole = at - digits;
    if !matches!(text.get(at), Some(b'.' | b'e' | b'E')) && whole > 0 && whole <= 15 {
        let value = value as f64;
        return (at, if negative { -value } else { value });
    }
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        while matches!(text.get(at), Some(b'0'..=b'9')) {
            at += 1;
            fraction += 1;
        }
    }
    if whole + fraction == 0 {
        if signed {
            let rest = &text[digits..];
            let word = |name: &[u8]| {
                rest.len() >= 3 && rest[..3].eq_ignore_ascii_case(name) && !rest.get(3).is_some_and(u8::is_ascii_alphanumeric)
            };
            if word(b"inf") {
                return (digits + 3, if negative { f64::NEG_INFINITY } else { f64::INFINITY });
            }
            if word(b"nan") {
                return (digits + 3, if negative { -f64::NAN } else { f64::NAN });
            }
        }
        return (0, 0.0);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        if matches!(text.get(at + 1 + sign), Some(b'0'..=b'9')) {
            at += 1 + sign;
            while matches!(text.get(at), Some(b'0'..=b'9')) {
                at += 1;
            }
        }
    }
    let value = std::str::from_utf8(&text[start..at]).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    (at, value)
}

/// Returns the number a string stands for in arithmetic.
pub(super) fn to_number(text: &[u8]) -> f64 {
    prefix(text).1
}

/// Returns the number, when all of `text` is one.
pub(super) fn looks_numeric(text: &[u8]) -> Option<f64> {
    let (end, value) = prefix(text);
    (end > 0 && text[end..].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 11 | 12))).then_some(value)
}

/// Returns a number as a string: integers plainly, others through `format`.
pub(super) fn number_text(number: f64, format: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append_number(&mut out, number, format);
    out
}

pub(super) fn append_number(out: &mut Vec<u8>, number: f64, format: &[u8]) {
    if number.trunc() == number && number.abs() < 1e16 {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number.abs() as u64;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0.0 {
            out.push(b'-');
        }
        out.extend_from_slice(&digits[at..]);
    } else if number.is_nan() {
        out.extend_from_slice(if number.is_sign_negative() { b"-nan" } else { b"+nan" });
    } else if number.is_infinite() {
        out.extend_from_slice(if number < 0.0 { b"-inf" } else { b"+inf" });
    } else if number.trunc() == number {
        out.extend_from_slice(format!("{number:.0}").as_bytes());
    } else if format == b"%.6g" {
        out.extend_from_slice(common::float::general(number, 6, false).as_bytes());
    } else {
        out.extend_from_slice(&super::format::format(format, &[Value::Num(number)], b"%.6g").unwrap_or_default());
    }
}
