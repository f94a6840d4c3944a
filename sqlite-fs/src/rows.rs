//! The statements that read rows, shared by the writing store and by readers.
//!
//! The file is untrusted (T-SNAP-02): types, ranges and names are checked when they are read, and an invalid value is damage,
//! never replaced by an invented one.

use std::ffi::CStr;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB, OptionalExtension, Row, params};

use crate::error::damaged;
use crate::node::{Entry, FileType, Ino, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, Stat, is_name};
use crate::quota::{Counts, Usage};

const NANOS: i64 = 1_000_000_000;

/// Splits a time into seconds and nanoseconds, as in the table.
pub(crate) fn split(time: i64) -> (i64, i64) {
    (time.div_euclid(NANOS), time.rem_euclid(NANOS))
}

/// Returns nanoseconds since 1970, clamped to the valid range.
pub(crate) fn join(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(NANOS).saturating_add(nanos.clamp(0, NANOS - 1))
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a number and checks its range.
pub(crate) fn number<T: TryFrom<i64>>(row: &Row<'_>, column: usize, of: &'static str) -> rusqlite::Result<T> {
    let number = row.get_ref(column)?.as_i64().map_err(|_| damaged(format!("{of} is not a number")))?;
    T::try_from(number).map_err(|_| damaged(format!("{of} is {number}")))
}

/// Reads the inode number of an entry.
pub(crate) fn ino(row: &Row<'_>, column: usize) -> rusqlite::Result<Ino> {
    number(row, column, "the inode number of an entry")
}

/// Reads a name in a directory. Names are read from the file only here, so a name can never lead elsewhere.
pub(crate) fn name<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    let name = row.get_ref(column)?.as_str().map_err(|_| damaged("a name is not text"))?;
    if is_name(name) {
        Ok(name)
    } else {
        Err(damaged(format!("invalid name `{}`", name.escape_debug().take(64).collect::<String>())))
    }
}

/// Reads a number of bytes; 0 if it is invalid.
pub(crate) fn bytes(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(index)?.map_or(0, |number| u64::try_from(number).unwrap_or(0)))
}

pub(crate) fn inode(connection: &Connection, ino: Ino) -> rusqlite::Result<Option<Stat>> {
    connection
        .prepare_cached(
            "SELECT mode, nlink, uid, gid, rdev, size, atime, atime_nsec, mtime, mtime_nsec, ctime, ctime_nsec
             FROM fs_inode WHERE ino=?1",
        )?
        .query_row([signed(ino)], |row| stat(row, ino))
        .optional()
}

/// Reads the attributes from a row with the columns above.
pub(crate) fn stat(row: &Row<'_>, ino: Ino) -> rusqlite::Result<Stat> {
    let mode = u32::from(number::<u16>(row, 0, "the mode of an inode")?);
    let stored: u32 = number(row, 1, "the link count of an inode")?;
    // Other writers store 1 or 2 for every directory.
    let nlink = if mode & S_IFMT == S_IFDIR { stored.max(2) } else { stored };
    Ok(Stat {
        ino,
        mode,
        nlink,
        uid: number(row, 2, "the owner of an inode")?,
        gid: number(row, 3, "the group of an inode")?,
        rdev: u64::try_from(row.get::<_, i64>(4)?).unwrap_or(0),
        size: number(row, 5, "the size of an inode")?,
        atime: join(row.get(6)?, row.get(7)?),
        mtime: join(row.get(8)?, row.get(9)?),
        ctime: join(row.get(10)?, row.get(11)?),
    })
}

/// Up to this size an inode's size is trusted, because reading soon detects an error.
const SIZE_TRUSTED: u64 = 1 << 20;

/// Rejects a file that claims to be larger than the whole database: every byte of a file is stored, including zeros.
pub(crate) fn check_size(connection: &Connection, stat: &Stat) -> rusqlite::Result<()> {
    if stat.size <= SIZE_TRUSTED || !stat.is_file() {
        return Ok(());
    }
    let pragma = |sql: &str| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
    let stored = pragma("PRAGMA page_count")?.saturating_mul(pragma("PRAGMA page_size")?);
    if signed(stat.size) <= stored {
        return Ok(());
    }
    Err(damaged(format!("inode {} claims {} bytes, but the whole database has {stored}", stat.ino, stat.size)))
}

pub(crate) fn dentry(connection: &Connection, dir: Ino, name: &str) -> rusqlite::Result<Option<Ino>> {
    connection
        .prepare_cached("SELECT ino FROM fs_dentry WHERE parent_ino=?1 AND name=?2")?
        .query_row(params![signed(dir), name], |row| ino(row, 0))
        .optional()
}

/// Returns one place of an inode. Scans the table, so the result should be cached.
pub(crate) fn place(connection: &Connection, of: Ino) -> rusqlite::Result<Option<(Ino, String)>> {
    connection
        .prepare_cached("SELECT parent_ino, name FROM fs_dentry WHERE ino=?1 LIMIT 1")?
        .query_row([signed(of)], |row| Ok((ino(row, 0)?, name(row, 1)?.to_owned())))
        .optional()
}

/// Returns all names of some inodes: directory, name, inode. Scans the table.
pub(crate) fn names_of(connection: &Connection, is_wanted: impl Fn(Ino) -> bool) -> rusqlite::Result<Vec<(Ino, String, Ino)>> {
    let mut statement = connection.prepare_cached("SELECT parent_ino, name, ino FROM fs_dentry")?;
    let mut found = statement.query([])?;
    let mut names = Vec::new();
    while let Some(row) = found.next()? {
        let of = ino(row, 2)?;
        if is_wanted(of) {
            names.push((ino(row, 0)?, name(row, 1)?.to_owned(), of));
        }
    }
    Ok(names)
}

/// Returns the entries after `cookie`; `kind_of` returns the type if the inode has no row yet.
pub(crate) fn entries(
    connection: &Connection,
    dir: Ino,
    cookie: u64,
    limit: usize,
    kind_of: impl Fn(Ino) -> FileType,
) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection.prepare_cached(
        "SELECT d.id, d.name, d.ino, i.mode FROM fs_dentry d LEFT JOIN fs_inode i ON i.ino=d.ino
         WHERE d.parent_ino=?1 AND d.id>?2 ORDER BY d.id LIMIT ?3",
    )?;
    let mut rows = statement.query(params![signed(dir), signed(cookie), signed(limit as u64)])?;
    let mut entries: Vec<Entry> = Vec::new();
    while let Some(row) = rows.next()? {
        let ino = ino(row, 2)?;
        let kind = match row.get_ref(3)? {
            ValueRef::Null => kind_of(ino),
            _ => FileType::of_mode(u32::from(number::<u16>(row, 3, "the mode of an inode")?)),
        };
        let cookie = number(row, 0, "the number of an entry")?;
        // Damaged pages can return a row repeatedly.
        if entries.last().is_some_and(|last| last.cookie >= cookie) {
            return Err(damaged(format!("the entries of directory {dir} are out of order")));
        }
        entries.push(Entry { name: name(row, 1)?.to_owned(), ino, kind, cookie });
    }
    Ok(entries)
}

pub(crate) fn has_entries(connection: &Connection, dir: Ino) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM fs_dentry WHERE parent_ino=?1 LIMIT 1")?.exists([signed(dir)])
}

/// Passes the stored bytes of a chunk to `take`; `None` if the row does not exist. A row longer than a chunk is not read.
pub(crate) fn chunk<T>(
    connection: &Connection,
    ino: Ino,
    index: u64,
    chunk_bytes: usize,
    take: impl FnOnce(&[u8]) -> T,
) -> rusqlite::Result<Option<T>> {
    let mut statement =
        connection.prepare_cached("SELECT iif(length(data)<=?3, data, NULL) FROM fs_data WHERE ino=?1 AND chunk_index=?2")?;
    let mut rows = statement.query(params![signed(ino), signed(index), signed(chunk_bytes as u64)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let data = row.get_ref(0)?.as_bytes().map_err(|_| damaged(format!("inode {ino}: chunk {index} is longer than a chunk")))?;
    Ok(Some(take(data)))
}

/// Reads a stored chunk or a part of it: only the necessary pages, without an intermediate copy. Returns how many bytes of `out`
/// are stored; the rest are zeros. `None` if the row does not exist.
pub(crate) fn part(
    connection: &Connection,
    ino: Ino,
    index: u64,
    start: usize,
    out: &mut [u8],
) -> rusqlite::Result<Option<usize>> {
    let mut statement = connection
        .prepare_cached("SELECT rowid, iif(octet_length(data)<=?3, data, NULL) FROM fs_data WHERE ino=?1 AND chunk_index=?2")?;
    let mut found = statement.query(params![signed(ino), signed(index), SMALL_CHUNK])?;
    let Some(row) = found.next()? else { return Ok(None) };
    if let ValueRef::Blob(data) = row.get_ref(1)? {
        return Ok(Some(copy_part(data, start, out)));
    }
    Ok(Some(stored_part(connection, c"fs_data", row.get(0)?, start, out)?))
}

/// Chunks up to this size are read with their row: opening them as a stream takes longer than copying.
pub(crate) const SMALL_CHUNK: i64 = 16 << 10;

/// Copies a part of a chunk, and returns how many bytes of `out` are stored.
pub(crate) fn copy_part(data: &[u8], start: usize, out: &mut [u8]) -> usize {
    copy(data, start, out);
    data.len().saturating_sub(start).min(out.len())
}

/// Reads a part of a chunk by the number of its row, and returns how many bytes of `out` are stored.
pub(crate) fn stored_part(
    connection: &Connection,
    table: &CStr,
    row: i64,
    start: usize,
    out: &mut [u8],
) -> rusqlite::Result<usize> {
    let blob = connection.blob_open(MAIN_DB, table, c"data", row, true)?;
    let stored = blob.len().saturating_sub(start).min(out.len());
    let (head, tail) = out.split_at_mut(stored);
    if !head.is_empty() {
        blob.read_at_exact(head, start)?;
    }
    tail.fill(0);
    Ok(stored)
}

/// Creates the error for a chunk that is shorter than required by its file. Every byte of a file is stored, so none is invented.
pub(crate) fn short_chunk(ino: Ino, index: u64) -> rusqlite::Error {
    damaged(format!("inode {ino}: chunk {index} is missing or too short"))
}

/// Copies from `start` on and fills the rest with zeros.
pub(crate) fn copy(data: &[u8], start: usize, out: &mut [u8]) {
    let data = data.get(start..).unwrap_or_default();
    let len = data.len().min(out.len());
    let (head, tail) = out.split_at_mut(len);
    head.copy_from_slice(data.get(..len).unwrap_or_default());
    tail.fill(0);
}

/// Maximum length of a symbolic link's target.
pub(crate) const TARGET_MAX: usize = 4095;

pub(crate) fn target(connection: &Connection, ino: Ino) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT target FROM fs_symlink WHERE ino=?1")?
        .query_row([signed(ino)], |row| target_of(row, ino))
        .optional()
}

/// Reads the target in the first column of a row.
pub(crate) fn target_of(row: &Row<'_>, ino: Ino) -> rusqlite::Result<String> {
    let target = row.get_ref(0)?.as_str().map_err(|_| damaged(format!("the target of link {ino} is not text")))?;
    if target.is_empty() || target.len() > TARGET_MAX || target.contains('\0') {
        return Err(damaged(format!("the target of link {ino} is empty, too long or contains a zero byte")));
    }
    Ok(target.to_owned())
}

/// Rows are counted one by one, not by `count(*)`, which walks pages inside SQLite where it cannot be interrupted, and damaged
/// pages can form a cycle. `total` does not overflow.
pub(crate) fn usage(connection: &Connection) -> rusqlite::Result<Usage> {
    connection
        .prepare_cached(
            "SELECT coalesce(sum(1), 0), CAST(total(size) FILTER (WHERE (mode & 61440)=32768) AS INTEGER) FROM fs_inode",
        )?
        .query_row([], |row| {
            Ok(Usage {
                inodes: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
                bytes: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                ..Usage::default()
            })
        })
}

/// Returns the number of objects.
pub(crate) fn counts(connection: &Connection) -> rusqlite::Result<Counts> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|n| u64::try_from(n).unwrap_or(0));
    let of_type = |bits: u32| number(&format!("SELECT count(*) FROM fs_inode WHERE (mode & {S_IFMT})={bits}"));
    Ok(Counts {
        files: of_type(S_IFREG)?,
        directories: of_type(S_IFDIR)?,
        symlinks: of_type(S_IFLNK)?,
        keys: number("SELECT coalesce(sum(1), 0) FROM kv_store")?,
        calls: number("SELECT coalesce(sum(1), 0) FROM tool_calls")?,
        database_bytes: number("PRAGMA page_count")?.saturating_mul(number("PRAGMA page_size")?),
        format: number("PRAGMA user_version")?,
    })
}

/// Returns whether the file has a table. SQLite's own function uses the schema as last seen by the connection, and misses a table
/// that another connection has created since.
pub(crate) fn has_table(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM main.sqlite_schema WHERE type='table' AND name=?1")?.exists([table])
}

/// Returns the number after that of a file's last chunk.
pub(crate) fn chunk_end(connection: &Connection, ino: Ino) -> rusqlite::Result<u64> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(chunk_index) FROM fs_data WHERE ino=?1")?
        .query_row([signed(ino)], |row| row.get(0))?;
    Ok(last.map_or(0, |last| u64::try_from(last).unwrap_or(0) + 1))
}

/// The maximum inode number: the largest that every SDK can represent.
pub(crate) const INO_MAX: u64 = 1 << 53;

/// Returns the next free inode number.
pub(crate) fn next_ino(connection: &Connection) -> rusqlite::Result<Ino> {
    let last: i64 = connection.prepare_cached("SELECT coalesce(max(ino), 1) FROM fs_inode")?.query_row([], |row| row.get(0))?;
    match u64::try_from(last.max(1)) {
        Ok(last) if last < INO_MAX => Ok(last + 1),
        _ => Err(damaged(format!("inode {last} leaves no room for new ones"))),
    }
}

/// Returns the next free number of a directory entry.
pub(crate) fn next_entry(connection: &Connection) -> rusqlite::Result<i64> {
    let last: i64 = connection.prepare_cached("SELECT coalesce(max(id), 0) FROM fs_dentry")?.query_row([], |row| row.get(0))?;
    if last < signed(INO_MAX) { Ok(last.max(0) + 1) } else { Err(damaged(format!("entry {last} leaves no room for new ones"))) }
}

/// Returns the next free number of a call.
pub(crate) fn next_call(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(id), 0) FROM tool_calls")?
        .query_row([], |row| row.get::<_, i64>(0))
        .map(|last| last.saturating_add(1))
}
