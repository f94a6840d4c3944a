//! Running a script: the cycle, the two spaces, and where output goes.

mod execute;

use std::fs;
use std::io::Write as _;
use std::rc::Rc;

use posix_regex::{Regex, Span};

use super::Options;
use super::input::{Next, Stream};
use super::script::{Address, Command, Pattern, Program};
use crate::io::{self, Input, Out, show};
use crate::lines::Lines;

enum Target {
    Stdout,
    Stderr,
    /// And whether its last line still wants its end.
    File(std::io::BufWriter<fs::File>, bool),
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
    /// Over: a range that begins at a line number does so once.
    Past,
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
                Ok(file) => Target::File(std::io::BufWriter::new(file), false),
                Err(error) => {
                    warn!("sed: couldn't open file {}: {}", show(name), sys::message(&error));
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
        if let Target::File(file, _) = target {
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
                self.fatal = Some(format!("cannot rename {}: {}", show(&name), sys::message(&error)));
                return;
            }
        }
        if let Err(error) = fs::write(&path, bytes) {
            self.fatal = Some(format!("couldn't open file {}: {}", show(&name), sys::message(&error)));
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
            Target::File(file, unfinished) => {
                if std::mem::replace(unfinished, !ended) {
                    let _ = file.write_all(&[delimiter]);
                }
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
            Address::Step(first, step) => self.stream.line >= *first && (self.stream.line - first).is_multiple_of(*step),
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
        let over = if matches!(first, Address::Line(_)) { Range::Past } else { Range::Off };
        match self.ranges[index] {
            Range::Past => false,
            Range::Off => {
                // The line that begins a range may have passed without this command being asked.
                let begins = match first {
                    Address::Line(start) => line >= *start,
                    first => self.address(first),
                };
                if !begins {
                    return false;
                }
                if let (Address::Line(start), Address::Line(last)) = (first, second)
                    && line > *last
                    && line > *start
                {
                    self.ranges[index] = Range::Past;
                    return false;
                }
                self.ranges[index] = match second {
                    Address::Line(last) if *last <= line => over,
                    Address::Line(last) => Range::Until(*last),
                    Address::Plus(0) => over,
                    Address::Plus(count) => Range::Until(line + count),
                    Address::Multiple(step) if *step == 0 || line.is_multiple_of(*step) => over,
                    Address::Multiple(step) => Range::Until(line.div_ceil(*step) * step),
                    _ => Range::On,
                };
                true
            }
            Range::Until(last) => {
                if line >= last {
                    self.ranges[index] = over;
                }
                line <= last
            }
            Range::On => {
                if self.address(second) {
                    self.ranges[index] = over;
                }
                true
            }
        }
    }
}
