//! The history of a sandbox: every run, what it printed, used and changed.

use sqlite_fs::{Call, CallStatus, ChangeKind, Database, Filter, Transaction};

use crate::Error;

/// One recorded run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// The kind of call: `bash`, …
    pub name: String,
    /// The whole text of the command.
    pub command: String,
    /// `success`, `error`, `pending` or `interrupted`.
    pub status: &'static str,
    /// Its exit code, if it came to one.
    pub exit_code: Option<i32>,
    /// The limit that ended it.
    pub limit: Option<String>,
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
    /// What it used, as recorded.
    pub usage: Option<serde_json::Value>,
    /// Which files it changed, as recorded.
    pub changes: Option<serde_json::Value>,
}

/// The last runs, newest first.
pub(crate) fn list(database: &Database, limit: usize) -> Result<Vec<Run>, Error> {
    let calls = database.reader()?.calls(&Filter { limit, ..Filter::default() })?;
    Ok(calls.into_iter().map(Run::from).collect())
}

/// One run with its output.
pub(crate) fn get(database: &Database, id: i64) -> Result<Option<Run>, Error> {
    Ok(database.reader()?.call(id)?.map(Run::from))
}

impl From<Call> for Run {
    fn from(call: Call) -> Self {
        let status = match call.status {
            CallStatus::Pending => "pending",
            CallStatus::Success => "success",
            CallStatus::Error => "error",
            CallStatus::Interrupted => "interrupted",
        };
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        let run = call.run;
        Self {
            id: call.id,
            name: call.name,
            status,
            started: call.started,
            completed: call.completed,
            command: run.as_ref().map(|run| run.command.clone()).unwrap_or_default(),
            exit_code: run.as_ref().and_then(|run| run.exit_code),
            limit: run.as_ref().and_then(|run| run.limit.clone()),
            usage: json(run.as_ref().and_then(|run| run.usage.clone())),
            changes: json(run.as_ref().and_then(|run| run.changes.clone())),
            stdout: run.as_ref().map(|run| run.stdout.clone()).unwrap_or_default(),
            stderr: run.map(|run| run.stderr).unwrap_or_default(),
        }
    }
}

/// What a transaction has changed so far, as the history keeps it; `None` when nothing.
pub(crate) fn changes_json(transaction: &Transaction) -> Result<Option<String>, Error> {
    let changes = transaction.changes().map_err(sqlite_fs::Error::from)?;
    if changes.is_empty() {
        return Ok(None);
    }
    let list: Vec<_> = changes
        .iter()
        .map(|change| {
            let mut entry = serde_json::json!({ "path": change.path, "size": change.size });
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
            entry
        })
        .collect();
    Ok(Some(serde_json::Value::from(list).to_string()))
}
