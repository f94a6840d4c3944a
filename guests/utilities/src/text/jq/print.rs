//! JSON on paper, as jq lays it out.

use super::number;
use super::value::{Json, sorted_keys};

/// Deepest level that is printed.
const MAX_DEPTH: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    pub indent: Option<String>,
    pub sort_keys: bool,
    pub ascii: bool,
    pub colors: Option<Colors>,
}

/// The escape sequence of each kind of value, and last that of keys.
#[derive(Clone, Debug)]
pub(super) struct Colors([String; 8]);

impl Default for Colors {
    fn default() -> Self {
        Self(["0;90", "0;39", "0;39", "0;39", "0;32", "1;39", "1;39", "1;34"].map(|code| format!("\x1b[{code}m")))
    }
}

impl Colors {
    /// Colors in the words of `JQ_COLORS`; `None` when they are invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let mut colors = Self::default();
        if text.is_empty() {
            return Some(colors);
        }
        for (slot, code) in colors.0.iter_mut().zip(text.strip_suffix(':').unwrap_or(text).split(':')) {
            if code.len() > 12 || !code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') {
                return None;
            }
            *slot = format!("\x1b[{code}m");
        }
        Some(colors)
    }

    fn of(&self, value: &Json) -> &str {
        &self.0[match value {
            Json::Null => 0,
            Json::Bool(false) => 1,
            Json::Bool(true) => 2,
            Json::Number(_) | Json::Literal(_) => 3,
            Json::String(_) => 4,
            Json::Array(_) => 5,
            Json::Object(_) => 6,
        }]
    }
}

const RESET: &str = "\x1b[0m";

/// Returns a value on one line.
pub(super) fn compact(value: &Json) -> String {
    let mut out = String::new();
    write(&mut out, &Style::default(), 0, value);
    out
}

/// Returns the start of a value, at most `size - 1` bytes of it.
pub(super) fn short(value: &Json, size: usize) -> String {
    let text = compact(value);
    if text.len() < size {
        return text;
    }
    let mut bytes = text.into_bytes();
    bytes.truncate(size - 4);
    bytes.extend_from_slice(b"...");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn newline(out: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

/// Appends a value.
pub(super) fn write(out: &mut String, style: &Style, depth: usize, value: &Json) {
    let color = style.colors.as_ref().map_or("", |colors| colors.of(value));
    out.push_str(color);
    match value {
        _ if depth > MAX_DEPTH => out.push_str("<skipped: too deep>"),
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) if number.is_nan() && style.colors.is_some() => write(out, style, depth, &Json::Null),
        Json::Number(number) => out.push_str(&number::text_of(*number)),
        Json::Literal(literal) => out.push_str(&literal.text()),
        Json::String(text) => string(out, text, style.ascii),
        Json::Array(items) => {
            if items.0.is_empty() {
                out.push_str("[]");
            } else {
                out.push('[');
                newline(out, style, depth + 1);
                for (index, item) in items.0.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                        newline(out, style, depth + 1);
                    }
                    write(out, style, depth + 1, item);
                    out.push_str(color);
                }
                newline(out, style, depth);
                out.push_str(color);
                out.push(']');
            }
        }
        Json::Object(object) => {
            if object.0.is_empty() {
                out.push_str("{}");
            } else if style.sort_keys {
                let fields = sorted_keys(object).into_iter().filter_map(|key| Some((key.as_str(), object.0.get(key)?)));
                write_fields(out, style, depth, color, fields);
            } else {
                write_fields(out, style, depth, color, object.0.iter().map(|(key, value)| (key.as_str(), value)));
            }
        }
    }
    if style.colors.is_some() {
        out.push_str(RESET);
    }
}

fn write_fields<'a>(
    out: &mut String,
    style: &Style,
    depth: usize,
    color: &str,
    fields: impl Iterator<Item = (&'a str, &'a Json)>,
) {
    out.push('{');
    newline(out, style, depth + 1);
    for (index, (key, value)) in fields.enumerate() {
        if index > 0 {
            out.push(',');
            newline(out, style, depth + 1);
        }
        if let Some(colors) = &style.colors {
            out.push_str(RESET);
            out.push_str(&colors.0[7]);
        }
        string(out, key, style.ascii);
        if style.colors.is_some() {
            out.push_str(RESET);
            out.push_str(color);
        }
        out.push_str(if style.indent.is_some() { ": " } else { ":" });
        if style.colors.is_some() {
            out.push_str(RESET);
        }
        write(out, style, depth + 1, value);
        out.push_str(color);
    }
    newline(out, style, depth);
    out.push_str(color);
    out.push('}');
}

/// Appends a quoted string.
pub(super) fn string(out: &mut String, text: &str, ascii: bool) {
    out.push('"');
    let mut plain = 0;
    for (at, char) in text.char_indices() {
        if !matches!(char, '"' | '\\' | '\0'..' ' | '\u{7f}') && (char.is_ascii() || !ascii) {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + char.len_utf8();
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            _ => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}
