//! The history of a sandbox: every run, what it printed, used and changed.

mod diff;

use std::collections::HashSet;
use std::time::Duration;

use sqlite_fs::{Call, CallStatus, Change, ChangeKind, Database, FileType, Filter, NewCall, Outcome, Transaction};

use crate::vfs::OverlayChanges;
use crate::wasi::TOOL_CALL;
use crate::{Error, clock};
use diff::Diffs;

/// How many calls of tools survive their command's rollback: what is kept while the rows are gone must be bounded.
const CALLS_KEPT: usize = 1_000;

/// How long the changes of one run are listed and compared: its caller waits for that (T-DOS-02).
pub(crate) const CHANGES_TIME: Duration = Duration::from_millis(50);

/// The same for a run whose time is over.
pub(crate) const CHANGES_TIME_OVERDUE: Duration = Duration::from_millis(5);

/// The kind of the last entry in a list of changes that is not complete.
const OMITTED: &str = "omitted";

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

// A host file that was made a row in order to change it was there before; one that is hidden is gone.
fn seen_from_above(changes: &mut Vec<Change>, overlay: &OverlayChanges) {
    changes.retain(|change| change.file_type != Some(FileType::Directory) || !overlay.copied.contains(&change.path));
    for change in changes.iter_mut().filter(|change| overlay.copied.contains(&change.path)) {
        if change.kind == ChangeKind::Created {
            change.kind = ChangeKind::Modified;
        }
    }
    let known: HashSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let gone = overlay.hidden.iter().filter(|path| !known.contains(path.as_str()));
    let gone: Vec<Change> =
        gone.map(|path| Change { path: path.clone(), kind: ChangeKind::Deleted, file_type: None, size: 0 }).collect();
    if !gone.is_empty() {
        changes.extend(gone);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

fn type_name(file_type: Option<FileType>) -> Option<&'static str> {
    Some(match file_type? {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
    })
}

fn parent(call: &Call) -> Option<i64> {
    let parameters = call.parameters.as_deref().filter(|text| call.name == TOOL_CALL && text.len() <= PARSED_BYTES)?;
    serde_json::from_str::<serde_json::Value>(parameters).ok()?.get("parent")?.as_i64()
}

/// The calls of tools that a run has made so far.
pub(crate) fn tool_calls(transaction: &Transaction, run: i64) -> Result<Vec<Call>, Error> {
    let calls = transaction.calls().list(&Filter { limit: CALLS_KEPT, ..Filter::default() })?;
    let mut made: Vec<_> = calls.into_iter().filter(|call| call.id > run && call.name == TOOL_CALL).collect();
    made.reverse();
    Ok(made)
}

/// Records calls anew that a rollback has undone: the files are as before, but what was asked of the host was asked.
pub(crate) fn record_again(transaction: &Transaction, calls: &[Call]) -> Result<(), Error> {
    for call in calls {
        let command = call.run.as_ref().map_or("", |run| &run.command);
        let new = NewCall { name: &call.name, parameters: call.parameters.as_deref(), command };
        let outcome = Outcome { result: call.result.as_deref(), error: call.error.as_deref(), ..Outcome::default() };
        transaction.calls().record(&new, &outcome, call.started, call.completed.unwrap_or(call.started))?;
    }
    Ok(())
}

/// What a transaction has changed so far, as the history keeps it; `None` when nothing.
///
/// `database` is where it was before; small texts that changed are compared. What does not fit into `time` is omitted.
pub(crate) fn changes_json(
    database: &Database,
    transaction: &Transaction,
    overlay: &OverlayChanges,
    time: Duration,
) -> Result<Option<String>, Error> {
    let until = clock::now() + time;
    let (mut changes, is_complete) = transaction.changes_by(until).map_err(sqlite_fs::Error::from)?;
    seen_from_above(&mut changes, overlay);
    if changes.is_empty() {
        return Ok(None);
    }
    let mut diffs = Diffs::new(database, transaction, until);
    let mut list: Vec<_> = changes
        .iter()
        .map(|change| {
            let mut entry = serde_json::json!({ "path": change.path, "size": change.size, "type": type_name(change.file_type) });
            let kind = match &change.kind {
                ChangeKind::Created => "created",
                ChangeKind::Modified => "modified",
                ChangeKind::Attributes => "attributes",
                ChangeKind::Deleted => "deleted",
                ChangeKind::Renamed { from } => {
                    entry["from"] = from.as_str().into();
                    "renamed"
                }
                _ => "changed",
            };
            entry["kind"] = kind.into();
            if let Some(diff) = diffs.of(change) {
                entry["diff"] = diff.into();
            }
            entry
        })
        .collect();
    if !is_complete {
        list.push(serde_json::json!({ "path": "", "kind": OMITTED, "note": "too many changes to list" }));
    }
    Ok(Some(serde_json::Value::from(list).to_string()))
}
