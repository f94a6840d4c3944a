//! The history of calls: AgentFS's `tool_calls` rows, and a table for the columns it lacks.

mod prune;

pub(crate) use prune::PRUNED;

use std::ffi::CStr;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, MAIN_DB, OptionalExtension, Row, params};

use crate::error::{Error, Fault, FsError};
use crate::rows::{self, join, split};
use crate::schema;
use crate::store::Store;
use crate::transaction::Transaction;

/// Maximum size of the texts of finished calls kept in memory while a transaction is rolled back; further calls keep only their
/// numbers, names and times.
const KEPT_BYTES: usize = 16 << 20;

/// Size of the pieces in which long output is written.
const PIECE_BYTES: usize = 64 << 10;

/// The outcome of a call that ends without `finish`.
const INTERRUPTION: Outcome<'static> = Outcome {
    result: None,
    error: Some("interrupted"),
    stdout: &[],
    stderr: &[],
    stdout_truncated: false,
    stderr_truncated: false,
    exit_code: None,
    limit: None,
    usage: None,
    changes: None,
};

/// A call that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCall<'a> {
    /// AgentFS's name for the kind of call: `bash`, `python`, `read_file`, …
    pub name: &'a str,
    /// JSON text.
    pub parameters: Option<&'a str>,
    /// The full text of the command.
    pub command: &'a str,
    /// The parent call.
    pub parent: Option<i64>,
}

/// The outcome of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// JSON text; stored only without an `error`.
    pub result: Option<&'a str>,
    /// The reason of the failure; sets the status to `error`.
    pub error: Option<&'a str>,
    /// The standard output, as far as the caller keeps it.
    pub stdout: &'a [u8],
    /// The standard error, likewise.
    pub stderr: &'a [u8],
    /// Whether `stdout` is truncated.
    pub stdout_truncated: bool,
    /// Whether `stderr` is truncated.
    pub stderr_truncated: bool,
    /// The exit code, if any.
    pub exit_code: Option<i32>,
    /// The limit that ended it.
    pub limit: Option<&'a str>,
    /// JSON text.
    pub usage: Option<&'a str>,
    /// JSON text.
    pub changes: Option<&'a str>,
}

/// The status of a recorded call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallStatus {
    /// Started by another program that has not finished it.
    Pending,
    /// It succeeded.
    Success,
    /// It failed.
    Error,
    /// The process or the transaction ended before it did.
    Interrupted,
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number; numbers increase.
    pub id: i64,
    /// See [`NewCall::name`].
    pub name: String,
    /// JSON text.
    pub parameters: Option<String>,
    /// JSON text.
    pub result: Option<String>,
    /// The reason of the failure.
    pub error: Option<String>,
    /// The status.
    pub status: CallStatus,
    /// Nanoseconds since 1970.
    pub started: i64,
    /// Nanoseconds since 1970.
    pub completed: Option<i64>,
    /// The parent call, if recorded.
    pub parent: Option<i64>,
    /// The data that only our own calls have.
    pub run: Option<Run>,
}

/// The data for which `tool_calls` has no columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The full text of the command.
    pub command: String,
    /// The standard output; empty in a list without output.
    pub stdout: Vec<u8>,
    /// The standard error, likewise.
    pub stderr: Vec<u8>,
    /// Whether `stdout` is truncated.
    pub stdout_truncated: bool,
    /// Whether `stderr` is truncated.
    pub stderr_truncated: bool,
    /// Whether output was dropped to keep the history within its [quota](crate::Quota::history).
    pub pruned: bool,
    /// The exit code, if any.
    pub exit_code: Option<i32>,
    /// The limit that ended it.
    pub limit: Option<String>,
    /// JSON text.
    pub usage: Option<String>,
    /// JSON text.
    pub changes: Option<String>,
}

/// Selects the calls to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Maximum number of calls; the newest are listed.
    pub limit: usize,
    /// Only calls that started at or after this time.
    pub since: Option<i64>,
    /// Only calls before this number: the last `id` of the previous page.
    pub before: Option<i64>,
    /// Only calls of this name.
    pub name: Option<String>,
    /// Only calls whose command or parameters contain this text, case-sensitively.
    pub text: Option<String>,
    /// Whether to load stdout and stderr.
    pub output: bool,
}

impl Default for Filter {
    fn default() -> Self {
        Self { limit: 100, since: None, before: None, name: None, text: None, output: false }
    }
}

/// A call that has started and has no row yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCall {
    id: i64,
    started: i64,
    name: String,
    parameters: Option<String>,
    command: String,
    parent: Option<i64>,
}

impl OpenCall {
    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.command.len() + 128);
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.started.to_le_bytes());
        bytes.push(u8::from(self.parameters.is_some()));
        for text in [&self.name, self.parameters.as_ref().unwrap_or(&String::new()), &self.command] {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend(self.parent.into_iter().flat_map(i64::to_le_bytes));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let (started, rest) = rest.split_first_chunk::<8>()?;
        let (has_parameters, mut rest) = rest.split_first()?;
        let mut texts = Vec::new();
        for _ in 0..3 {
            let (len, tail) = rest.split_first_chunk::<8>()?;
            let (text, tail) = tail.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
            texts.push(std::str::from_utf8(text).ok()?.to_owned());
            rest = tail;
        }
        let command = texts.pop()?;
        let parameters = texts.pop().filter(|_| *has_parameters == 1);
        let name = texts.pop()?;
        let (id, started) = (i64::from_le_bytes(*id), i64::from_le_bytes(*started));
        let parent = rest.first_chunk::<8>().map(|parent| i64::from_le_bytes(*parent));
        Some(Self { id, started, name, parameters, command, parent })
    }
}

/// The history within a transaction.
pub struct Calls<'a> {
    pub(crate) transaction: &'a Transaction,
}

impl Calls<'_> {
    /// Starts a call and returns its number. It is recorded by [`finish`](Self::finish); if the process dies before the commit,
    /// the next open records it as interrupted, and so does dropping the transaction.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Disk`] if the note next to the file cannot be written.
    pub fn begin(&self, call: &NewCall<'_>) -> Result<i64, Error> {
        self.transaction.with(|store| store.begin_call(call))
    }

    /// Records the outcome of a call.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if no call with this number is open, and [`Error::Interrupted`] if the transaction was
    /// interrupted; the call then stays open.
    pub fn finish(&self, id: i64, outcome: &Outcome<'_>) -> Result<(), Error> {
        self.transaction.with(|store| store.finish_call(id, outcome))
    }

    /// Records a completed call, with its times in nanoseconds since 1970, and returns its number.
    ///
    /// # Errors
    ///
    /// Returns [`Error::DiskFull`] or [`Error::DiskFailed`] if the row cannot be written.
    pub fn record(&self, call: &NewCall<'_>, outcome: &Outcome<'_>, started: i64, completed: i64) -> Result<i64, Error> {
        self.transaction.with(|store| store.record_call(call, outcome, started, completed))
    }

    /// Returns recorded calls, newest first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Call>, Error> {
        self.transaction.with(|store| Ok(list(&store.connection, filter)?))
    }

    /// Returns one recorded call.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the row cannot be read.
    pub fn get(&self, id: i64) -> Result<Option<Call>, Error> {
        self.transaction.with(|store| Ok(get(&store.connection, id)?))
    }
}

impl Store {
    fn open_call(&mut self, call: &NewCall<'_>, started: i64) -> Result<OpenCall, Error> {
        let id = match self.next_call {
            Some(id) => id,
            None => self.run(|store| Ok(rows::next_call(&store.connection)?))?,
        };
        self.first_call.get_or_insert(id);
        Ok(OpenCall {
            id,
            started,
            name: call.name.to_owned(),
            parameters: call.parameters.map(str::to_owned),
            command: call.command.to_owned(),
            parent: call.parent,
        })
    }

    fn record_call(&mut self, call: &NewCall<'_>, outcome: &Outcome<'_>, started: i64, completed: i64) -> Result<i64, Error> {
        let open = self.open_call(call, started)?;
        let id = open.id;
        self.next_call = Some(id + 1);
        self.run(|store| store.insert_call(open, outcome, completed, false))?;
        Ok(id)
    }

    /// Records a completed call, truncated to the budget of the history.
    fn insert_call(&mut self, mut open: OpenCall, outcome: &Outcome<'_>, now: i64, interrupted: bool) -> Result<(), Fault> {
        let mut outcome = outcome.clone();
        let wanted = prune::bytes(&open, &outcome);
        let room = self.make_room_in_history(wanted)?;
        if room < wanted {
            prune::fit(&mut open, &mut outcome, room);
        }
        insert(&self.connection, &open, &outcome, now, interrupted)?;
        let output = (outcome.stdout.len() + outcome.stderr.len()) as u64;
        self.add_to_history(open.id, prune::bytes(&open, &outcome), output);
        Ok(())
    }

    fn begin_call(&mut self, call: &NewCall<'_>) -> Result<i64, Error> {
        let open = self.open_call(call, self.now())?;
        let id = open.id;
        // The outermost call represents those it makes.
        if self.open_calls.is_empty()
            && let Some(turn) = &self.turn
        {
            turn.note(&open.encode())?;
        }
        self.next_call = Some(id + 1);
        self.open_calls.push(open);
        Ok(id)
    }

    fn finish_call(&mut self, id: i64, outcome: &Outcome<'_>) -> Result<(), Error> {
        let Some(at) = self.open_calls.iter().position(|open| open.id == id) else {
            return Err(Error::Invalid { what: "call", reason: format!("call {id} is not open") });
        };
        let (open, now) = (self.open_calls.remove(at), self.now());
        // It stays open if it is interrupted, so that the caller can try again.
        let again = open.clone();
        let inserted = self.run(|store| store.insert_call(open, outcome, now, false));
        match inserted {
            Ok(()) => self.last_finished = Some(again),
            Err(_) => self.open_calls.insert(at, again),
        }
        Ok(inserted?)
    }

    /// Returns the calls that this transaction has recorded so far, except the one with this number.
    pub(crate) fn recorded_calls(&mut self, but: Option<i64>) -> Result<Vec<Call>, Error> {
        // Most transactions record only that one.
        let Some(first) = self.first_call.filter(|first| but != Some(*first) || self.next_call > Some(*first + 1)) else {
            return Ok(Vec::new());
        };
        let mut calls = again_if_interrupted(|| self.run(|store| Ok(since(&store.connection, first)?)))?;
        calls.retain(|call| Some(call.id) != but);
        let mut room = KEPT_BYTES;
        for call in &mut calls {
            let texts = [&call.parameters, &call.result, &call.error].into_iter().flatten().map(String::len).sum::<usize>();
            let command = call.run.as_ref().map_or(0, |run| run.command.len());
            match room.checked_sub(texts + command) {
                Some(left) => room = left,
                None => (call.parameters, call.result, call.run) = (None, None, None),
            }
        }
        Ok(calls)
    }

    /// Records rolled-back calls again under their own numbers, because their side effects have happened.
    pub(crate) fn restore_calls(&mut self, calls: Vec<Call>) -> Result<(), Error> {
        for call in calls {
            let (command, exit_code) = call.run.map_or((String::new(), None), |run| (run.command, run.exit_code));
            let (id, started, parent) = (call.id, call.started, call.parent);
            let open = OpenCall { id, started, name: call.name, parameters: call.parameters, command, parent };
            let (result, error) = (call.result.as_deref(), call.error.as_deref());
            let outcome = Outcome { result, error, exit_code, ..Outcome::default() };
            let (completed, interrupted) = (call.completed.unwrap_or(call.started), call.status == CallStatus::Interrupted);
            self.first_call = Some(self.first_call.map_or(call.id, |first| first.min(call.id)));
            again_if_interrupted(|| self.run(|store| store.insert_call(open.clone(), &outcome, completed, interrupted)))?;
        }
        Ok(())
    }

    /// Records unfinished calls, as the last step of a transaction.
    pub(crate) fn interrupt_calls(&mut self) -> Result<(), Fault> {
        let open = std::mem::take(&mut self.open_calls);
        let now = self.now();
        for call in open {
            self.run(|store| store.insert_call(call, &INTERRUPTION, now, true))?;
        }
        Ok(())
    }
}

// A deadline may have interrupted the database just before its last operation ended; the interruption then affects this one.
fn again_if_interrupted<T>(mut work: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    match work() {
        Err(fault) if fault.as_fs() == FsError::Interrupted => work(),
        result => result,
    }
}

/// Records the call that a dead process left in its note, unless it was committed.
pub(crate) fn recover(connection: &Connection, note: &[u8], now: i64) -> rusqlite::Result<()> {
    let Some(open) = OpenCall::decode(note) else { return Ok(()) };
    if open.id < rows::next_call(connection)? {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    insert(connection, &open, &INTERRUPTION, now, true)?;
    connection.execute_batch("COMMIT")
}

fn insert(connection: &Connection, open: &OpenCall, outcome: &Outcome<'_>, now: i64, interrupted: bool) -> rusqlite::Result<()> {
    let is_long = outcome.stdout.len() + outcome.stderr.len() > PIECE_BYTES;
    let stream = |bytes| stream(bytes, is_long);
    let (status, result) = if outcome.error.is_some() { ("error", None) } else { ("success", outcome.result) };
    connection
        .prepare_cached(
            "INSERT INTO tool_calls (id, name, parameters, result, error, status, started_at, completed_at, duration_ms)
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
        )?
        .execute(params![
            open.id,
            open.name,
            open.parameters,
            result,
            outcome.error,
            status,
            split(open.started).0,
            split(now).0,
            now.saturating_sub(open.started) / 1_000_000
        ])?;
    connection
        .prepare_cached(
            "INSERT INTO sandlite_run (id, command, stdout, stderr, stdout_truncated, stderr_truncated, interrupted,
             exit_code, limit_reached, usage, changes, started_ns, completed_ns, parent)
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
        )?
        .execute(params![
            open.id,
            open.command,
            stream(outcome.stdout),
            stream(outcome.stderr),
            outcome.stdout_truncated,
            outcome.stderr_truncated,
            interrupted,
            outcome.exit_code,
            outcome.limit,
            outcome.usage,
            outcome.changes,
            open.started,
            now,
            open.parent
        ])?;
    if is_long {
        fill(connection, c"stdout", open.id, outcome.stdout)?;
        fill(connection, c"stderr", open.id, outcome.stderr)?;
    }
    Ok(())
}

/// Returns a stream as it is inserted: its bytes, or as many zeros if [`fill`] writes them.
fn stream(bytes: &[u8], is_long: bool) -> ToSqlOutput<'_> {
    if is_long { ToSqlOutput::ZeroBlob(bytes.len() as u64) } else { ToSqlOutput::Borrowed(ValueRef::Blob(bytes)) }
}

/// Writes a stream to its row piece by piece. SQLite holds an inserted value twice in memory, besides its pages.
fn fill(connection: &Connection, column: &CStr, id: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut blob = connection.blob_open(MAIN_DB, c"sandlite_run", column, id, false)?;
    bytes.chunks(PIECE_BYTES).enumerate().try_for_each(|(index, piece)| blob.write_all_at(piece, index * PIECE_BYTES))?;
    blob.close()
}

/// Returns the expression for the parent call; a read-only file of format 1 has no such column.
fn parent_column(connection: &Connection) -> rusqlite::Result<&'static str> {
    Ok(if schema::migrations::format(connection)? > 1 { "r.parent" } else { "NULL" })
}

const COLUMNS: &str = "t.id, t.name, t.parameters, t.result, t.error, t.status, t.started_at, t.completed_at,
  r.command, r.stdout_truncated, r.stderr_truncated, r.interrupted, r.exit_code, r.limit_reached, r.usage, r.changes,
  r.started_ns, r.completed_ns";

/// Returns recorded calls, newest first.
pub(crate) fn list(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<Call>> {
    let output = if filter.output { "r.stdout, r.stderr" } else { "NULL, NULL" };
    let parent = parent_column(connection)?;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, {output}, {parent} FROM tool_calls t LEFT JOIN sandlite_run r ON r.id=t.id
         WHERE t.id<?1 AND (?2 IS NULL OR coalesce(r.started_ns, t.started_at*1000000000)>=?2) AND (?3 IS NULL OR t.name=?3)
           AND (?4 IS NULL OR instr(coalesce(r.command, ''), ?4)>0 OR instr(coalesce(t.parameters, ''), ?4)>0)
         ORDER BY t.id DESC LIMIT ?5"
    ))?;
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let before = filter.before.unwrap_or(i64::MAX);
    let calls = statement.query_map(params![before, filter.since, filter.name, filter.text, limit], call)?;
    calls.collect()
}

/// Returns the calls from a number on, oldest first, without their output.
fn since(connection: &Connection, first: i64) -> rusqlite::Result<Vec<Call>> {
    let parent = parent_column(connection)?;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, NULL, NULL, {parent} FROM tool_calls t LEFT JOIN sandlite_run r ON r.id=t.id WHERE t.id>=?1 ORDER BY t.id"
    ))?;
    statement.query_map([first], call)?.collect()
}

pub(crate) fn get(connection: &Connection, id: i64) -> rusqlite::Result<Option<Call>> {
    let parent = parent_column(connection)?;
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, r.stdout, r.stderr, {parent} FROM tool_calls t LEFT JOIN sandlite_run r ON r.id=t.id WHERE t.id=?1"
        ))?
        .query_row([id], call)
        .optional()
}

/// Returns the first `most` bytes of each stream of a call and the stream's total length, without reading the rest.
pub(crate) fn output(connection: &Connection, id: i64, most: usize) -> rusqlite::Result<[(Vec<u8>, u64); 2]> {
    if !connection.prepare_cached("SELECT 1 FROM sandlite_run WHERE id=?1")?.exists([id])? {
        return Ok(Default::default());
    }
    let read = |column: &CStr| {
        let blob = connection.blob_open(MAIN_DB, c"sandlite_run", column, id, true)?;
        let mut bytes = vec![0; blob.len().min(most)];
        if !bytes.is_empty() {
            blob.read_at_exact(&mut bytes, 0)?;
        }
        Ok::<_, rusqlite::Error>((bytes, blob.len() as u64))
    };
    Ok([read(c"stdout")?, read(c"stderr")?])
}

fn call(row: &Row<'_>) -> rusqlite::Result<Call> {
    // AgentFS's Rust SDK writes an empty text where others write NULL.
    let text = |index| row.get::<_, Option<String>>(index).map(|text| text.filter(|text| !text.is_empty()));
    let interrupted = row.get::<_, Option<bool>>(11)?.unwrap_or(false);
    let status = match row.get_ref(5)?.as_str()? {
        _ if interrupted => CallStatus::Interrupted,
        "success" => CallStatus::Success,
        "error" => CallStatus::Error,
        _ => CallStatus::Pending,
    };
    let run = match row.get::<_, Option<String>>(8)? {
        None => None,
        Some(command) => Some(Run {
            command,
            stdout: row.get::<_, Option<Vec<u8>>>(18)?.unwrap_or_default(),
            stderr: row.get::<_, Option<Vec<u8>>>(19)?.unwrap_or_default(),
            stdout_truncated: row.get(9)?,
            stderr_truncated: row.get(10)?,
            pruned: row.get::<_, i64>(9)? == PRUNED || row.get::<_, i64>(10)? == PRUNED,
            exit_code: row.get(12)?,
            limit: row.get(13)?,
            usage: row.get(14)?,
            changes: row.get(15)?,
        }),
    };
    let started = row.get::<_, Option<i64>>(16)?;
    let completed = row.get::<_, Option<i64>>(17)?;
    Ok(Call {
        id: row.get(0)?,
        name: row.get(1)?,
        parameters: text(2)?,
        result: text(3)?,
        error: text(4)?,
        status,
        started: started.map_or_else(|| row.get(6).map(|seconds| join(seconds, 0)), Ok)?,
        completed: match completed {
            Some(time) => Some(time),
            None => row.get::<_, Option<i64>>(7)?.map(|seconds| join(seconds, 0)),
        },
        parent: row.get(20)?,
        run,
    })
}
