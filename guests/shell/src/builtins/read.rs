//! `read`.

use std::time::Duration;

use super::parse_options;
use crate::bytes;
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::{is_name, split_subscript};

/// The way in which input is read.
struct Input {
    fd: u32,
    delimiter: u8,
    raw: bool,
    /// Stop after this many characters.
    limit: Option<usize>,
    /// Delimiters count as ordinary characters (`-N`).
    exact: bool,
    deadline: Option<i128>,
}

/// Why reading stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Delimiter,
    Limit,
    Eof,
    TimedOut,
    Interrupted,
}

/// Input: text in which an escaped character is marked, so that it is never split.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    escaped: Vec<bool>,
}

pub(super) fn read(shell: &mut Shell, args: &[String]) -> Done {
    if shell.wants_help(args) {
        return Ok(2);
    }
    let (options, at) = match parse_options(args, "ersa:d:i:n:N:p:t:u:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("read", &wrong)),
    };
    let mut input = Input { fd: 0, delimiter: b'\n', raw: false, limit: None, exact: false, deadline: None };
    let mut array = None;
    let mut prompt = None;
    let mut timeout = None;
    for (letter, value) in options {
        match letter {
            'r' => input.raw = true,
            'a' => array = Some(value),
            'd' => input.delimiter = bytes::encode(&value).first().copied().unwrap_or(0),
            'n' | 'N' => match value.parse::<usize>() {
                Ok(limit) => {
                    input.limit = Some(limit);
                    input.exact = letter == 'N';
                }
                Err(_) => {
                    shell.complain(format_args!("read: {value}: invalid number"));
                    return Ok(1);
                }
            },
            'p' => prompt = Some(value),
            't' => match value.parse::<f64>() {
                Ok(seconds) if seconds >= 0.0 => timeout = Some(seconds),
                _ => {
                    shell.complain(format_args!("read: {value}: invalid timeout specification"));
                    return Ok(1);
                }
            },
            'u' => match value.parse::<u32>() {
                Ok(fd) if sys::is_open(fd) => input.fd = fd,
                Ok(_) => {
                    shell.complain(format_args!("read: {value}: invalid file descriptor: Bad file descriptor"));
                    return Ok(1);
                }
                Err(_) => {
                    shell.complain(format_args!("read: {value}: invalid file descriptor specification"));
                    return Ok(1);
                }
            },
            _ => {}
        }
    }
    let names = args.get(at..).unwrap_or_default();
    if let Some(wrong) = names.iter().chain(array.iter()).find(|name| !is_name(name) && split_subscript(name).is_none()) {
        shell.complain(format_args!("read: `{wrong}': not a valid identifier"));
        return Ok(1);
    }
    shell.output.flush();
    if let Some(prompt) = prompt
        && sys::is_terminal(input.fd)
    {
        shell.write_error(&prompt);
    }
    if let Some(seconds) = timeout {
        if seconds == 0.0 {
            return Ok(i32::from(!sys::poll_read(input.fd, Some(Duration::ZERO)).unwrap_or(false)));
        }
        input.deadline = Some(sys::now_ns() + (seconds * 1e9) as i128);
    }
    if input.limit == Some(0) {
        return assign(shell, &Line::default(), names, array.as_deref(), &input).map(|()| 0);
    }
    let (line, end) = match take_line(&input) {
        Ok(taken) => taken,
        Err(error) => {
            shell.complain(format_args!("read: read error: {}: {}", input.fd, sys::message(&error)));
            return Ok(1);
        }
    };
    match assign(shell, &line, names, array.as_deref(), &input) {
        Ok(()) => {}
        Err(Flow::Discard(_)) => return Ok(1),
        Err(flow) => return Err(flow),
    }
    Ok(match end {
        End::Delimiter | End::Limit => 0,
        End::Eof => 1,
        End::TimedOut => 142,
        End::Interrupted => 130,
    })
}

/// Reads bytes one by one, or ahead with the rest given back, so that what follows is left for the next reader.
struct Source {
    fd: u32,
    seekable: bool,
    buffer: Vec<u8>,
    at: usize,
}

impl Source {
    fn new(fd: u32) -> Self {
        Self { fd, seekable: sys::seek_current(fd, 0).is_ok(), buffer: Vec::new(), at: 0 }
    }

    fn next(&mut self) -> std::io::Result<Option<u8>> {
        if let Some(&byte) = self.buffer.get(self.at) {
            self.at += 1;
            return Ok(Some(byte));
        }
        let size = if self.seekable { 4096 } else { 1 };
        self.buffer.resize(size, 0);
        let count = sys::read(self.fd, &mut self.buffer)?;
        self.buffer.truncate(count);
        self.at = usize::from(count > 0);
        Ok(self.buffer.first().copied())
    }

    /// Gives back what was read ahead.
    fn give_back(&mut self) {
        let ahead = self.buffer.len().saturating_sub(self.at);
        if ahead > 0 {
            let _ = sys::seek_current(self.fd, -i64::try_from(ahead).unwrap_or(0));
        }
    }
}

fn take_line(input: &Input) -> std::io::Result<(Line, End)> {
    let mut source = Source::new(input.fd);
    let mut line = Line::default();
    let mut characters = 0;
    let mut after_backslash = false;
    let end = loop {
        if let Some(deadline) = input.deadline
            && source.at >= source.buffer.len()
        {
            let left = deadline - sys::now_ns();
            let left = Duration::from_nanos(u64::try_from(left.max(0)).unwrap_or(0));
            if !sys::poll_read(input.fd, Some(left)).unwrap_or(true) {
                break End::TimedOut;
            }
        }
        let byte = match source.next() {
            Ok(Some(byte)) => byte,
            Ok(None) => break End::Eof,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                if sys::signals_take() != 0 {
                    break End::Interrupted;
                }
                continue;
            }
            Err(error) => {
                source.give_back();
                return Err(error);
            }
        };
        if after_backslash {
            after_backslash = false;
            if byte != b'\n' {
                line.bytes.push(byte);
                line.escaped.push(true);
                characters += 1;
            }
        } else if byte == b'\\' && !input.raw {
            after_backslash = true;
            continue;
        } else if byte == input.delimiter && !input.exact {
            break End::Delimiter;
        } else if byte != 0 {
            line.bytes.push(byte);
            line.escaped.push(false);
            // Only first bytes of characters count.
            characters += usize::from(byte & 0xc0 != 0x80);
        }
        if input.limit.is_some_and(|limit| characters >= limit) && is_whole(&line.bytes) {
            break End::Limit;
        }
    };
    source.give_back();
    Ok((line, end))
}

/// Returns whether the bytes do not end inside of a character.
fn is_whole(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_some(),
    }
}

fn assign(shell: &mut Shell, line: &Line, names: &[String], array: Option<&str>, input: &Input) -> Done<()> {
    let ifs = bytes::encode(&shell.ifs()).into_owned();
    if let Some(name) = array {
        let fields = split(line, &ifs, usize::MAX);
        let (name, _) = shell.resolve(name);
        if shell.refuse_readonly(&name) {
            return Err(Flow::Discard(1));
        }
        shell.set_array(&name, fields.into_iter().map(|field| bytes::decode(&field)));
        return Ok(());
    }
    if names.is_empty() {
        return shell.assign("REPLY", bytes::decode(&line.bytes), false);
    }
    if input.exact {
        put(shell, &names[0], bytes::decode(&line.bytes))?;
        for name in &names[1..] {
            put(shell, name, String::new())?;
        }
        return Ok(());
    }
    let mut fields = split(line, &ifs, names.len()).into_iter();
    for name in names {
        put(shell, name, bytes::decode(&fields.next().unwrap_or_default()))?;
    }
    Ok(())
}

fn put(shell: &mut Shell, name: &str, value: String) -> Done<()> {
    match split_subscript(name) {
        Some((base, subscript)) => {
            let (base, _) = shell.resolve(base);
            let subscript = shell.subscript(&base, subscript)?;
            shell.assign_element(&base, subscript, value, false)
        }
        None => shell.assign(name, value, false),
    }
}

/// Splits into at most `most` fields; the last takes the rest, without the white space around it.
fn split(line: &Line, ifs: &[u8], most: usize) -> Vec<Vec<u8>> {
    let text = &line.bytes;
    let is_blank = |at: usize| !line.escaped[at] && matches!(text[at], b' ' | b'\t' | b'\n') && ifs.contains(&text[at]);
    let is_separator = |at: usize| !line.escaped[at] && ifs.contains(&text[at]);
    let mut fields = Vec::new();
    let mut at = 0;
    let length = text.len();
    while at < length && is_blank(at) {
        at += 1;
    }
    while at < length {
        if fields.len() + 1 == most {
            fields.push(last_field(text, at, is_blank, is_separator));
            return fields;
        }
        let start = at;
        while at < length && !is_separator(at) {
            at += 1;
        }
        fields.push(text[start..at].to_vec());
        while at < length && is_blank(at) {
            at += 1;
        }
        if at < length && is_separator(at) && !is_blank(at) {
            at += 1;
            while at < length && is_blank(at) {
                at += 1;
            }
        }
    }
    fields
}

/// Returns what the last variable gets: all that is left; a single separator that ends it is dropped with the blanks.
fn last_field(text: &[u8], at: usize, is_blank: impl Fn(usize) -> bool, is_separator: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut end = text.len();
    while end > at && is_blank(end - 1) {
        end -= 1;
    }
    if end > at && is_separator(end - 1) && !is_blank(end - 1) {
        // Only if it is the only separator in the rest.
        let mut before = end - 1;
        while before > at && is_blank(before - 1) {
            before -= 1;
        }
        if !(at..before).any(&is_separator) {
            end = before;
        }
    }
    text[at..end].to_vec()
}

impl Shell {
    /// Reads one line from a descriptor, without its newline; `None` at the end.
    pub(crate) fn read_line(&mut self, fd: u32) -> Option<String> {
        self.output.flush();
        let input = Input { fd, delimiter: b'\n', raw: true, limit: None, exact: false, deadline: None };
        let (line, end) = take_line(&input).ok()?;
        if end == End::Eof && line.bytes.is_empty() {
            return None;
        }
        Some(bytes::decode(&line.bytes))
    }

    /// Reads one line from a descriptor with its newline, for the parser; empty at the end.
    pub(crate) fn read_source_line(&mut self, fd: u32) -> String {
        self.output.flush();
        let input = Input { fd, delimiter: b'\n', raw: true, limit: None, exact: false, deadline: None };
        match take_line(&input) {
            Ok((line, End::Delimiter)) => bytes::decode(&line.bytes) + "\n",
            Ok((line, _)) => bytes::decode(&line.bytes),
            Err(_) => String::new(),
        }
    }
}
