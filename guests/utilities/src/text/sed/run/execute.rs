//! The commands of a script, one after the other.

use super::{Flow, Machine, Queued, Range};
use crate::command;
use crate::text::sed::replace::char_length;
use crate::text::sed::script::{Command, Kind, Substitute};

impl<'p> Machine<'p> {
    pub(super) fn cycle(&mut self) -> Flow {
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
                if command.second.is_none() || command.negated || matches!(self.ranges[index], Range::Off | Range::Past) {
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
                let mut text = list(&self.space, width.unwrap_or(self.options.line_length));
                if let Some(end) = text.last_mut() {
                    *end = self.delimiter;
                }
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
                    && let Ok(Some((line, ended))) = lines.next_split()
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
        if let Ok((pid, mut reader)) = command::reading(command) {
            let result = std::io::Read::read_to_end(&mut reader, &mut output);
            let _ = command::wait(pid);
            if let Err(error) = result {
                warn!("sed: read error on subprocess: {}", sys::message(&error));
                crate::io::exit(4);
            }
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

/// Returns the unambiguous form of `l`.
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
