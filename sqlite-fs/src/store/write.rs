//! Every statement that changes rows of files, keys or sessions. Nothing else writes to those tables.
//!
//! A function only binds its arguments and runs its statements. Checks, budgets and caches belong to the callers. The history
//! (`calls.rs`) and the stored sums (`budget.rs`) are other tables. `tests/tidy.rs` detects such a statement elsewhere, except
//! where a whole database is created or copied: `format.rs`, `copy.rs` and `compat.rs`.
//!
//! Each function first saves the rows that it is about to change (`past/save.rs`), except for those that fill a fresh database or
//! correct a foreign writer's rows.
//!
//! The `import_` functions take rows of a foreign file, in which a number may be anything.

use rusqlite::{CachedStatement, Connection, Result, params};

use crate::node::{Ino, Stat};
use crate::past::Past;
use crate::rows::{signed, split};

/// The statements that store inodes, prepared once for many of them.
pub(super) struct Inodes<'c> {
    connection: &'c Connection,
    insert: CachedStatement<'c>,
    update: CachedStatement<'c>,
}

impl<'c> Inodes<'c> {
    pub(super) fn new(connection: &'c Connection) -> Result<Self> {
        let insert = connection.prepare_cached(
            "INSERT INTO fs_inode (mode, nlink, uid, gid, size, atime, mtime, ctime, rdev, atime_nsec, mtime_nsec,
             ctime_nsec, ino) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
        )?;
        let update = connection.prepare_cached(
            "UPDATE fs_inode SET mode=?1, nlink=?2, uid=?3, gid=?4, size=?5, atime=?6, mtime=?7, ctime=?8, rdev=?9,
             atime_nsec=?10, mtime_nsec=?11, ctime_nsec=?12 WHERE ino=?13",
        )?;
        Ok(Self { connection, insert, update })
    }

    pub(super) fn insert(&mut self, past: &Past, stat: &Stat) -> Result<()> {
        past.touch(self.connection)?;
        store(&mut self.insert, stat)
    }

    /// Updates an inode, which is saved first if necessary.
    pub(super) fn update(&mut self, past: &Past, stat: &Stat, place: Option<(Ino, &str)>, is_saved: bool) -> Result<()> {
        if !is_saved {
            past.inode(self.connection, stat.ino, place)?;
        }
        store(&mut self.update, stat)
    }
}

fn store(statement: &mut CachedStatement<'_>, stat: &Stat) -> Result<()> {
    let ((atime, atime_nsec), (mtime, mtime_nsec), (ctime, ctime_nsec)) =
        (split(stat.atime), split(stat.mtime), split(stat.ctime));
    statement.execute(params![
        stat.mode,
        stat.nlink,
        stat.uid,
        stat.gid,
        signed(stat.size),
        atime,
        mtime,
        ctime,
        signed(stat.rdev),
        atime_nsec,
        mtime_nsec,
        ctime_nsec,
        signed(stat.ino)
    ])?;
    Ok(())
}

/// Stores an inode with one name; `false` if its number is in use.
pub(crate) fn import_inode(connection: &Connection, stat: &Stat) -> Result<bool> {
    let ((atime, atime_nsec), (mtime, mtime_nsec), (ctime, ctime_nsec)) =
        (split(stat.atime), split(stat.mtime), split(stat.ctime));
    let inserted = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO fs_inode (ino, mode, nlink, uid, gid, size, atime, mtime, ctime, rdev, atime_nsec,
             mtime_nsec, ctime_nsec) VALUES (?1,?2,1,?3,?4,?5,?6,?7,?8,0,?9,?10,?11)",
        )?
        .execute(params![
            signed(stat.ino),
            stat.mode,
            stat.uid,
            stat.gid,
            signed(stat.size),
            atime,
            mtime,
            ctime,
            atime_nsec,
            mtime_nsec,
            ctime_nsec
        ])?;
    Ok(inserted > 0)
}

/// Sets all times of the root.
pub(crate) fn set_root_times(connection: &Connection, now: i64) -> Result<()> {
    let (seconds, nanos) = split(now);
    connection.execute(
        "UPDATE fs_inode SET atime=?1, mtime=?1, ctime=?1, atime_nsec=?2, mtime_nsec=?2, ctime_nsec=?2 WHERE ino=1",
        [seconds, nanos],
    )?;
    Ok(())
}

/// Removes an inode, but not its contents.
pub(super) fn remove_inode(connection: &Connection, past: &Past, ino: Ino) -> Result<()> {
    past.inode(connection, ino, None)?;
    connection.prepare_cached("DELETE FROM fs_inode WHERE ino=?1")?.execute([signed(ino)])?;
    Ok(())
}

/// Removes all inodes, the root included.
pub(crate) fn remove_all_inodes(connection: &Connection) -> Result<()> {
    connection.execute("DELETE FROM fs_inode", [])?;
    Ok(())
}

/// Removes a range of inodes with their contents and targets, including the last one.
pub(super) fn remove_range(connection: &Connection, past: &Past, first: Ino, last: Ino) -> Result<()> {
    past.range(connection, first, last)?;
    for statement in [
        "DELETE FROM fs_inode WHERE ino BETWEEN ?1 AND ?2",
        "DELETE FROM fs_data WHERE ino BETWEEN ?1 AND ?2",
        "DELETE FROM fs_symlink WHERE ino BETWEEN ?1 AND ?2",
    ] {
        connection.prepare_cached(statement)?.execute([signed(first), signed(last)])?;
    }
    Ok(())
}

/// Removes inodes without a name, with their data, and returns their number.
pub(crate) fn remove_nameless(connection: &Connection) -> Result<usize> {
    let removed = connection.execute("DELETE FROM fs_inode WHERE ino<>1 AND ino NOT IN (SELECT ino FROM fs_dentry)", [])?;
    connection.execute_batch(
        "DELETE FROM fs_symlink WHERE ino NOT IN (SELECT ino FROM fs_inode);
         DELETE FROM fs_data WHERE ino NOT IN (SELECT ino FROM fs_inode);",
    )?;
    Ok(removed)
}

/// Sets every link count to the number of names.
pub(crate) fn count_links(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "UPDATE fs_inode SET nlink=names FROM (SELECT ino AS i, count(*) AS names FROM fs_dentry GROUP BY ino)
           WHERE i=ino AND (mode & 61440)<>16384;
         UPDATE fs_inode SET nlink=2 WHERE (mode & 61440)=16384;
         UPDATE fs_inode SET nlink=2+below FROM (SELECT d.parent_ino AS p, count(*) AS below FROM fs_dentry d
           JOIN fs_inode i ON i.ino=d.ino AND (i.mode & 61440)=16384 GROUP BY d.parent_ino) WHERE p=ino;",
    )
}

/// Adds a name with an unused number.
pub(super) fn add_name(connection: &Connection, past: &Past, id: i64, (dir, name): (Ino, &str), ino: Ino) -> Result<()> {
    past.touch(connection)?;
    connection.prepare_cached("INSERT INTO fs_dentry (id, name, parent_ino, ino) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        id,
        name,
        signed(dir),
        signed(ino)
    ])?;
    Ok(())
}

pub(super) fn remove_name(connection: &Connection, past: &Past, dir: Ino, name: &str) -> Result<()> {
    past.name(connection, dir, name)?;
    connection.prepare_cached("DELETE FROM fs_dentry WHERE parent_ino=?1 AND name=?2")?.execute(params![signed(dir), name])?;
    Ok(())
}

pub(super) fn move_name(connection: &Connection, past: &Past, from: (Ino, &str), to: (Ino, &str)) -> Result<()> {
    past.no_name(connection, from, to)?;
    past.name(connection, from.0, from.1)?;
    connection
        .prepare_cached("UPDATE fs_dentry SET parent_ino=?1, name=?2 WHERE parent_ino=?3 AND name=?4")?
        .execute(params![signed(to.0), to.1, signed(from.0), from.1])?;
    Ok(())
}

/// Adds a name, with a number if it has one; `false` if the directory already has it.
pub(crate) fn import_name(connection: &Connection, id: Option<i64>, (dir, name): (i64, &str), ino: i64) -> Result<bool> {
    let inserted = connection
        .prepare_cached("INSERT OR IGNORE INTO fs_dentry (id, name, parent_ino, ino) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![id, name, dir, ino])?;
    Ok(inserted > 0)
}

/// Stores a chunk, replacing an existing one; `is_longer` if that is known to be its prefix.
pub(super) fn put_chunk(
    connection: &Connection,
    past: &Past,
    (ino, index): (Ino, u64),
    data: &[u8],
    is_longer: bool,
) -> Result<()> {
    if is_longer {
        past.touch(connection)?;
    } else {
        past.chunk(connection, ino, index, data)?;
    }
    connection
        .prepare_cached(
            "INSERT INTO fs_data (ino, chunk_index, data) VALUES (?1, ?2, ?3)
             ON CONFLICT (ino, chunk_index) DO UPDATE SET data=excluded.data",
        )?
        .execute(params![signed(ino), signed(index), data])?;
    Ok(())
}

/// Adds zeros for chunks without a row, given their numbers and lengths.
pub(super) fn add_zeros(
    connection: &Connection,
    past: &Past,
    ino: Ino,
    chunks: impl Iterator<Item = (u64, usize)>,
) -> Result<()> {
    past.touch(connection)?;
    let mut insert = connection
        .prepare_cached("INSERT INTO fs_data (ino, chunk_index, data) VALUES (?1, ?2, zeroblob(?3)) ON CONFLICT DO NOTHING")?;
    for (index, len) in chunks {
        insert.execute(params![signed(ino), signed(index), signed(len as u64)])?;
    }
    Ok(())
}

/// Removes the chunks of a file from `first` on.
pub(super) fn remove_chunks(connection: &Connection, past: &Past, ino: Ino, first: u64) -> Result<()> {
    past.chunks(connection, ino, first)?;
    connection
        .prepare_cached("DELETE FROM fs_data WHERE ino=?1 AND chunk_index>=?2")?
        .execute(params![signed(ino), signed(first)])?;
    Ok(())
}

/// Stores the target of a symbolic link.
pub(crate) fn add_target(connection: &Connection, past: &Past, ino: Ino, target: &str) -> Result<()> {
    past.touch(connection)?;
    connection.prepare_cached("INSERT INTO fs_symlink (ino, target) VALUES (?1, ?2)")?.execute(params![signed(ino), target])?;
    Ok(())
}

/// Stores the target of an inode that is a symbolic link, and its length as the inode's size; does nothing for other inodes.
pub(crate) fn import_target(connection: &Connection, ino: i64, target: &str) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO fs_symlink (ino, target)
             SELECT ?1, ?2 FROM fs_inode WHERE ino=?1 AND (mode & 61440)=40960",
        )?
        .execute(params![ino, target])?;
    connection
        .prepare_cached("UPDATE fs_inode SET size=?2 WHERE ino=?1 AND (mode & 61440)=40960")?
        .execute(params![ino, signed(target.len() as u64)])?;
    Ok(())
}

/// Hides a path, replacing hidden paths one level below it.
pub(crate) fn hide(connection: &Connection, past: &Past, path: &str, parent: &str, seconds: i64) -> Result<()> {
    let mut below = connection.prepare_cached("SELECT path FROM fs_whiteout WHERE parent_path=?1")?;
    let below: Vec<String> = below.query_map([path], |row| row.get(0))?.collect::<Result<_>>()?;
    for hidden in below.iter().map(String::as_str).chain([path]) {
        past.whiteout(connection, hidden)?;
    }
    connection.prepare_cached("DELETE FROM fs_whiteout WHERE parent_path=?1")?.execute([path])?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO fs_whiteout (path, parent_path, created_at) VALUES (?1, ?2, ?3)")?
        .execute(params![path, parent, seconds])?;
    Ok(())
}

/// Shows a path again.
pub(crate) fn show(connection: &Connection, past: &Past, path: &str) -> Result<()> {
    past.whiteout(connection, path)?;
    connection.prepare_cached("DELETE FROM fs_whiteout WHERE path=?1")?.execute([path])?;
    Ok(())
}

pub(crate) fn put_key(connection: &Connection, past: &Past, key: &str, json: &str, seconds: i64) -> Result<()> {
    past.key(connection, key)?;
    connection
        .prepare_cached(
            "INSERT INTO kv_store (key, value, created_at, updated_at) VALUES (?1, ?2, ?3, ?3)
             ON CONFLICT (key) DO UPDATE SET value=excluded.value, updated_at=excluded.updated_at",
        )?
        .execute(params![key, json, seconds])?;
    Ok(())
}

/// Stores the data for which AgentFS has no column.
pub(crate) fn put_key_version(connection: &Connection, past: &Past, key: &str, version: u64, secret: bool) -> Result<()> {
    past.key(connection, key)?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO sandlite_kv (key, version, secret) VALUES (?1, ?2, ?3)")?
        .execute(params![key, signed(version), secret])?;
    Ok(())
}

pub(crate) fn remove_key(connection: &Connection, past: &Past, key: &str) -> Result<()> {
    past.key(connection, key)?;
    connection.prepare_cached("DELETE FROM sandlite_kv WHERE key=?1")?.execute([key])?;
    connection.prepare_cached("DELETE FROM kv_store WHERE key=?1")?.execute([key])?;
    Ok(())
}

/// Stores a key; fails if it exists.
pub(crate) fn import_key(connection: &Connection, key: &str, json: &str, created: i64, updated: i64) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO kv_store (key, value, created_at, updated_at) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, json, created, updated])?;
    Ok(())
}

/// Stores the data for which AgentFS has no column; fails if it exists.
pub(crate) fn import_key_version(connection: &Connection, key: &str, version: i64, secret: bool) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO sandlite_kv (key, version, secret) VALUES (?1, ?2, ?3)")?
        .execute(params![key, version, secret])?;
    Ok(())
}

/// Stores the state of a part of a session. An identical state is not a change.
pub(crate) fn put_session(
    connection: &Connection,
    past: &Past,
    (name, part): (&str, &str),
    state: &[u8],
    nanos: i64,
) -> Result<()> {
    let is_same = connection
        .prepare_cached("UPDATE sandlite_session SET updated_ns=?4 WHERE name=?1 AND part=?2 AND state=?3")?
        .execute(params![name, part, state, nanos])?;
    if is_same > 0 {
        return Ok(());
    }
    past.session(connection, name, part)?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO sandlite_session (name, part, state, updated_ns) VALUES (?1,?2,?3,?4)")?
        .execute(params![name, part, state, nanos])?;
    Ok(())
}

/// Removes all parts of a session.
pub(crate) fn remove_session(connection: &Connection, past: &Past, name: &str) -> Result<()> {
    let mut parts = connection.prepare_cached("SELECT part FROM sandlite_session WHERE name=?1")?;
    let parts: Vec<String> = parts.query_map([name], |row| row.get(0))?.collect::<Result<_>>()?;
    for part in &parts {
        past.session(connection, name, part)?;
    }
    connection.prepare_cached("DELETE FROM sandlite_session WHERE name=?1")?.execute([name])?;
    Ok(())
}

/// Stores a part of a session; fails if it exists.
pub(crate) fn import_session(connection: &Connection, name: &str, part: &str, state: &[u8], nanos: i64) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO sandlite_session (name, part, state, updated_ns) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![name, part, state, nanos])?;
    Ok(())
}

/// Stores a setting, or removes it.
pub(crate) fn put_setting(connection: &Connection, name: &str, value: Option<&str>) -> Result<()> {
    match value {
        Some(value) => connection
            .prepare_cached("INSERT OR REPLACE INTO sandlite_setting (name, value) VALUES (?1, ?2)")?
            .execute([name, value])?,
        None => connection.prepare_cached("DELETE FROM sandlite_setting WHERE name=?1")?.execute([name])?,
    };
    Ok(())
}
