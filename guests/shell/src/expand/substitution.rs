//! Command and process substitution.

use std::path::Path;

use super::purity::{in_place, lone_input, spawnable};
use crate::ast::{CommandSubstitution, List};
use crate::bytes;
use crate::shell::{Done, Flow, Shell};
use crate::state::options::{SetOption, ShoptOption};

/// The highest descriptor that process substitution uses; it goes down from here, as bash does.
pub(crate) const HIGHEST: u32 = 63;
const LOWEST: u32 = 10;

impl Shell {
    /// Returns the output of a command without the newlines at its end.
    pub(crate) fn command_substitution(&mut self, substitution: &CommandSubstitution) -> Done<String> {
        let line = self.line;
        let output = self.substitute(&substitution.body)?;
        self.line = line;
        self.substitution_status = Some(self.status);
        Ok(self.trim_output(output))
    }

    fn trim_output(&mut self, mut output: Vec<u8>) -> String {
        if output.contains(&0) {
            self.complain("warning: command substitution: ignored null byte in input");
            output.retain(|&byte| byte != 0);
        }
        while output.last() == Some(&b'\n') {
            output.pop();
        }
        match String::from_utf8(output) {
            Ok(text) if !text.as_bytes().contains(&0xF4) => text,
            Ok(text) => bytes::decode(text.as_bytes()),
            Err(error) => bytes::decode(error.as_bytes()),
        }
    }

    fn substitute(&mut self, body: &List) -> Done<Vec<u8>> {
        if body.items.is_empty() {
            self.status = 0;
            return Ok(Vec::new());
        }
        if let Some(word) = lone_input(body) {
            return self.read_file(word);
        }
        if in_place(self, body) {
            self.output.capture();
            self.lenient += 1;
            self.trace_level += 1;
            let argument = std::mem::take(&mut self.last_argument);
            self.last_argument.clone_from(&argument);
            let result = self.run_list(body);
            // `exit` has ended only the substitution.
            self.leaves = false;
            self.last_argument = argument;
            self.lenient -= 1;
            self.trace_level -= 1;
            let output = self.output.release();
            self.status = match result {
                Ok(status) | Err(Flow::Discard(status) | Flow::Exit(status) | Flow::Return(status)) => status,
                Err(Flow::Break(_) | Flow::Continue(_)) => self.status,
            };
            return Ok(output);
        }
        let Ok([read, write]) = self.high_pipe() else {
            self.complain("cannot make pipe for command substitution: Too many open files");
            return Err(Flow::Discard(1));
        };
        let spawned = spawnable(self, body).map(|command| self.spawn_with(command, None, Some(write), &[read]));
        let pid = match spawned {
            Some(result) => result?,
            None => self.fork_reporting(|shell| {
                let _ = sys::close(read);
                let _ = sys::dup2(write, 1);
                let _ = sys::close(write);
                shell.output.look();
                shell.trace_level += 1;
                if !shell.on(SetOption::Posix) && !shell.shopt(ShoptOption::InheritErrExit) {
                    shell.options.set(SetOption::ErrExit, false);
                }
                shell.run_list_tail(body)
            }),
        };
        let _ = sys::close(write);
        let mut output = Vec::new();
        let result = sys::read_to_end(read, &mut output);
        let _ = sys::close(read);
        self.status = match pid {
            Ok(pid) => self.wait_for(pid),
            Err(status) => status,
        };
        if let Err(error) = result {
            self.complain(format_args!("command substitution: read error: {}", sys::message(&error)));
            self.status = 1;
        }
        Ok(output)
    }

    /// Returns `$(< file)`.
    fn read_file(&mut self, word: &crate::ast::Word) -> Done<Vec<u8>> {
        let mut names = Vec::new();
        self.expand_word(word, &mut names)?;
        let name = names.join(" ");
        let mut output = Vec::new();
        let flags = sys::OpenFlags { read: true, close_on_exec: true, ..sys::OpenFlags::default() };
        let opened = sys::open(Path::new(&crate::exec::os(&name)), flags, 0);
        let result = opened.and_then(|fd| {
            let result = sys::read_to_end(fd, &mut output);
            let _ = sys::close(fd);
            result
        });
        self.status = match result {
            Ok(()) => 0,
            Err(error) => {
                self.complain(format_args!("{name}: {}", sys::message(&error)));
                1
            }
        };
        Ok(output)
    }

    /// Starts a command joined to a pipe and returns the path of our end.
    pub(super) fn process_substitution(&mut self, writes: bool, body: &CommandSubstitution) -> Done<String> {
        let Ok([read, write]) = self.high_pipe() else {
            self.complain("cannot make pipe for process substitution: Too many open files");
            return Err(Flow::Discard(1));
        };
        let (ours, theirs) = if writes { (write, read) } else { (read, write) };
        let status = self.status;
        let pid = self.fork_reporting(|shell| {
            let _ = sys::close(ours);
            let _ = sys::dup2(theirs, u32::from(!writes));
            let _ = sys::close(theirs);
            for fd in std::mem::take(&mut shell.process_substitutions) {
                let _ = sys::close(fd);
            }
            shell.output.look();
            shell.run_list_tail(&body.body)
        });
        let _ = sys::close(theirs);
        self.status = status;
        if let Ok(pid) = pid {
            self.last_background = Some(pid);
            self.jobs.past.retain(|(old, _)| *old != pid);
            if writes {
                self.readers.push(pid);
            }
        }
        let Some(target) = (LOWEST..=HIGHEST).rev().find(|&fd| !sys::is_open(fd)) else {
            self.complain("cannot make pipe for process substitution: Too many open files");
            return Err(Flow::Discard(1));
        };
        let _ = sys::dup2(ours, target);
        let _ = sys::close(ours);
        self.process_substitutions.push(target);
        Ok(format!("/dev/fd/{target}"))
    }

    /// Closes the descriptors of process substitutions made since there were `kept` of them.
    pub(crate) fn close_substitutions(&mut self, kept: usize) {
        while self.process_substitutions.len() > kept {
            if let Some(fd) = self.process_substitutions.pop() {
                let _ = sys::close(fd);
            }
        }
    }
}
