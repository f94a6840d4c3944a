//! Keeping the history within its budget: the oldest output is dropped first, then the oldest calls (T-DOS-07).
//!
//! The work per call is bounded. A file that exceeds its budget by far, because it predates budgets or was opened with a tighter
//! quota, shrinks over many calls and does not grow meanwhile.

use rusqlite::Connection;

use super::{OpenCall, Outcome};
use crate::budget::{CALL, CALL_BYTES, History};
use crate::error::Fault;
use crate::rows;
use crate::store::Store;

/// Number of rows examined per call: some milliseconds.
const ROWS_PER_CALL: usize = 1024;
/// Number of bytes dropped per call besides its own.
const BYTES_PER_CALL: u64 = 64 << 20;
/// Amount dropped beyond the need, so that not every call has to prune: at most this much, and a sixteenth of the budget.
const SLACK_BYTES: u64 = 1 << 20;
/// Number of rows fetched at once.
const STEP: i64 = 64;
/// The flag of a dropped stream; 1 means that it was truncated when recorded.
pub(crate) const PRUNED: i64 = 2;
/// The remainder of a command that exceeds the whole budget.
const COMMAND_BYTES: u64 = 256;
/// Number of pages that recording a call may take besides its bytes.
const SPARE_PAGES: u64 = 16;

/// Returns the bytes charged for a call.
pub(super) fn bytes(open: &OpenCall, outcome: &Outcome<'_>) -> u64 {
    let text = |text: Option<&str>| text.map_or(0, str::len);
    let result = if outcome.error.is_some() { outcome.error } else { outcome.result };
    let texts = [Some(open.name.as_str()), open.parameters.as_deref(), Some(open.command.as_str()), result];
    let more = [outcome.limit, outcome.usage, outcome.changes];
    let texts: usize = texts.into_iter().chain(more).map(text).sum();
    2 * CALL_BYTES + (texts + outcome.stdout.len() + outcome.stderr.len()) as u64
}

/// Truncates a call to `room` bytes: its output, then the list of its changes, its parameters, and the text of the command.
pub(super) fn fit(open: &mut OpenCall, outcome: &mut Outcome<'_>, room: u64) {
    let over = |open: &OpenCall, outcome: &Outcome<'_>| bytes(open, outcome).saturating_sub(room);
    let excess = usize::try_from(over(open, outcome)).unwrap_or(usize::MAX);
    if excess > 0 {
        let (stdout, stderr) = (outcome.stdout.len(), outcome.stderr.len());
        let kept = (stdout + stderr).saturating_sub(excess);
        // Half for each stream; the part that one does not need goes to the other.
        let stderr_kept = stderr.min((kept / 2).max(kept.saturating_sub(stdout)));
        let stdout_kept = stdout.min(kept - stderr_kept);
        outcome.stdout_truncated |= stdout_kept < stdout;
        outcome.stderr_truncated |= stderr_kept < stderr;
        outcome.stdout = outcome.stdout.get(..stdout_kept).unwrap_or_default();
        outcome.stderr = outcome.stderr.get(..stderr_kept).unwrap_or_default();
    }
    if over(open, outcome) > 0 {
        outcome.changes = None;
    }
    if over(open, outcome) > 0 {
        open.parameters = None;
    }
    let excess = over(open, outcome);
    if excess > 0 {
        let kept = (open.command.len() as u64).saturating_sub(excess).max(COMMAND_BYTES);
        open.command.truncate(open.command.floor_char_boundary(usize::try_from(kept).unwrap_or(usize::MAX)));
    }
}

impl Store {
    /// Makes room for a call, and returns how many of its `bytes` it may take.
    pub(super) fn make_room_in_history(&mut self, bytes: u64) -> Result<u64, Fault> {
        let mut history = self.history_used()?;
        let before = history.bytes;
        let allowed = self.history_allowed(before)?;
        let wanted = before.saturating_add(bytes);
        if wanted <= allowed {
            return Ok(bytes);
        }
        let slack = SLACK_BYTES.min(allowed / 16);
        let goal = (wanted - allowed).saturating_add(slack).min(bytes.saturating_add(BYTES_PER_CALL));
        let goal = before.saturating_sub(goal);
        prune(&self.connection, &mut history, goal, allowed / 2)?;
        self.set_pruned_history(history);
        // A file above its budget does not grow, but keeps the newest call in preference to older ones.
        let freed = before.saturating_sub(history.bytes);
        Ok(bytes.min(allowed.saturating_sub(history.bytes).max(freed)))
    }

    /// Returns the budget; in a file at its page ceiling, no more than fits in its free pages.
    fn history_allowed(&mut self, used: u64) -> Result<u64, Fault> {
        if !self.is_oversized {
            return Ok(self.quota.history);
        }
        // Space freed by this command is available by then.
        self.flush_doomed()?;
        let connection = &self.connection;
        let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| rows::bytes(row, 0));
        let free = number("freelist_count")? + number("max_page_count")?.saturating_sub(number("page_count")?);
        let room = free.saturating_sub(SPARE_PAGES).saturating_mul(number("page_size")?);
        Ok(self.quota.history.min(used.saturating_add(room)))
    }
}

/// Drops output, oldest first, until the history has `goal` bytes. Once output is down to its share, whole calls are dropped;
/// otherwise many old calls would leave no room for the output of the last ones.
fn prune(connection: &Connection, history: &mut History, goal: u64, share: u64) -> Result<(), Fault> {
    let mut rows = ROWS_PER_CALL;
    while history.bytes > goal && rows > 0 {
        let looked = if history.output > share { drop_outputs(connection, history, goal, share)? } else { 0 };
        let looked = if looked == 0 { drop_calls(connection, history, goal)? } else { looked };
        if looked == 0 {
            return Ok(());
        }
        rows = rows.saturating_sub(looked);
    }
    Ok(())
}

/// Drops the output of a few calls, and returns the number of calls examined.
fn drop_outputs(connection: &Connection, history: &mut History, goal: u64, share: u64) -> Result<usize, Fault> {
    let mut next = connection.prepare_cached(
        "SELECT id, octet_length(stdout)+octet_length(stderr) FROM sandlite_run WHERE id>?1 ORDER BY id LIMIT ?2",
    )?;
    let rows = next.query_map([history.pruned_to, STEP], |row| Ok((row.get::<_, i64>(0)?, rows::bytes(row, 1)?)))?;
    let rows: Vec<(i64, u64)> = rows.collect::<Result<_, _>>()?;
    for &(id, bytes) in &rows {
        if bytes > 0 {
            if history.bytes <= goal || history.output <= share {
                break;
            }
            connection
                .prepare_cached(
                    "UPDATE sandlite_run SET stdout=x'', stderr=x'',
                     stdout_truncated=iif(octet_length(stdout)>0, 2, stdout_truncated),
                     stderr_truncated=iif(octet_length(stderr)>0, 2, stderr_truncated) WHERE id=?1",
                )?
                .execute([id])?;
            history.bytes = history.bytes.saturating_sub(bytes);
            history.output = history.output.saturating_sub(bytes);
        }
        history.pruned_to = id;
    }
    Ok(rows.len())
}

/// Drops a few whole calls, and returns the number of calls examined.
fn drop_calls(connection: &Connection, history: &mut History, goal: u64) -> Result<usize, Fault> {
    let mut oldest = connection.prepare_cached("SELECT id FROM tool_calls ORDER BY id LIMIT ?1")?;
    let ids: Vec<i64> = oldest.query_map([STEP], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in &ids {
        if history.bytes <= goal {
            break;
        }
        let (bytes, output): (u64, u64) =
            connection.prepare_cached(CALL)?.query_row([id], |row| Ok((rows::bytes(row, 0)?, rows::bytes(row, 1)?)))?;
        for statement in ["DELETE FROM tool_calls WHERE id=?1", "DELETE FROM sandlite_run WHERE id=?1"] {
            connection.prepare_cached(statement)?.execute([id])?;
        }
        history.bytes = history.bytes.saturating_sub(bytes);
        history.output = history.output.saturating_sub(output);
    }
    Ok(ids.len())
}
