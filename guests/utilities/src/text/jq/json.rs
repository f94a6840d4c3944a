//! Reading JSON: texts in pieces, several values, `--seq`, and `--stream`, with jq's complaints.

use std::rc::Rc;

use super::number;
use super::value::{Json, List, Object};

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub stream: bool,
    pub stream_errors: bool,
    pub seq: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Normal,
    String,
    Escape,
    /// After an error in a sequence: everything up to the next record separator is skipped.
    Resync,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Last {
    Nothing,
    OpenArray,
    OpenObject,
    Colon,
    Comma,
    Value,
}

/// A reader that is fed with pieces of text and returns values.
#[derive(Debug)]
pub(super) struct Parser {
    flags: Flags,
    stack: Vec<Json>,
    path: Vec<Json>,
    last: Last,
    output: Option<Vec<Json>>,
    next: Option<Json>,
    token: Vec<u8>,
    line: usize,
    column: usize,
    state: State,
    blank: bool,
    buffer: Vec<u8>,
    at: usize,
    partial: bool,
    ended: bool,
    fed: bool,
    started: bool,
}

type Complaint = &'static str;

impl Parser {
    pub fn new(flags: Flags) -> Self {
        Self {
            flags,
            stack: Vec::new(),
            path: Vec::new(),
            last: Last::Nothing,
            output: None,
            next: None,
            token: Vec::new(),
            line: 1,
            column: 0,
            state: if flags.seq { State::Resync } else { State::Normal },
            blank: false,
            buffer: Vec::new(),
            at: 0,
            partial: false,
            ended: false,
            fed: false,
            started: false,
        }
    }

    fn reset(&mut self) {
        self.path.clear();
        self.last = Last::Nothing;
        self.output = None;
        self.next = None;
        self.stack.clear();
        self.token.clear();
        self.state = State::Normal;
    }

    /// Bytes that are not read yet.
    pub fn remaining(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// Takes the next piece of text; `partial` if more may follow.
    pub fn feed(&mut self, text: &[u8], partial: bool) {
        self.buffer.clear();
        let text = if self.started { text } else { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) };
        self.started |= !text.is_empty();
        self.buffer.extend_from_slice(text);
        self.at = 0;
        self.partial = partial;
        self.fed = true;
    }

    fn failure(&self, message: &str) -> Result<Json, String> {
        if self.flags.stream_errors {
            return Ok(Json::array(vec![Json::string(message), Json::array(self.path.clone())]));
        }
        Err(message.to_string())
    }

    /// Returns the next value; `None` when more text is needed or nothing is left.
    pub fn next(&mut self) -> Option<Result<Json, String>> {
        if self.ended || !self.fed {
            return None;
        }
        if self.flags.stream
            && let Some(value) = self.stream_done()
        {
            return Some(Ok(value));
        }
        let mut complaint = None;
        let mut byte = 0;
        while self.at < self.buffer.len() {
            if self.state == State::String {
                self.bulk();
                if self.at == self.buffer.len() {
                    break;
                }
            }
            byte = self.buffer[self.at];
            self.at += 1;
            if self.state == State::Resync {
                self.column += 1;
                if byte == b'\n' {
                    (self.line, self.column) = (self.line + 1, 0);
                }
                if byte == 0x1e {
                    self.state = State::Normal;
                }
                continue;
            }
            match self.scan(byte) {
                Ok(None) => {}
                Ok(Some(value)) => return Some(Ok(value)),
                Err(message) => {
                    complaint = Some(message);
                    break;
                }
            }
        }
        if let Some(message) = complaint {
            if message.is_empty() {
                // A record separator ended a record without a value.
                self.reset();
                return self.next();
            }
            let place = format!("{message} at line {}, column {}", self.line, self.column);
            if byte != 0x1e && self.flags.seq {
                let result = self.failure(&format!("{place} (need RS to resync)"));
                self.reset();
                self.state = State::Resync;
                return Some(result);
            }
            let result = self.failure(&place);
            self.reset();
            if !self.flags.seq {
                self.fed = false;
                self.buffer.clear();
                self.at = 0;
            }
            return Some(result);
        }
        if self.partial { None } else { self.finish() }
    }

    fn finish(&mut self) -> Option<Result<Json, String>> {
        self.ended = true;
        let place = format!("at EOF at line {}, column {}", self.line, self.column);
        let message = match self.state {
            State::Resync => return Some(self.failure(&format!("Unfinished abandoned text {place}"))),
            State::String | State::Escape => Some("Unfinished string"),
            State::Normal => match self.literal() {
                Err(message) => Some(message),
                Ok(()) if self.depth() > 0 => Some("Unfinished JSON term"),
                Ok(()) => None,
            },
        };
        if let Some(message) = message {
            let result = self.failure(&format!("{message} {place}"));
            self.reset();
            self.state = State::Resync;
            return Some(result);
        }
        let value = self.next.take()?;
        if self.flags.seq && !self.blank && value.as_number().is_some() {
            return Some(self.failure(&format!("Potentially truncated top-level numeric value {place}")));
        }
        if self.flags.stream {
            return Some(Ok(Json::array(vec![Json::array(self.path.clone()), value])));
        }
        Some(Ok(value))
    }

    fn depth(&self) -> usize {
        if self.flags.stream { self.path.len() } else { self.stack.len() }
    }

    /// Takes the plain part of a string at once.
    fn bulk(&mut self) {
        let rest = &self.buffer[self.at..];
        let count = memchr::memchr3(b'"', b'\\', 0x1e, rest).unwrap_or(rest.len());
        let piece = &rest[..count];
        match memchr::memrchr(b'\n', piece) {
            None => self.column += count,
            Some(last) => {
                self.line += memchr::memchr_iter(b'\n', piece).count();
                self.column = count - last - 1;
            }
        }
        self.token.extend_from_slice(piece);
        self.at += count;
    }

    fn done(&mut self) -> Option<Json> {
        if self.flags.stream {
            return self.stream_done();
        }
        if self.stack.is_empty() { self.next.take() } else { None }
    }

    fn stream_done(&mut self) -> Option<Json> {
        if self.path.is_empty()
            && let Some(value) = self.next.take()
        {
            return Some(Json::array(vec![Json::array(Vec::new()), value]));
        }
        let mut output = self.output.take()?;
        if output.len() > 2 {
            // The end of an array or object is announced by one more output.
            self.output = Some(output[..1].to_vec());
            output.truncate(2);
        }
        Some(Json::array(output))
    }

    fn scan(&mut self, byte: u8) -> Result<Option<Json>, Complaint> {
        self.column += 1;
        if byte == b'\n' {
            (self.line, self.column) = (self.line + 1, 0);
        }
        if byte == 0x1e && self.flags.seq {
            let number = |value: &Option<Json>| value.as_ref().is_some_and(|value| value.as_number().is_some());
            let truncated = if self.flags.stream {
                self.depth() > 0 || matches!(self.next, Some(Json::Null | Json::Bool(_))) || number(&self.next)
            } else {
                !self.blank && (self.depth() > 0 || !self.token.is_empty() || number(&self.next))
            };
            if truncated {
                let alone = self.literal().is_ok() && self.depth() == 0 && number(&self.next);
                return Err(if alone { "Potentially truncated top-level numeric value" } else { "Truncated value" });
            }
            self.literal()?;
            if self.state == State::Normal
                && let Some(value) = self.done()
            {
                return Ok(Some(value));
            }
            return Err("");
        }
        self.blank = false;
        if self.state != State::Normal {
            if byte == b'"' && self.state == State::String {
                self.string()?;
                self.state = State::Normal;
                return Ok(self.done());
            }
            self.token.push(byte);
            self.state = if byte == b'\\' && self.state == State::String { State::Escape } else { State::String };
            return Ok(None);
        }
        let mut answer = None;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                self.blank = true;
                self.literal()?;
                answer = self.done();
            }
            b'"' => {
                self.literal()?;
                answer = self.done();
                self.state = State::String;
            }
            b'[' | b',' | b']' | b'{' | b':' | b'}' => {
                self.literal()?;
                answer = self.done();
                if self.flags.stream { self.stream_mark(byte)? } else { self.mark(byte)? }
            }
            _ => self.token.push(byte),
        }
        Ok(answer.or_else(|| self.done()))
    }

    fn value(&mut self, value: Json) -> Result<(), Complaint> {
        if self.next.is_some() || self.flags.stream && self.last == Last::Value {
            return Err("Expected separator between values");
        }
        if self.flags.stream {
            self.last = if self.path.is_empty() { Last::Nothing } else { Last::Value };
        }
        self.next = Some(value);
        Ok(())
    }

    fn literal(&mut self) -> Result<(), Complaint> {
        if self.token.is_empty() {
            return Ok(());
        }
        let word = match (self.token[0], self.token.get(1)) {
            (b't', _) => Some(("true", Json::Bool(true))),
            (b'f', _) => Some(("false", Json::Bool(false))),
            (b'n', Some(b'u')) => Some(("null", Json::Null)),
            _ => None,
        };
        let value = match word {
            Some((word, value)) if self.token == word.as_bytes() => value,
            Some(_) => return Err("Invalid literal"),
            None => {
                let text = std::str::from_utf8(&self.token).ok();
                text.and_then(number::parse).ok_or("Invalid numeric literal")?
            }
        };
        self.value(value)?;
        self.token.clear();
        Ok(())
    }

    fn string(&mut self) -> Result<(), Complaint> {
        let token = std::mem::take(&mut self.token);
        let text = unescape(&token)?;
        self.token = token;
        self.token.clear();
        self.value(Json::string(text))
    }

    /// Handles a structural character outside `--stream`. Keys wait on the stack as strings.
    fn mark(&mut self, byte: u8) -> Result<(), Complaint> {
        match byte {
            b'[' | b'{' => {
                if self.stack.len() >= MAX_DEPTH {
                    return Err("Exceeds depth limit for parsing");
                }
                if self.next.is_some() {
                    return Err("Expected separator between values");
                }
                self.stack.push(if byte == b'[' {
                    Json::Array(Rc::new(List::default()))
                } else {
                    Json::Object(Rc::new(Object::default()))
                });
            }
            b':' => {
                let Some(key) = self.next.take() else { return Err("Expected string key before ':'") };
                if !matches!(self.stack.last(), Some(Json::Object(_))) {
                    return Err("':' not as part of an object");
                }
                if !matches!(key, Json::String(_)) {
                    return Err("Object keys must be strings");
                }
                self.stack.push(key);
            }
            b',' => {
                let Some(value) = self.next.take() else { return Err("Expected value before ','") };
                match self.stack.last_mut() {
                    None => return Err("',' not as part of an object or array"),
                    Some(Json::Array(items)) => Rc::make_mut(items).0.push(value),
                    Some(Json::String(_)) => self.field(value),
                    Some(_) => return Err("Objects must consist of key:value pairs"),
                }
            }
            b']' => {
                let Some(Json::Array(items)) = self.stack.last_mut() else { return Err("Unmatched ']'") };
                match self.next.take() {
                    Some(value) => Rc::make_mut(items).0.push(value),
                    None if !items.0.is_empty() => return Err("Expected another array element"),
                    None => {}
                }
                self.next = self.stack.pop();
            }
            _ => {
                match (self.next.take(), self.stack.last()) {
                    (_, None) => return Err("Unmatched '}'"),
                    (Some(value), Some(Json::String(_))) => self.field(value),
                    (Some(_), Some(_)) => return Err("Objects must consist of key:value pairs"),
                    (None, Some(Json::Object(object))) => {
                        if !object.0.is_empty() {
                            return Err("Expected another key-value pair");
                        }
                    }
                    (None, Some(_)) => return Err("Unmatched '}'"),
                }
                self.next = self.stack.pop();
            }
        }
        Ok(())
    }

    fn field(&mut self, value: Json) {
        if let Some(Json::String(key)) = self.stack.pop()
            && let Some(Json::Object(object)) = self.stack.last_mut()
        {
            Rc::make_mut(object).0.insert(key, value);
        }
    }

    /// Handles a structural character with `--stream`: values are returned with their paths.
    fn stream_mark(&mut self, byte: u8) -> Result<(), Complaint> {
        let in_array = self.path.last().map(|key| key.as_number().is_some());
        match byte {
            b'[' | b'{' => {
                if self.next.is_some() || byte == b'{' && self.last == Last::Value {
                    return Err("Expected a separator between values");
                }
                if self.last == Last::OpenObject {
                    return Err(if byte == b'[' {
                        "Expected string key after '{', not '['"
                    } else {
                        "Expected string key after '{', not '{'"
                    });
                }
                if self.last == Last::Comma && in_array == Some(false) {
                    return Err(if byte == b'[' {
                        "Expected string key after ',' in object, not '['"
                    } else {
                        "Expected string key after ',' in object, not '{'"
                    });
                }
                self.path.push(if byte == b'[' { Json::Number(0.0) } else { Json::Null });
                self.last = if byte == b'[' { Last::OpenArray } else { Last::OpenObject };
            }
            b':' => {
                if in_array != Some(false) {
                    return Err("':' not as part of an object");
                }
                if self.last == Last::Nothing {
                    return Err("Expected string key before ':'");
                }
                match self.next.take() {
                    None => return Err("Expected string key before ':'"),
                    Some(Json::String(_)) if self.last != Last::Value => return Err("':' should follow a key"),
                    Some(key @ Json::String(_)) => {
                        self.last = Last::Colon;
                        if let Some(slot) = self.path.last_mut() {
                            *slot = key;
                        }
                    }
                    Some(_) => return Err("Object keys must be strings"),
                }
            }
            b',' => {
                if self.last != Last::Value {
                    return Err("Expected value before ','");
                }
                let following = match self.path.last() {
                    None => return Err("',' not as part of an object or array"),
                    Some(Json::Number(index)) => Json::Number(index + 1.0),
                    Some(Json::String(_)) => Json::Null,
                    Some(_) => return Err("Objects must consist of key:value pairs"),
                };
                if let Some(value) = self.next.take() {
                    self.output = Some(vec![Json::array(self.path.clone()), value]);
                }
                if let Some(slot) = self.path.last_mut() {
                    *slot = following;
                }
                self.last = Last::Comma;
            }
            _ => self.stream_close(byte == b']', in_array)?,
        }
        Ok(())
    }

    fn stream_close(&mut self, array: bool, in_array: Option<bool>) -> Result<(), Complaint> {
        match in_array {
            None => return Err(if array { "Unmatched ']' at the top-level" } else { "Unmatched '}' at the top-level" }),
            Some(_) if self.last == Last::Comma => {
                return Err(if array { "Expected another array element" } else { "Expected another key:value pair" });
            }
            Some(false) if array => return Err("Unmatched ']' in the middle of an object"),
            Some(true) if !array => return Err("Unmatched '}' in the middle of an array"),
            Some(_) => {}
        }
        let opened = if array { Last::OpenArray } else { Last::OpenObject };
        let path = Json::array(self.path.clone());
        match self.next.take() {
            Some(_) if !array && !matches!(self.path.last(), Some(Json::String(_))) => {
                return Err("Objects must consist of key:value pairs");
            }
            Some(value) => self.output = Some(vec![path, value, Json::Bool(true)]),
            None if !array && self.last == Last::Colon => return Err("Missing value in key:value pair"),
            None if self.last != opened => self.output = Some(vec![path]),
            None => {}
        }
        self.path.pop();
        if self.last == opened {
            let empty = if array { Json::array(Vec::new()) } else { Json::Object(Rc::new(Object::default())) };
            self.output = Some(vec![Json::array(self.path.clone()), empty]);
        }
        self.last = if self.path.is_empty() { Last::Nothing } else { Last::Value };
        Ok(())
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let text = std::str::from_utf8(digits?).ok()?;
    if text.bytes().all(|byte| byte.is_ascii_hexdigit()) { u32::from_str_radix(text, 16).ok() } else { None }
}

/// Returns the text between two quotes.
fn unescape(bytes: &[u8]) -> Result<String, Complaint> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte < 0x20 {
            return Err("Invalid string: control characters from U+0000 through U+001F must be escaped");
        }
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(&letter) = bytes.get(at) else { return Err("Expected escape character at end of string") };
        at += 1;
        match letter {
            b'\\' | b'"' | b'/' => out.push(letter),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b't' => out.push(b'\t'),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b'u' => {
                if at + 4 > bytes.len() {
                    return Err("Invalid \\uXXXX escape");
                }
                let Some(mut code) = hex(bytes.get(at..at + 4)) else {
                    return Err("Invalid characters in \\uXXXX escape");
                };
                at += 4;
                if (0xd800..0xdc00).contains(&code) {
                    let low = bytes.get(at..at + 2).filter(|mark| *mark == b"\\u").and(hex(bytes.get(at + 2..at + 6)));
                    let Some(low @ 0xdc00..=0xdfff) = low else {
                        return Err("Invalid \\uXXXX\\uXXXX surrogate pair escape");
                    };
                    at += 6;
                    code = 0x1_0000 + ((code - 0xd800) << 10 | (low - 0xdc00));
                }
                let char = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return Err("Invalid escape"),
        }
    }
    Ok(String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Returns the only value of a text.
pub(super) fn parse(text: &str) -> Result<Json, String> {
    let mut parser = Parser::new(Flags::default());
    parser.feed(text.as_bytes(), false);
    let result = match parser.next() {
        None => Err("Expected JSON value".to_string()),
        Some(Err(message)) => Err(message),
        Some(Ok(value)) => match parser.next() {
            None => Ok(value),
            Some(Ok(_)) => Err("Unexpected extra JSON values".to_string()),
            Some(Err(message)) => Err(message),
        },
    };
    result.map_err(|message| format!("{message} (while parsing '{text}')"))
}

/// Returns all values of a text.
pub(super) fn parse_all(text: &[u8]) -> Result<Vec<Json>, String> {
    let mut parser = Parser::new(Flags::default());
    parser.feed(text, false);
    let mut values = Vec::new();
    while let Some(value) = parser.next() {
        values.push(value?);
    }
    Ok(values)
}
