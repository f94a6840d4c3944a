//! The statements that read rows, shared by the writing store and by readers.

use rusqlite::{Connection, MAIN_DB, OptionalExtension, Row, params};

use crate::node::{Entry, FileType, Ino, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, Stat};
use crate::quota::{Counts, Usage};

const NANOS: i64 = 1_000_000_000;

/// Seconds and nanoseconds, as the table has them.
pub(crate) fn split(time: i64) -> (i64, i64) {
    (time.div_euclid(NANOS), time.rem_euclid(NANOS))
}

/// Nanoseconds since 1970; what does not fit is clamped.
pub(crate) fn join(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(NANOS).saturating_add(nanos.clamp(0, NANOS - 1))
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of bytes; 0 where the file has nonsense.
pub(crate) fn bytes(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(index)?.map_or(0, |number| u64::try_from(number).unwrap_or(0)))
}

pub(crate) fn inode(connection: &Connection, ino: Ino) -> rusqlite::Result<Option<Stat>> {
    connection
        .prepare_cached(
            "SELECT mode, nlink, uid, gid, rdev, size, atime, atime_nsec, mtime, mtime_nsec, ctime, ctime_nsec
             FROM fs_inode WHERE ino=?1",
        )?
        .query_row([signed(ino)], |row| {
            let mode = u32::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
            let stored = u32::try_from(row.get::<_, i64>(1)?).unwrap_or(1);
            // Other writers store 1 or 2 for every directory.
            let nlink = if mode & S_IFMT == S_IFDIR { stored.max(2) } else { stored };
            Ok(Stat {
                ino,
                mode,
                nlink,
                uid: u32::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
                gid: u32::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
                rdev: u64::try_from(row.get::<_, i64>(4)?).unwrap_or(0),
                size: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
                atime: join(row.get(6)?, row.get(7)?),
                mtime: join(row.get(8)?, row.get(9)?),
                ctime: join(row.get(10)?, row.get(11)?),
            })
        })
        .optional()
}

pub(crate) fn dentry(connection: &Connection, dir: Ino, name: &str) -> rusqlite::Result<Option<Ino>> {
    connection
        .prepare_cached("SELECT ino FROM fs_dentry WHERE parent_ino=?1 AND name=?2")?
        .query_row(params![signed(dir), name], |row| row.get::<_, i64>(0))
        .optional()
        .map(|found| found.and_then(|ino| u64::try_from(ino).ok()))
}

/// One place where an inode is; scans the table, so the answer is worth remembering.
pub(crate) fn place(connection: &Connection, ino: Ino) -> rusqlite::Result<Option<(Ino, String)>> {
    connection
        .prepare_cached("SELECT parent_ino, name FROM fs_dentry WHERE ino=?1 LIMIT 1")?
        .query_row([signed(ino)], |row| Ok((u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0), row.get(1)?)))
        .optional()
}

/// Entries after `cookie`; `kind_of` knows the type where the inode has no row yet.
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
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let ino = row.get_ref(2)?.as_i64()?.try_into().unwrap_or(0);
        let kind = match row.get_ref(3)?.as_i64_or_null()? {
            Some(mode) => FileType::of_mode(mode.try_into().unwrap_or(0)),
            None => kind_of(ino),
        };
        let cookie = row.get_ref(0)?.as_i64()?.try_into().unwrap_or(0);
        entries.push(Entry { name: row.get_ref(1)?.as_str()?.to_owned(), ino, kind, cookie });
    }
    Ok(entries)
}

pub(crate) fn has_entries(connection: &Connection, dir: Ino) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM fs_dentry WHERE parent_ino=?1 LIMIT 1")?.exists([signed(dir)])
}

/// Hands the stored bytes of a chunk to `take`; `None` if there is no such row.
pub(crate) fn chunk<T>(
    connection: &Connection,
    ino: Ino,
    index: u64,
    take: impl FnOnce(&[u8]) -> T,
) -> rusqlite::Result<Option<T>> {
    let mut statement = connection.prepare_cached("SELECT data FROM fs_data WHERE ino=?1 AND chunk_index=?2")?;
    let mut rows = statement.query(params![signed(ino), signed(index)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(take(row.get_ref(0)?.as_bytes()?)))
}

/// Reads a stored chunk or a part of it: only the pages that have it, and without a copy in between. Whether there is such a row.
pub(crate) fn part(connection: &Connection, ino: Ino, index: u64, start: usize, out: &mut [u8]) -> rusqlite::Result<bool> {
    let row: Option<i64> = connection
        .prepare_cached("SELECT rowid FROM fs_data WHERE ino=?1 AND chunk_index=?2")?
        .query_row(params![signed(ino), signed(index)], |row| row.get(0))
        .optional()?;
    let Some(row) = row else { return Ok(false) };
    let blob = connection.blob_open(MAIN_DB, c"fs_data", c"data", row, true)?;
    let stored = blob.len().saturating_sub(start).min(out.len());
    let (head, tail) = out.split_at_mut(stored);
    if !head.is_empty() {
        blob.read_at_exact(head, start)?;
    }
    tail.fill(0);
    Ok(true)
}

/// Copies from `start` on and fills the rest with zeros.
pub(crate) fn copy(data: &[u8], start: usize, out: &mut [u8]) {
    let data = data.get(start..).unwrap_or_default();
    let len = data.len().min(out.len());
    let (head, tail) = out.split_at_mut(len);
    head.copy_from_slice(data.get(..len).unwrap_or_default());
    tail.fill(0);
}

pub(crate) fn target(connection: &Connection, ino: Ino) -> rusqlite::Result<Option<String>> {
    connection.prepare_cached("SELECT target FROM fs_symlink WHERE ino=?1")?.query_row([signed(ino)], |row| row.get(0)).optional()
}

pub(crate) fn usage(connection: &Connection) -> rusqlite::Result<Usage> {
    connection
        .prepare_cached("SELECT count(*), coalesce(sum(size) FILTER (WHERE (mode & 61440)=32768), 0) FROM fs_inode")?
        .query_row([], |row| {
            Ok(Usage {
                inodes: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
                bytes: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                ..Usage::default()
            })
        })
}

/// How many of what there are.
pub(crate) fn counts(connection: &Connection) -> rusqlite::Result<Counts> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|n| u64::try_from(n).unwrap_or(0));
    let of_type = |bits: u32| number(&format!("SELECT count(*) FROM fs_inode WHERE (mode & {S_IFMT})={bits}"));
    Ok(Counts {
        files: of_type(S_IFREG)?,
        directories: of_type(S_IFDIR)?,
        symlinks: of_type(S_IFLNK)?,
        keys: number("SELECT count(*) FROM kv_store")?,
        calls: number("SELECT count(*) FROM tool_calls")?,
        database_bytes: number("PRAGMA page_count")? * number("PRAGMA page_size")?,
        format: number("PRAGMA user_version")?,
    })
}

/// The next free inode number.
pub(crate) fn next_ino(connection: &Connection) -> rusqlite::Result<Ino> {
    let last: i64 = connection.prepare_cached("SELECT coalesce(max(ino), 1) FROM fs_inode")?.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(last).unwrap_or(1).max(1) + 1)
}

/// The next free number of a call.
pub(crate) fn next_call(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(id), 0) FROM tool_calls")?
        .query_row([], |row| row.get::<_, i64>(0))
        .map(|last| last.saturating_add(1))
}
