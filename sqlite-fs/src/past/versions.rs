//! The list of versions: its first row, one more for each commit, and pruning of the oldest.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::labels::remove_labels;
use super::{Head, LABELS, Table, Tables, first_id};
use crate::database::Database;
use crate::error::{Error, Fault, FsError, damaged};
use crate::node::Ino;
use crate::reader::Reader;
use crate::rows::{self, signed};
use crate::store::Store;
use crate::transaction::Transaction;

/// Maximum number of rows that one commit prunes from each table, besides as many as it saved: some milliseconds.
const ROWS_PER_COMMIT: u64 = 4096;
/// Amount pruned beyond the need, so that not every commit has to prune: at most this much, and a sixteenth of the budget.
const SLACK_BYTES: u64 = 1 << 20;

/// The creator of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VersionKind {
    /// The oldest existing one. Its changes are no longer known.
    Base,
    /// A transaction.
    Commit,
    /// Another program, such as one of AgentFS's SDKs. Rows that it changed are unknown in earlier versions.
    Outside,
}

/// One state of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its number: one more than that of the version before.
    pub number: i64,
    /// When it was committed, in nanoseconds since 1970.
    pub time: i64,
    /// The recorded call that created it, if any.
    pub call: Option<i64>,
    /// Its creator.
    pub kind: VersionKind,
    /// Bytes of the rows that it saved.
    pub bytes: u64,
    /// The digest of its tree, if it was computed.
    pub digest: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
}

/// The part of the past to keep. All given limits apply; the newest version always remains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Maximum number of versions.
    pub versions: Option<u64>,
    /// Only versions that were committed at or after this time, in nanoseconds since 1970.
    pub since: Option<i64>,
    /// Maximum number of bytes of saved rows.
    pub bytes: Option<u64>,
}

/// The result of pruning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of versions.
    pub versions: u64,
    /// Number of bytes of saved rows.
    pub bytes: u64,
    /// Number of labels removed with their versions.
    pub labels: u64,
    /// The oldest remaining version.
    pub oldest: i64,
}

/// Creates the first version of a database: the state before any change.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<Head> {
    let (mark, entries) = (rows::next_ino(connection)?, rows::next_entry(connection)?);
    Ok(Head { version: 0, mark, entries, total: 0, outside: 0, is_stored: false })
}

/// Returns the version that another program created after `head`.
pub(super) fn visited(connection: &Connection, head: Head) -> rusqlite::Result<Head> {
    let version = head.version + 1;
    let (mark, entries) = (rows::next_ino(connection)?.max(head.mark), rows::next_entry(connection)?.max(head.entries));
    Ok(Head { version, mark, entries, outside: version, is_stored: false, ..head })
}

/// Records that another program wrote to a file while it was closed.
pub(crate) fn note_visit(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    match super::newest(connection)? {
        Some(head) => {
            let changed = super::encode(super::visit::changed(connection, head.version)?);
            insert(connection, visited(connection, head)?, now, None, &changed)
        }
        None => Ok(()),
    }
}

/// Records that another program wrote to a file if its newest inode or entry has a number that no version assigned. Returns
/// whether it did.
pub(crate) fn note_strangers(connection: &Connection, now: i64) -> rusqlite::Result<bool> {
    let is_visited = has_strangers(connection)?;
    if is_visited {
        note_visit(connection, now)?;
    }
    Ok(is_visited)
}

/// Returns whether the newest inode or entry has a number that no version assigned: another program created it.
pub(crate) fn has_strangers(connection: &Connection) -> rusqlite::Result<bool> {
    let Some(head) = super::newest(connection)? else { return Ok(false) };
    Ok(rows::next_ino(connection)? > head.mark || rows::next_entry(connection)? > head.entries)
}

/// Stores the row of the first version.
fn store_first(connection: &Connection, head: Head) -> rusqlite::Result<()> {
    let time: i64 = connection
        .prepare_cached("SELECT coalesce(max(ctime), 0), coalesce(max(ctime_nsec), 0) FROM fs_inode WHERE ino=1")?
        .query_row([], |row| Ok(rows::join(row.get(0)?, row.get(1)?)))?;
    insert(connection, head, time, None, &[])
}

// Calls that only read may be recorded in the same transaction before the one that changes something, and its child calls after
// it: the last call without a parent is the transaction's own.
fn insert(connection: &Connection, head: Head, time: i64, first_call: Option<i64>, inodes: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO sandlite_version (id, time_ns, call, mark, entries, total, outside, inodes)
             VALUES (?1, ?2, (SELECT max(id) FROM sandlite_run WHERE id>=?3 AND parent IS NULL), ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            head.version,
            time,
            first_call,
            signed(head.mark),
            head.entries,
            signed(head.total),
            head.outside,
            inodes
        ])?;
    Ok(())
}

/// Removes the rows saved by a version and all earlier ones.
fn remove_saved(connection: &Connection, up_to: i64) -> rusqlite::Result<()> {
    let tables = Tables::of(connection)?;
    for table in tables.iter().filter(|table| !matches!(table, Table::Inode)) {
        connection.prepare_cached(table.cut())?.execute([first_id(up_to + 1)])?;
    }
    if !tables.has(Table::Inode) {
        return Ok(());
    }
    let mut lists = connection.prepare_cached("SELECT id, inodes FROM sandlite_version WHERE id<=?1")?;
    let mut remove = connection.prepare_cached("DELETE FROM sandlite_past_inode WHERE id=?1")?;
    let mut found = lists.query([up_to])?;
    while let Some(row) = found.next()? {
        for ino in list_of(row, 1)? {
            remove.execute([super::inode_id(ino, row.get(0)?)])?;
        }
    }
    Ok(())
}

/// Reads the list of inodes in a version's row.
pub(super) fn list_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Ino>> {
    let bytes = row.get_ref(column)?.as_bytes().map_err(|_| damaged("a list of inodes is not bytes"))?;
    super::decode(bytes).ok_or_else(|| damaged("a list of inodes is invalid"))
}

/// Removes all versions except the newest, which is the only one that needs no saved rows.
fn remove_all_but(connection: &Connection, newest: i64) -> rusqlite::Result<()> {
    for table in Tables::of(connection)?.iter() {
        connection.execute_batch(table.clear())?;
    }
    connection.prepare_cached("UPDATE sandlite_version SET inodes=x'' WHERE id=?1")?.execute([newest])?;
    connection.prepare_cached("DELETE FROM sandlite_version WHERE id<?1")?.execute([newest])?;
    super::digest::forget(connection)?;
    remove_labels(connection, newest)
}

impl Store {
    /// Stores the version of this transaction, as the last step before a commit.
    pub(crate) fn flush_version(&mut self) -> Result<(), Fault> {
        if !self.past.is_changed() {
            return Ok(());
        }
        let head = self.past.head(&self.connection)?;
        if !self.past.keeps {
            return self.break_off(head);
        }
        let new = Head {
            version: head.version + 1,
            mark: self.next_ino_if_known().map_or(head.mark, |next| next.max(head.mark)),
            entries: self.next_entry_if_known().map_or(head.entries, |next| next.max(head.entries)),
            total: head.total.saturating_add(self.past.bytes.get()),
            outside: head.outside,
            is_stored: true,
        };
        if !head.is_stored && head.outside == head.version && head.version > 0 {
            insert(&self.connection, head, self.now(), None, &self.past.strangers.take())?;
        } else if !head.is_stored {
            store_first(&self.connection, head)?;
        }
        if new.version >= super::VERSION_MAX {
            return Err(damaged("version numbers are exhausted").into());
        }
        let inodes = super::encode(self.past.inodes.take());
        insert(&self.connection, new, self.now(), self.first_call, &inodes)?;
        if self.past.is_overflowed.get() || self.past.allowed == 0 {
            remove_all_but(&self.connection, new.version)?;
        } else {
            self.prune_to_budget(new)?;
        }
        self.past.set_head(new);
        Ok(())
    }

    /// Drops the existing versions, because versions are not kept and they would be wrong after this transaction.
    fn break_off(&mut self, head: Head) -> Result<(), Fault> {
        if super::newest(&self.connection)?.is_some() {
            remove_all_but(&self.connection, head.version.saturating_add(1))?;
        }
        self.past.forget();
        Ok(())
    }

    /// Keeps the saved rows within their budget. The work per commit is bounded: a file that exceeds the budget by far shrinks
    /// over many commits.
    fn prune_to_budget(&mut self, newest: Head) -> Result<(), Fault> {
        let allowed = self.past.allowed;
        // Everything ever saved fits, so the remaining amount need not be determined.
        if newest.total <= allowed {
            return Ok(());
        }
        let Some(oldest) = oldest(&self.connection)? else { return Ok(()) };
        let used = newest.total.saturating_sub(oldest.total);
        if used <= allowed {
            return Ok(());
        }
        let slack = SLACK_BYTES.min(allowed / 16);
        let goal = newest.total.saturating_sub(allowed.saturating_sub(slack));
        let keep = connection_first(&self.connection, newest.version, |_, total, _| total < goal)?;
        prune(&self.connection, oldest.version, keep, Some(ROWS_PER_COMMIT))?;
        Ok(())
    }
}

/// Returns the first version, from the oldest on, for which `is_over` is false; it is called with a version's number, sum and
/// time.
fn connection_first(connection: &Connection, newest: i64, is_over: impl Fn(i64, u64, i64) -> bool) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT id, total, time_ns FROM sandlite_version ORDER BY id")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let (id, total, time) = (row.get(0)?, rows::bytes(row, 1)?, row.get(2)?);
        if id >= newest || !is_over(id, total, time) {
            return Ok(id);
        }
    }
    Ok(newest)
}

pub(crate) fn oldest(connection: &Connection) -> rusqlite::Result<Option<Head>> {
    connection
        .prepare_cached("SELECT id, mark, entries, total, outside FROM sandlite_version ORDER BY id LIMIT 1")?
        .query_row([], super::head_of)
        .optional()
}

/// Drops the versions before `keep`, as far as this number of saved rows allows.
fn prune(connection: &Connection, oldest: i64, mut keep: i64, most: Option<u64>) -> rusqlite::Result<()> {
    if let Some(most) = most {
        // The rows of a version are removed together; otherwise its predecessor would be incomplete.
        for table in Tables::of(connection)?.iter().filter(|table| !matches!(table, Table::Inode)) {
            let query = format!("SELECT id FROM {} ORDER BY id LIMIT 1 OFFSET ?1", table.name());
            let id: Option<i64> = connection.prepare_cached(&query)?.query_row([signed(most)], |row| row.get(0)).optional()?;
            if let Some(id) = id {
                keep = keep.min(id >> super::NUMBER_BITS).max(oldest + 1);
            }
        }
    }
    if keep > oldest {
        remove_saved(connection, keep)?;
        connection.prepare_cached("UPDATE sandlite_version SET inodes=x'' WHERE id=?1")?.execute([keep])?;
        remove_labels(connection, keep)?;
        connection.prepare_cached("DELETE FROM sandlite_version WHERE id<?1")?.execute([keep])?;
    }
    Ok(())
}

/// Returns the bytes of saved rows.
pub(crate) fn used(connection: &Connection) -> rusqlite::Result<u64> {
    if !rows::has_table(connection, "sandlite_version")? {
        return Ok(0);
    }
    let (Some(newest), Some(oldest)) = (super::newest(connection)?, oldest(connection)?) else { return Ok(0) };
    Ok(newest.total.saturating_sub(oldest.total))
}

fn version(row: &Row<'_>) -> rusqlite::Result<Version> {
    let (number, outside): (i64, i64) = (row.get(0)?, row.get(4)?);
    let before: Option<i64> = row.get(6)?;
    let digest = match row.get_ref(5)?.as_blob_or_null() {
        Ok(None) => None,
        Ok(Some(bytes)) if bytes.len() == blake3::OUT_LEN => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        _ => return Err(damaged(format!("version {number} has an invalid digest"))),
    };
    let kind = match before {
        None => VersionKind::Base,
        Some(_) if outside == number => VersionKind::Outside,
        Some(_) => VersionKind::Commit,
    };
    Ok(Version {
        number,
        time: row.get(1)?,
        call: row.get(2)?,
        kind,
        bytes: before.map_or(0, |before| row.get::<_, i64>(3).map_or(0, |total| total.saturating_sub(before)).unsigned_abs()),
        digest,
        labels: Vec::new(),
    })
}

/// Returns versions below a number, newest first.
pub(crate) fn list(connection: &Connection, before: Option<i64>, limit: usize) -> rusqlite::Result<Vec<Version>> {
    if !rows::has_table(connection, "sandlite_version")? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT v.id, v.time_ns, v.call, v.total, v.outside, v.digest,
           (SELECT p.total FROM sandlite_version p WHERE p.id<v.id ORDER BY p.id DESC LIMIT 1)
         FROM sandlite_version v WHERE v.id<?1 ORDER BY v.id DESC LIMIT ?2",
    )?;
    let found = statement.query_map([before.unwrap_or(i64::MAX), signed(limit as u64)], version)?;
    let mut versions: Vec<Version> = found.collect::<Result<_, _>>()?;
    if let (Some(last), Some(first)) = (versions.first().map(|v| v.number), versions.last().map(|v| v.number))
        && rows::has_table(connection, LABELS)?
    {
        let mut names = connection
            .prepare_cached("SELECT name, version FROM sandlite_label WHERE version BETWEEN ?1 AND ?2 ORDER BY name")?;
        let mut found = names.query([first, last])?;
        while let Some(row) = found.next()? {
            let (name, number): (String, i64) = (row.get(0)?, row.get(1)?);
            if let Some(version) = versions.iter_mut().find(|version| version.number == number) {
                version.labels.push(name);
            }
        }
    }
    Ok(versions)
}

impl Reader {
    /// Returns versions before a number, newest first: the last one of a page is the start of the next page.
    pub fn versions(&self, before: Option<i64>, limit: usize) -> Result<Vec<Version>, Error> {
        Ok(self.rows(|connection| Ok(list(connection, before, limit)?))?)
    }

    /// Returns one version.
    pub fn version(&self, number: i64) -> Result<Version, Error> {
        let found = self.rows(|connection| Ok(list(connection, number.checked_add(1), 1)?))?;
        match found.into_iter().next().filter(|version| version.number == number) {
            Some(version) => Ok(version),
            None => Err(self.rows(|connection| Ok(super::at::none(connection, number)?))?),
        }
    }

    /// Returns the newest version committed at or before a time.
    pub fn version_at(&self, time: i64) -> Result<Option<Version>, Error> {
        let number = self.rows(|connection| {
            if !rows::has_table(connection, "sandlite_version")? {
                return Ok(None);
            }
            let mut statement =
                connection.prepare_cached("SELECT id FROM sandlite_version WHERE time_ns<=?1 ORDER BY id DESC LIMIT 1")?;
            Ok(statement.query_row([time], |row| row.get::<_, i64>(0)).optional()?)
        })?;
        number.map(|number| self.version(number)).transpose()
    }

    /// Returns the version that a recorded call created.
    pub fn version_of(&self, call: i64) -> Result<Option<Version>, Error> {
        let number = self.rows(|connection| {
            if !rows::has_table(connection, "sandlite_version")? {
                return Ok(None);
            }
            let mut statement =
                connection.prepare_cached("SELECT id FROM sandlite_version WHERE call=?1 ORDER BY id DESC LIMIT 1")?;
            Ok(statement.query_row([call], |row| row.get::<_, i64>(0)).optional()?)
        })?;
        number.map(|number| self.version(number)).transpose()
    }
}

impl Database {
    /// Reads a version like [`reader`](Self::reader) reads the committed state: the same operations on files, keys and sessions.
    ///
    /// ```
    /// # use sqlite_fs::Database;
    /// let database = Database::options().open()?;
    /// for text in ["one", "two"] {
    ///     let transaction = database.begin(None)?;
    ///     transaction.fs().write("/a", text)?;
    ///     transaction.commit()?;
    /// }
    /// assert_eq!(database.reader_at(1)?.fs().read_to_string("/a")?, "one");
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoVersion`] if the version does not exist, and the errors of [`reader`](Self::reader).
    pub fn reader_at(&self, version: i64) -> Result<Reader, Error> {
        self.reader()?.at(version)
    }
}

impl Transaction {
    /// Returns the newest committed version; the running transaction comes after it.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Damaged`] if the rows are inconsistent.
    pub fn version(&self) -> Result<i64, FsError> {
        self.run(|store| Ok(store.past.head(&store.connection)?.version))
    }

    /// Drops the oldest versions. The others can still be read.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if the rows cannot be read.
    pub fn prune(&self, keep: &Keep) -> Result<Pruned, Error> {
        self.with(|store| Ok(store.run(|store| Ok(prune_versions(&store.connection, keep)?))?))
    }
}

fn prune_versions(connection: &Connection, keep: &Keep) -> rusqlite::Result<Pruned> {
    let (Some(newest), Some(oldest_before)) = (super::newest(connection)?, oldest(connection)?) else {
        return Ok(Pruned::default());
    };
    let count = |table: &str| match rows::has_table(connection, table)? {
        true => connection.query_row(&format!("SELECT coalesce(sum(1), 0) FROM {table}"), [], |row| rows::bytes(row, 0)),
        false => Ok(0),
    };
    let (versions, labels) = (count("sandlite_version")?, count(LABELS)?);
    let least = keep.bytes.map(|bytes| newest.total.saturating_sub(bytes));
    let first = keep.versions.map(|versions| newest.version.saturating_sub(signed(versions.max(1)) - 1));
    let first = connection_first(connection, newest.version, |id, total, time| {
        first.is_some_and(|first| id < first)
            || least.is_some_and(|least| total < least)
            || keep.since.is_some_and(|since| time < since)
    })?;
    prune(connection, oldest_before.version, first, None)?;
    let oldest_now = oldest(connection)?.unwrap_or(newest);
    Ok(Pruned {
        versions: versions.saturating_sub(count("sandlite_version")?),
        bytes: oldest_now.total.saturating_sub(oldest_before.total),
        labels: labels.saturating_sub(count(LABELS)?),
        oldest: oldest_now.version,
    })
}
