//! The inputs of a run: files one after the other, read as far as they are needed.

use super::json::{Flags, Parser};
use super::value::Json;
use crate::io::{self, Input, show};

/// Longest piece that is read at once, that of jq.
const PIECE: usize = 4095;

/// The inputs of a program, parsed one by one.
pub(super) struct Inputs {
    files: std::vec::IntoIter<Vec<u8>>,
    open: Option<Input>,
    name: Option<String>,
    line: usize,
    /// Files that could not be read.
    pub failures: usize,
    parser: Option<Parser>,
    /// All inputs in one: a string with `-R`, an array otherwise. Gone when it was returned.
    slurped: Option<Slurped>,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
    /// Whether the end of the open file was returned.
    read: bool,
}

enum Slurped {
    Text(Vec<u8>),
    Values(Vec<Json>),
}

impl Inputs {
    /// Without `flags`, lines are read as they are.
    pub fn new(files: Vec<Vec<u8>>, flags: Option<Flags>, slurp: bool) -> Self {
        let files = if files.is_empty() { vec![b"-".to_vec()] } else { files };
        let slurped = slurp.then(|| if flags.is_some() { Slurped::Values(Vec::new()) } else { Slurped::Text(Vec::new()) });
        Self {
            files: files.into_iter(),
            open: None,
            name: None,
            line: 0,
            failures: 0,
            parser: flags.map(Parser::new),
            slurped,
            buffer: Vec::new(),
            at: 0,
            ended: false,
            read: false,
        }
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the place that errors name.
    pub fn place(&self) -> String {
        self.name.as_ref().map_or_else(|| "<unknown>".to_string(), |name| format!("{name}:{}", self.line))
    }

    /// Returns the next piece: up to a newline, or as long as a piece gets; and whether it is the last one.
    fn piece(&mut self) -> (Vec<u8>, bool) {
        if self.open.is_none() || self.read {
            (self.open, self.name, self.line, self.read) = (None, None, 0, false);
            if let Some(file) = self.files.next() {
                self.begin(&file);
            }
        }
        if self.open.is_none() {
            return (Vec::new(), self.files.len() == 0);
        }
        loop {
            let rest = &self.buffer[self.at..];
            let newline = memchr::memchr(b'\n', &rest[..rest.len().min(PIECE)]);
            if newline.is_none() && rest.len() < PIECE && !self.ended {
                self.fill();
                continue;
            }
            let length = newline.map_or(rest.len().min(PIECE), |at| at + 1);
            let whole = newline.is_some() || length == PIECE;
            let piece = rest[..length].to_vec();
            self.at += length;
            self.line += usize::from(newline.is_some());
            self.read = !whole;
            return (piece, !whole && self.files.len() == 0);
        }
    }

    fn begin(&mut self, file: &[u8]) {
        self.buffer.clear();
        (self.at, self.ended) = (0, false);
        match Input::open(file) {
            Ok(input) => self.open = Some(input),
            Err(error) => {
                warn!("jq: error: Could not open file {}: {}", show(file), sys::message(&error));
                self.failures += 1;
            }
        }
        self.name = Some(if file == b"-" { "<stdin>".to_string() } else { show(file).into_owned() });
    }

    fn fill(&mut self) {
        self.buffer.drain(..self.at);
        self.at = 0;
        let Some(input) = &mut self.open else { return };
        let length = self.buffer.len();
        self.buffer.resize(length + io::BLOCK, 0);
        match io::read_some(input, &mut self.buffer[length..]) {
            Ok(count) => {
                self.buffer.truncate(length + count);
                self.ended = count == 0;
            }
            Err(error) => {
                warn!("jq: error: {}", sys::message(&error));
                self.buffer.truncate(length);
                self.failures += 1;
                self.ended = true;
            }
        }
    }

    /// Returns the next value, or a complaint about the text.
    pub fn next(&mut self) -> Option<Result<Json, String>> {
        if self.parser.is_some() { self.next_value() } else { self.next_line() }
    }

    fn next_line(&mut self) -> Option<Result<Json, String>> {
        let mut line: Option<Vec<u8>> = None;
        loop {
            let (mut piece, last) = self.piece();
            if let Some(Slurped::Text(all)) = &mut self.slurped {
                all.append(&mut piece);
            } else if piece.last() == Some(&b'\n') {
                piece.pop();
                let line = line.get_or_insert_default();
                line.append(&mut piece);
                return Some(Ok(Json::text(line)));
            } else if !piece.is_empty() {
                line.get_or_insert_default().append(&mut piece);
            }
            if last {
                break;
            }
        }
        match self.slurped.take() {
            Some(Slurped::Text(all)) => Some(Ok(Json::text(&all))),
            _ => line.map(|line| Ok(Json::text(&line))),
        }
    }

    fn next_value(&mut self) -> Option<Result<Json, String>> {
        let mut last = false;
        loop {
            if self.parser.as_ref()?.remaining() == 0 {
                if last {
                    break;
                }
                let piece;
                (piece, last) = self.piece();
                self.parser.as_mut()?.feed(&piece, !last);
            }
            let value = self.parser.as_mut()?.next();
            match (value, &mut self.slurped) {
                (Some(Ok(value)), Some(Slurped::Values(all))) => all.push(value),
                (Some(result), _) => return Some(result),
                (None, _) => {}
            }
        }
        match self.slurped.take() {
            Some(Slurped::Values(all)) => Some(Ok(Json::array(all))),
            _ => None,
        }
    }
}
