//! `kv_…` and `history`.

use runtime::{HistoryFilter, Run, Sandbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::answer::{Answer, quoted, shortened};

/// Most rows of one answer.
const MOST_ROWS: usize = 200;
/// Bytes of all rows of one answer.
const ROWS: usize = 128 << 10;
/// Bytes of a row beside its texts.
const ROW: usize = 256;
/// Bytes of a value's JSON text in one answer.
const VALUE: usize = 128 << 10;
/// Bytes of a run's output in one answer.
const WINDOW: usize = 60_000;
/// Longest command text in a list, and of one row.
const COMMAND: usize = 500;
const WHOLE_COMMAND: usize = 32 << 10;
/// Changed files of a row in a list, and of one row; their bytes.
const CHANGES: usize = 20;
const WHOLE_CHANGES: usize = 500;
const CHANGES_BYTES: usize = 64 << 10;

/// Which key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvGet {
    /// The key.
    key: String,
    /// Where to begin in the JSON text of a value that is too long for one answer, in bytes.
    #[serde(default)]
    offset: Option<usize>,
}

/// A value.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KvValue {
    /// Whether there is such a key.
    found: bool,
    /// Its JSON value; null when only a part of its text is returned.
    value: Value,
    /// A part of the value's JSON text, when the value is too long for one answer or an offset is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    /// Where the next part begins, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

pub(super) fn kv_get(sandbox: &Sandbox, request: KvGet) -> Result<Answer, Answer> {
    let Some(value) = sandbox.kv().get(&request.key)? else {
        let text = format!("there is no key `{}`", quoted(&request.key));
        return Ok(Answer::new(text, &KvValue { found: false, value: Value::Null, part: None, next_offset: None }));
    };
    let text = value.to_string();
    if text.len() <= VALUE && request.offset.is_none() {
        return Ok(Answer::new(text, &KvValue { found: true, value, part: None, next_offset: None }));
    }
    drop(value);
    let start = text.floor_char_boundary(request.offset.unwrap_or(0).min(text.len()));
    let end = text.floor_char_boundary(start.saturating_add(VALUE).min(text.len()));
    let part = text.get(start..end).unwrap_or_default().to_owned();
    let next_offset = (end < text.len()).then_some(end);
    let note =
        next_offset.map_or_else(String::new, |next| format!("\n[{} more bytes: go on with offset={next}]", text.len() - end));
    Ok(Answer::new(format!("{part}{note}"), &KvValue { found: true, value: Value::Null, part: Some(part), next_offset }))
}

/// A key and its value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvSet {
    /// The key.
    key: String,
    /// Any JSON value.
    value: Value,
}

/// It is kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KvDone {
    /// The key.
    key: String,
    /// Its version, counted up at each change.
    version: u64,
}

pub(super) fn kv_set(sandbox: &Sandbox, request: KvSet) -> Result<Answer, Answer> {
    let version = sandbox.kv().set(&request.key, request.value)?;
    Ok(Answer::new(format!("set {}", quoted(&request.key)), &KvDone { key: request.key, version }))
}

/// Which key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvDelete {
    /// The key.
    key: String,
}

/// It is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KvDeleted {
    /// Whether there was such a key.
    found: bool,
}

pub(super) fn kv_delete(sandbox: &Sandbox, request: KvDelete) -> Result<Answer, Answer> {
    let found = sandbox.kv().delete(&request.key)?;
    let text = {
        let key = quoted(&request.key);
        if found { format!("deleted {key}") } else { format!("there was no key `{key}`") }
    };
    Ok(Answer::new(text, &KvDeleted { found }))
}

/// Which keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvKeys {
    /// List only keys with this prefix; defaults to all keys.
    #[serde(default)]
    prefix: String,
    /// List only keys after this one: the last one of the page before.
    #[serde(default)]
    after: Option<String>,
}

/// Keys.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KvNames {
    /// The keys, sorted.
    keys: Vec<String>,
    /// Whether there are more.
    truncated: bool,
}

pub(super) fn kv_keys(sandbox: &Sandbox, request: KvKeys) -> Result<Answer, Answer> {
    let page = sandbox.kv().keys_after(&request.prefix, request.after.as_deref())?;
    let mut text = if page.keys.is_empty() { "no keys".to_owned() } else { page.keys.join("\n") };
    if let Some(last) = page.keys.last().filter(|_| page.more) {
        text.push_str(&format!(
            "\n[only the first {}: go on with after={}, or use a longer prefix]",
            page.keys.len(),
            quoted(last)
        ));
    }
    Ok(Answer::new(text, &KvNames { keys: page.keys, truncated: page.more }))
}

/// Which part of the history.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    /// How many rows, at most 200; defaults to 20.
    #[serde(default)]
    limit: Option<usize>,
    /// Only rows with a smaller number: the last one of the page before.
    #[serde(default)]
    before: Option<i64>,
    /// Only calls of this kind: `bash`, `python`, `write_file`, …
    #[serde(default)]
    name: Option<String>,
    /// Only rows with this text in them.
    #[serde(default)]
    grep: Option<String>,
    /// Show this one row, with its output.
    #[serde(default)]
    run: Option<i64>,
    /// Where to begin in the output of `run`, in bytes.
    #[serde(default)]
    output_offset: usize,
}

/// Rows of the history.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Rows {
    /// The rows, newest first.
    runs: Vec<Row>,
    /// What else to know.
    notes: Vec<String>,
}

/// One row.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// Its number.
    run: i64,
    /// The kind of call.
    name: String,
    /// What was run, or what the call was about.
    command: String,
    /// `success`, `error`, `pending` or `interrupted`.
    status: String,
    /// Its exit code.
    exit_code: Option<i32>,
    /// The limit that stopped it.
    limit: Option<String>,
    /// Why a call failed.
    error: Option<String>,
    /// When it began, in milliseconds since 1970.
    started_ms: i64,
    /// How long it took.
    duration_ms: Option<i64>,
    /// The files it changed.
    changes: Vec<Value>,
    /// Whether its output was dropped to keep the history within the limit `history`.
    output_pruned: bool,
    /// Its standard output, when one row is shown.
    stdout: Option<String>,
    /// Its standard error, when one row is shown.
    stderr: Option<String>,
}

pub(super) fn history(sandbox: &Sandbox, request: History) -> Result<Answer, Answer> {
    if let Some(number) = request.run {
        return one(sandbox, number, request.output_offset);
    }
    let limit = request.limit.unwrap_or(20).clamp(1, MOST_ROWS);
    let filter =
        HistoryFilter { limit, before: request.before, name: request.name, grep: request.grep, ..HistoryFilter::default() };
    let (mut runs, mut room, mut more) = (Vec::new(), ROWS, false);
    for run in sandbox.history_with(&filter)? {
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
    let mut text: String = runs.iter().map(Row::render).collect();
    if runs.is_empty() {
        text.push_str("nothing\n");
    }
    notes.iter().for_each(|note| text.push_str(&format!("[{note}]\n")));
    Ok(Answer::new(text.trim_end().to_owned(), &Rows { runs, notes }))
}

fn one(sandbox: &Sandbox, number: i64, offset: usize) -> Result<Answer, Answer> {
    let Some(run) = sandbox.history_run(number)? else {
        return Err(Answer::error(format!("error: there is no run {number}")));
    };
    let ((stdout, stdout_left), (stderr, stderr_left)) = (window(&run.stdout, offset), window(&run.stderr, offset));
    let mut notes = Vec::new();
    if stdout_left + stderr_left > 0 {
        let left = stdout_left.max(stderr_left);
        notes.push(format!("{left} more bytes: go on with output_offset={}", offset + WINDOW));
    }
    if run.output_pruned {
        notes.push("output pruned: the history was full".to_owned());
    } else if run.output_truncated {
        notes.push("only the beginning of the output was recorded".to_owned());
    }
    let all_changes = run.changes.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
    let mut row = row(run, WHOLE_COMMAND, WHOLE_CHANGES);
    if row.changes.len() < all_changes {
        notes.push(format!("only the first {} of {all_changes} changed files", row.changes.len()));
    }
    let mut text = row.render();
    text.push_str(&format!("[stdout]\n{stdout}\n[stderr]\n{stderr}"));
    notes.iter().for_each(|note| text.push_str(&format!("\n[{note}]")));
    (row.stdout, row.stderr) = (Some(stdout), Some(stderr));
    Ok(Answer::new(text, &Rows { runs: vec![row], notes }))
}

fn window(bytes: &[u8], offset: usize) -> (String, usize) {
    let rest = bytes.get(offset..).unwrap_or_default();
    let shown = &rest[..rest.len().min(WINDOW)];
    (String::from_utf8_lossy(shown).into_owned(), rest.len() - shown.len())
}

fn row(run: Run, longest: usize, most_changes: usize) -> Row {
    let command = shortened(run.command, longest);
    let short = |text: Option<String>| text.map(|text| shortened(text, longest));
    let mut changes = match run.changes {
        Some(Value::Array(changes)) => changes,
        _ => Vec::new(),
    };
    changes.truncate(most_changes);
    let mut room = CHANGES_BYTES;
    let fitting = changes.iter().take_while(|change| {
        let left = room.checked_sub(change.to_string().len());
        room = left.unwrap_or(0);
        left.is_some()
    });
    let fitting = fitting.count();
    changes.truncate(fitting);
    Row {
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
    }
}

impl Row {
    // What it takes in an answer: as text and as data.
    fn bytes(&self) -> usize {
        let texts = [Some(&self.command), self.limit.as_ref(), self.error.as_ref()];
        let changes: usize = self.changes.iter().map(|change| change.to_string().len()).sum();
        ROW + 2 * texts.into_iter().flatten().map(String::len).sum::<usize>() + changes
    }

    fn render(&self) -> String {
        let end = match (&self.limit, &self.error, self.exit_code) {
            (Some(limit), _, _) => limit.clone(),
            (_, Some(error), _) => error.clone(),
            (_, _, Some(code)) => format!("exit code {code}"),
            _ => self.status.clone(),
        };
        format!("{} {}: {} [{end}]\n", self.run, self.name, self.command.replace('\n', " ⏎ "))
    }
}
