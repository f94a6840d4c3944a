//! Running the tree: lists, `&&` and `||`, and single commands.

mod assignment;
mod compound;
mod condition;
mod coprocess;
mod function;
mod pipeline;
pub(crate) mod process;
mod program;
mod redirect;
mod simple;
mod source;
mod timing;
mod trace;
mod trap;

use std::ffi::OsString;

pub use process::RealFiles;
pub(crate) use process::final_status;
pub use simple::Item;

use crate::ast::{AndOr, AndOrOperator, Command, Compound, List, ListItem, Pipeline, Redirect};
use crate::bytes;
use crate::shell::{Done, Flow, Shell};
use crate::state::options::SetOption;
use crate::state::signals::Event;

/// Returns a shell string as the system's.
#[must_use]
pub fn os(text: &str) -> OsString {
    let bytes = bytes::encode(text).into_owned();
    #[cfg(unix)]
    use std::os::unix::ffi::OsStringExt;
    #[cfg(target_os = "wasi")]
    use std::os::wasi::ffi::OsStringExt;
    OsString::from_vec(bytes)
}

/// Returns the system's string as a shell string.
#[must_use]
pub fn from_os(text: &std::ffi::OsStr) -> String {
    bytes::decode(text.as_encoded_bytes())
}

impl Shell {
    /// Runs a list; the status is that of its last command.
    pub fn run_list(&mut self, list: &List) -> Done {
        let mut status = 0;
        for item in &list.items {
            status = self.run_item(item, false)?;
        }
        Ok(status)
    }

    /// Runs a list as the last thing this process does: its last program may take the process over.
    pub(crate) fn run_list_tail(&mut self, list: &List) -> Done {
        let mut status = 0;
        for (at, item) in list.items.iter().enumerate() {
            status = self.run_item(item, at + 1 == list.items.len())?;
        }
        Ok(status)
    }

    fn run_item(&mut self, item: &ListItem, last: bool) -> Done {
        if self.on(SetOption::NoExec) && !self.interactive {
            return Ok(0);
        }
        if item.background {
            self.status = self.run_background(&item.and_or)?;
            return Ok(self.status);
        }
        self.run_and_or(&item.and_or, last)
    }

    pub(crate) fn run_and_or(&mut self, and_or: &AndOr, last: bool) -> Done {
        if and_or.rest.is_empty() {
            return self.run_pipeline(&and_or.first, last);
        }
        let final_index = and_or.rest.len();
        self.lenient += 1;
        let result = self.run_pipeline(&and_or.first, false);
        self.lenient -= 1;
        let mut status = result?;
        for (at, (operator, pipeline)) in and_or.rest.iter().enumerate() {
            if (status == 0) != (*operator == AndOrOperator::And) {
                continue;
            }
            let is_final = at + 1 == final_index;
            self.lenient += u32::from(!is_final);
            let result = self.run_pipeline(pipeline, last && is_final);
            self.lenient -= u32::from(!is_final);
            status = result?;
        }
        Ok(status)
    }

    fn run_pipeline(&mut self, pipeline: &Pipeline, last: bool) -> Done {
        if let Some(style) = pipeline.timed {
            return self.run_timed(pipeline, style);
        }
        self.run_untimed(pipeline, last)
    }

    pub(crate) fn run_untimed(&mut self, pipeline: &Pipeline, last: bool) -> Done {
        if pipeline.negated {
            // Only where `set -e` is on already: a function called by `! f` that sets it ends the shell.
            let spared = u32::from(self.on(SetOption::ErrExit));
            self.lenient += spared;
            let result = self.run_commands(&pipeline.commands, false);
            self.lenient -= spared;
            let status = i32::from(result? == 0);
            self.status = status;
            return Ok(status);
        }
        let status = self.run_commands(&pipeline.commands, last)?;
        if status != 0 && self.lenient == 0 && is_checked(&pipeline.commands) {
            self.after_failure(status)?;
        }
        Ok(status)
    }

    fn run_commands(&mut self, commands: &[Command], last: bool) -> Done {
        match commands {
            [] => Ok(0),
            [command] => {
                let status = self.run_command(command, last)?;
                self.status = status;
                if is_checked(commands) {
                    self.pipe_status.clear();
                    self.pipe_status.push(status);
                }
                Ok(status)
            }
            several => self.run_pipes(several),
        }
    }

    /// Runs one command. With `last`, the process ends after it.
    pub(crate) fn run_command(&mut self, command: &Command, last: bool) -> Done {
        match command {
            Command::Simple(simple) => self.run_simple(simple, last),
            Command::Compound { body, redirects, line } => {
                if last
                    && self.subshell > 0
                    && self.traps.commands.is_empty()
                    && let Compound::Subshell(list) = body
                {
                    return self.run_nested(list, redirects);
                }
                if redirects.is_empty() {
                    return self.run_compound(body, *line);
                }
                let kept = self.process_substitutions.len();
                let feeds = redirects.iter().any(redirect_feeds_stdin);
                let saved = match self.apply_redirects(redirects)? {
                    Ok(saved) => saved,
                    Err(status) => {
                        self.status = status;
                        self.close_substitutions(kept);
                        if self.lenient == 0 && !is_checked(std::slice::from_ref(command)) {
                            self.after_failure(status)?;
                        }
                        return Ok(status);
                    }
                };
                self.output.look();
                self.stdin_fed += u32::from(feeds);
                let result = self.run_compound(body, *line);
                self.stdin_fed -= u32::from(feeds);
                self.restore_redirects(saved);
                self.close_substitutions(kept);
                result
            }
            Command::Function(function) => Ok(self.define_function(function)),
            Command::Coproc { name, body, line } => self.run_coprocess(name, body, *line),
        }
    }

    /// Runs a subshell without a process of its own if it is all that this forked process has left to do.
    fn run_nested(&mut self, list: &List, redirects: &[Redirect]) -> Done {
        match self.apply_redirects(redirects)? {
            Ok(saved) => self.keep_redirects(saved),
            Err(status) => return Ok(status),
        }
        if !self.fresh_child {
            self.subshell += 1;
        }
        self.fresh_child = false;
        self.run_list_tail(list)
    }

    /// Runs the ERR trap and applies `set -e` after a command that failed where that matters.
    pub(crate) fn after_failure(&mut self, status: i32) -> Done<()> {
        self.status = status;
        if let Some(command) = self.traps.armed(Event::Err)
            && (self.call_depth == 0 && self.frames.iter().all(|frame| !frame.function) || self.on(SetOption::ErrTrace))
        {
            self.run_trap(Event::Err, &command)?;
        }
        if self.on(SetOption::ErrExit) {
            self.status = status;
            return Err(self.leave(status));
        }
        Ok(())
    }

    /// Ends this process of the shell. A host that keeps the session knows whether that is the shell itself.
    pub(crate) fn leave(&mut self, status: i32) -> Flow {
        self.leaves |= self.subshell == 0 && self.exiting.is_none();
        Flow::Exit(status)
    }
}

fn redirect_feeds_stdin(redirect: &Redirect) -> bool {
    use crate::ast::{RedirectFd, RedirectKind};
    matches!(redirect.fd, RedirectFd::Default | RedirectFd::Number(0))
        && matches!(
            redirect.kind,
            RedirectKind::Input(_)
                | RedirectKind::ReadWrite(_)
                | RedirectKind::DuplicateInput(_)
                | RedirectKind::HereDocument { .. }
                | RedirectKind::HereString(_)
        )
}

/// Returns whether a failure of these commands counts for `set -e`; of groups and loops, only their own commands' failures do.
fn is_checked(commands: &[Command]) -> bool {
    match commands {
        [Command::Compound { body, .. }] => {
            matches!(body, Compound::Subshell(_) | Compound::Arithmetic(_) | Compound::Test(_))
        }
        _ => true,
    }
}
