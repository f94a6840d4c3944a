//! The history of a sandbox: every run, what it printed, used and changed.

mod changes;
mod diff;
mod recorder;
mod rows;
mod steps;

use sqlite_fs::{Call, CallStatus, Database, Filter};

use crate::Error;
pub(crate) use changes::BASE;
pub(crate) use recorder::{Call as LibraryCall, Ongoing, Recorder, TURN};
pub(crate) use rows::{begin_command, begin_own, begin_tool, finish_command, finish_own, finish_tool};
pub(crate) use steps::record;

/// One recorded run, or call of the library.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// The kind of call: `bash`, `python`, `write_file`, `kv_set`, …
    pub name: String,
    /// The whole text of the command; for a call of the library its name and what it was about.
    pub command: String,
    /// What it was given, as recorded.
    pub parameters: Option<serde_json::Value>,
    /// What it answered, as recorded.
    pub result: Option<serde_json::Value>,
    /// Why it failed, when it is a call of the library.
    pub error: Option<String>,
    /// `success`, `error`, `pending` or `interrupted`.
    pub status: &'static str,
    /// Its exit code, if it came to one.
    pub exit_code: Option<i32>,
    /// The limit that ended it.
    pub limit: Option<String>,
    /// The run that made this one, when it is the call of a tool.
    pub parent: Option<i64>,
    /// When it began, in nanoseconds since 1970.
    pub started: i64,
    /// When it ended.
    pub completed: Option<i64>,
    /// What it printed; empty in lists.
    #[serde(skip)]
    pub stdout: Vec<u8>,
    /// What it complained; empty in lists.
    #[serde(skip)]
    pub stderr: Vec<u8>,
    /// Only the beginning of its output was recorded.
    pub output_truncated: bool,
    /// Its output was dropped to keep the history within the limit `history`.
    pub output_pruned: bool,
    /// What it used, as recorded.
    pub usage: Option<serde_json::Value>,
    /// Which files it changed, as recorded.
    pub changes: Option<serde_json::Value>,
}

/// Which rows of the history to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFilter {
    /// At most so many, the newest.
    pub limit: usize,
    /// Only what began at or after this time, in nanoseconds since 1970.
    pub since: Option<i64>,
    /// Only what has a smaller number: the last one of the page before.
    pub before: Option<i64>,
    /// Only calls of this kind: `bash`, `write_file`, …
    pub name: Option<String>,
    /// Only those with this text in their command or parameters, upper and lower case told apart.
    pub grep: Option<String>,
    /// Whether to load what they printed.
    pub output: bool,
}

impl Default for HistoryFilter {
    fn default() -> Self {
        Self { limit: 100, since: None, before: None, name: None, grep: None, output: false }
    }
}

/// The rows that a filter lets through, newest first.
pub(crate) fn list(database: &Database, filter: &HistoryFilter) -> Result<Vec<Run>, Error> {
    let HistoryFilter { limit, since, before, name, grep, output } = filter.clone();
    let calls = database.reader()?.calls(&Filter { limit, since, before, name, text: grep, output })?;
    let mut room = PARSED_BYTES;
    Ok(calls.into_iter().map(|call| Run::new(call, &mut room)).collect())
}

/// One run with its output.
pub(crate) fn get(database: &Database, id: i64) -> Result<Option<Run>, Error> {
    Ok(database.reader()?.call(id)?.map(|call| Run::new(call, &mut PARSED_BYTES.clone())))
}

/// JSON that one answer takes apart. It takes up to thirty times its bytes then, and only a file that somebody made by
/// hand has more: the rest stays text.
const PARSED_BYTES: usize = 16 << 20;

fn parse(text: String, room: &mut usize) -> Option<serde_json::Value> {
    match room.checked_sub(text.len()) {
        Some(left) => {
            *room = left;
            serde_json::from_str(&text).ok()
        }
        None => Some(text.into()),
    }
}

impl Run {
    /// A recorded call, whose JSON is taken apart while there is room.
    fn new(call: Call, room: &mut usize) -> Self {
        let status = match call.status {
            CallStatus::Pending => "pending",
            CallStatus::Success => "success",
            CallStatus::Error => "error",
            CallStatus::Interrupted => "interrupted",
        };
        let mut json = |text: Option<String>| text.and_then(|text| parse(text, room));
        let parent = parent(&call);
        let mut run = call.run;
        Self {
            id: call.id,
            parent,
            name: call.name,
            status,
            started: call.started,
            completed: call.completed,
            parameters: json(call.parameters),
            result: json(call.result),
            error: call.error,
            command: run.as_ref().map(|run| run.command.clone()).unwrap_or_default(),
            exit_code: run.as_ref().and_then(|run| run.exit_code),
            limit: run.as_ref().and_then(|run| run.limit.clone()),
            usage: json(run.as_ref().and_then(|run| run.usage.clone())),
            changes: json(run.as_ref().and_then(|run| run.changes.clone())),
            output_truncated: run.as_ref().is_some_and(|run| !run.pruned && (run.stdout_truncated || run.stderr_truncated)),
            output_pruned: run.as_ref().is_some_and(|run| run.pruned),
            stdout: run.as_mut().map(|run| std::mem::take(&mut run.stdout)).unwrap_or_default(),
            stderr: run.map(|run| run.stderr).unwrap_or_default(),
        }
    }
}

fn parent(call: &Call) -> Option<i64> {
    if call.parent.is_some() {
        return call.parent;
    }
    // Rows from before there was a column have it in their parameters.
    let parameters = call.parameters.as_deref().filter(|text| call.name == rows::TOOL && text.len() <= PARSED_BYTES)?;
    serde_json::from_str::<serde_json::Value>(parameters).ok()?.get("parent")?.as_i64()
}
