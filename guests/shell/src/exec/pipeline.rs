//! Pipelines of several commands, and commands in the background.

use crate::ast::{AndOr, Command};
use crate::expand::is_pure_command;
use crate::shell::{Done, Shell};
use crate::state::options::{SetOption, ShoptOption};
use crate::state::signals::Event;

impl Shell {
    /// Runs commands joined by pipes, all at the same time.
    pub(super) fn run_pipes(&mut self, commands: &[Command]) -> Done {
        let mut started: Vec<Result<u32, i32>> = Vec::with_capacity(commands.len());
        let mut input: Option<u32> = None;
        let mut in_shell = None;
        for (at, command) in commands.iter().enumerate() {
            let last = at + 1 == commands.len();
            if let Command::Simple(simple) = command {
                self.line = simple.line;
                if !self.traps.commands.is_empty() {
                    self.before_command(simple)?;
                }
            }
            if last && self.shopt(ShoptOption::LastPipe) && !self.on(SetOption::Monitor) {
                in_shell = Some(self.run_last_in_shell(command, input.take())?);
                break;
            }
            let pipe = if last {
                None
            } else {
                match self.high_pipe() {
                    Ok(pipe) => Some(pipe),
                    Err(error) => {
                        self.complain(format_args!("pipe error: {}", sys::message(&error)));
                        started.push(Err(1));
                        break;
                    }
                }
            };
            let output = pipe.map(|ends| ends[1]);
            let unused = pipe.map(|ends| ends[0]);
            started.push(self.start_member(command, input, output, unused)?);
            for fd in [input, output].into_iter().flatten() {
                let _ = sys::close(fd);
            }
            input = unused;
        }
        if let Some(fd) = input {
            let _ = sys::close(fd);
        }
        let mut statuses: Vec<i32> = Vec::with_capacity(commands.len());
        for member in started {
            statuses.push(match member {
                Ok(pid) => self.wait_for(pid),
                Err(status) => status,
            });
        }
        statuses.extend(in_shell);
        let mut status = statuses.last().copied().unwrap_or(0);
        if self.on(SetOption::PipeFail) {
            status = statuses.iter().rev().copied().find(|status| *status != 0).unwrap_or(0);
        }
        self.pipe_status = statuses;
        self.status = status;
        Ok(status)
    }

    /// Starts one command of a pipeline and returns its pid, or the status of one that could not be started.
    fn start_member(
        &mut self,
        command: &Command,
        input: Option<u32>,
        output: Option<u32>,
        unused: Option<u32>,
    ) -> Done<Result<u32, i32>> {
        if let Command::Simple(simple) = command
            && is_pure_command(self, simple)
        {
            let unwanted: Vec<u32> = unused.into_iter().collect();
            return self.spawn_with(simple, input, output, &unwanted);
        }
        let loops = self.loops;
        Ok(self.fork_reporting(|shell| {
            // `break` is still inside the loop, though it can only end this process.
            shell.loops = loops;
            for (fd, to) in [(input, 0), (output, 1)] {
                if let Some(fd) = fd {
                    let _ = sys::dup2(fd, to);
                    let _ = sys::close(fd);
                }
            }
            if let Some(fd) = unused {
                let _ = sys::close(fd);
            }
            shell.output.look();
            shell.stdin_fed += u32::from(input.is_some());
            shell.fresh_child = true;
            shell.run_command(command, true)
        }))
    }

    fn run_last_in_shell(&mut self, command: &Command, input: Option<u32>) -> Done {
        let Some(fd) = input else { return self.run_command(command, false) };
        let saved = self.replace_fd(fd, 0);
        let _ = sys::close(fd);
        let result = self.run_command(command, false);
        self.restore_redirects(saved);
        result
    }

    /// Runs a list in the background.
    pub(super) fn run_background(&mut self, and_or: &AndOr) -> Done {
        self.jobs.poll();
        let text = crate::print::and_or(and_or);
        let simple = match (and_or.first.commands.as_slice(), and_or.rest.is_empty()) {
            ([Command::Simple(simple)], true) => Some(simple),
            _ => None,
        };
        if let Some(simple) = simple
            && !self.traps.commands.is_empty()
        {
            self.line = simple.line;
            self.before_command(simple)?;
        }
        let pid = self.fork_reporting(|shell| {
            if !shell.on(SetOption::Monitor) {
                let _ = sys::signal_action(sys::Signal::INT, sys::Disposition::Ignore);
                let _ = sys::signal_action(sys::Signal::QUIT, sys::Disposition::Ignore);
                let flags = sys::OpenFlags { read: true, ..sys::OpenFlags::default() };
                if shell.stdin_fed == 0
                    && let Ok(fd) = sys::open(std::path::Path::new("/dev/null"), flags, 0)
                {
                    let _ = sys::dup2(fd, 0);
                    if fd != 0 {
                        let _ = sys::close(fd);
                    }
                }
            }
            shell.lenient = 0;
            shell.fresh_child = true;
            if simple.is_some() {
                shell.traps.commands.remove(&Event::Err);
            }
            shell.run_and_or(and_or, true)
        });
        match pid {
            Ok(pid) => {
                self.last_background = Some(pid);
                let number = self.jobs.add(&[pid], text);
                if self.interactive {
                    self.write_error(&format!("[{number}] {pid}\n"));
                }
                Ok(0)
            }
            Err(status) => Ok(status),
        }
    }
}
