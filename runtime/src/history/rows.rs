//! The rows of commands and of the tools that they call. (The rows of the library are written by the recorder.)

use serde_json::{Value, json};
use sqlite_fs::{NewCall, Outcome, Transaction};

use super::changes::{self, CHANGES_TIME, CHANGES_TIME_OVERDUE};
use super::recorder::{Recorder, VIEW};
use crate::run::{ExitStatus, Output, RECORD, Recording};
use crate::tools::{Failure, prefix};
use crate::vfs::{Scope, View};
use crate::{Error, LimitReached};

/// The kind of a call of a tool.
pub(super) const TOOL: &str = "tool";

/// Maximum size of a tool's recorded arguments and result.
const TOOL_BYTES: usize = 8 << 10;
/// The same for a recorded run, which needs all of it for a replay.
const RECORDED_TOOL_BYTES: usize = 1 << 20;

/// Starts the row of a command and returns its number.
pub(crate) fn begin_command(
    transaction: &Transaction,
    name: &str,
    text: &str,
    cwd: &str,
    (view, recording): (Option<Value>, Option<&Recording>),
) -> Result<i64, Error> {
    let mut parameters = json!({ "command": text, "cwd": cwd });
    if let Some(view) = view {
        parameters[VIEW] = view;
    }
    if let Some(recording) = recording {
        parameters[RECORD] = json!(recording);
    }
    let parameters = parameters.to_string();
    Ok(transaction.calls().begin(&NewCall { name, parameters: Some(&parameters), command: text, parent: None })?)
}

/// Completes the row with the outcome of the command.
pub(crate) fn finish_command(recorder: &Recorder, scope: &Scope, view: &View<Transaction>, output: &Output) -> Result<(), Error> {
    let code = i32::from(output.status.code());
    let result = json!({ "exitCode": code }).to_string();
    let limit = output.status.limit().map(LimitReached::to_string);
    // A command that ends by itself is a success, whatever its exit code; one that was stopped is not.
    let killed = match output.status {
        ExitStatus::Signaled(signal) => Some(format!("killed by signal {signal}")),
        ExitStatus::Exited(_) | ExitStatus::Limit(_) => None,
    };
    let usage = serde_json::to_string(&output.usage).unwrap_or_default();
    let time = if output.is_overdue() { CHANGES_TIME_OVERDUE } else { CHANGES_TIME };
    let changes = changes::json(recorder, scope, view, time, None)?;
    view.transaction().calls().finish(
        output.run,
        &Outcome {
            result: Some(&result),
            error: output.refused.as_deref().or(limit.as_deref()).or(killed.as_deref()),
            stdout: &output.stdout,
            stderr: &output.stderr,
            stdout_truncated: output.stdout_truncated,
            stderr_truncated: output.stderr_truncated,
            exit_code: Some(code),
            limit: limit.as_deref(),
            usage: Some(&usage),
            changes: changes.as_deref(),
        },
    )?;
    Ok(())
}

/// Completes the row of a command that did not start, with the reason.
pub(crate) fn finish_refused(transaction: &Transaction, run: i64, reason: &str) -> Result<(), sqlite_fs::Error> {
    transaction.calls().finish(run, &Outcome { error: Some(reason), ..Outcome::default() })
}

/// Starts the row of a tool call and returns its number.
pub(crate) fn begin_tool(
    transaction: &Transaction,
    (run, is_recorded): (i64, bool),
    name: &str,
    arguments: &str,
) -> Result<i64, Error> {
    let parameters = json!({ "tool": name, "arguments": kept(arguments, is_recorded), "parent": run }).to_string();
    let command = format!("tool {name} {}", prefix(arguments, TOOL_BYTES));
    Ok(transaction.calls().begin(&NewCall { name: TOOL, parameters: Some(&parameters), command: &command, parent: Some(run) })?)
}

/// Completes it with the result of the tool.
pub(crate) fn finish_tool(
    transaction: &Transaction,
    (id, is_recorded): (i64, bool),
    result: &Result<String, Failure>,
) -> Result<(), Error> {
    let text = result.as_ref().ok().map(|text| kept(text, is_recorded).to_string());
    let error = result.as_ref().err().map(|failure| format!("{}: {}", failure.kind, failure.message));
    let outcome = Outcome { result: text.as_deref(), error: error.as_deref(), ..Outcome::default() };
    Ok(transaction.calls().finish(id, &outcome)?)
}

/// Starts the row of a custom program that is not a guest, and returns its number.
pub(crate) fn begin_own<S: AsRef<str>>(
    transaction: &Transaction,
    run: i64,
    kind: &str,
    words: &[S],
    cwd: &str,
) -> Result<i64, Error> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let text = words.join(" ");
    let text = prefix(&text, TOOL_BYTES);
    let parameters =
        if text.len() < TOOL_BYTES { json!({ "argv": words, "cwd": cwd }) } else { json!({ "argv": [text], "cwd": cwd }) };
    let parameters = parameters.to_string();
    Ok(transaction.calls().begin(&NewCall { name: kind, parameters: Some(&parameters), command: text, parent: Some(run) })?)
}

/// Completes it.
pub(crate) fn finish_own(transaction: &Transaction, id: i64, result: &Value, error: Option<&str>) -> Result<(), Error> {
    let exit_code = result.get("exitCode").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let text = result.to_string();
    let outcome = Outcome { result: Some(&text), error, exit_code, ..Outcome::default() };
    Ok(transaction.calls().finish(id, &outcome)?)
}

// JSON if it is short; otherwise the beginning of its text.
fn kept(text: &str, is_recorded: bool) -> Value {
    let most = if is_recorded { RECORDED_TOOL_BYTES } else { TOOL_BYTES };
    let short = Some(text).filter(|text| text.len() <= most);
    short.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| Value::from(prefix(text, most)))
}
