//! Records and fields: cutting input into records, and records into fields only as far as asked.

use std::io::{self, Read};
use std::rc::Rc;

use super::value::{Text, Value};
use crate::io::{BLOCK, read_some};
use posix_regex::Regex;

/// The separator of records.
#[derive(Clone, Debug)]
pub(super) enum Separator {
    Byte(u8),
    /// Blank lines.
    Paragraph,
    Pattern(Rc<Regex>),
}

/// Cuts a stream of bytes into records.
pub(super) struct Reader {
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
}

impl Reader {
    pub fn new(input: Box<dyn Read>) -> Self {
        Self { input, buffer: vec![0; BLOCK], start: 0, end: 0, eof: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let read = read_some(&mut self.input, &mut self.buffer[self.end..])?;
        self.eof = read == 0;
        self.end += read;
        Ok(())
    }

    /// Reads a record into `record` and what ended it into `terminator`; `false` at the end.
    pub fn read(&mut self, separator: &Separator, record: &mut Vec<u8>, terminator: &mut Vec<u8>) -> io::Result<bool> {
        record.clear();
        terminator.clear();
        match separator {
            Separator::Byte(byte) => self.read_to_byte(*byte, record, terminator),
            Separator::Paragraph => self.read_paragraph(record, terminator),
            Separator::Pattern(regex) => self.read_to_pattern(regex, record, terminator),
        }
    }

    fn read_to_byte(&mut self, byte: u8, record: &mut Vec<u8>, terminator: &mut Vec<u8>) -> io::Result<bool> {
        let mut searched = 0;
        loop {
            let text = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(byte, &text[searched..]) {
                let length = searched + at;
                record.extend_from_slice(&text[..length]);
                terminator.push(byte);
                self.start += length + 1;
                return Ok(true);
            }
            searched = text.len();
            if self.eof {
                return Ok(self.rest(record));
            }
            self.fill()?;
        }
    }

    fn rest(&mut self, record: &mut Vec<u8>) -> bool {
        let any = self.start < self.end;
        record.extend_from_slice(&self.buffer[self.start..self.end]);
        self.start = self.end;
        any
    }

    fn read_paragraph(&mut self, record: &mut Vec<u8>, terminator: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            while self.start < self.end && self.buffer[self.start] == b'\n' {
                self.start += 1;
            }
            if self.start < self.end || self.eof {
                break;
            }
            self.fill()?;
        }
        loop {
            let text = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memmem::find(text, b"\n\n") {
                let newlines = text[at..].iter().take_while(|&&byte| byte == b'\n').count();
                if at + newlines < text.len() || self.eof {
                    record.extend_from_slice(&text[..at]);
                    terminator.extend_from_slice(&text[at..at + newlines]);
                    self.start += at + newlines;
                    return Ok(true);
                }
            } else if self.eof {
                let any = self.rest(record);
                if record.last() == Some(&b'\n') {
                    record.pop();
                    terminator.push(b'\n');
                }
                return Ok(any);
            }
            self.fill()?;
        }
    }

    fn read_to_pattern(&mut self, regex: &Regex, record: &mut Vec<u8>, terminator: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let text = &self.buffer[self.start..self.end];
            let found = regex.find_at(text, 0).filter(|(from, to)| from < to);
            match found {
                // A match that touches the end could still grow.
                Some((from, to)) if to < text.len() || self.eof => {
                    record.extend_from_slice(&text[..from]);
                    terminator.extend_from_slice(&text[from..to]);
                    self.start += to;
                    return Ok(true);
                }
                _ if self.eof => {
                    let any = self.rest(record);
                    if record.last() == Some(&b'\n') && regex.is_match(b"\n") {
                        record.pop();
                    }
                    return Ok(any);
                }
                _ => self.fill()?,
            }
        }
    }
}

/// How a record is cut into fields.
#[derive(Clone, Debug)]
pub(super) enum Splitter {
    Blanks,
    Byte(u8),
    Characters,
    Pattern(Rc<Regex>),
    /// Fields are what matches.
    Content(Rc<Regex>),
    Widths(Vec<usize>),
}

type Span = (usize, usize);

impl Splitter {
    /// Finds the next field from `at`: its span and where to go on; `None` when there is no more.
    fn next(&self, text: &[u8], at: usize) -> Option<(Span, usize)> {
        match self {
            Self::Blanks => {
                let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n');
                let start = at + text.get(at..)?.iter().position(|&byte| !is_blank(byte))?;
                let end = text[start..].iter().position(|&byte| is_blank(byte)).map_or(text.len(), |length| start + length);
                Some(((start, end), end + 1))
            }
            _ if at > text.len() || text.is_empty() => None,
            Self::Byte(byte) => {
                let end = memchr::memchr(*byte, &text[at..]).map_or(text.len(), |length| at + length);
                Some(((at, end), end + 1))
            }
            Self::Characters => {
                if at >= text.len() {
                    return None;
                }
                let end = at + if common::locale::utf8() { crate::utf8::length(&text[at..]) } else { 1 };
                Some(((at, end), end))
            }
            Self::Pattern(regex) => {
                let mut from = at;
                loop {
                    match regex.find_at(text, from) {
                        Some((start, end)) if start < end => return Some(((at, start), end)),
                        Some((start, _)) if start < text.len() => from = start + 1,
                        _ => return Some(((at, text.len()), text.len() + 1)),
                    }
                }
            }
            Self::Content(regex) => {
                let mut from = at;
                loop {
                    let (start, end) = regex.find_at(text, from)?;
                    if start < end || (start == at && at > 0) || start == 0 && end == 0 {
                        return Some(((start, end), end + 1));
                    }
                    from = start + 1;
                }
            }
            Self::Widths(_) => None,
        }
    }

    /// All fields of `text`, and what stands between them.
    pub fn split(&self, text: &[u8], mut each: impl FnMut(&[u8], &[u8])) {
        if let Self::Widths(widths) = self {
            let mut at = 0;
            for width in widths {
                if at >= text.len() {
                    break;
                }
                let end = at.saturating_add(*width).min(text.len());
                each(&text[at..end], b"");
                at = end;
            }
            return;
        }
        let mut at = 0;
        let mut current = self.next(text, at);
        while let Some(((start, end), next)) = current {
            at = next;
            current = self.next(text, at);
            let separator = match (self, &current) {
                (Self::Blanks | Self::Content(_), Some(((following, _), _))) => &text[end..*following],
                (Self::Pattern(_), Some(_)) => &text[end..next.min(text.len())],
                (Self::Byte(_), Some(_)) => &text[end..=end],
                _ => &b""[..],
            };
            each(&text[start..end], separator);
        }
    }
}

/// The current record.
pub(super) struct Record {
    text: Vec<u8>,
    /// The text must be put together again from the fields.
    stale: bool,
    splitter: Rc<Splitter>,
    spans: Vec<Span>,
    next: usize,
    complete: bool,
    /// Set once a field was assigned to.
    fields: Option<Vec<Value>>,
}

impl Record {
    pub fn new(splitter: Rc<Splitter>) -> Self {
        Self { text: Vec::new(), stale: false, splitter, spans: Vec::new(), next: 0, complete: true, fields: None }
    }

    /// Takes a new text in exchange for the old one.
    pub fn swap(&mut self, text: &mut Vec<u8>, splitter: &Rc<Splitter>) {
        std::mem::swap(&mut self.text, text);
        if !Rc::ptr_eq(&self.splitter, splitter) {
            self.splitter = Rc::clone(splitter);
        }
        self.stale = false;
        self.spans.clear();
        self.next = 0;
        self.complete = false;
        self.fields = None;
    }

    fn cut_to(&mut self, count: usize) {
        if self.complete {
            return;
        }
        if let Splitter::Widths(_) = *self.splitter {
            let base = self.text.as_ptr() as usize;
            let (text, splitter, spans) = (&self.text, Rc::clone(&self.splitter), &mut self.spans);
            splitter.split(text, |field, _| {
                let start = field.as_ptr() as usize - base;
                spans.push((start, start + field.len()));
            });
            self.complete = true;
            return;
        }
        while self.spans.len() < count {
            match self.splitter.next(&self.text, self.next) {
                Some((span, next)) => {
                    self.spans.push(span);
                    self.next = next;
                }
                None => {
                    self.complete = true;
                    return;
                }
            }
        }
    }

    pub fn nf(&mut self) -> usize {
        if let Some(fields) = &self.fields {
            return fields.len();
        }
        self.cut_to(usize::MAX);
        self.spans.len()
    }

    pub fn text(&mut self, ofs: &[u8], convfmt: &[u8]) -> &[u8] {
        if self.stale {
            self.stale = false;
            self.text.clear();
            if let Some(fields) = &self.fields {
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        self.text.extend_from_slice(ofs);
                    }
                    field.append_to(&mut self.text, convfmt);
                }
            }
        }
        &self.text
    }

    /// Returns the bytes of field `index` (from 1), when it was not assigned to.
    pub fn raw(&mut self, index: usize) -> Option<&[u8]> {
        if self.fields.is_some() {
            return None;
        }
        self.cut_to(index);
        Some(self.spans.get(index - 1).map_or(&b""[..], |&(start, end)| &self.text[start..end]))
    }

    pub fn field(&mut self, index: usize) -> Value {
        if let Some(fields) = &self.fields {
            return fields.get(index - 1).cloned().unwrap_or_else(|| Value::Input(Text::new(Vec::new())));
        }
        self.cut_to(index);
        match self.spans.get(index - 1) {
            Some(&(start, end)) => Value::Input(Text::from_slice(&self.text[start..end])),
            // A field that is not there is an empty text, not nothing: it does not equal 0.
            None => Value::Input(Text::new(Vec::new())),
        }
    }

    fn materialize(&mut self) -> &mut Vec<Value> {
        if self.fields.is_none() {
            self.cut_to(usize::MAX);
            let fields = self.spans.iter().map(|&(start, end)| Value::Input(Text::from_slice(&self.text[start..end])));
            self.fields = Some(fields.collect());
        }
        self.fields.get_or_insert_default()
    }

    pub fn set_field(&mut self, index: usize, value: Value) {
        let fields = self.materialize();
        if fields.len() < index {
            fields.resize(index, Value::Str(Text::new(Vec::new())));
        }
        fields[index - 1] = value;
        self.stale = true;
    }

    pub fn set_nf(&mut self, count: usize) {
        self.materialize().resize(count, Value::Str(Text::new(Vec::new())));
        self.stale = true;
    }
}
