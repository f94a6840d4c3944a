//! Files and commands that a program reads and writes besides its main input and output.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;

use super::ast::Redirect;
use super::record::Reader;
use crate::command;
use crate::io::{self, BLOCK, Input, Out};

enum Sink {
    Stdout,
    Stderr,
    File(std::io::BufWriter<File>),
    /// Without a process if it is the source of the same name that is waited for.
    Pipe {
        pid: Option<u32>,
        fd: u32,
        buffer: Vec<u8>,
    },
}

struct Source {
    reader: Reader,
    pid: Option<u32>,
}

pub(super) struct Streams {
    pub out: Out,
    sinks: HashMap<Vec<u8>, Sink>,
    sources: HashMap<Vec<u8>, Source>,
}

impl Streams {
    pub fn new() -> Self {
        Self { out: Out::new("awk", 2), sinks: HashMap::new(), sources: HashMap::new() }
    }

    /// Writes to the file or command called `name`, opening it first if need be.
    pub fn write(&mut self, redirect: Redirect, name: &[u8], bytes: &[u8]) -> std::io::Result<()> {
        if redirect == Redirect::Both {
            self.converse(name)?;
        }
        if !self.sinks.contains_key(name) {
            let sink = match (redirect, name) {
                (Redirect::Both, _) => return Err(std::io::Error::from_raw_os_error(sys::errno::EPIPE)),
                (Redirect::Pipe, _) => {
                    self.flush();
                    let (pid, fd) = command::writing(name)?;
                    Sink::Pipe { pid: Some(pid), fd, buffer: Vec::new() }
                }
                (_, b"/dev/stdout" | b"-") => Sink::Stdout,
                (_, b"/dev/stderr") => Sink::Stderr,
                (Redirect::Append, _) => file(OpenOptions::new().append(true).create(true), name)?,
                (Redirect::Truncate, _) => file(OpenOptions::new().write(true).create(true).truncate(true), name)?,
            };
            self.sinks.insert(name.to_vec(), sink);
        }
        match self.sinks.get_mut(name) {
            Some(Sink::Stdout) | None => {
                self.out.put(bytes);
                Ok(())
            }
            Some(Sink::Stderr) => sys::write_all(2, bytes),
            Some(Sink::File(file)) => file.write_all(bytes),
            Some(Sink::Pipe { fd, buffer, .. }) => {
                buffer.extend_from_slice(bytes);
                if buffer.len() >= BLOCK {
                    let result = sys::write_all(*fd, buffer);
                    buffer.clear();
                    return result;
                }
                Ok(())
            }
        }
    }

    /// Starts a command that is written to and read from, unless it runs; what was written has reached it afterwards.
    pub fn converse(&mut self, name: &[u8]) -> std::io::Result<()> {
        self.flush();
        if self.sources.contains_key(name) {
            return Ok(());
        }
        let (pid, fd, reader) = command::conversing(name)?;
        self.sinks.insert(name.to_vec(), Sink::Pipe { pid: None, fd, buffer: Vec::new() });
        self.sources.insert(name.to_vec(), Source { reader: Reader::new(Box::new(reader)), pid: Some(pid) });
        Ok(())
    }

    /// Closes the end of a command to which is written.
    pub fn close_input(&mut self, name: &[u8]) -> f64 {
        self.sinks.remove(name).map_or(-1.0, close_sink)
    }

    /// Returns the reader of a file or of a command's output.
    pub fn reader(&mut self, command: bool, name: &[u8]) -> std::io::Result<&mut Reader> {
        if !self.sources.contains_key(name) {
            let source = if command {
                self.flush();
                let (pid, reader) = command::reading(name)?;
                Source { reader: Reader::new(Box::new(reader)), pid: Some(pid) }
            } else {
                Source { reader: Reader::new(Box::new(Input::open(name)?)), pid: None }
            };
            self.sources.insert(name.to_vec(), source);
        }
        match self.sources.get_mut(name) {
            Some(source) => Ok(&mut source.reader),
            None => Err(std::io::Error::from_raw_os_error(sys::errno::ENOENT)),
        }
    }

    /// Flushes everything.
    pub fn flush(&mut self) {
        self.out.flush();
        for sink in self.sinks.values_mut() {
            flush_sink(sink);
        }
    }

    /// Flushes one; whether there is one.
    pub fn flush_one(&mut self, name: &[u8]) -> bool {
        if name == b"/dev/stdout" {
            self.out.flush();
            return true;
        }
        match self.sinks.get_mut(name) {
            Some(sink) => {
                flush_sink(sink);
                true
            }
            None => false,
        }
    }

    /// Closes what is called `name`: its status, or -1 when nothing is.
    pub fn close(&mut self, name: &[u8]) -> f64 {
        let mut status = -1.0;
        if let Some(sink) = self.sinks.remove(name) {
            if matches!(sink, Sink::Pipe { .. }) {
                self.out.flush();
            }
            status = close_sink(sink);
        }
        if let Some(source) = self.sources.remove(name) {
            drop(source.reader);
            status = source.pid.map_or(0.0, wait);
        }
        status
    }

    /// Closes everything and waits for commands.
    pub fn finish(&mut self) {
        self.out.flush();
        for (_, sink) in std::mem::take(&mut self.sinks) {
            close_sink(sink);
        }
        for (_, source) in std::mem::take(&mut self.sources) {
            drop(source.reader);
            if let Some(pid) = source.pid {
                wait(pid);
            }
        }
    }
}

fn file(options: &mut OpenOptions, name: &[u8]) -> std::io::Result<Sink> {
    Ok(Sink::File(std::io::BufWriter::with_capacity(BLOCK, options.open(io::path(name))?)))
}

fn flush_sink(sink: &mut Sink) {
    match sink {
        Sink::File(file) => {
            let _ = file.flush();
        }
        Sink::Pipe { fd, buffer, .. } => {
            let _ = sys::write_all(*fd, buffer);
            buffer.clear();
        }
        Sink::Stdout | Sink::Stderr => {}
    }
}

fn close_sink(mut sink: Sink) -> f64 {
    flush_sink(&mut sink);
    match sink {
        Sink::Pipe { pid, fd, .. } => {
            let _ = sys::close(fd);
            pid.map_or(0.0, wait)
        }
        _ => 0.0,
    }
}

fn wait(pid: u32) -> f64 {
    command::wait(pid).map_or(-1.0, |status| match status {
        sys::WaitStatus::Exited(code) => f64::from(code),
        sys::WaitStatus::Signaled(signal) => 256.0 + f64::from(signal.number()),
    })
}

/// Runs a shell command and waits: its status.
pub(super) fn system(command: &[u8]) -> f64 {
    match command::spawn(&command::shell(command), Vec::new(), None) {
        Ok(pid) => wait(pid),
        Err(_) => 127.0,
    }
}
