//! The history of a foreign file: as much of it, newest first, as fits in the budget.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, params};

use super::convert::{MILLISECONDS, integer, optional_text, text};
use super::source::Source;
use super::{Import, Imported, refused, too_much};
use crate::budget::CALL_BYTES;
use crate::error::Error;
use crate::rows;
use crate::rows::INO_MAX;
use crate::store::Store;

/// The rule for a run without a call.
const RUN: &str = "run belongs to a call";

/// The part of a history that is imported.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The first call.
    call: i64,
    /// The first call whose output is imported.
    output: i64,
}

impl Source {
    /// Calls `each` with the number of every row and the size of some columns, newest first, until it returns false.
    fn sizes(&self, table: &str, columns: &[&str], mut each: impl FnMut(i64, u64) -> bool) -> Result<(), Error> {
        let lengths: Vec<String> = columns.iter().map(|column| format!("octet_length({column})")).collect();
        let query = format!("SELECT id, {} FROM {table} NOT INDEXED ORDER BY id DESC", lengths.join(", "));
        let mut statement = self.connection.prepare(&query)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let mut bytes = 0u64;
            for index in 1..=columns.len() {
                bytes = bytes.saturating_add(rows::bytes(row, index)?);
            }
            if !each(integer(row, 0, "call")?, bytes) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the part that fits in a budget, as [`Store`] would have kept it: output gets at least half.
    fn kept(&self, has_runs: bool, budget: u64) -> Result<Kept, Error> {
        const CALL: [&str; 4] = ["name", "parameters", "result", "error"];
        const TEXTS: [&str; 4] = ["command", "limit_reached", "usage", "changes"];
        let row = |bytes: u64| bytes.saturating_add(CALL_BYTES);
        let (mut calls, mut runs, mut output) = (0u64, 0u64, 0u64);
        self.sizes("tool_calls", &CALL, |_, bytes| {
            calls = calls.saturating_add(row(bytes));
            true
        })?;
        if has_runs {
            self.sizes("sandlite_run", &TEXTS, |_, bytes| {
                runs = runs.saturating_add(row(bytes));
                true
            })?;
            self.sizes("sandlite_run", &["stdout", "stderr"], |_, bytes| {
                output = output.saturating_add(bytes);
                true
            })?;
        }
        let texts = calls.saturating_add(runs);
        let mut kept = Kept { call: i64::MIN, output: i64::MIN };
        if texts.saturating_add(output) <= budget {
            return Ok(kept);
        }
        // The texts of calls and of their runs have similar sizes, so each table gets a share of their common budget.
        let texts_allowed = budget.saturating_sub(output.min(budget / 2));
        if texts > texts_allowed {
            let share = u64::try_from(u128::from(texts_allowed) * u128::from(calls) / u128::from(texts.max(1))).unwrap_or(0);
            for (table, columns, share) in
                [("tool_calls", &CALL, share), ("sandlite_run", &TEXTS, texts_allowed.saturating_sub(share))]
            {
                if table == "tool_calls" || has_runs {
                    kept.call = kept.call.max(self.first_within(table, columns, CALL_BYTES, share)?);
                }
            }
        }
        if has_runs {
            let room = budget.saturating_sub(texts.min(texts_allowed));
            kept.output = self.first_within("sandlite_run", &["stdout", "stderr"], 0, room)?;
        }
        Ok(kept)
    }

    /// Returns the first row such that it and all later ones fit in `room`.
    fn first_within(&self, table: &str, columns: &[&str], beside: u64, room: u64) -> Result<i64, Error> {
        let (mut used, mut first) = (0u64, i64::MAX);
        self.sizes(table, columns, |id, bytes| {
            used = used.saturating_add(bytes).saturating_add(beside);
            let fits = used <= room;
            if fits {
                first = id;
            }
            fits
        })?;
        Ok(first)
    }
}

impl Store {
    pub(super) fn take_calls(&mut self, source: &Source, import: &Import, imported: &mut Imported) -> Result<(), Error> {
        if !source.has_table("tool_calls") {
            return Ok(());
        }
        let has_runs = source.has("sandlite_run", "completed_ns");
        let kept = source.kept(has_runs, self.quota.history)?;
        let query = format!(
            "SELECT id, name, parameters, result, error, {}, started_at, completed_at, duration_ms FROM tool_calls NOT INDEXED",
            source.column_or("tool_calls", "status", "NULL")
        );
        let mut statement = source.connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        let (mut calls, mut outputs) = (0u64, 0u64);
        while let Some(row) = rows.next()? {
            if integer(row, 0, "call")? < kept.call {
                calls += 1;
                continue;
            }
            self.take_call(row)?;
            imported.calls += 1;
        }
        if has_runs {
            outputs = self.take_runs(source, kept)?;
        }
        if calls + outputs == 0 {
            return Ok(());
        }
        if import.digest.is_some() {
            // A part of the history cannot have the digest of the whole.
            return too_much("history", u64::MAX, self.quota.history);
        }
        imported.note(format!("limit `history`: {calls} old calls and the output of {outputs} more were omitted"));
        Ok(())
    }

    fn take_call(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let id = integer(row, 0, "call")?;
        if !u64::try_from(id).is_ok_and(|id| (1..=INO_MAX).contains(&id)) {
            return Err(refused("call", format!("number {id}")));
        }
        let name = text(row, 1, "call")?;
        let (parameters, error) = (optional_text(row, 2, "call")?, optional_text(row, 4, "call")?);
        let result = optional_text(row, 3, "call")?.filter(|_| error.is_none());
        let status = match optional_text(row, 5, "call")?.as_deref() {
            Some(status @ ("pending" | "success" | "error")) => status.to_owned(),
            _ if error.is_some() => "error".to_owned(),
            _ => "success".to_owned(),
        };
        let started = integer(row, 6, "call")?;
        let completed = match row.get_ref(7)? {
            ValueRef::Integer(number) => Some(number),
            _ => None,
        };
        // LocalSandbox writes milliseconds as seconds, and durations a thousand times too long.
        let milliseconds = started.unsigned_abs() > MILLISECONDS;
        let duration = match (milliseconds, completed, row.get_ref(8)?) {
            (true, Some(completed), _) => Some(completed.saturating_sub(started)),
            (false, _, ValueRef::Integer(duration)) => Some(duration),
            _ => None,
        };
        let seconds = |number: i64| if milliseconds { number.div_euclid(1000) } else { number };
        self.connection
            .prepare_cached(
                "INSERT INTO tool_calls (id, name, parameters, result, error, status, started_at, completed_at, duration_ms)
                 VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
            )?
            .execute(params![id, name, parameters, result, error, status, seconds(started), completed.map(seconds), duration])?;
        Ok(())
    }

    /// Imports the runs one by one, and returns the number of runs imported without their output.
    fn take_runs(&mut self, source: &Source, kept: Kept) -> Result<u64, Error> {
        let parent = source.column_or("sandlite_run", "parent", "NULL");
        let mut statement = source.connection.prepare(&format!(
            "SELECT id, command, octet_length(stdout), octet_length(stderr), stdout_truncated, stderr_truncated, interrupted,
             exit_code, limit_reached, usage, changes, started_ns, completed_ns, rowid, {parent} FROM sandlite_run NOT INDEXED"
        ))?;
        let mut output = source.connection.prepare("SELECT stdout, stderr FROM sandlite_run NOT INDEXED WHERE rowid=?1")?;
        let mut rows = statement.query([])?;
        let mut without = 0;
        while let Some(row) = rows.next()? {
            let id = integer(row, 0, RUN)?;
            if id < kept.call {
                continue;
            }
            let exit_code = match row.get_ref(7)? {
                ValueRef::Null => None,
                _ => Some(i32::try_from(integer(row, 7, RUN)?).unwrap_or(-1)),
            };
            let is_dropped = id < kept.output && (rows::bytes(row, 2)? > 0 || rows::bytes(row, 3)? > 0);
            without += u64::from(is_dropped);
            let flag = |length: usize, flag: usize| -> Result<i64, Error> {
                let was = integer(row, flag, RUN)?.clamp(0, crate::calls::PRUNED);
                Ok(if is_dropped && rows::bytes(row, length)? > 0 { crate::calls::PRUNED } else { was })
            };
            let flags = (flag(2, 4)?, flag(3, 5)?);
            let mut insert = self.connection.prepare_cached(
                "INSERT INTO sandlite_run (id, command, stdout, stderr, stdout_truncated, stderr_truncated, interrupted,
                 exit_code, limit_reached, usage, changes, started_ns, completed_ns, parent)
                 VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
            )?;
            // The bytes are copied from one file to the other without an intermediate copy.
            let mut found = output.query([integer(row, 13, RUN)?])?;
            let streams = if is_dropped { None } else { found.next()? };
            let blob = |index: usize| match streams.map(|row| row.get_ref(index)).transpose()? {
                None => Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&[]))),
                Some(value @ ValueRef::Blob(_)) => Ok(ToSqlOutput::Borrowed(value)),
                Some(_) => Err(refused(RUN, format!("the output of run {id} is not bytes"))),
            };
            insert.execute(params![
                id,
                text(row, 1, RUN)?,
                blob(0)?,
                blob(1)?,
                flags.0,
                flags.1,
                integer(row, 6, RUN)? != 0,
                exit_code,
                optional_text(row, 8, RUN)?,
                optional_text(row, 9, RUN)?,
                optional_text(row, 10, RUN)?,
                integer(row, 11, RUN)?,
                integer(row, 12, RUN)?,
                match row.get_ref(14)? {
                    ValueRef::Null => None,
                    _ => Some(integer(row, 14, RUN)?),
                }
            ])?;
        }
        Ok(without)
    }
}
