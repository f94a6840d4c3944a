//! `history`: past runs, as a list or one by one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Context, Request, shortened};
use crate::{Error, HistoryFilter, Run, Sandbox};

/// Maximum number of rows in a result.
const MOST_ROWS: usize = 200;
/// Maximum size of all rows in a result.
const ROWS: usize = 128 << 10;
/// Overhead of a row besides its texts, in bytes.
const ROW: usize = 256;
/// Maximum size of a run's output in a result.
const WINDOW: usize = 60_000;
/// Maximum length of a command in a list, and of a single row.
const COMMAND: usize = 500;
const WHOLE_COMMAND: usize = 32 << 10;
/// Maximum number of changed files of a row in a list, and of a single row; and their size.
const CHANGES: usize = 20;
const WHOLE_CHANGES: usize = 500;
const CHANGES_BYTES: usize = 64 << 10;

/// Selects a part of the history.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Maximum number of rows, at most 200; defaults to 20.
    #[serde(default)]
    pub limit: Option<usize>,
    /// List only rows with a smaller number: the last one of the previous page.
    #[serde(default)]
    pub before: Option<i64>,
    /// List only calls of this kind: `bash`, `python`, `write_file`, …
    #[serde(default)]
    pub name: Option<String>,
    /// List only rows that contain this text.
    #[serde(default)]
    pub grep: Option<String>,
    /// Show only this row, with its output.
    #[serde(default)]
    pub run: Option<i64>,
    /// The offset in the output of `run`, in bytes.
    #[serde(default)]
    pub output_offset: usize,
}

/// Rows of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryRows {
    /// The rows, newest first.
    pub runs: Vec<HistoryRow>,
    /// Notes.
    pub notes: Vec<String>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryRow {
    /// Its number.
    pub run: i64,
    /// The kind of call.
    pub name: String,
    /// The command, or the subject of the call.
    pub command: String,
    /// `success`, `error`, `pending` or `interrupted`.
    pub status: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The limit that stopped it.
    pub limit: Option<String>,
    /// The error of a failed call.
    pub error: Option<String>,
    /// The start time, in milliseconds since 1970.
    pub started_ms: i64,
    /// The duration.
    pub duration_ms: Option<i64>,
    /// The changed files.
    pub changes: Vec<Value>,
    /// Whether its output was dropped to keep the history within the limit `history`.
    pub output_pruned: bool,
    /// The standard output, if a single row is shown.
    pub stdout: Option<String>,
    /// The standard error, if a single row is shown.
    pub stderr: Option<String>,
    /// The bytes of its standard output in base64, if they are not UTF-8 and the caller is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_base64: Option<String>,
    /// The bytes of its standard error in base64, if they are not UTF-8 and the caller is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_base64: Option<String>,
    /// The resource usage, if the caller is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// The recorded parameters, if the caller is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
}

impl Request for History {
    type Data = HistoryRows;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        if let Some(number) = self.run {
            return one(context.sandbox(), number, self.output_offset);
        }
        let limit = self.limit.unwrap_or(20).clamp(1, MOST_ROWS);
        let filter = HistoryFilter { limit, before: self.before, name: self.name, grep: self.grep, ..HistoryFilter::default() };
        let (mut runs, mut room, mut more) = (Vec::new(), ROWS, false);
        for run in context.sandbox().history_with(&filter)? {
            let row = row(run, COMMAND, CHANGES);
            let Some(left) = room.checked_sub(row.bytes()).or_else(|| runs.is_empty().then_some(0)) else {
                more = true;
                break;
            };
            room = left;
            runs.push(row);
        }
        let mut notes = Vec::new();
        if let Some(last) = runs.last().filter(|_| more || runs.len() == limit) {
            notes.push(format!("there may be more: before={}", last.run));
        }
        let mut text: String = runs.iter().map(HistoryRow::render).collect();
        if runs.is_empty() {
            text.push_str("nothing\n");
        }
        notes.iter().for_each(|note| text.push_str(&format!("[{note}]\n")));
        Ok(Answer::new(text.trim_end().to_owned(), &HistoryRows { runs, notes }))
    }
}

fn one(sandbox: &Sandbox, number: i64, offset: usize) -> Result<Answer, Error> {
    let Some(run) = sandbox.history_run(number)? else {
        return Err(Error::Invalid(format!("run {number} does not exist")));
    };
    let ((stdout, stdout_left), (stderr, stderr_left)) = (window(&run.stdout, offset), window(&run.stderr, offset));
    let mut notes = Vec::new();
    if stdout_left + stderr_left > 0 {
        let left = stdout_left.max(stderr_left);
        notes.push(format!("{left} more bytes: continue with output_offset={}", offset + WINDOW));
    }
    if run.output_pruned {
        notes.push("output pruned: the history was full".to_owned());
    } else if run.output_truncated {
        notes.push("only the beginning of the output was recorded".to_owned());
    }
    let all_changes = run.changes.as_deref().and_then(Value::as_array).map_or(0, Vec::len);
    let mut row = row(run, WHOLE_COMMAND, WHOLE_CHANGES);
    if row.changes.len() < all_changes {
        notes.push(format!("only the first {} of {all_changes} changed files", row.changes.len()));
    }
    let mut text = row.render();
    text.push_str(&format!("[stdout]\n{stdout}\n[stderr]\n{stderr}"));
    notes.iter().for_each(|note| text.push_str(&format!("\n[{note}]")));
    (row.stdout, row.stderr) = (Some(stdout), Some(stderr));
    Ok(Answer::new(text, &HistoryRows { runs: vec![row], notes }))
}

fn window(bytes: &[u8], offset: usize) -> (String, usize) {
    let rest = bytes.get(offset..).unwrap_or_default();
    let shown = &rest[..rest.len().min(WINDOW)];
    (String::from_utf8_lossy(shown).into_owned(), rest.len() - shown.len())
}

fn row(run: Run, longest: usize, most_changes: usize) -> HistoryRow {
    let command = shortened(run.command, longest);
    let short = |text: Option<String>| text.map(|text| shortened(text, longest));
    let mut changes = run.changes.map_or_else(Vec::new, |changes| changes.first(most_changes));
    let mut room = CHANGES_BYTES;
    let fitting = changes.iter().take_while(|change| {
        let left = room.checked_sub(change.to_string().len());
        room = left.unwrap_or(0);
        left.is_some()
    });
    let fitting = fitting.count();
    changes.truncate(fitting);
    HistoryRow {
        run: run.id,
        name: shortened(run.name, longest),
        command,
        status: run.status.to_owned(),
        exit_code: run.exit_code,
        limit: short(run.limit),
        error: short(run.error),
        started_ms: run.started / 1_000_000,
        duration_ms: run.completed.map(|completed| completed.saturating_sub(run.started) / 1_000_000),
        changes,
        output_pruned: run.output_pruned,
        stdout: None,
        stderr: None,
        stdout_base64: None,
        stderr_base64: None,
        usage: None,
        parameters: None,
    }
}

impl HistoryRow {
    /// Returns a run with all recorded data, for a program. The output is included only if `output` is set.
    #[must_use]
    pub fn whole(mut run: Run, output: bool) -> Self {
        let (stdout, stderr) = (std::mem::take(&mut run.stdout), std::mem::take(&mut run.stderr));
        let (usage, parameters) = (run.usage.take(), run.parameters.take());
        let text = |bytes: &[u8]| output.then(|| String::from_utf8_lossy(bytes).into_owned());
        let base64 = |bytes: &[u8]| (output && std::str::from_utf8(bytes).is_err()).then(|| STANDARD.encode(bytes));
        Self {
            stdout: text(&stdout),
            stderr: text(&stderr),
            stdout_base64: base64(&stdout),
            stderr_base64: base64(&stderr),
            usage,
            parameters,
            changes: run.changes.take().map_or_else(Vec::new, |changes| changes.first(usize::MAX)),
            ..row(run, usize::MAX, 0)
        }
    }

    // Its size in a result: as text and as data.
    fn bytes(&self) -> usize {
        let texts = [Some(&self.command), self.limit.as_ref(), self.error.as_ref()];
        let changes: usize = self.changes.iter().map(|change| change.to_string().len()).sum();
        ROW + 2 * texts.into_iter().flatten().map(String::len).sum::<usize>() + changes
    }

    pub(super) fn render(&self) -> String {
        let end = match (&self.limit, &self.error, self.exit_code) {
            (Some(limit), _, _) => limit.clone(),
            (_, Some(error), _) => error.clone(),
            (_, _, Some(code)) => format!("exit code {code}"),
            _ => self.status.clone(),
        };
        format!("{} {}: {} [{end}]\n", self.run, self.name, self.command.replace('\n', " ⏎ "))
    }
}
