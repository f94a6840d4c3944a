//! A program that is a function: it runs outside the engine and has a process like any other, with descriptors, an entry in the
//! pid table and a row in the history.

use std::sync::Arc;

use serde_json::json;

use super::bridge::{self, Bridge};
use super::command::{self, Action};
use crate::history;
use crate::process::{Ended, Fault, State};

/// A program that is a function.
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// Its implementation.
    pub(crate) work: Work,
}

/// The implementation of a function.
pub(crate) enum Work {
    /// Calls a function of the embedding program.
    Command(Arc<Action>),
    /// Runs a host program: this one, or the one that its arguments name.
    Host {
        /// The granted programs.
        bridge: Arc<Bridge>,
        /// The program.
        program: Option<String>,
    },
}

impl Function {
    /// Runs it as the process of this state, to its end.
    pub(crate) fn run(&self, state: &State) -> Ended {
        self.recorded(state).unwrap_or_else(|fault| match fault {
            Fault::End(ended) => ended,
            Fault::Errno(_) => Ended::Exit(1),
        })
    }

    // The row is started first, so that a call that is stopped is in the history, without an end.
    fn recorded(&self, state: &State) -> Result<Ended, Fault> {
        state.job.meter.count_commands(1)?;
        let words: Vec<_> = state.args.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let cwd = String::from_utf8_lossy(&state.cwd);
        let row = history::begin_own(state.job.view.transaction(), state.job.run, self.kind(), &words, &cwd)
            .map_err(|_| abi::Errno::IO)?;
        let (ended, result) = match &self.work {
            Work::Command(action) => command::run(state, &self.name, action),
            Work::Host { bridge, program } => bridge::run(state, bridge, program.as_deref()),
        };
        let (result, error) = match &ended {
            Ended::Exit(code) => (merged(result, json!({ "exitCode": code })), None),
            Ended::Signal(signal) => (result, Some(format!("killed by signal {}", signal.number()))),
            _ => (result, Some("the command has ended".to_owned())),
        };
        history::finish_own(state.job.view.transaction(), row, &result, error.as_deref()).map_err(|_| abi::Errno::IO)?;
        Ok(ended)
    }

    fn kind(&self) -> &'static str {
        match self.work {
            Work::Command(_) => "command",
            Work::Host { .. } => "host",
        }
    }
}

fn merged(mut one: serde_json::Value, other: serde_json::Value) -> serde_json::Value {
    if let (Some(one), serde_json::Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
    one
}
