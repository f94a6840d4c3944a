//! The inputs of a recorded run besides files: enough to run it again with the same result.
//!
//! They are part of the run's row in the history. Results of host tools are in the rows of their own calls. A row may be
//! untrusted: it is checked like any command.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use presets::Limits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::command::Stdin;
use super::lifecycle::DETERMINISTIC_START;
use super::program::Code;
use super::{Command, Program, Surroundings};
use crate::random::Random;
use crate::sandbox::Sandbox;
use crate::tools::Tool;
use crate::{Error, clock};

/// The key of a recording in the parameters of its run.
pub(crate) const KEY: &str = "record";

/// The version of the recording format.
const FORMAT: u32 = 1;

/// Maximum size of recorded standard input.
const STDIN_BYTES: usize = 8 << 20;

/// The inputs of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recording {
    format: u32,
    /// `bash-script`, `bash`, `python-code` or `python`.
    program: String,
    echo: bool,
    text: String,
    args: Vec<String>,
    /// The sandbox's own variables and directory.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: String,
    /// The command's own.
    given_env: Vec<(String, String)>,
    given_cwd: Option<String>,
    stdin: Option<Input>,
    seed: u64,
    clock_ns: u64,
    pub(crate) session: Option<String>,
    rollback_on_failure: bool,
    pub(crate) tools: Vec<ToolDescription>,
    /// The limits of the run, as written in preset files.
    limits: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Input {
    Text(String),
    Base64(String),
}

/// A host tool available to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolDescription {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: String,
}

const OWN_PROGRAMS: &str = "programs of this machine are granted, which are not part of the sandbox file";

fn refused(reason: &str) -> Error {
    Error::Invalid(format!("cannot record the run: {reason}"))
}

impl Recording {
    /// Records the inputs of a command, and makes the command repeatable.
    pub(crate) fn of(sandbox: &Sandbox, command: &mut Command, limits: &Limits) -> Result<Self, Error> {
        if !sandbox.scope.mounts.is_empty() {
            return Err(refused("directories of this machine are mounted, which are not part of the sandbox file"));
        }
        if sandbox.scope.alias.is_some() || sandbox.scope.creates_parents {
            return Err(refused("the sandbox has the layout of another program"));
        }
        if sandbox.scope.programs.names().next().is_some() {
            return Err(refused(OWN_PROGRAMS));
        }
        let (program, echo) = match command.program {
            Program::BashScript => ("bash-script", false),
            Program::Bash => ("bash", false),
            Program::PythonCode(code) if code.session => {
                return Err(refused("the Python state of a session exists only in memory"));
            }
            Program::PythonCode(code) => ("python-code", code.echo),
            Program::Python => ("python", false),
            Program::Own => return Err(refused(OWN_PROGRAMS)),
        };
        let stdin = match &command.stdin {
            Stdin::Empty => None,
            Stdin::Bytes(bytes) if bytes.len() > STDIN_BYTES => return Err(refused("its standard input is larger than 8 MB")),
            Stdin::Bytes(bytes) => Some(match std::str::from_utf8(bytes) {
                Ok(text) => Input::Text(text.to_owned()),
                Err(_) => Input::Base64(STANDARD.encode(bytes)),
            }),
            Stdin::Pipe(_) => return Err(refused("its standard input must be known before it starts")),
        };
        let mut random = [0; 8];
        Random::Machine.fill(&mut random).map_err(|_| refused("cannot get random bytes for its seed"))?;
        // A run with its own seed repeats between runs; any other one uses the current time.
        let begins = if command.seed.is_some() { DETERMINISTIC_START } else { Duration::from_nanos(clock::unix_nanos()) };
        let seed = *command.seed.get_or_insert(u64::from_le_bytes(random) >> 12);
        let clock_ns = u64::try_from(command.clock.get_or_insert(begins).as_nanos());
        let tool = |tool: &Tool| ToolDescription {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            schema: tool.schema().to_owned(),
        };
        let limit = |(name, text): (presets::LimitName, String)| {
            (name.as_str().to_owned(), text.parse::<u64>().map_or_else(|_| Value::from(text.as_str()), Value::from))
        };
        Ok(Self {
            format: FORMAT,
            program: program.to_owned(),
            echo,
            text: command.text.clone(),
            args: command.args.clone(),
            env: sandbox.env.to_vec(),
            cwd: sandbox.cwd.clone(),
            given_env: command.surroundings.env.clone(),
            given_cwd: command.surroundings.cwd.clone(),
            stdin,
            seed,
            clock_ns: clock_ns.unwrap_or(0),
            session: command.session.clone(),
            rollback_on_failure: command.rollback_on_failure,
            tools: sandbox.tools.iter().map(tool).collect(),
            limits: limits.entries().into_iter().map(limit).collect(),
        })
    }

    /// Returns the recording in the parameters of a run, if it was recorded.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if it cannot be parsed.
    pub(crate) fn read(run: i64, parameters: Option<&Value>) -> Result<Option<Self>, Error> {
        let Some(value) = parameters.and_then(|parameters| parameters.get(KEY)) else { return Ok(None) };
        let invalid = |reason: &str| Error::Invalid(format!("invalid recording of run {run}: {reason}"));
        let recording: Self = serde_json::from_value(value.clone()).map_err(|error| invalid(&error.to_string()))?;
        if recording.format != FORMAT {
            return Err(invalid("it was written by another version of Sandlite"));
        }
        Surroundings { env: recording.env.clone(), cwd: Some(recording.cwd.clone()), ..Surroundings::default() }.check()?;
        Ok(Some(recording))
    }

    /// Recreates the command.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if it is invalid.
    pub(crate) fn command(&self) -> Result<Command, Error> {
        let mut command = match self.program.as_str() {
            "bash-script" | "python-code" => {
                let is_bash = self.program == "bash-script";
                let command = if is_bash { Command::bash(&self.text) } else { Command::python(&self.text) };
                self.args.iter().fold(command, Command::arg)
            }
            "bash" => Command::bash_with(&self.args),
            "python" => Command::python_with(&self.args),
            other => return Err(Error::Invalid(format!("unknown program `{}`", crate::tools::prefix(other, 100)))),
        };
        if let Program::PythonCode(code) = &mut command.program {
            *code = Code { echo: self.echo, session: false };
        }
        for (name, value) in &self.given_env {
            command = command.env(name, value);
        }
        command.surroundings.cwd = self.given_cwd.clone();
        command.stdin = match &self.stdin {
            None => Stdin::Empty,
            Some(Input::Text(text)) => Stdin::Bytes(text.as_bytes().to_vec()),
            Some(Input::Base64(text)) => {
                Stdin::Bytes(STANDARD.decode(text).map_err(|_| Error::Invalid("invalid standard input".to_owned()))?)
            }
        };
        command.seed = Some(self.seed);
        command.clock = Some(Duration::from_nanos(self.clock_ns));
        command.rollback_on_failure = self.rollback_on_failure;
        Ok(command)
    }

    /// Returns the limits of the run, if they are within those of the replaying sandbox.
    pub(crate) fn limits_within(&self, allowed: &Limits) -> Option<Limits> {
        let recorded: Limits = serde_json::from_value(Value::Object(self.limits.clone())).ok()?;
        recorded.check().ok().filter(|recorded| recorded.within(allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use presets::Preset;

    #[test]
    fn limits_are_read_as_they_were_written() {
        let sandbox = Sandbox::builder().open().unwrap();
        let mut command = Command::bash("true").record();
        let limits = Preset::Strict.limits();
        let recording = Recording::of(&sandbox, &mut command, &limits).unwrap();
        let json = serde_json::json!({ KEY: recording });
        let again = Recording::read(1, Some(&json)).unwrap().unwrap();
        assert_eq!(again, recording);
        assert_eq!(again.limits_within(&Preset::Normal.limits()), Some(limits));
        assert_eq!(
            again.limits_within(
                &Preset::Strict.limits().tighten(&presets::Overrides { compute: Some(1), ..Default::default() }).unwrap()
            ),
            None
        );
    }

    #[test]
    fn an_invalid_recording_is_rejected() {
        for wrong in [serde_json::json!({}), serde_json::json!({ "format": 9 }), serde_json::json!("text")] {
            assert!(Recording::read(1, Some(&serde_json::json!({ KEY: wrong }))).is_err());
        }
        assert!(Recording::read(1, None).unwrap().is_none());
    }
}
