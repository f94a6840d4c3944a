//! `bash` and `python`: the options of a command, and its result.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use presets::{Overrides, WallTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Context, Request};
use crate::{Command, Error, ExitStatus, LimitReached, Output, RESTARTED, Sandbox, Shown, Usage};

/// Maximum size of each stream in a result for a model; the rest is in the history.
const KEPT_START: usize = 40 << 10;
const KEPT_END: usize = 20 << 10;
/// Maximum size of the value of a last expression in such a result, besides its text.
const KEPT_VALUE: usize = 16 << 10;
/// Maximum size of its images in base64: together with the streams they stay below the maximum size of a result.
const KEPT_IMAGES: usize = 512 << 10;

/// A bash command line to run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bash {
    /// The command line, as for `bash -c`.
    pub command: String,
    /// The options.
    #[serde(flatten)]
    pub options: RunOptions,
}

/// Python code to run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// The code, as for `python3 -c`.
    pub code: String,
    /// Print the value of a last expression, like a notebook; defaults to true in a session.
    #[serde(default)]
    pub echo: Option<bool>,
    /// The options.
    #[serde(flatten)]
    pub options: RunOptions,
}

/// The options of every command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunOptions {
    /// The directory to start in. Relative paths start in the sandbox's working directory.
    pub cwd: Option<String>,
    /// Environment variables to set.
    pub env: BTreeMap<String, String>,
    /// The standard input of the command.
    pub stdin: Option<String>,
    /// A shorter time limit than the sandbox's own, in milliseconds. A longer one is reduced to it.
    pub timeout_ms: Option<u64>,
    /// Roll back the file changes of a command that fails.
    pub rollback_on_failure: bool,
    /// The name of a session, which you can choose freely: state left by one call is available to the next.
    pub session: Option<String>,
    /// Make the run repeatable: the clock and random numbers depend only on this number.
    pub seed: Option<u64>,
    /// Record all inputs of the command, so that `replay` can run it again and compare.
    pub record: bool,
}

impl RunOptions {
    /// Runs a command with these options.
    ///
    /// # Errors
    ///
    /// Returns an error if an option is invalid or if the host fails. A command that fails is an [`Output`].
    pub fn run(self, sandbox: &Sandbox, mut command: Command) -> Result<Output, Error> {
        if let Some(directory) = self.cwd {
            command = command.cwd(if directory.is_empty() { sandbox.current_dir().to_owned() } else { directory });
        }
        for (name, value) in self.env {
            command = command.env(name, value);
        }
        if let Some(stdin) = self.stdin {
            command = command.stdin(stdin);
        }
        let (wall, note) = timeout(self.timeout_ms, sandbox.limits().wall);
        if wall.is_some() {
            command = command.limits(Overrides { wall, ..Overrides::default() });
        }
        if self.rollback_on_failure {
            command = command.rollback_on_failure();
        }
        if let Some(seed) = self.seed {
            command = command.deterministic(seed);
        }
        if self.record {
            command = command.record();
        }
        let mut output = match self.session {
            Some(name) => sandbox.session(name)?.run(command)?,
            None => sandbox.run(command)?,
        };
        output.notes.extend(note);
        Ok(output)
    }
}

// Models often request a minute regardless of the sandbox's limit: the request is reduced with a note.
fn timeout(asked: Option<u64>, limit: WallTime) -> (Option<WallTime>, Option<String>) {
    let Some(asked) = asked.map(|milliseconds| WallTime(Duration::from_millis(milliseconds))) else { return (None, None) };
    if asked.0.is_zero() {
        return (None, Some(format!("the timeout of {asked} was ignored: the limit of this sandbox is {limit}")));
    }
    if asked.0 > limit.0 {
        return (None, Some(format!("the timeout of {asked} was reduced to {limit}, the limit of this sandbox")));
    }
    (Some(asked), None)
}

impl Request for Bash {
    type Data = Ran;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        answer(context, Command::bash(self.command), self.options)
    }
}

impl Request for Python {
    type Data = Ran;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let command = Command::python(self.code);
        let echo = self.echo.unwrap_or(self.options.session.is_some());
        answer(context, if echo { command.echo() } else { command }, self.options)
    }
}

fn answer(context: &Context, command: Command, options: RunOptions) -> Result<Answer, Error> {
    let output = options.run(context.sandbox(), context.watch(command))?;
    let cancelled = context.cancel.is_killed();
    let is_stored = context.sandbox().version_shown().is_none();
    let ran = Ran::new(&output, cancelled).for_model(is_stored, context.offers_history);
    let was_stopped = cancelled || !matches!(output.status, ExitStatus::Exited(_) | ExitStatus::Signaled(_));
    Ok(Answer::new(ran.render(), &ran).failed(was_stopped))
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ran {
    /// `exited`, `signaled` or `limit`.
    pub status: &'static str,
    /// 0 is success; 128 plus the signal, 124 for time and compute, 137 for memory, 126 for other limits.
    pub exit_code: u8,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
    /// The bytes of standard output in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_base64: Option<String>,
    /// The bytes of standard error in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_base64: Option<String>,
    /// Whether output is missing here.
    pub truncated: bool,
    /// The limit that stopped it.
    pub limit: Option<Limit>,
    /// Whether the client cancelled it.
    pub cancelled: bool,
    /// The duration.
    pub duration_ms: u64,
    /// The resource usage.
    pub usage: Usage,
    /// Its number in the history; 0 if it ran in a temporary copy.
    pub run: i64,
    /// Whether its session has a new Python interpreter, so that globals of earlier calls are lost.
    pub restarted: bool,
    /// Notes.
    pub notes: Vec<String>,
    /// The value of the last expression of Python code, if it was printed and can be represented in JSON.
    pub value: Option<Value>,
    /// The text of that value, as Python prints it.
    pub text: Option<String>,
    /// Images that Python code displayed, such as Matplotlib figures.
    pub images: Vec<Image>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Image {
    /// `image/png` or `image/svg+xml`.
    pub mime: String,
    /// Its bytes in base64.
    pub data: String,
}

/// A reached limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Limit {
    /// The name of the limit.
    pub name: String,
    /// The allowed amount.
    pub value: String,
    /// The used amount.
    pub used: String,
    /// A hint.
    pub hint: String,
    /// A description of the event.
    pub message: String,
    /// Whether the command's changes were rolled back because they could not be stored in time.
    pub rolled_back: bool,
}

impl From<&LimitReached> for Limit {
    fn from(reached: &LimitReached) -> Self {
        Self {
            name: reached.limit.as_str().to_owned(),
            value: reached.value.clone(),
            used: reached.used.clone(),
            hint: reached.hint().to_owned(),
            message: reached.to_string(),
            rolled_back: reached.rolled_back,
        }
    }
}

impl From<&Shown> for Image {
    fn from(shown: &Shown) -> Self {
        Self { mime: shown.mime.clone(), data: STANDARD.encode(&shown.data) }
    }
}

fn shown<'a>(output: &'a Output, mime: &str) -> Option<&'a [u8]> {
    output.shown.iter().rfind(|shown| shown.mime == mime).map(|shown| shown.data.as_slice())
}

impl Ran {
    /// Creates the result of a command with its full output.
    #[must_use]
    pub fn new(output: &Output, cancelled: bool) -> Self {
        let truncated = output.stdout_truncated || output.stderr_truncated;
        let mut notes = output.notes.clone();
        if truncated {
            notes.push(
                "the output exceeded the limit and is incomplete: write it to a file and read the part you need".to_owned(),
            );
        }
        if output.restarted {
            notes.push(RESTARTED.to_owned());
        }
        if cancelled {
            notes.push("cancelled: this is the output until then".to_owned());
        }
        if let Some(reached) = output.status.limit() {
            notes.push(format!("stopped: {reached}; {}", reached.hint()));
        }
        Self {
            status: output.status.name(),
            exit_code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            stdout_base64: base64_of(&output.stdout),
            stderr_base64: base64_of(&output.stderr),
            truncated,
            limit: output.status.limit().map(Limit::from),
            cancelled,
            duration_ms: u64::try_from(output.usage.wall.as_millis()).unwrap_or(u64::MAX),
            usage: output.usage.clone(),
            run: output.run,
            restarted: output.restarted,
            notes,
            value: shown(output, "application/json").and_then(|json| serde_json::from_slice(json).ok()),
            text: shown(output, "text/plain").map(|text| String::from_utf8_lossy(text).into_owned()),
            images: output.shown.iter().filter(|shown| shown.mime.starts_with("image/")).map(Image::from).collect(),
        }
    }

    // Without the middle of long output, and without repeated data. The history of a temporary copy ends with it.
    fn for_model(mut self, is_stored: bool, offers_history: bool) -> Self {
        if !is_stored {
            self.run = 0;
            self.notes.push("this was a temporary copy: the command changed nothing".to_owned());
        }
        // A model reads text; the bytes are in the history.
        (self.stdout_base64, self.stderr_base64) = (None, None);
        self.text.take_if(|text| text.len() > KEPT_VALUE);
        self.value.take_if(|value| value.to_string().len() > KEPT_VALUE);
        let (mut room, all) = (KEPT_IMAGES, self.images.len());
        self.images.retain(|image| match room.checked_sub(image.data.len()) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
        if self.images.len() < all {
            self.notes.push(format!("images omitted: {}; save them to files", all - self.images.len()));
        }
        let cut = [cut(&mut self.stdout), cut(&mut self.stderr)];
        if cut.contains(&true) {
            self.truncated = true;
            let rest = match is_stored && offers_history {
                true => format!(": read all of it with `history` and run={}", self.run),
                false => ": write long output to a file and read parts of it".to_owned(),
            };
            self.notes.insert(0, format!("the middle of the output is omitted{rest}"));
        }
        self
    }

    /// Formats the result for a model.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.stdout.clone();
        if !self.stderr.is_empty() {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{end}[stderr]\n{}", self.stderr));
        }
        if self.exit_code != 0 || text.is_empty() {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{end}[exit code {}]\n", self.exit_code));
        }
        for note in &self.notes {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{end}[{note}]\n"));
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

fn base64_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).is_err().then(|| STANDARD.encode(bytes))
}

// Both the start and the end of output are usually relevant.
fn cut(text: &mut String) -> bool {
    if text.len() <= KEPT_START + KEPT_END {
        return false;
    }
    let (start, end) = (text.floor_char_boundary(KEPT_START), text.ceil_char_boundary(text.len() - KEPT_END));
    text.replace_range(start..end, &format!("\n[… {} bytes omitted …]\n", end - start));
    true
}
