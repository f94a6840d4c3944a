//! Budgets besides files: bytes of names, keys, sessions and history (T-DOS-07).
//!
//! Each sum is stored in one row of `sandlite_usage`, written in the transaction that changes it, so that opening a file with 100
//! 000 names does not count them. A missing sum is counted from the rows, and so is every sum after another program wrote to the
//! file. A wrong sum in a forged file only lets that file grow, up to its page ceiling.
//!
//! Every command adds to the history, and writing an additional page each time would be noticeable. Its sum may therefore lag: it
//! covers calls up to `counted_to`, and the few after that are added when the file is opened.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Error, Fault, FsError};
use crate::past;
use crate::quota::Usage;
use crate::rows::{self, signed};
use crate::store::Store;

/// Overhead of a directory entry besides its name: a row and two index entries.
pub(crate) const ENTRY_BYTES: u64 = 64;
/// Overhead of a key or a session besides its texts.
const ROW_BYTES: u64 = 64;
/// Overhead of a recorded call besides its texts and output, in each of its two tables.
pub(crate) const CALL_BYTES: u64 = 128;
/// Maximum number of calls by which the stored sum may lag, few enough to be added at every start.
const BEHIND_MAX: i64 = 64;

const NAMES: &str = "SELECT (SELECT coalesce(sum(64+octet_length(name)), 0) FROM fs_dentry)
  + (SELECT coalesce(sum(octet_length(target)), 0) FROM fs_symlink)";
const HIDDEN: &str = "SELECT coalesce(sum(64+octet_length(path)+octet_length(parent_path)), 0) FROM fs_whiteout";
const KEYS: &str = "SELECT coalesce(sum(64+2*octet_length(key)+octet_length(value)), 0) FROM kv_store";
const SESSIONS: &str =
    "SELECT coalesce(sum(64+2*octet_length(name)+2*octet_length(part)+octet_length(state)), 0) FROM sandlite_session";
/// The bytes of one row; SQLite knows the lengths without reading the values.
macro_rules! call_bytes {
    () => {
        "128+octet_length(name)+coalesce(octet_length(parameters), 0)+coalesce(octet_length(result), 0)+coalesce(octet_length(error), 0)"
    };
}
macro_rules! run_bytes {
    () => {
        "128+octet_length(command)+octet_length(stdout)+octet_length(stderr)+coalesce(octet_length(limit_reached), 0)\
         +coalesce(octet_length(usage), 0)+coalesce(octet_length(changes), 0)"
    };
}
const HISTORY: &str = concat!(
    "SELECT (SELECT coalesce(sum(",
    call_bytes!(),
    "), 0) FROM tool_calls WHERE id>?1) + (SELECT coalesce(sum(",
    run_bytes!(),
    "), 0) FROM sandlite_run WHERE id>?1), (SELECT coalesce(sum(octet_length(stdout)+octet_length(stderr)), 0)",
    " FROM sandlite_run WHERE id>?1)"
);
/// The bytes of one call with its run, and of its output.
pub(crate) const CALL: &str = concat!(
    "SELECT (SELECT coalesce(sum(",
    call_bytes!(),
    "), 0) FROM tool_calls WHERE id=?1) + (SELECT coalesce(sum(",
    run_bytes!(),
    "), 0) FROM sandlite_run WHERE id=?1), (SELECT coalesce(sum(octet_length(stdout)+octet_length(stderr)), 0)",
    " FROM sandlite_run WHERE id=?1)"
);

/// Returns the bytes charged for a directory entry.
pub(crate) fn entry_bytes(name: &str) -> u64 {
    ENTRY_BYTES.saturating_add(name.len() as u64)
}

/// Returns the bytes charged for a key and its value.
pub(crate) fn key_bytes(key: &str, value_bytes: u64) -> u64 {
    ROW_BYTES.saturating_add(2 * key.len() as u64).saturating_add(value_bytes)
}

/// Returns the bytes charged for a part of a session.
pub(crate) fn session_bytes(name: &str, part: &str, state_bytes: u64) -> u64 {
    ROW_BYTES.saturating_add(2 * (name.len() + part.len()) as u64).saturating_add(state_bytes)
}

/// The sum of the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) bytes: u64,
    /// The part of it that is output.
    pub(crate) output: u64,
    /// The last call included in the sum.
    pub(crate) counted_to: i64,
    /// The last call whose output was dropped, along with that of all earlier calls.
    pub(crate) pruned_to: i64,
}

/// The sums; `None` if not counted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    names: Option<u64>,
    keys: Option<u64>,
    sessions: Option<u64>,
    history: Option<History>,
}

/// Data besides files that has its own budget.
#[derive(Clone, Copy)]
pub(crate) enum Values {
    Keys,
    Sessions,
}

impl Values {
    fn count(self, connection: &Connection) -> rusqlite::Result<u64> {
        match self {
            Self::Keys => sum(connection, KEYS, []),
            // A file that was only ever read may be older than the table.
            Self::Sessions if !rows::has_table(connection, "sandlite_session")? => Ok(0),
            Self::Sessions => sum(connection, SESSIONS, []),
        }
    }
}

impl Sums {
    fn of(&mut self, values: Values) -> &mut Option<u64> {
        match values {
            Values::Keys => &mut self.keys,
            Values::Sessions => &mut self.sessions,
        }
    }
}

/// The current sums, and the stored ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budgets {
    now: Sums,
    stored: Sums,
    loaded: bool,
    /// Calls included in the stored sum were pruned, so adding later ones does not make it current.
    pruned: bool,
}

fn number(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(index)?.and_then(|number| u64::try_from(number).ok()))
}

fn stored(connection: &Connection) -> rusqlite::Result<Sums> {
    let found = connection
        .prepare_cached("SELECT names, keys, sessions, history, output, counted_to, pruned_to FROM sandlite_usage WHERE id=1")?
        .query_row([], |row| {
            let history = match (number(row, 3)?, number(row, 4)?, row.get::<_, Option<i64>>(5)?) {
                (Some(bytes), Some(output), Some(counted_to)) => {
                    Some(History { bytes, output, counted_to, pruned_to: row.get::<_, Option<i64>>(6)?.unwrap_or(0) })
                }
                _ => None,
            };
            Ok(Sums { names: number(row, 0)?, keys: number(row, 1)?, sessions: number(row, 2)?, history })
        })
        .optional()?;
    Ok(found.unwrap_or_default())
}

fn sum(connection: &Connection, query: &str, parameters: impl rusqlite::Params) -> rusqlite::Result<u64> {
    connection.prepare_cached(query)?.query_row(parameters, |row| rows::bytes(row, 0))
}

fn count_names(connection: &Connection) -> rusqlite::Result<u64> {
    let hidden = if crate::whiteout::exists(connection, "main")? { sum(connection, HIDDEN, [])? } else { 0 };
    Ok(sum(connection, NAMES, [])?.saturating_add(hidden))
}

/// Updates the stored sum to include the last call.
fn count_history(connection: &Connection, stored: Option<History>) -> rusqlite::Result<History> {
    let mut history = stored.unwrap_or_default();
    let (bytes, output): (u64, u64) = connection
        .prepare_cached(HISTORY)?
        .query_row([history.counted_to], |row| Ok((rows::bytes(row, 0)?, rows::bytes(row, 1)?)))?;
    history.bytes = history.bytes.saturating_add(bytes);
    history.output = history.output.saturating_add(output);
    history.counted_to = rows::next_call(connection)?.saturating_sub(1);
    Ok(history)
}

/// Returns all budget usage, for a reader.
pub(crate) fn used(connection: &Connection) -> rusqlite::Result<Usage> {
    let known = if rows::has_table(connection, "sandlite_usage")? { stored(connection)? } else { Sums::default() };
    let or = |known: Option<u64>, count: fn(&Connection) -> rusqlite::Result<u64>| known.map_or_else(|| count(connection), Ok);
    Ok(Usage {
        names: or(known.names, count_names)?,
        keys: or(known.keys, |connection| Values::Keys.count(connection))?,
        sessions: or(known.sessions, |connection| Values::Sessions.count(connection))?,
        history: count_history(connection, known.history)?.bytes,
        past: past::used(connection)?,
        ..rows::usage(connection)?
    })
}

/// Discards the sums in a file that another program wrote to.
pub(crate) fn forget(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "UPDATE sandlite_usage SET names=NULL, keys=NULL, sessions=NULL, history=NULL, output=NULL, counted_to=NULL, pruned_to=NULL;",
    )
}

impl Store {
    fn budgets(&mut self) -> Result<&mut Budgets, Fault> {
        if !self.budgets.loaded {
            let stored = stored(&self.connection)?;
            let now = if self.distrusts_sums { Sums::default() } else { stored };
            self.budgets = Budgets { now: Sums { history: None, ..now }, stored, loaded: true, pruned: false };
        }
        Ok(&mut self.budgets)
    }

    fn names_used(&mut self) -> Result<u64, Fault> {
        if let Some(used) = self.budgets()?.now.names {
            return Ok(used);
        }
        // The rows of removed links may still exist.
        self.flush_doomed()?;
        let used = self.interrupter.reading(|| count_names(&self.connection))?;
        self.budgets.now.names = Some(used);
        Ok(used)
    }

    fn values_used(&mut self, values: Values) -> Result<u64, Fault> {
        if let Some(used) = *self.budgets()?.now.of(values) {
            return Ok(used);
        }
        let used = self.interrupter.reading(|| values.count(&self.connection))?;
        *self.budgets.now.of(values) = Some(used);
        Ok(used)
    }

    pub(crate) fn history_used(&mut self) -> Result<History, Fault> {
        let distrusted = self.distrusts_sums;
        let budgets = self.budgets()?;
        if let Some(history) = budgets.now.history {
            return Ok(history);
        }
        let stored = budgets.stored.history.filter(|_| !distrusted);
        let history = self.interrupter.reading(|| count_history(&self.connection, stored))?;
        self.budgets.now.history = Some(history);
        Ok(history)
    }

    /// Charges a recorded call.
    pub(crate) fn add_to_history(&mut self, id: i64, bytes: u64, output: u64) {
        if let Some(history) = &mut self.budgets.now.history {
            history.bytes = history.bytes.saturating_add(bytes);
            history.output = history.output.saturating_add(output);
            history.counted_to = history.counted_to.max(id);
            // A command is recorded after the calls it made.
            history.pruned_to = history.pruned_to.min(id.saturating_sub(1));
        }
    }

    /// Updates the sums after calls or their output were dropped.
    pub(crate) fn set_pruned_history(&mut self, history: History) {
        self.budgets.now.history = Some(history);
        self.budgets.pruned = true;
    }

    /// Returns the usage, including the transaction's own changes.
    pub(crate) fn used(&mut self) -> Result<Usage, Fault> {
        Ok(Usage {
            names: self.names_used()?,
            keys: self.values_used(Values::Keys)?,
            sessions: self.values_used(Values::Sessions)?,
            history: self.history_used()?.bytes,
            past: past::used(&self.connection)?.saturating_add(self.past.bytes()),
            ..self.usage()?
        })
    }

    /// Checks whether names may grow by `added` bytes after `removed` are freed. Charges nothing.
    pub(crate) fn check_names(&mut self, added: u64, removed: u64) -> Result<(), Fault> {
        let used = self.names_used()?.saturating_sub(removed).saturating_add(added);
        if added > removed && used > self.quota.names { Err(FsError::NoSpace.into()) } else { Ok(()) }
    }

    /// Charges added and removed names. If the sum is unknown, the rows are counted when it is needed.
    pub(crate) fn change_names(&mut self, added: u64, removed: u64) -> Result<(), Fault> {
        if let Some(used) = &mut self.budgets()?.now.names {
            *used = used.saturating_add(added).saturating_sub(removed);
        }
        Ok(())
    }

    /// Frees the target of a symbolic link. Its name was removed before in this transaction, so the sum is loaded if it exists.
    pub(crate) fn target_is_gone(&mut self, bytes: u64) {
        if let Some(used) = &mut self.budgets.now.names {
            *used = used.saturating_sub(bytes);
        }
    }

    /// Replaces `removed` bytes by `added`, if the budget allows it.
    pub(crate) fn charge_values(&mut self, values: Values, added: u64, removed: u64) -> Result<(), Error> {
        let used = self.run(|store| store.values_used(values))?.saturating_sub(removed).saturating_add(added);
        let (limit, allowed) = match values {
            Values::Keys => ("keys", self.quota.keys),
            Values::Sessions => ("sessions", self.quota.sessions),
        };
        if added > removed && used > allowed {
            return Err(Error::Quota { limit, allowed, needed: used });
        }
        *self.budgets.now.of(values) = Some(used);
        Ok(())
    }

    /// Writes the changed sums, as the last step before a commit.
    pub(crate) fn flush_sums(&mut self) -> Result<(), Fault> {
        let Budgets { now, stored, loaded, pruned } = self.budgets;
        if !loaded && !self.distrusts_sums {
            return Ok(());
        }
        let current = match (now.history, stored.history) {
            (Some(now), Some(stored)) if !self.distrusts_sums && !pruned && now.counted_to - stored.counted_to < BEHIND_MAX => {
                Some(stored)
            }
            (None, stored) if !self.distrusts_sums => stored,
            (now, _) => now,
        };
        let sums = Sums { history: current, ..now };
        if loaded && sums == stored {
            return Ok(());
        }
        let history = sums.history;
        self.connection
            .prepare_cached(
                "INSERT INTO sandlite_usage (id, names, keys, sessions, history, output, counted_to, pruned_to)
                 VALUES (1,?1,?2,?3,?4,?5,?6,?7)
                 ON CONFLICT (id) DO UPDATE SET names=excluded.names, keys=excluded.keys, sessions=excluded.sessions,
                 history=excluded.history, output=excluded.output, counted_to=excluded.counted_to, pruned_to=excluded.pruned_to",
            )?
            .execute(params![
                sums.names.map(signed),
                sums.keys.map(signed),
                sums.sessions.map(signed),
                history.map(|history| signed(history.bytes)),
                history.map(|history| signed(history.output)),
                history.map(|history| history.counted_to),
                history.map(|history| history.pruned_to)
            ])?;
        self.budgets.stored = sums;
        self.budgets.pruned = false;
        Ok(())
    }
}
