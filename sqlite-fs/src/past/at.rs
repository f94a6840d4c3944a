//! The rows of a version: for each key the first row that a later version saved, or else the current one if it is as old.
//!
//! The file is untrusted here as well: values are checked like those of the current state, and a row that could not be saved is
//! [`FsError::Unknown`], never an invented one.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use super::visit;
use super::{ABSENT, NUMBER_BITS, ROW, Table, Tables, VERSION_MAX, first_id, inode_id};
use crate::error::{Error, Fault, FsError, damaged};
use crate::kv::{KeyPage, Value};
use crate::node::{Entry, FileType, Ino, Stat};
use crate::rows::{self, INO_MAX, signed};

/// The names of values that changed after a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedValues {
    /// The keys.
    pub keys: Vec<String>,
    /// The sessions.
    pub sessions: Vec<String>,
}

/// The version being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) version: i64,
    /// The lowest number of a row that a later version saved.
    first: i64,
    /// The first inode number that did not exist.
    pub(crate) mark: Ino,
    /// The first number of an entry that did not exist.
    pub(crate) entries: i64,
    /// The first later version created by another program: data known only from the current state or from a row of a later
    /// version is unknown.
    visited: Option<i64>,
    /// The existing tables of the file, and the schema version for which they were looked up.
    pub(crate) tables: Tables,
    schema: i64,
}

impl At {
    /// Returns the current state.
    pub(crate) fn now() -> Self {
        Self {
            version: VERSION_MAX,
            first: i64::MAX,
            mark: u64::MAX,
            entries: i64::MAX,
            visited: None,
            tables: Tables::default(),
            schema: 0,
        }
    }

    /// Returns the lowest number of a row that a later version saved.
    pub(crate) fn first_after(&self) -> i64 {
        self.first
    }

    /// Fails for data that was not saved before another program could change it: a row of this version, or the current one. It
    /// concerns an inode or the entries of a directory, unless it is a key.
    fn refuse_unknown(&self, connection: &Connection, of: Option<Ino>, saved: Option<i64>) -> Result<(), Fault> {
        match self.visited {
            Some(visit) if saved.is_none_or(|version| version >= visit) => {
                visit::refuse(connection, self.version, saved.unwrap_or(i64::MAX), of)
            }
            _ => Ok(()),
        }
    }
}

/// Opens a version.
pub(crate) fn open(connection: &Connection, version: i64) -> Result<At, Error> {
    if !rows::has_table(connection, "sandlite_version")? {
        return Err(Error::NoVersion { version, oldest: None, newest: None });
    }
    let found = connection
        .prepare_cached("SELECT mark, entries FROM sandlite_version WHERE id=?1")?
        .query_row([version], |row| {
            let number = |column: usize| row.get_ref(column)?.as_i64().map_err(|_| damaged("a mark is not a number"));
            Ok((number(0)?, number(1)?))
        })
        .optional()?;
    let Some((mark, entries)) = found else { return Err(none(connection, version)?) };
    let newest = super::newest(connection)?.ok_or_else(|| damaged("no version is the newest"))?;
    let mark = u64::try_from(mark).ok().filter(|mark| *mark <= INO_MAX).ok_or_else(|| damaged(format!("a mark is {mark}")))?;
    let visited = match newest.outside > version {
        true => connection
            .prepare_cached("SELECT min(id) FROM sandlite_version WHERE id>?1 AND outside=id")?
            .query_row([version], |row| row.get(0))?,
        false => None,
    };
    let (tables, schema) = (Tables::of(connection)?, schema(connection)?);
    Ok(At { version, first: first_id(version + 1), mark, entries, visited, tables, schema })
}

/// Returns the error for a missing version.
pub(crate) fn none(connection: &Connection, version: i64) -> rusqlite::Result<Error> {
    let (oldest, newest) = connection
        .prepare_cached("SELECT min(id), max(id) FROM sandlite_version")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Error::NoVersion { version, oldest, newest })
}

/// Opens a version again in the state that is read now. Fails if the version was pruned meanwhile.
pub(crate) fn refresh(connection: &Connection, at: At) -> Result<At, Fault> {
    if !connection.prepare_cached("SELECT 1 FROM sandlite_version WHERE id=?1")?.exists([at.version])? {
        return Err(FsError::Stale.into());
    }
    match schema(connection)? {
        schema if schema == at.schema => Ok(at),
        schema => Ok(At { tables: Tables::of(connection)?, schema, ..at }),
    }
}

/// Returns a number that changes with the tables of a file.
fn schema(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))
}

/// Returns the state of a saved row.
fn state(value: ValueRef<'_>) -> Result<i64, Fault> {
    match value.as_i64() {
        Ok(state @ (ROW | ABSENT)) => Ok(state),
        _ => Err(damaged("a saved row has an invalid state").into()),
    }
}

pub(crate) fn inode(connection: &Connection, at: At, ino: Ino) -> Result<Option<Stat>, Fault> {
    if ino >= at.mark {
        return Ok(None);
    }
    if at.tables.has(Table::Inode)
        && let (Some(first), Some(last)) = (inode_id(ino, at.version + 1), inode_id(ino, i64::MAX))
    {
        let mut statement = connection.prepare_cached(
            "SELECT mode, nlink, uid, gid, rdev, size, atime, atime_nsec, mtime, mtime_nsec, ctime, ctime_nsec, state, id
             FROM sandlite_past_inode WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1",
        )?;
        let mut found = statement.query([first, last])?;
        if let Some(row) = found.next()? {
            at.refuse_unknown(connection, Some(ino), Some(row.get::<_, i64>(13)? & VERSION_MAX))?;
            return match state(row.get_ref(12)?)? {
                ROW => Ok(Some(rows::stat(row, ino)?)),
                _ => Ok(None),
            };
        }
    }
    at.refuse_unknown(connection, Some(ino), None)?;
    Ok(rows::inode(connection, ino)?)
}

/// Returns the number of an entry and its inode.
fn entry(connection: &Connection, at: At, dir: Ino, name: &str) -> Result<Option<(i64, Ino)>, Fault> {
    if at.tables.has(Table::Dentry) {
        let mut statement = connection.prepare_cached(
            "SELECT state, ino, id, entry FROM sandlite_past_dentry INDEXED BY idx_sandlite_past_dentry
             WHERE parent_ino=?1 AND name=?2 AND id>=?3 ORDER BY id LIMIT 1",
        )?;
        let mut found = statement.query(params![signed(dir), name, at.first])?;
        if let Some(row) = found.next()? {
            at.refuse_unknown(connection, Some(dir), Some(row.get::<_, i64>(2)? >> NUMBER_BITS))?;
            if state(row.get_ref(0)?)? == ABSENT {
                return Ok(None);
            }
            // It was created and removed later; an earlier entry of this name would have been saved first.
            let id: i64 = rows::number(row, 3, "the number of an entry")?;
            return if id >= at.entries { Ok(None) } else { Ok(Some((id, rows::ino(row, 1)?))) };
        }
    }
    at.refuse_unknown(connection, Some(dir), None)?;
    let mut statement = connection.prepare_cached("SELECT id, ino FROM fs_dentry WHERE parent_ino=?1 AND name=?2 AND +id<?3")?;
    let mut found = statement.query(params![signed(dir), name, at.entries])?;
    match found.next()? {
        Some(row) => Ok(Some((row.get(0)?, rows::ino(row, 1)?))),
        None => Ok(None),
    }
}

pub(crate) fn dentry(connection: &Connection, at: At, dir: Ino, name: &str) -> Result<Option<Ino>, Fault> {
    Ok(entry(connection, at, dir, name)?.map(|(_, ino)| ino))
}

/// Returns the entries of a directory that were removed or changed later, in order of their numbers.
fn gone(connection: &Connection, at: At, dir: Ino) -> Result<Vec<Entry>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT p.entry, p.name, p.ino, p.state FROM sandlite_past_dentry p INDEXED BY idx_sandlite_past_dentry WHERE p.parent_ino=?1 AND p.id>=?2
         AND NOT EXISTS (SELECT 1 FROM sandlite_past_dentry q INDEXED BY idx_sandlite_past_dentry WHERE q.parent_ino=?1 AND q.name=p.name AND q.id>=?2 AND q.id<p.id)",
    )?;
    let mut found = statement.query([signed(dir), at.first])?;
    let mut entries = Vec::new();
    while let Some(row) = found.next()? {
        if state(row.get_ref(3)?)? == ROW {
            let cookie: u64 = rows::number(row, 0, "the number of an entry")?;
            if signed(cookie) >= at.entries {
                continue;
            }
            entries.push(Entry { name: rows::name(row, 1)?.to_owned(), ino: rows::ino(row, 2)?, kind: FileType::File, cookie });
        }
    }
    entries.sort_by_key(|entry| entry.cookie);
    Ok(entries)
}

/// The directory that was listed last. Rows saved meanwhile change the current state, so it belongs to one state.
#[derive(Default)]
pub(crate) struct Listed {
    key: Option<(Ino, i64)>,
    gone: Vec<Entry>,
    /// Whether any entry of it was saved later.
    has_saved: bool,
}

/// Returns the entries after `cookie`.
pub(crate) fn entries(
    connection: &Connection,
    at: At,
    listed: &mut Listed,
    dir: Ino,
    cookie: u64,
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    at.refuse_unknown(connection, Some(dir), None)?;
    let state: i64 = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if listed.key != Some((dir, state)) {
        let has_saved = at.tables.has(Table::Dentry)
            && connection
                .prepare_cached(
                    "SELECT 1 FROM sandlite_past_dentry INDEXED BY idx_sandlite_past_dentry WHERE parent_ino=?1 AND id>=?2",
                )?
                .exists([signed(dir), at.first])?;
        let gone = if has_saved { gone(connection, at, dir)? } else { Vec::new() };
        *listed = Listed { gone, has_saved, key: Some((dir, state)) };
    }
    let (present, present_and_not_saved) = (
        "SELECT d.id, d.name, d.ino, i.mode FROM fs_dentry d LEFT JOIN fs_inode i ON i.ino=d.ino
         WHERE d.parent_ino=?1 AND d.id>?2 AND d.id<?3 AND ?5 NOT NULL ORDER BY d.id LIMIT ?4",
        "SELECT d.id, d.name, d.ino, i.mode FROM fs_dentry d LEFT JOIN fs_inode i ON i.ino=d.ino
         WHERE d.parent_ino=?1 AND d.id>?2 AND d.id<?3
         AND NOT EXISTS (SELECT 1 FROM sandlite_past_dentry p INDEXED BY idx_sandlite_past_dentry
           WHERE p.parent_ino=?1 AND p.name=d.name AND p.id>=?5)
         ORDER BY d.id LIMIT ?4",
    );
    // Usually nothing of a directory is saved, and then no lookup per entry is needed.
    let query = if listed.has_saved { present_and_not_saved } else { present };
    let mut statement = connection.prepare_cached(query)?;
    let limited = signed(limit as u64);
    let mut found = statement.query(params![signed(dir), signed(cookie), at.entries, limited, at.first])?;
    let mut entries: Vec<Entry> = Vec::new();
    while let Some(row) = found.next()? {
        let ino = rows::ino(row, 2)?;
        let cookie = rows::number(row, 0, "the number of an entry")?;
        // Damaged pages can return a row repeatedly.
        if entries.last().is_some_and(|last| last.cookie >= cookie) {
            return Err(damaged(format!("the entries of directory {dir} are out of order")).into());
        }
        // The type of an inode never changes, so that of the current row is valid.
        let kind = match row.get_ref(3)? {
            ValueRef::Null => kind(connection, at, ino)?,
            _ => FileType::of_mode(u32::from(rows::number::<u16>(row, 3, "the mode of an inode")?)),
        };
        entries.push(Entry { name: rows::name(row, 1)?.to_owned(), ino, kind, cookie });
    }
    let after = listed.gone.partition_point(|entry| entry.cookie <= cookie);
    for entry in listed.gone.get(after..).unwrap_or_default().iter().take(limit) {
        entries.push(Entry { kind: kind(connection, at, entry.ino)?, ..entry.clone() });
    }
    entries.sort_by_key(|entry| entry.cookie);
    entries.truncate(limit);
    Ok(entries)
}

/// Returns the type of an inode; an entry alone does not contain it.
fn kind(connection: &Connection, at: At, ino: Ino) -> Result<FileType, Fault> {
    match inode(connection, at, ino) {
        Ok(stat) => Ok(stat.map_or(FileType::File, |stat| stat.file_type())),
        Err(Fault::Fs(FsError::Unknown)) => Ok(FileType::File),
        Err(fault) => Err(fault),
    }
}

/// Returns one place of an inode. Scans the entries, as for the current state.
pub(crate) fn place(connection: &Connection, at: At, of: Ino) -> Result<Option<(Ino, String)>, Fault> {
    // The last known place, if still valid.
    if at.tables.has(Table::Inode) {
        let mut hints = connection.prepare_cached(
            "SELECT dir, name FROM
             (SELECT dir, name FROM sandlite_past_inode WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 4) WHERE dir NOT NULL",
        )?;
        let mut found = hints.query([inode_id(of, 0), inode_id(of, i64::MAX)])?;
        while let Some(row) = found.next()? {
            let (dir, name) = (rows::ino(row, 0)?, rows::name(row, 1)?.to_owned());
            if dentry(connection, at, dir, &name)? == Some(of) {
                return Ok(Some((dir, name)));
            }
        }
    }
    for query in [
        "SELECT parent_ino, name FROM fs_dentry WHERE ino=?1 AND id<?2",
        "SELECT parent_ino, name FROM sandlite_past_dentry WHERE ino=?1 AND id>=?2",
    ] {
        let is_saved = query.contains("past");
        if is_saved && !at.tables.has(Table::Dentry) {
            break;
        }
        let from = if is_saved { at.first } else { at.entries };
        let mut statement = connection.prepare_cached(query)?;
        let mut found = statement.query([signed(of), from])?;
        while let Some(row) = found.next()? {
            let (dir, name) = (rows::ino(row, 0)?, rows::name(row, 1)?.to_owned());
            if dentry(connection, at, dir, &name)? == Some(of) {
                return Ok(Some((dir, name)));
            }
        }
    }
    Ok(None)
}

/// Returns all directories of an inode. Scans all entries.
pub(crate) fn places(connection: &Connection, at: At, of: Ino) -> Result<Vec<Ino>, Fault> {
    let mut names = Vec::new();
    for (query, is_there) in [
        ("SELECT parent_ino, name FROM fs_dentry WHERE ino=?1", true),
        ("SELECT parent_ino, name FROM sandlite_past_dentry WHERE ino=?1", at.tables.has(Table::Dentry)),
    ] {
        if !is_there {
            continue;
        }
        let mut statement = connection.prepare_cached(query)?;
        let mut found = statement.query([signed(of)])?;
        while let Some(row) = found.next()? {
            names.push((rows::ino(row, 0)?, rows::name(row, 1)?.to_owned()));
        }
    }
    let mut places = Vec::new();
    for (dir, name) in names {
        if dentry(connection, at, dir, &name)? == Some(of) {
            places.push(dir);
        }
    }
    Ok(places)
}

/// Reads a part of a chunk like [`rows::part`].
pub(crate) fn part(
    connection: &Connection,
    at: At,
    ino: Ino,
    index: u64,
    start: usize,
    out: &mut [u8],
) -> Result<Option<usize>, Fault> {
    let saved = if at.tables.has(Table::Data) { saved_part(connection, at, (ino, index), start, out)? } else { None };
    if saved.is_none() {
        at.refuse_unknown(connection, Some(ino), None)?;
        return Ok(rows::part(connection, ino, index, start, out)?);
    }
    Ok(saved)
}

/// Reads a part of a saved chunk; `None` if it was not saved.
fn saved_part(
    connection: &Connection,
    at: At,
    (ino, index): (Ino, u64),
    start: usize,
    out: &mut [u8],
) -> Result<Option<usize>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT id, iif(octet_length(data)<=?4, data, NULL) FROM sandlite_past_data INDEXED BY idx_sandlite_past_data
         WHERE ino=?1 AND chunk_index=?2 AND id>=?3 ORDER BY id LIMIT 1",
    )?;
    let mut found = statement.query(params![signed(ino), signed(index), at.first, rows::SMALL_CHUNK])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let id: i64 = row.get(0)?;
    at.refuse_unknown(connection, Some(ino), Some(id >> NUMBER_BITS))?;
    if let ValueRef::Blob(data) = row.get_ref(1)? {
        return Ok(Some(rows::copy_part(data, start, out)));
    }
    Ok(Some(rows::stored_part(connection, c"sandlite_past_data", id, start, out)?))
}

pub(crate) fn target(connection: &Connection, at: At, ino: Ino) -> Result<Option<String>, Fault> {
    if inode(connection, at, ino)?.is_none_or(|stat| stat.file_type() != FileType::Symlink) {
        return Ok(None);
    }
    let saved = match at.tables.has(Table::Symlink) {
        true => connection
            .prepare_cached(
                "SELECT target, id FROM sandlite_past_symlink INDEXED BY idx_sandlite_past_symlink
                 WHERE ino=?1 AND id>=?2 ORDER BY id LIMIT 1",
            )?
            .query_row([signed(ino), at.first], |row| Ok((rows::target_of(row, ino)?, row.get::<_, i64>(1)?)))
            .optional()?,
        false => None,
    };
    at.refuse_unknown(connection, Some(ino), saved.as_ref().map(|(_, id)| id >> NUMBER_BITS))?;
    Ok(match saved {
        Some((target, _)) => Some(target),
        None => rows::target(connection, ino)?,
    })
}

pub(crate) fn key(connection: &Connection, at: At, key: &str) -> Result<Option<Value>, Fault> {
    if !at.tables.has(Table::Key) {
        at.refuse_unknown(connection, None, None)?;
        return Ok(crate::kv::get(connection, key)?);
    }
    let mut statement = connection.prepare_cached(
        "SELECT value, created_at, updated_at, version, secret, state, id FROM sandlite_past_kv
         WHERE key=?1 AND id>=?2 ORDER BY id LIMIT 1",
    )?;
    let mut found = statement.query(params![key, at.first])?;
    if let Some(row) = found.next()? {
        at.refuse_unknown(connection, None, Some(row.get::<_, i64>(6)? >> NUMBER_BITS))?;
        return match state(row.get_ref(5)?)? {
            ROW => Ok(Some(crate::kv::value(row)?)),
            _ => Ok(None),
        };
    }
    at.refuse_unknown(connection, None, None)?;
    Ok(crate::kv::get(connection, key)?)
}

/// Returns the keys that start with `prefix` and sort after `after`, like [`crate::kv::keys_after`].
pub(crate) fn keys_after(
    connection: &Connection,
    at: At,
    prefix: &str,
    after: Option<&str>,
    most: usize,
    bytes: usize,
) -> Result<KeyPage, Fault> {
    at.refuse_unknown(connection, None, None)?;
    if !at.tables.has(Table::Key) {
        return Ok(crate::kv::keys_after(connection, prefix, after, most, bytes)?);
    }
    let mut statement = connection.prepare_cached(
        "SELECT key FROM kv_store k WHERE key>=?1 AND (?2 IS NULL OR key>?2)
           AND NOT EXISTS (SELECT 1 FROM sandlite_past_kv p INDEXED BY idx_sandlite_past_kv WHERE p.key=k.key AND p.id>=?3)
         UNION ALL SELECT key FROM sandlite_past_kv p INDEXED BY idx_sandlite_past_kv WHERE key>=?1 AND (?2 IS NULL OR key>?2) AND id>=?3 AND state=0
           AND NOT EXISTS (SELECT 1 FROM sandlite_past_kv q INDEXED BY idx_sandlite_past_kv WHERE q.key=p.key AND q.id>=?3 AND q.id<p.id)
         ORDER BY key",
    )?;
    let found = statement.query(params![after.filter(|after| *after > prefix).unwrap_or(prefix), after, at.first])?;
    Ok(crate::kv::page(found, prefix, most, bytes)?)
}

/// Returns the keys and the parts of sessions that later versions changed, up to one of them; `None` if another program may have
/// changed others.
pub(crate) fn changed_values(connection: &Connection, at: At, until: Option<i64>) -> Result<Option<ChangedValues>, Fault> {
    if at.visited.is_some() {
        return Ok(None);
    }
    let (mut changed, end) = (ChangedValues::default(), until.map_or(i64::MAX, |until| first_id(until.saturating_add(1))));
    if at.tables.has(Table::Key) {
        let query = "SELECT DISTINCT key FROM sandlite_past_kv NOT INDEXED WHERE id>=?1 AND id<?2";
        let mut statement = connection.prepare_cached(query)?;
        changed.keys = statement.query_map([at.first, end], |row| row.get(0))?.collect::<Result<_, _>>()?;
    }
    if at.tables.has(Table::Session) {
        let query = "SELECT DISTINCT name FROM sandlite_past_session NOT INDEXED WHERE id>=?1 AND id<?2";
        let mut statement = connection.prepare_cached(query)?;
        changed.sessions = statement.query_map([at.first, end], |row| row.get(0))?.collect::<Result<_, _>>()?;
    }
    Ok(Some(changed))
}

pub(crate) fn session(connection: &Connection, at: At, name: &str, part: &str) -> Result<Option<Vec<u8>>, Fault> {
    if !at.tables.has(Table::Session) {
        return Ok(crate::sessions::get(connection, name, part)?);
    }
    let mut statement = connection.prepare_cached(
        "SELECT content, state FROM sandlite_past_session INDEXED BY idx_sandlite_past_session WHERE name=?1 AND part=?2 AND id>=?3 ORDER BY id LIMIT 1",
    )?;
    let mut found = statement.query(params![name, part, at.first])?;
    if let Some(row) = found.next()? {
        return match state(row.get_ref(1)?)? {
            ROW => Ok(Some(row.get(0)?)),
            _ => Ok(None),
        };
    }
    Ok(crate::sessions::get(connection, name, part)?)
}

pub(crate) fn sessions(connection: &Connection, at: At) -> Result<Vec<String>, Fault> {
    if !at.tables.has(Table::Session) {
        return Ok(crate::sessions::names(connection)?);
    }
    let mut statement = connection.prepare_cached(
        "SELECT name FROM sandlite_session s
           WHERE NOT EXISTS (SELECT 1 FROM sandlite_past_session p INDEXED BY idx_sandlite_past_session WHERE p.name=s.name AND p.part=s.part AND p.id>=?1)
         UNION SELECT name FROM sandlite_past_session p WHERE id>=?1 AND state=0
           AND NOT EXISTS (SELECT 1 FROM sandlite_past_session q INDEXED BY idx_sandlite_past_session WHERE q.name=p.name AND q.part=p.part AND q.id>=?1 AND q.id<p.id)
         ORDER BY name",
    )?;
    let names = statement.query_map([at.first], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

/// Returns whether a path was hidden.
pub(crate) fn hides(connection: &Connection, at: At, path: &str) -> Result<bool, Fault> {
    if !at.tables.has(Table::Whiteout) {
        return Ok(crate::whiteout::hides(connection, path)?);
    }
    let mut statement =
        connection.prepare_cached("SELECT state FROM sandlite_past_whiteout INDEXED BY idx_sandlite_past_whiteout WHERE path=?1 AND id>=?2 ORDER BY id LIMIT 1")?;
    let mut found = statement.query(params![path, at.first])?;
    if let Some(row) = found.next()? {
        return Ok(state(row.get_ref(0)?)? == ROW);
    }
    Ok(crate::whiteout::hides(connection, path)?)
}

/// Returns whether anything can have been hidden.
pub(crate) fn hides_any(connection: &Connection, at: At) -> Result<bool, Fault> {
    if !at.tables.has(Table::Whiteout) {
        return Ok(crate::whiteout::hides_any(connection)?);
    }
    let mut statement = connection.prepare_cached("SELECT 1 FROM sandlite_past_whiteout WHERE id>=?1 AND state=0 LIMIT 1")?;
    Ok(crate::whiteout::hides_any(connection)? || statement.exists([at.first])?)
}
