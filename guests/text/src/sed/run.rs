//! Running a script: the cycle, the two spaces, and where output goes.

use std::fs;
use std::io::Write as _;
use std::rc::Rc;

use super::Options;
use super::input::{Next, Stream};
use super::replace::char_length;
use super::script::{Address, Command, Kind, Pattern, Program, Substitute};
use crate::io::{self, Input, Lines, Out, show};
use crate::posix::{Regex, Span};
use crate::{process, warn};

enum Target {
    Stdout,
    Stderr,
    File(std::io::BufWriter<fs::File>),
}

enum Queued<'p> {
    Text(&'p [u8]),
    File(&'p [u8]),
    Line(Vec<u8>, bool),
}

struct Machine<'p> {
    program: &'p Program,
    options: &'p Options,
    stream: Stream,
    out: Out,
    /// Output of in-place editing.
    edited: Option<Vec<u8>>,
    edit_name: Vec<u8>,
    missing_newline: bool,
    space: Vec<u8>,
    hold: Vec<u8>,
    hold_ended: bool,
    scratch: Vec<u8>,
    ended: bool,
    replaced: bool,
    ranges: Vec<Range>,
    queue: Vec<Queued<'p>>,
    targets: Vec<Target>,
    readers: Vec<Option<Lines<Input>>>,
    last_regex: Option<Rc<Regex>>,
    spans: Vec<Option<Span>>,
    delimiter: u8,
    fatal: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    Off,
    Until(u64),
    On,
}

enum Flow {
    Continue,
    /// Ends the cycle; whether the pattern space is printed.
    EndCycle(bool),
    /// Starts over without reading.
    Again,
    Quit(i32, bool),
}

pub(super) fn run(program: &Program, options: &Options, files: Vec<Vec<u8>>) -> i32 {
    if options.in_place.is_some() && files.is_empty() {
        warn!("sed: no input files");
        return 4;
    }
    let mut targets = Vec::new();
    for name in &program.outputs {
        targets.push(match name.as_slice() {
            b"/dev/stdout" => Target::Stdout,
            b"/dev/stderr" => Target::Stderr,
            _ => match fs::File::create(io::path(name)) {
                Ok(file) => Target::File(std::io::BufWriter::new(file)),
                Err(error) => {
                    warn!("sed: couldn't open file {}: {}", show(name), io::strerror(&error));
                    return 4;
                }
            },
        });
    }
    let readers = program.inputs.iter().map(|name| Input::open_file(name).ok().map(|input| Lines::new(input, b'\n'))).collect();
    let delimiter = if options.null_data { 0 } else { b'\n' };
    let mut out = Out::new("sed", 4);
    out.line_buffered = options.unbuffered;
    let mut machine = Machine {
        program,
        options,
        stream: Stream::new(files, options.separate, options.in_place.is_some(), delimiter),
        out,
        edited: None,
        edit_name: Vec::new(),
        missing_newline: false,
        space: Vec::new(),
        hold: Vec::new(),
        hold_ended: true,
        scratch: Vec::new(),
        ended: true,
        replaced: false,
        ranges: vec![Range::Off; program.commands.len()],
        queue: Vec::new(),
        targets,
        readers,
        last_regex: None,
        spans: Vec::new(),
        delimiter,
        fatal: None,
    };
    machine.reset_ranges();
    let status = machine.cycles();
    machine.finish_file();
    machine.out.flush();
    for target in &mut machine.targets {
        if let Target::File(file) = target {
            let _ = file.flush();
        }
    }
    if let Some(message) = &machine.fatal {
        warn!("sed: {message}");
        return 1;
    }
    if status == 0 { machine.stream.failed } else { status }
}

impl<'p> Machine<'p> {
    fn reset_ranges(&mut self) {
        for (range, command) in self.ranges.iter_mut().zip(&self.program.commands) {
            let zero = matches!(command.first, Some(Address::Line(0))) && command.second.is_some();
            *range = if zero { Range::On } else { Range::Off };
        }
    }

    fn read_line(&mut self, may_change_file: bool) -> bool {
        loop {
            match self.stream.read(&mut self.space, may_change_file) {
                Next::Line(ended) => {
                    self.ended = ended;
                    return true;
                }
                Next::NewFile if may_change_file => {
                    self.finish_file();
                    self.reset_ranges();
                    if self.options.in_place.is_some() {
                        self.edited = Some(Vec::new());
                        self.edit_name.clone_from(&self.stream.name);
                    }
                }
                _ => return false,
            }
        }
    }

    fn cycles(&mut self) -> i32 {
        self.space.clear();
        if !self.read_line(true) {
            return 0;
        }
        loop {
            let flow = self.cycle();
            let (print, quit, again) = match flow {
                Flow::Continue => (true, None, false),
                Flow::EndCycle(print) => (print, None, false),
                Flow::Again => (false, None, true),
                Flow::Quit(code, print) => (print, Some(code), false),
            };
            if print && !self.options.quiet {
                self.print_space();
            }
            self.dump_queue();
            self.out.line_end();
            if let Some(code) = quit {
                return code;
            }
            if again {
                continue;
            }
            self.space.clear();
            if !self.read_line(true) {
                return 0;
            }
        }
    }

    fn finish_file(&mut self) {
        let Some(bytes) = self.edited.take() else { return };
        let name = self.edit_name.clone();
        let path = io::path(&name);
        if let Some(suffix) = self.options.in_place.as_ref().filter(|suffix| !suffix.is_empty()) {
            let (directory, base) = match memchr::memrchr(b'/', &name) {
                Some(at) => name.split_at(at + 1),
                None => (&b""[..], name.as_slice()),
            };
            let mut backup = Vec::new();
            if suffix.contains(&b'*') {
                for &byte in suffix {
                    if byte == b'*' { backup.extend_from_slice(base) } else { backup.push(byte) }
                }
            } else {
                backup.extend_from_slice(base);
                backup.extend_from_slice(suffix);
            }
            if !backup.contains(&b'/') {
                backup.splice(0..0, directory.iter().copied());
            }
            if let Err(error) = fs::copy(&path, io::path(&backup)) {
                self.fatal = Some(format!("cannot rename {}: {}", show(&name), io::strerror(&error)));
                return;
            }
        }
        if let Err(error) = fs::write(&path, bytes) {
            self.fatal = Some(format!("couldn't open file {}: {}", show(&name), io::strerror(&error)));
        }
        self.missing_newline = false;
    }

    fn put(&mut self, bytes: &[u8]) {
        match &mut self.edited {
            Some(edited) => edited.extend_from_slice(bytes),
            None => self.out.put(bytes),
        }
    }

    fn add_missing_newline(&mut self) {
        if self.missing_newline {
            self.put(&[self.delimiter]);
            self.missing_newline = false;
        }
    }

    fn print_line(&mut self, line: &[u8], ended: bool) {
        self.add_missing_newline();
        self.put(line);
        if ended {
            self.put(&[self.delimiter]);
        } else {
            self.missing_newline = true;
        }
    }

    fn print_space(&mut self) {
        let space = std::mem::take(&mut self.space);
        self.print_line(&space, self.ended);
        self.space = space;
    }

    fn dump_queue(&mut self) {
        for queued in std::mem::take(&mut self.queue) {
            match queued {
                Queued::Text(text) => {
                    self.add_missing_newline();
                    self.put(text);
                }
                Queued::File(name) => {
                    self.add_missing_newline();
                    if let Ok(bytes) = io::read_all(if name == b"/dev/stdin" { b"-" } else { name }) {
                        self.put(&bytes);
                    }
                }
                Queued::Line(line, ended) => self.print_line(&line, ended),
            }
        }
    }

    fn write_to(&mut self, target: usize, line: &[u8], ended: bool) {
        let delimiter = self.delimiter;
        match &mut self.targets[target] {
            Target::Stdout => {
                self.put(line);
                if ended {
                    self.put(&[delimiter]);
                }
            }
            Target::Stderr => {
                let mut text = line.to_vec();
                text.push(delimiter);
                let _ = sys::write_all(2, &text);
            }
            Target::File(file) => {
                let _ = file.write_all(line);
                if ended {
                    let _ = file.write_all(&[delimiter]);
                }
                let _ = file.flush();
            }
        }
    }

    fn regex(&mut self, pattern: &Pattern) -> Option<Rc<Regex>> {
        match pattern {
            Some(regex) => {
                self.last_regex = Some(Rc::clone(regex));
                Some(Rc::clone(regex))
            }
            None => {
                if self.last_regex.is_none() {
                    self.fatal = Some("no previous regular expression".to_string());
                }
                self.last_regex.clone()
            }
        }
    }

    fn address(&mut self, address: &Address) -> bool {
        match address {
            Address::Line(line) => self.stream.line == *line,
            Address::Step(first, step) => self.stream.line >= *first && (self.stream.line - first) % step == 0,
            Address::Last => self.stream.is_last(),
            Address::Match(pattern) => match pattern {
                Some(regex) => {
                    let matched = regex.is_match(&self.space);
                    self.last_regex = Some(Rc::clone(regex));
                    matched
                }
                None => self.regex(pattern).is_some_and(|regex| regex.is_match(&self.space)),
            },
            Address::Plus(_) | Address::Multiple(_) => false,
        }
    }

    fn selects(&mut self, index: usize, command: &Command) -> bool {
        let Some(first) = &command.first else { return true };
        let Some(second) = &command.second else { return self.address(first) };
        let line = self.stream.line;
        match self.ranges[index] {
            Range::Off => {
                if !self.address(first) {
                    return false;
                }
                self.ranges[index] = match second {
                    Address::Line(last) if *last <= line => Range::Off,
                    Address::Line(last) => Range::Until(*last),
                    Address::Plus(0) => Range::Off,
                    Address::Plus(count) => Range::Until(line + count),
                    Address::Multiple(step) if *step == 0 || line % step == 0 => Range::Off,
                    Address::Multiple(step) => Range::Until(line.div_ceil(*step) * step),
                    _ => Range::On,
                };
                true
            }
            Range::Until(last) => {
                if line >= last {
                    self.ranges[index] = Range::Off;
                }
                line <= last
            }
            Range::On => {
                if self.address(second) {
                    self.ranges[index] = Range::Off;
                }
                true
            }
        }
    }

    fn cycle(&mut self) -> Flow {
        let program = self.program;
        self.replaced = false;
        let mut at = 0;
        while let Some(command) = program.commands.get(at) {
            if self.selects(at, command) == command.negated {
                at = match command.kind {
                    Kind::Block(end) => end + 1,
                    _ => at + 1,
                };
                continue;
            }
            match &command.kind {
                Kind::Branch(to) => at = *to,
                Kind::BranchIf(to) => {
                    at = if std::mem::take(&mut self.replaced) { *to } else { at + 1 };
                }
                Kind::BranchUnless(to) => {
                    at = if std::mem::take(&mut self.replaced) { at + 1 } else { *to };
                }
                kind => {
                    match self.execute(kind, at, command) {
                        Flow::Continue => {}
                        other => return other,
                    }
                    at += 1;
                }
            }
            if self.fatal.is_some() {
                return Flow::Quit(1, false);
            }
        }
        Flow::Continue
    }

    fn execute(&mut self, kind: &'p Kind, index: usize, command: &Command) -> Flow {
        match kind {
            Kind::Block(_) | Kind::BlockEnd | Kind::Label => {}
            Kind::Branch(_) | Kind::BranchIf(_) | Kind::BranchUnless(_) => {}
            Kind::Append(text) => self.queue.push(Queued::Text(text)),
            Kind::Insert(text) => {
                self.add_missing_newline();
                self.put(text);
            }
            Kind::Change(text) => {
                if command.second.is_none() || command.negated || self.ranges[index] == Range::Off {
                    self.add_missing_newline();
                    self.put(text);
                }
                return Flow::EndCycle(false);
            }
            Kind::Delete => return Flow::EndCycle(false),
            Kind::DeleteFirst => match memchr::memchr(self.delimiter, &self.space) {
                None => return Flow::EndCycle(false),
                Some(at) => {
                    self.space.drain(..=at);
                    return Flow::Again;
                }
            },
            Kind::Execute(given) => self.shell_command(given),
            Kind::FileName => {
                let name = self.stream.name.clone();
                self.print_line(&name, true);
            }
            Kind::Get => {
                self.space.clone_from(&self.hold);
                self.ended = self.hold_ended;
            }
            Kind::GetAppend => {
                self.ended = self.hold_ended;
                self.space.push(self.delimiter);
                self.space.extend_from_slice(&self.hold);
            }
            Kind::Hold => {
                self.hold.clone_from(&self.space);
                self.hold_ended = self.ended;
            }
            Kind::HoldAppend => {
                self.hold_ended = self.ended;
                self.hold.push(self.delimiter);
                self.hold.extend_from_slice(&self.space);
            }
            Kind::List(width) => {
                let text = list(&self.space, width.unwrap_or(self.options.line_length));
                self.add_missing_newline();
                self.put(&text);
            }
            Kind::Next => {
                if self.stream.is_over() {
                    return Flow::Quit(0, true);
                }
                if !self.options.quiet {
                    self.print_space();
                }
                self.dump_queue();
                self.space.clear();
                if !self.read_line(true) {
                    return Flow::Quit(0, false);
                }
            }
            Kind::NextAppend => {
                if self.stream.is_over() {
                    return Flow::Quit(0, true);
                }
                self.dump_queue();
                self.space.push(self.delimiter);
                if !self.read_line(true) {
                    self.space.pop();
                    return Flow::Quit(0, true);
                }
            }
            Kind::Print => self.print_space(),
            Kind::PrintFirst => match memchr::memchr(self.delimiter, &self.space) {
                Some(end) => {
                    let line = self.space[..end].to_vec();
                    self.print_line(&line, true);
                }
                None => self.print_space(),
            },
            Kind::Quit(code) => return Flow::Quit(*code, true),
            Kind::QuitSilently(code) => {
                self.queue.clear();
                return Flow::Quit(*code, false);
            }
            Kind::ReadFile(name) => self.queue.push(Queued::File(name)),
            Kind::ReadLine(reader) => {
                if let Some(lines) = &mut self.readers[*reader]
                    && let Ok(Some((line, ended))) = lines.next_line()
                {
                    let line = line.to_vec();
                    let _ = ended;
                    self.queue.push(Queued::Line(line, true));
                }
            }
            Kind::Substitute(sub) => self.substitute(sub),
            Kind::WriteFile(target) => {
                let line = self.space.clone();
                self.write_to(*target, &line, self.ended);
            }
            Kind::WriteFirst(target) => {
                let end = memchr::memchr(self.delimiter, &self.space);
                let line = self.space[..end.unwrap_or(self.space.len())].to_vec();
                self.write_to(*target, &line, end.is_some() || self.ended);
            }
            Kind::Exchange => {
                std::mem::swap(&mut self.space, &mut self.hold);
                std::mem::swap(&mut self.ended, &mut self.hold_ended);
            }
            Kind::Translate(map) => {
                let mut at = 0;
                let mut out = Vec::with_capacity(self.space.len());
                while at < self.space.len() {
                    let length = char_length(&self.space[at..]);
                    let char = &self.space[at..at + length];
                    out.extend_from_slice(map.get(char).map_or(char, Vec::as_slice));
                    at += length;
                }
                self.space = out;
            }
            Kind::Zap => self.space.clear(),
            Kind::LineNumber => {
                let line = format!("{}\n", self.stream.line);
                self.add_missing_newline();
                self.put(line.as_bytes());
            }
        }
        Flow::Continue
    }

    fn shell_output(&mut self, command: &[u8]) -> Vec<u8> {
        self.out.flush();
        let mut output = Vec::new();
        if let Ok((pid, mut reader)) = process::reading(command) {
            let _ = std::io::Read::read_to_end(&mut reader, &mut output);
            let _ = process::wait(pid);
        }
        output
    }

    fn shell_command(&mut self, given: &[u8]) {
        if given.is_empty() {
            let command = self.space.clone();
            self.space = self.shell_output(&command);
            self.ended = true;
            if self.space.last() == Some(&b'\n') {
                self.space.pop();
            }
        } else {
            let output = self.shell_output(given);
            self.add_missing_newline();
            self.put(&output);
        }
    }

    fn substitute(&mut self, sub: &Substitute) {
        let Some(regex) = self.regex(&sub.pattern) else { return };
        let space = std::mem::take(&mut self.space);
        let mut spans = std::mem::take(&mut self.spans);
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let (mut start, mut count, mut replaced) = (0, 0u64, false);
        let mut previous_end = usize::MAX;
        while start <= space.len() && regex.captures_at(&space, start, &mut spans) {
            let Some((from, to)) = spans[0] else { break };
            if from == to && from == previous_end {
                // An empty match right after a match is none.
                if to >= space.len() {
                    break;
                }
                let step = char_length(&space[to..]);
                out.extend_from_slice(&space[start..to + step]);
                start = to + step;
                previous_end = usize::MAX;
                continue;
            }
            out.extend_from_slice(&space[start..from]);
            count += 1;
            if count < sub.number {
                out.extend_from_slice(&space[from..to]);
            } else {
                sub.replacement.append(&space, &spans, &mut out);
                replaced = true;
            }
            start = to;
            previous_end = to;
            if replaced && !sub.global {
                break;
            }
            if from == to {
                if to >= space.len() {
                    start = to + 1;
                    break;
                }
                let step = char_length(&space[to..]);
                out.extend_from_slice(&space[to..to + step]);
                start = to + step;
                previous_end = usize::MAX;
            }
        }
        self.spans = spans;
        if !replaced {
            self.space = space;
            self.scratch = out;
            return;
        }
        out.extend_from_slice(&space[start.min(space.len())..]);
        self.space = out;
        self.scratch = space;
        self.replaced = true;
        if sub.evaluate {
            self.shell_command(b"");
        }
        if sub.print {
            self.print_space();
        }
        if let Some(target) = sub.write {
            let line = self.space.clone();
            self.write_to(target, &line, self.ended);
        }
    }
}

/// The unambiguous form of `l`.
fn list(text: &[u8], width: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut column = 0;
    let width = if width <= 1 { usize::MAX } else { width - 1 };
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        let length = char_length(&text[at..]);
        let shown: Vec<u8> = match byte {
            b'\\' => b"\\\\".to_vec(),
            7 => b"\\a".to_vec(),
            8 => b"\\b".to_vec(),
            12 => b"\\f".to_vec(),
            b'\n' => b"\\n".to_vec(),
            b'\r' => b"\\r".to_vec(),
            b'\t' => b"\\t".to_vec(),
            11 => b"\\v".to_vec(),
            0x20..0x7f => vec![byte],
            _ => format!("\\{byte:03o}").into_bytes(),
        };
        let _ = length;
        at += 1;
        if column + shown.len() > width {
            out.extend_from_slice(b"\\\n");
            column = 0;
        }
        column += shown.len();
        out.extend_from_slice(&shown);
    }
    out.extend_from_slice(b"$\n");
    out
}
