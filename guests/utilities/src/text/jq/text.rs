//! Input texts cut into JSON values with their place, and jaq's messages in jq's words.

use std::cell::{Cell, RefCell};

use jaq_json::{Rc, Val, read};

use crate::io::{self, show};

pub(super) struct Texts {
    text: Vec<u8>,
    name: String,
    pub missing: bool,
}

type Stream<'a> = Box<dyn Iterator<Item = Result<Val, String>> + 'a>;

impl Texts {
    /// Reads all inputs.
    pub fn open(files: &[Vec<u8>]) -> Result<Self, i32> {
        let mut texts = Self { text: Vec::new(), name: "<stdin>".to_string(), missing: false };
        if files.is_empty() {
            match io::read_all(b"-") {
                Ok(text) => texts.text = text,
                Err(error) => {
                    warn!("jq: error: Could not read <stdin>: {}", sys::message(&error));
                    texts.missing = true;
                }
            }
            return Ok(texts);
        }
        for file in files {
            match io::read_all(file) {
                Ok(text) => {
                    texts.text.extend_from_slice(&text);
                    texts.name = show(file).into_owned();
                }
                Err(error) => {
                    warn!("jq: error: Could not open file {}: {}", show(file), sys::message(&error));
                    texts.missing = true;
                }
            }
        }
        Ok(texts)
    }

    /// `-R`: lines as strings, or all of it as one.
    pub fn lines<'a>(self, slurp: bool) -> Stream<'a> {
        if slurp {
            return Box::new(std::iter::once(Ok(super::string(&self.text))));
        }
        let lines: Vec<Val> = crate::text::diff::lines(&self.text).into_iter().map(super::string).collect();
        Box::new(lines.into_iter().map(Ok))
    }

    /// JSON values one after the other, or all in one array.
    pub fn values<'a>(self, slurp: bool, place: &'a RefCell<String>, broken: &'a Cell<bool>) -> Stream<'a> {
        let mut at = 0;
        let mut done = false;
        let mut one = move || -> Option<Result<Val, String>> {
            if done {
                return None;
            }
            let start = skip_blank(&self.text, at);
            if start >= self.text.len() {
                return None;
            }
            let end = value_end(&self.text, start);
            let line = memchr::memchr_iter(b'\n', &self.text[..end.unwrap_or(self.text.len())]).count();
            let more = memchr::memchr(b'\n', &self.text[end.unwrap_or(self.text.len())..]).is_some();
            let mut wrong = None;
            let parsed = end.and_then(|end| match read::parse_single(&self.text[start..end]) {
                Ok(value) => Some(value),
                Err(error) => {
                    let place = error.to_string();
                    let offset = place
                        .trim_start_matches("byte offset ")
                        .split(':')
                        .next()
                        .and_then(|digits| digits.parse::<usize>().ok());
                    let mut at = start + offset.unwrap_or(0);
                    while self.text.get(at).is_some_and(u8::is_ascii_alphanumeric) {
                        at += 1;
                    }
                    wrong = Some((at + 1).min(self.text.len()));
                    None
                }
            });
            match (parsed, end) {
                (Some(value), Some(end)) => {
                    at = end;
                    *place.borrow_mut() = format!("{}:{}", self.name, line + usize::from(more));
                    Some(Ok(value))
                }
                (_, end) => {
                    done = true;
                    broken.set(true);
                    let upto = wrong.or(end).unwrap_or(self.text.len());
                    let line = memchr::memchr_iter(b'\n', &self.text[..upto]).count();
                    let last = memchr::memrchr(b'\n', &self.text[..upto]).map_or(0, |newline| newline + 1);
                    let what = if end.is_none() { "Unfinished JSON term at EOF" } else { "Invalid numeric literal" };
                    Some(Err(format!("parse error: {what} at line {}, column {}", line + 1, upto - last)))
                }
            }
        };
        if slurp {
            let mut all = Vec::new();
            loop {
                match one() {
                    Some(Ok(value)) => all.push(value),
                    Some(Err(error)) => return Box::new(std::iter::once(Err(error))),
                    None => return Box::new(std::iter::once(Ok(Val::Arr(Rc::new(all))))),
                }
            }
        }
        Box::new(std::iter::from_fn(one))
    }
}

fn skip_blank(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == 0x1e) {
        at += 1;
    }
    at
}

/// Where the value that starts at `at` ends; `None` when the text ends first.
fn value_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match *text.get(at)? {
            b'"' => {
                at += 1;
                loop {
                    match *text.get(at)? {
                        b'\\' => at += 1,
                        b'"' => break,
                        _ => {}
                    }
                    at += 1;
                }
                at += 1;
            }
            b'[' | b'{' => {
                depth += 1;
                at += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            byte if depth > 0 && (byte.is_ascii_whitespace() || byte == b',' || byte == b':') => at += 1,
            _ => {
                let start = at;
                while text.get(at).is_some_and(|byte| !byte.is_ascii_whitespace() && !b"[]{},:\"".contains(byte)) {
                    at += 1;
                }
                at += usize::from(at == start);
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'"') => "string",
        Some(b'[') => "array",
        Some(b'{') => "object",
        Some(b'n') => "null",
        Some(b't' | b'f') => "boolean",
        _ => "number",
    }
}

fn shorten(json: &str) -> String {
    if json.chars().count() > 11 { format!("{}...", json.chars().take(10).collect::<String>()) } else { json.to_string() }
}

/// jq's words for what jaq says.
pub(super) fn reword(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("cannot index ")
        && let Some((value, key)) = rest.rsplit_once(" with ")
    {
        return match kind(key) {
            "string" => format!("Cannot index {} with string {key}", kind(value)),
            other => format!("Cannot index {} with {other}", kind(value)),
        };
    }
    if let Some(rest) = message.strip_prefix("cannot use ")
        && let Some((value, wanted)) = rest.rsplit_once(" as ")
    {
        let shown = format!("{} ({})", kind(value), shorten(value));
        if wanted.starts_with("iterable") {
            return if kind(value) == "null" {
                "Cannot iterate over null (null)".to_string()
            } else {
                format!("Cannot iterate over {shown}")
            };
        }
        return match wanted {
            "number" => format!("{shown} number required"),
            "string" => format!("{shown} cannot be matched, as it is not a string"),
            "array" => format!("{shown} cannot be sorted, as it is not an array"),
            _ => format!("Cannot use {shown} as {wanted}"),
        };
    }
    if let Some(rest) = message.strip_prefix("cannot calculate ") {
        for (op, word) in [(" + ", "added"), (" - ", "subtracted"), (" * ", "multiplied"), (" / ", "divided"), (" % ", "divided")]
        {
            if let Some((left, right)) = rest.split_once(op) {
                return format!("{} ({}) and {} ({}) cannot be {word}", kind(left), shorten(left), kind(right), shorten(right));
            }
        }
    }
    if let Some(rest) = message.strip_prefix("cannot parse ")
        && let Some((value, _)) = rest.rsplit_once(" as ")
    {
        return format!("{value} cannot be parsed");
    }
    message.to_string()
}
