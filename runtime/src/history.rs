//! The history of a sandbox: every run, what it printed, used and changed.

mod changes;
mod diff;
mod hooks;
mod recorder;
mod rows;
mod steps;

use sqlite_fs::{Call, CallStatus, Database, Filter};

use crate::Error;
use crate::vfs::Binding;
pub(crate) use changes::BASE;
pub(crate) use hooks::is_file;
pub use hooks::{Commit, FileChange};
pub(crate) use recorder::{Call as LibraryCall, Ongoing, Recorder, TURN, VIEW};
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

/// Rows that are looked at for one page of a view's own.
const LOOKED_AT: usize = 100_000;

/// The rows that a filter lets through, newest first. A view sees its own.
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

/// One run with its output, if it may be seen.
pub(crate) fn get(database: &Database, binding: &Binding, id: i64) -> Result<Option<Run>, Error> {
    let Some(call) = database.reader()?.call(id)? else { return Ok(None) };
    if !is_seen(database, binding, &call)? {
        return Ok(None);
    }
    Ok(Some(Run::new(call, &mut PARSED_BYTES.clone()).seen_by(binding)))
}

// Whether a call is one of this view's own. What a run called belongs to the run.
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
    // Without changes of what is hidden now.
    fn seen_by(mut self, binding: &Binding) -> Self {
        if let Some(changes) = self.changes.as_mut().and_then(|changes| changes.as_array_mut()).filter(|_| binding.is_partial()) {
            let is_hidden = |change: &serde_json::Value| {
                ["path", "from"].iter().any(|key| change[*key].as_str().is_some_and(|path| binding.hides_path(path)))
            };
            changes.retain(|change| !is_hidden(change));
        }
        self
    }

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
