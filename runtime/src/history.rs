//! The history of a sandbox: every run with its output, usage and changes.

mod changes;
mod diff;
mod hooks;
mod json;
mod recorder;
mod rows;
mod steps;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sqlite_fs::{Call, CallStatus, Database, Filter};

use crate::Error;
use crate::vfs::Binding;
pub(crate) use changes::BASE;
pub(crate) use changes::recorded;
pub use hooks::{Commit, FileChange};
pub(crate) use hooks::{Moved, is_file};
pub use json::Json;
pub(crate) use recorder::{Call as LibraryCall, Ongoing, Recorder, TURN, VIEW, begin};
pub(crate) use rows::{begin_command, begin_own, begin_tool, finish_command, finish_own, finish_refused, finish_tool};
pub(crate) use steps::record;

/// A recorded run or library call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// The kind of call: `bash`, `python`, `write_file`, `kv_set`, …
    pub name: String,
    /// The full text of the command; for a library call its name and subject.
    pub command: String,
    /// The recorded parameters.
    pub parameters: Option<serde_json::Value>,
    /// The recorded result.
    pub result: Option<serde_json::Value>,
    /// The error of a failed library call.
    pub error: Option<String>,
    /// `success`, `error`, `pending` or `interrupted`.
    pub status: &'static str,
    /// The exit code, if any.
    pub exit_code: Option<i32>,
    /// The limit that ended it.
    pub limit: Option<String>,
    /// The parent run of a tool call.
    pub parent: Option<i64>,
    /// The start time, in nanoseconds since 1970.
    pub started: i64,
    /// The end time.
    pub completed: Option<i64>,
    /// The standard output; empty in lists.
    #[serde(skip)]
    pub stdout: Vec<u8>,
    /// The standard error; empty in lists.
    #[serde(skip)]
    pub stderr: Vec<u8>,
    /// Whether only the beginning of its output was recorded.
    pub output_truncated: bool,
    /// Whether its output was dropped to keep the history within the limit `history`.
    pub output_pruned: bool,
    /// The recorded resource usage.
    pub usage: Option<serde_json::Value>,
    /// The recorded file changes.
    pub changes: Option<Json>,
}

/// Selects rows of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Maximum number of rows; the newest are listed.
    pub limit: usize,
    /// List only runs started at or after this time, in nanoseconds since 1970.
    pub since: Option<i64>,
    /// List only rows with a smaller number: the last one of the previous page.
    pub before: Option<i64>,
    /// List only calls of this kind: `bash`, `write_file`, …
    pub name: Option<String>,
    /// List only rows whose command or parameters contain this text, case-sensitively.
    pub grep: Option<String>,
    /// Whether to load the output.
    pub output: bool,
}

impl Default for HistoryFilter {
    fn default() -> Self {
        Self { limit: 100, since: None, before: None, name: None, grep: None, output: false }
    }
}

/// Maximum number of rows examined for one page of a view's own rows.
const LOOKED_AT: usize = 100_000;

/// Returns the rows that match a filter, newest first. A view sees only its own.
pub(crate) fn list(database: &Database, binding: &Binding, filter: &HistoryFilter) -> Result<Vec<Run>, Error> {
    let HistoryFilter { limit, since, mut before, name, grep, output } = filter.clone();
    let reader = database.reader()?;
    let mut room = PARSED_BYTES;
    if !binding.is_partial() {
        let calls = reader.calls(&Filter { limit, since, before, name, text: grep, output })?;
        return Ok(calls.into_iter().map(|call| Run::new(call, &mut room)).collect());
    }
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let page = limit.clamp(100, 1000);
    while found.len() < limit && looked_at < LOOKED_AT {
        let filter = Filter { limit: page, since, before, name: name.clone(), text: grep.clone(), output };
        let calls = reader.calls(&filter)?;
        let Some(last) = calls.last() else { break };
        (before, looked_at) = (Some(last.id), looked_at + calls.len());
        for call in calls {
            if found.len() < limit && is_seen(database, binding, &call)? {
                found.push(Run::new(call, &mut room).seen_by(binding));
            }
        }
    }
    Ok(found)
}

/// The call that names a version.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// Returns the created checkpoints by name and version, and whether their authors are visible.
pub(crate) fn checkpoints(database: &Database, binding: &Binding) -> Result<HashMap<(String, i64), bool>, Error> {
    let (mut found, mut before, mut looked_at) = (HashMap::new(), None, 0);
    while looked_at < LOOKED_AT {
        let name = Some(CHECKPOINT.to_owned());
        let calls = database.reader()?.calls(&Filter { limit: 1000, before, name, ..Filter::default() })?;
        let Some(last) = calls.last() else { break };
        (before, looked_at) = (Some(last.id), looked_at + calls.len());
        for call in &calls {
            let value = |text: &Option<String>, key: &str| -> Option<serde_json::Value> {
                let text = text.as_deref().filter(|text| text.len() <= PARSED_BYTES)?;
                serde_json::from_str::<serde_json::Value>(text).ok()?.get(key).cloned()
            };
            // One that failed has no version.
            let Some(version) = value(&call.result, "version").and_then(|version| version.as_i64()) else { continue };
            let Some(serde_json::Value::String(name)) = value(&call.parameters, "name") else { continue };
            // The newest counts: an earlier one of the same name was removed.
            if let Entry::Vacant(entry) = found.entry((name, version)) {
                entry.insert(is_seen(database, binding, call)?);
            }
        }
    }
    Ok(found)
}

/// Returns one run with its output, if it is visible.
pub(crate) fn get(database: &Database, binding: &Binding, id: i64) -> Result<Option<Run>, Error> {
    let Some(call) = database.reader()?.call(id)? else { return Ok(None) };
    if !is_seen(database, binding, &call)? {
        return Ok(None);
    }
    Ok(Some(Run::new(call, &mut PARSED_BYTES.clone()).seen_by(binding)))
}

// Whether a call belongs to this view. The calls of a run belong to the run.
fn is_seen(database: &Database, binding: &Binding, call: &Call) -> Result<bool, Error> {
    if !binding.is_partial() {
        return Ok(true);
    }
    let mark = |call: &Call| -> Option<serde_json::Value> {
        let parameters = call.parameters.as_deref().filter(|text| text.len() <= PARSED_BYTES)?;
        serde_json::from_str::<serde_json::Value>(parameters).ok()?.get(VIEW).cloned()
    };
    if let Some(parent) = parent(call).filter(|parent| *parent != call.id) {
        let parent = database.reader()?.call(parent)?;
        return Ok(parent.is_some_and(|parent| binding.sees_mark(mark(&parent).as_ref())));
    }
    Ok(binding.sees_mark(mark(call).as_ref()))
}

/// Maximum size of JSON that one result parses. Parsed JSON takes up to thirty times its size, and only a forged file has more;
/// the rest stays text.
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

fn unparsed(text: String, room: &mut usize) -> Json {
    match room.checked_sub(text.len()) {
        Some(left) => {
            *room = left;
            Json::of_text(text)
        }
        None => Json::of_long_text(text),
    }
}

impl Run {
    // Without changes of currently hidden paths. A text that was too long to be parsed cannot be searched for them.
    fn seen_by(mut self, binding: &Binding) -> Self {
        let Some(changes) = self.changes.take_if(|_| binding.is_partial()) else { return self };
        let is_hidden = |change: &serde_json::Value| {
            ["path", "from"].iter().any(|key| change[*key].as_str().is_some_and(|path| binding.hides_path(path)))
        };
        let seen: Option<serde_json::Value> =
            changes.as_array().map(|changes| changes.iter().filter(|change| !is_hidden(change)).cloned().collect());
        self.changes = seen.map(Json::from);
        self
    }

    /// Converts a recorded call, parsing its JSON within the limit.
    fn new(call: Call, room: &mut usize) -> Self {
        let status = match call.status {
            CallStatus::Pending => "pending",
            CallStatus::Success => "success",
            CallStatus::Error => "error",
            CallStatus::Interrupted => "interrupted",
        };
        let parent = parent(&call);
        let mut run = call.run;
        let changes = run.as_mut().and_then(|run| run.changes.take()).map(|text| unparsed(text, room));
        let mut json = |text: Option<String>| text.and_then(|text| parse(text, room));
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
            changes,
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
    // Rows from before the column existed have it in their parameters.
    let parameters = call.parameters.as_deref().filter(|text| call.name == rows::TOOL && text.len() <= PARSED_BYTES)?;
    serde_json::from_str::<serde_json::Value>(parameters).ok()?.get("parent")?.as_i64()
}
