//! Looking through one input: whole blocks are searched, lines are only cut where something matched.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memrchr};

use super::{Binary, Options};
use crate::io::{Out, read_some};
use posix_regex::Regex;

/// Bytes read at once: large enough that the search, not the reading, is the work.
const BUFFER: usize = 256 * 1024;

pub(super) struct Search<'a> {
    options: &'a Options,
    regex: &'a Regex,
    pub out: Out,
    buffer: Vec<u8>,
    /// Whether any line of any input was printed, so that a separator stands between groups.
    printed_any: bool,
}

/// Where one input stands.
struct State<'n> {
    name: &'n [u8],
    /// End of the valid bytes.
    end: usize,
    /// Input offset of the buffer's first byte.
    base: u64,
    /// Lines before `counted`.
    line: u64,
    counted: usize,
    /// Everything before this was printed or passed by.
    printed: usize,
    /// Context lines still to print after a selected line.
    pending: usize,
    selected: u64,
    left: u64,
    binary: bool,
    quiet: bool,
    encoding: bool,
    /// Whether a line of this input was printed.
    any: bool,
    stopped: bool,
}

impl<'a> Search<'a> {
    pub fn new(options: &'a Options, regex: &'a Regex) -> Self {
        let mut out = Out::new("grep", 2);
        out.line_buffered = options.line_buffered;
        Self { options, regex, out, buffer: vec![0; BUFFER], printed_any: false }
    }

    /// Searches one input; whether a line was selected.
    pub fn input(&mut self, mut input: impl Read, name: &[u8]) -> io::Result<bool> {
        let options = self.options;
        let list = options.files_with || options.files_without;
        let mut state = State {
            name,
            end: 0,
            base: 0,
            line: 1,
            counted: 0,
            printed: 0,
            pending: 0,
            selected: 0,
            left: options.max_count,
            binary: false,
            quiet: options.quiet || list || options.count,
            encoding: false,
            any: false,
            stopped: false,
        };
        let result = self.blocks(&mut input, &mut state);
        if let Err(error) = result {
            self.out.flush();
            return Err(error);
        }
        let selected = state.selected > 0;
        if options.quiet {
            return Ok(selected);
        }
        if options.count && !list {
            if options.with_filename {
                self.file_name(name);
                self.separator(b':', options.null);
            }
            self.out.number(state.selected);
            self.out.byte(b'\n');
        }
        if list && selected == options.files_with {
            self.file_name(name);
            self.out.byte(if options.null { 0 } else { b'\n' });
        }
        if selected && !list && !options.count && (state.encoding || state.binary) {
            self.out.flush();
            warn!("grep: {}: binary file matches", crate::io::show(name));
        }
        Ok(selected)
    }

    fn blocks(&mut self, input: &mut impl Read, state: &mut State<'_>) -> io::Result<()> {
        let eol = self.options.eol;
        let mut start = 0;
        let mut first = true;
        let mut eof = false;
        while !eof && !state.stopped {
            let fresh = state.end;
            if state.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            // A pipe hands out little at a time; a full block is worth the wait only for a file, so one read it is.
            let read = read_some(input, &mut self.buffer[state.end..])?;
            eof = read == 0;
            state.end += read;
            if !state.binary && self.options.binary != Binary::Text && eol == b'\n' {
                state.binary = memchr(0, &self.buffer[fresh..state.end]).is_some();
                if state.binary && self.options.binary == Binary::WithoutMatch && first {
                    state.selected = 0;
                    return Ok(());
                }
            }
            if state.binary {
                state.quiet = true;
                self.buffer[fresh..state.end].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = eol);
            }
            first = false;
            let limit = if eof {
                if state.end > start && self.buffer[state.end - 1] != eol {
                    if state.end == self.buffer.len() {
                        self.buffer.push(eol);
                    } else {
                        self.buffer[state.end] = eol;
                    }
                    state.end += 1;
                }
                state.end
            } else {
                match memrchr(eol, &self.buffer[fresh..state.end]) {
                    Some(at) => fresh + at + 1,
                    None => continue,
                }
            };
            let buffer = std::mem::take(&mut self.buffer);
            self.lines(&buffer[..limit], start, state);
            self.buffer = buffer;
            start = self.keep(limit, state);
        }
        Ok(())
    }

    /// Moves what may still be needed to the front: leading context and the unfinished line.
    fn keep(&mut self, limit: usize, state: &mut State<'_>) -> usize {
        let eol = self.options.eol;
        let mut from = limit;
        if !state.quiet && self.options.before > 0 {
            for _ in 0..self.options.before {
                if from <= state.printed {
                    break;
                }
                from = memrchr(eol, &self.buffer[..from - 1]).map_or(0, |at| at + 1).max(state.printed);
            }
        }
        if self.options.line_number {
            self.count_to(from, state);
        }
        self.buffer.copy_within(from..state.end, 0);
        state.base += from as u64;
        state.end -= from;
        state.printed = state.printed.saturating_sub(from);
        state.counted = 0;
        limit - from
    }

    fn count_to(&self, to: usize, state: &mut State<'_>) {
        if to > state.counted {
            state.line += memchr_iter(self.options.eol, &self.buffer[state.counted..to]).count() as u64;
            state.counted = to;
        }
    }

    /// Returns the next matching line at or after `at`.
    fn next_match(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        let eol = self.options.eol;
        if self.options.by_line {
            let mut at = at;
            while at < text.len() {
                let end = memchr(eol, &text[at..]).map_or(text.len(), |length| at + length);
                if self.regex.is_match(&text[at..end]) {
                    return Some((at, end + 1));
                }
                at = end + 1;
            }
            return None;
        }
        if at >= text.len() {
            return None;
        }
        // A match is inside one line, which its end determines.
        let to = self.regex.find_end(text, at)?;
        if to >= text.len() && text.last() == Some(&eol) {
            return None;
        }
        let start = memrchr(eol, &text[at..to]).map_or(at, |found| at + found + 1);
        let end = memchr(eol, &text[to..]).map_or(text.len(), |found| to + found + 1);
        Some((start, end))
    }

    fn lines(&mut self, text: &[u8], start: usize, state: &mut State<'_>) {
        let mut at = start;
        while at < text.len() && !state.stopped {
            let (line, end) = self.next_match(text, at).unwrap_or((text.len(), text.len()));
            if self.options.invert {
                self.selected_run(text, at, line, state);
            } else if line < text.len() {
                self.selected_run(text, line, end, state);
            }
            at = end.max(at + 1);
        }
        if !state.stopped && state.pending > 0 {
            self.context_after(text, text.len(), state);
        }
    }

    /// Selects every line of `from..to`.
    fn selected_run(&mut self, text: &[u8], from: usize, to: usize, state: &mut State<'_>) {
        if from >= to {
            return;
        }
        let eol = self.options.eol;
        if state.quiet {
            let lines = memchr_iter(eol, &text[from..to]).count() as u64;
            let taken = lines.min(state.left);
            state.selected += taken;
            state.left -= taken;
            let enough = self.options.quiet || self.options.files_with || self.options.files_without || !self.options.count;
            state.stopped = state.left == 0 || enough;
            return;
        }
        let mut at = from;
        while at < to {
            let end = memchr(eol, &text[at..to]).map_or(to, |length| at + length + 1);
            self.context_before(text, at, state);
            self.print(text, at, end, b':', state);
            state.selected += 1;
            state.left -= 1;
            if state.quiet {
                state.stopped = true;
                return;
            }
            state.pending = self.options.after;
            at = end;
            if state.left == 0 {
                self.trailing(text, at, state);
                state.stopped = true;
                return;
            }
        }
    }

    /// Prints the context after the last line that `-m` allows, whatever it holds.
    fn trailing(&mut self, text: &[u8], mut at: usize, state: &mut State<'_>) {
        while state.pending > 0 && at < text.len() {
            let end = memchr(self.options.eol, &text[at..]).map_or(text.len(), |length| at + length + 1);
            self.print(text, at, end, b'-', state);
            state.pending -= 1;
            at = end;
        }
    }

    fn context_after(&mut self, text: &[u8], to: usize, state: &mut State<'_>) {
        while state.pending > 0 && state.printed < to {
            let at = state.printed;
            let end = memchr(self.options.eol, &text[at..to]).map_or(to, |length| at + length + 1);
            self.print(text, at, end, b'-', state);
            state.pending -= 1;
        }
    }

    fn context_before(&mut self, text: &[u8], line: usize, state: &mut State<'_>) {
        if state.pending > 0 {
            self.context_after(text, line, state);
        }
        let mut from = line;
        for _ in 0..self.options.before {
            if from <= state.printed {
                break;
            }
            from = memrchr(self.options.eol, &text[..from - 1]).map_or(0, |at| at + 1).max(state.printed);
        }
        let context = self.options.before > 0 || self.options.after > 0;
        let gap = from > state.printed || !state.any;
        if context && self.printed_any && gap {
            self.group_separator();
        }
        while from < line {
            let end = memchr(self.options.eol, &text[from..line]).map_or(line, |length| from + length + 1);
            self.print(text, from, end, b'-', state);
            from = end;
        }
    }

    fn group_separator(&mut self) {
        if let Some(separator) = &self.options.separator {
            if self.options.color {
                self.out.put(b"\x1b[36m\x1b[K");
                self.out.put(separator);
                self.out.put(b"\x1b[m\x1b[K");
            } else {
                self.out.put(separator);
            }
            self.out.byte(b'\n');
        }
    }

    fn print(&mut self, text: &[u8], at: usize, end: usize, mark: u8, state: &mut State<'_>) {
        let line = &text[at..end - 1];
        if self.options.utf8 && self.options.binary != Binary::Text && !line.is_ascii() && std::str::from_utf8(line).is_err() {
            if self.options.binary == Binary::Message {
                state.encoding = true;
            } else {
                state.quiet = true;
            }
            state.printed = end;
            return;
        }
        if self.options.line_number && at > state.counted {
            state.line += memchr_iter(self.options.eol, &text[state.counted..at]).count() as u64;
            state.counted = at;
        }
        state.printed = end;
        state.any = true;
        self.printed_any = true;
        let selected = mark == b':';
        if self.options.only_matching {
            if selected && !self.options.invert {
                self.print_matches(line, at, state);
            }
            return;
        }
        self.head(at, mark, state);
        if self.options.color && selected != self.options.invert {
            self.colored(line);
        } else {
            self.out.put(line);
        }
        self.out.byte(self.options.eol);
        self.out.line_end();
    }

    fn print_matches(&mut self, line: &[u8], at: usize, state: &State<'_>) {
        let mut from = 0;
        while from <= line.len() {
            let Some((start, end)) = self.regex.find_at(line, from) else { break };
            if start == end {
                from = end + 1;
                continue;
            }
            self.head(at + start, b':', state);
            self.matched(&line[start..end]);
            self.out.byte(self.options.eol);
            self.out.line_end();
            from = end;
        }
    }

    fn matched(&mut self, text: &[u8]) {
        if self.options.color {
            self.out.put(b"\x1b[01;31m\x1b[K");
            self.out.put(text);
            self.out.put(b"\x1b[m\x1b[K");
        } else {
            self.out.put(text);
        }
    }

    fn colored(&mut self, line: &[u8]) {
        let mut from = 0;
        let mut shown = 0;
        while from <= line.len() {
            let Some((start, end)) = self.regex.find_at(line, from) else { break };
            if start == end {
                from = end + 1;
                continue;
            }
            self.out.put(&line[shown..start]);
            self.matched(&line[start..end]);
            shown = end;
            from = end;
        }
        self.out.put(&line[shown..]);
    }

    fn file_name(&mut self, name: &[u8]) {
        if self.options.color {
            self.out.put(b"\x1b[35m\x1b[K");
            self.out.put(name);
            self.out.put(b"\x1b[m\x1b[K");
        } else {
            self.out.put(name);
        }
    }

    fn separator(&mut self, mark: u8, null: bool) {
        if null {
            self.out.byte(0);
        } else if self.options.color {
            self.out.put(b"\x1b[36m\x1b[K");
            self.out.byte(mark);
            self.out.put(b"\x1b[m\x1b[K");
        } else {
            self.out.byte(mark);
        }
    }

    fn field(&mut self, number: u64) {
        let text = number.to_string();
        if self.options.color {
            self.out.put(b"\x1b[32m\x1b[K");
            self.out.put(text.as_bytes());
            self.out.put(b"\x1b[m\x1b[K");
        } else {
            self.out.put(text.as_bytes());
        }
    }

    fn head(&mut self, at: usize, mark: u8, state: &State<'_>) {
        let options = self.options;
        if options.with_filename {
            self.file_name(state.name);
            self.separator(mark, options.null);
        }
        if options.line_number {
            self.field(state.line);
            self.separator(mark, false);
        }
        if options.byte_offset {
            self.field(state.base + at as u64);
            self.separator(mark, false);
        }
        if options.initial_tab && (options.with_filename || options.line_number || options.byte_offset) {
            self.out.put(b"\t");
        }
    }
}
