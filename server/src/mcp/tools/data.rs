//! `kv_…` and `history`.

use runtime::{HistoryFilter, Run, Sandbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::answer::Answer;

/// Most keys or rows of one answer.
const MOST: usize = 1000;
const MOST_ROWS: usize = 200;
/// Bytes of a run's output in one answer.
const WINDOW: usize = 60_000;
/// Longest command text in a list.
const COMMAND: usize = 500;

/// Which key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvGet {
    /// The key.
    key: String,
}

/// A value.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct KvValue {
    /// Whether there is such a key.
    found: bool,
    /// Its JSON value.
    value: Value,
}

pub(super) fn kv_get(sandbox: &Sandbox, request: KvGet) -> Result<Answer, Answer> {
    let value = sandbox.kv().get(&request.key)?;
    let text = value.as_ref().map_or_else(|| format!("there is no key `{}`", request.key), ToString::to_string);
    Ok(Answer::new(text, &KvValue { found: value.is_some(), value: value.unwrap_or_default() }))
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
    Ok(Answer::new(format!("set {}", request.key), &KvDone { key: request.key, version }))
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
    let text = if found { format!("deleted {}", request.key) } else { format!("there was no key `{}`", request.key) };
    Ok(Answer::new(text, &KvDeleted { found }))
}

/// Which keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KvKeys {
    /// How the keys begin; all keys unless told.
    #[serde(default)]
    prefix: String,
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
    let mut keys = sandbox.kv().keys(&request.prefix)?;
    let truncated = keys.len() > MOST;
    keys.truncate(MOST);
    let mut text = if keys.is_empty() { "no keys".to_owned() } else { keys.join("\n") };
    if truncated {
        text.push_str(&format!("\n[only the first {MOST}: use a longer prefix]"));
    }
    Ok(Answer::new(text, &KvNames { keys, truncated }))
}

/// Which part of the history.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    /// How many rows, at most 200; 20 unless told.
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
    let runs: Vec<Row> = sandbox.history_with(&filter)?.into_iter().map(|run| row(run, COMMAND)).collect();
    let mut notes = Vec::new();
    if let Some(last) = runs.last().filter(|_| runs.len() == limit) {
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
    let mut row = row(run, usize::MAX);
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

fn row(run: Run, longest: usize) -> Row {
    let mut command = run.command;
    if command.len() > longest {
        command.truncate(command.floor_char_boundary(longest));
        command.push('…');
    }
    Row {
        run: run.id,
        name: run.name,
        command,
        status: run.status.to_owned(),
        exit_code: run.exit_code,
        limit: run.limit,
        error: run.error,
        started_ms: run.started / 1_000_000,
        duration_ms: run.completed.map(|completed| (completed - run.started) / 1_000_000),
        changes: run.changes.and_then(|changes| changes.as_array().cloned()).unwrap_or_default(),
        output_pruned: run.output_pruned,
        stdout: None,
        stderr: None,
    }
}

impl Row {
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
