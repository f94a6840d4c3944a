//! The lines of all input files as one stream, which knows when a line is the last.

use std::collections::VecDeque;

use crate::io::{self, Input, show};
use crate::lines::Lines;

pub(super) struct Stream {
    files: VecDeque<Vec<u8>>,
    current: Option<(Vec<u8>, Lines<Input>)>,
    pub name: Vec<u8>,
    pub line: u64,
    /// The exit status of the failure.
    pub failed: i32,
    separate: bool,
    in_place: bool,
    delimiter: u8,
}

/// The result of reading a line.
pub(super) enum Next {
    Line(bool),
    /// The first line of another file, where files are separate.
    NewFile,
    End,
}

impl Stream {
    pub fn new(files: Vec<Vec<u8>>, separate: bool, in_place: bool, delimiter: u8) -> Self {
        let files = if files.is_empty() { VecDeque::from([b"-".to_vec()]) } else { files.into() };
        Self { files, current: None, name: b"-".to_vec(), line: 0, failed: 0, separate, in_place, delimiter }
    }

    fn open_next(&mut self) -> bool {
        while let Some(name) = self.files.pop_front() {
            if self.in_place {
                match sys::stat(&io::path(&name), true) {
                    Ok(stat) if stat.kind() != sys::stat::S_IFREG => {
                        warn!("sed: couldn't edit {}: not a regular file", show(&name));
                        self.failed = 4;
                        continue;
                    }
                    _ => {}
                }
            }
            let opened = if self.in_place { Input::open_file(&name) } else { Input::open(&name) };
            match opened {
                Ok(input) => {
                    self.current = Some((name, Lines::new(input, self.delimiter)));
                    return true;
                }
                Err(error) => {
                    let text = sys::message(&error);
                    let directory = text == "Is a directory";
                    let what = if directory { "read error on" } else { "can't read" };
                    warn!("sed: {what} {}: {text}", show(&name));
                    self.failed = if directory { 4 } else { 2 };
                }
            }
        }
        false
    }

    fn current_ended(&mut self) -> bool {
        let Some((name, lines)) = &mut self.current else { return true };
        match lines.at_end() {
            Ok(end) => end,
            Err(error) => {
                warn!("sed: read error on {}: {}", show(name), sys::message(&error));
                self.failed = 4;
                true
            }
        }
    }

    /// Appends the next line to `space`.
    pub fn read(&mut self, space: &mut Vec<u8>, may_change_file: bool) -> Next {
        loop {
            if self.current.is_none() {
                if self.separate && !may_change_file {
                    return Next::NewFile;
                }
                if !self.open_next() {
                    return Next::End;
                }
                if self.separate {
                    self.line = 0;
                    if let Some((name, _)) = &self.current {
                        self.name.clone_from(name);
                    }
                    return Next::NewFile;
                }
            }
            if self.current_ended() {
                if self.separate {
                    if may_change_file {
                        self.current = None;
                        continue;
                    }
                    return Next::End;
                }
                self.current = None;
                continue;
            }
            let Some((name, lines)) = &mut self.current else { return Next::End };
            if self.name != *name {
                self.name.clone_from(name);
            }
            match lines.next_split() {
                Ok(Some((line, ended))) => {
                    space.extend_from_slice(line);
                    self.line += 1;
                    return Next::Line(ended);
                }
                _ => self.current = None,
            }
        }
    }

    /// Returns whether the line read last is the last one.
    pub fn is_last(&mut self) -> bool {
        loop {
            if self.current.is_some() && !self.current_ended() {
                return false;
            }
            if self.separate {
                return true;
            }
            self.current = None;
            if !self.open_next() {
                return true;
            }
        }
    }

    /// Returns whether nothing more can be read at all.
    pub fn is_over(&mut self) -> bool {
        if self.separate {
            return self.is_last() && self.files.is_empty();
        }
        self.is_last()
    }
}
