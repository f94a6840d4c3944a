//! Traps: when they run, and what a subshell keeps of them.

use std::rc::Rc;

use crate::shell::{Done, Flow, Shell};
use crate::state::options::SetOption;
use crate::state::signals::Event;

/// The DEBUG and RETURN traps that a function does not see.
pub(super) struct Hidden(Vec<(Event, Rc<str>)>);

impl Shell {
    /// Runs a trap's command; `$?` is afterwards what it was before.
    pub(crate) fn run_trap(&mut self, event: Event, command: &Rc<str>) -> Done<()> {
        let status = self.status;
        let line = self.line;
        let pipe_status = self.pipe_status.clone();
        let argument = self.last_argument.clone();
        self.traps.running.push(event);
        let lenient = std::mem::take(&mut self.lenient);
        // The lines of a signal's command are its own.
        let first = if matches!(event, Event::Signal(_)) { 1 } else { line };
        let result = self.run_text(command, first, Some(if event == Event::EXIT { "exit trap" } else { "trap" }));
        self.lenient = lenient;
        self.traps.running.retain(|running| *running != event);
        self.line = line;
        self.pipe_status = pipe_status;
        self.last_argument = argument;
        match result {
            Ok(_) => {
                self.status = status;
                Ok(())
            }
            // A bare `exit` in a trap ends with the status from before the trap; the builtin sees to that.
            Err(Flow::Discard(_)) => {
                self.status = status;
                Ok(())
            }
            Err(flow) => Err(flow),
        }
    }

    /// Runs the traps of signals that have arrived.
    pub(crate) fn run_pending_traps(&mut self) -> Done<()> {
        let arrived = sys::signals_take();
        if arrived == 0 {
            return Ok(());
        }
        for number in 1..=u32::from(sys::Signal::MAX) {
            let Some(signal) = sys::Signal::from_raw(number) else { continue };
            if arrived & signal.bit() == 0 {
                continue;
            }
            if let Some(command) = self.traps.armed(Event::Signal(number)) {
                self.run_trap(Event::Signal(number), &command)?;
            }
        }
        Ok(())
    }

    /// Runs the DEBUG trap before a command.
    pub(super) fn debug_trap(&mut self) -> Done<()> {
        match self.traps.armed(Event::Debug) {
            Some(command) => self.run_trap(Event::Debug, &command),
            None => Ok(()),
        }
    }

    /// Resets caught signals to their defaults in a subshell; ignored ones stay ignored.
    pub(super) fn reset_traps(&mut self) {
        let traps = std::mem::take(&mut self.traps.commands);
        self.traps.shown = traps.clone();
        let keep_err = self.on(SetOption::ErrTrace);
        let keep_debug = self.on(SetOption::FuncTrace);
        for (event, command) in traps {
            match event {
                Event::Signal(0) => {}
                Event::Signal(number) if command.is_empty() => {
                    self.traps.commands.insert(Event::Signal(number), command);
                }
                Event::Signal(number) => {
                    if let Some(signal) = sys::Signal::from_raw(number) {
                        let _ = sys::signal_action(signal, sys::Disposition::Default);
                    }
                }
                Event::Err if keep_err => {
                    self.traps.commands.insert(event, command);
                }
                Event::Debug | Event::Return if keep_debug => {
                    self.traps.commands.insert(event, command);
                }
                _ => {}
            }
        }
        self.traps.running.clear();
    }

    /// Takes away the traps that functions do not inherit.
    pub(super) fn hide_traps(&mut self) -> Option<Hidden> {
        if self.traps.commands.is_empty() {
            return None;
        }
        let events = [Event::Debug, Event::Return];
        let hidden = events.into_iter().filter_map(|event| self.traps.commands.remove_entry(&event)).collect::<Vec<_>>();
        (!hidden.is_empty()).then_some(Hidden(hidden))
    }

    /// Gives them back, unless the function has set its own.
    pub(super) fn unhide_traps(&mut self, hidden: Hidden) {
        for (event, command) in hidden.0 {
            self.traps.commands.entry(event).or_insert(command);
        }
    }
}
