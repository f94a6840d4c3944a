//! Saving rows before they change. Only `store/write.rs` calls these functions.
//!
//! A row that the running transaction created is not saved: its number is not below the mark of the previous version. Each row is
//! saved once per version; if there are two, the first counts.

use rusqlite::{Connection, Result, params};

use super::{ABSENT, CHUNKED_MAX, Head, Past, ROW, Table, first_id, inode_id};
use crate::node::Ino;
use crate::rows::signed;

/// Overhead of a saved row besides its texts and bytes, including its index.
pub(crate) const ROW_BYTES: u64 = 96;

impl Past {
    /// Returns the version being created, if rows are saved.
    fn version(&self, connection: &Connection) -> Result<Option<(Head, i64)>> {
        let head = self.touch(connection)?;
        Ok(self.saves().then_some((head, first_id(head.version + 1))))
    }

    /// Returns a number for the next row of a table.
    fn next_id(&self, connection: &Connection, table: Table, first: i64) -> Result<i64> {
        self.make(connection, table)?;
        let Some(next) = self.next.get(table as usize) else { return Ok(first) };
        if next.get() == 0 {
            let query = format!("SELECT coalesce(max(id), 0) FROM {}", table.name());
            let last: i64 = connection.prepare_cached(&query)?.query_row([], |row| row.get(0))?;
            next.set(last.saturating_add(1).max(first));
        }
        Ok(next.get())
    }

    /// Records that rows were saved with numbers from the next one on.
    fn saved(&self, table: Table, rows: usize, bytes: u64) {
        if let Some(next) = self.next.get(table as usize) {
            next.set(next.get().saturating_add(i64::try_from(rows).unwrap_or(0)));
        }
        let all = self.bytes.get().saturating_add(bytes).saturating_add(ROW_BYTES.saturating_mul(rows as u64));
        self.bytes.set(all);
        if all > self.allowed {
            self.is_overflowed.set(true);
        }
    }

    /// Returns the number for the row of an old inode, if it is saved.
    fn inode_id(&self, connection: &Connection, ino: Ino) -> Result<Option<i64>> {
        let Some((head, _)) = self.version(connection)?.filter(|(head, _)| ino < head.mark) else { return Ok(None) };
        let id = inode_id(ino, head.version + 1);
        if id.is_none() {
            self.give_up();
        }
        Ok(id)
    }

    /// Saves an inode, with its last known place.
    pub(crate) fn inode(&self, connection: &Connection, ino: Ino, place: Option<(Ino, &str)>) -> Result<()> {
        let Some(id) = self.inode_id(connection, ino)? else { return Ok(()) };
        self.make(connection, Table::Inode)?;
        let (dir, name) = place.map_or((None, None), |(dir, name)| (Some(signed(dir)), Some(name)));
        let saved = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO sandlite_past_inode SELECT ?1, 0, mode, nlink, uid, gid, size, atime, mtime, ctime, rdev,
                 atime_nsec, mtime_nsec, ctime_nsec, ?3, ?4 FROM fs_inode WHERE ino=?2",
            )?
            .execute(params![id, signed(ino), dir, name])?;
        self.saved_inode(ino, saved, name.map_or(0, str::len));
        Ok(())
    }

    fn saved_inode(&self, ino: Ino, saved: usize, bytes: usize) {
        if saved > 0 {
            self.inodes.borrow_mut().push(ino);
            self.saved(Table::Inode, saved, bytes as u64);
        }
    }

    /// Saves a range of inodes with their contents and targets, including the last one.
    pub(crate) fn range(&self, connection: &Connection, from: Ino, to: Ino) -> Result<()> {
        let Some((head, first)) = self.version(connection)? else { return Ok(()) };
        let to = to.min(head.mark.saturating_sub(1));
        if from > to {
            return Ok(());
        }
        // A number that SQLite chooses follows the highest, so the first row of a version gets its number here.
        if inode_id(to, 0).is_none() {
            self.give_up();
            return Ok(());
        }
        self.make(connection, Table::Inode)?;
        let mut statement = connection.prepare_cached(
            "INSERT OR IGNORE INTO sandlite_past_inode SELECT (ino<<31)|?3, 0, mode, nlink, uid, gid, size, atime, mtime, ctime,
             rdev, atime_nsec, mtime_nsec, ctime_nsec, NULL, NULL FROM fs_inode WHERE ino BETWEEN ?1 AND ?2 RETURNING id>>31",
        )?;
        let mut rows = statement.query(params![signed(from), signed(to), head.version + 1])?;
        while let Some(row) = rows.next()? {
            self.saved_inode(crate::rows::ino(row, 0)?, 1, 0);
        }
        drop(rows);
        self.many(connection, Table::Data, first, signed(from), signed(to), RANGE_OF_DATA)?;
        self.many(connection, Table::Symlink, first, signed(from), signed(to), RANGE_OF_SYMLINKS)
    }

    /// Saves the chunks of a file from `from` on.
    pub(crate) fn chunks(&self, connection: &Connection, ino: Ino, from: u64) -> Result<()> {
        let Some((head, first)) = self.version(connection)? else { return Ok(()) };
        if ino >= head.mark {
            return Ok(());
        }
        let is_first = !self.remember_chunked(ino);
        if is_first && self.first_chunks(connection, ino, from, first)? {
            return Ok(());
        }
        self.many(connection, Table::Data, first, signed(ino), signed(from), CHUNKS_OF_FILE)
    }

    /// Saves the chunks of a file of which this version has saved none: no saved row has to be looked up. Returns whether that
    /// was possible; the first row of a version needs a number, because the others follow the highest one.
    fn first_chunks(&self, connection: &Connection, ino: Ino, from: u64, first: i64) -> Result<bool> {
        let (rows, bytes): (i64, u64) = connection
            .prepare_cached(
                "SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM fs_data WHERE ino=?1 AND chunk_index>=?2",
            )?
            .query_row([signed(ino), signed(from)], |row| Ok((row.get(0)?, crate::rows::bytes(row, 1)?)))?;
        if rows == 0 {
            return Ok(true);
        }
        if self.next_id(connection, Table::Data, first)? == first {
            return Ok(false);
        }
        let saved = connection
            .prepare_cached(
                "INSERT INTO sandlite_past_data (ino, chunk_index, data)
                 SELECT ino, chunk_index, data FROM fs_data WHERE ino=?1 AND chunk_index>=?2 ORDER BY chunk_index",
            )?
            .execute([signed(ino), signed(from)])?;
        self.saved(Table::Data, saved, bytes);
        Ok(true)
    }

    /// Saves the rows of a query: one row with its number, or all with consecutive numbers.
    fn many(&self, connection: &Connection, table: Table, first: i64, a: i64, b: i64, query: &str) -> Result<()> {
        let (rows_of, new_ones) = query.split_once("\n  AND NOT EXISTS").unwrap_or((query, ""));
        let is_there = self.tables(connection)?.has(table);
        let wanted = rows_of.replace("{id}", "1").replace("{insert}", "");
        let is_any = match is_there && !new_ones.is_empty() {
            true => {
                connection.prepare_cached(&query.replace("{id}", "1").replace("{insert}", ""))?.exists(params![a, b, first])?
            }
            false => connection.prepare_cached(&wanted)?.exists(params![a, b])?,
        };
        if !is_any {
            return Ok(());
        }
        let id = self.next_id(connection, table, first)?;
        let (mut rows, mut bytes) = (0, 0_u64);
        let insert = |id: &str, limit: &str| {
            let text = query.replace("{id}", id).replace("{insert}", table.insert());
            let bytes = match table {
                Table::Data => "octet_length(data)",
                Table::Symlink => "octet_length(target)",
                _ => "0",
            };
            format!("{text} {limit} RETURNING {bytes}")
        };
        // The highest number belongs to an earlier version, or this one has none yet.
        if id == first {
            let mut statement = connection.prepare_cached(&insert("?4", "LIMIT 1"))?;
            let mut found = statement.query(params![a, b, first, id])?;
            while let Some(row) = found.next()? {
                (rows, bytes) = (rows + 1, bytes.saturating_add(crate::rows::bytes(row, 0)?));
            }
        }
        let mut statement = connection.prepare_cached(&insert("NULL", ""))?;
        let mut found = statement.query(params![a, b, first])?;
        while let Some(row) = found.next()? {
            (rows, bytes) = (rows + 1, bytes.saturating_add(crate::rows::bytes(row, 0)?));
        }
        self.saved(table, rows, bytes);
        Ok(())
    }

    /// Saves a chunk that is about to be replaced. If the file only grew, the old chunk is a prefix of the new one and need not
    /// be saved: the size saved with the inode gives its length.
    pub(crate) fn chunk(&self, connection: &Connection, ino: Ino, index: u64, data: &[u8]) -> Result<()> {
        let Some((head, first)) = self.version(connection)? else { return Ok(()) };
        if ino >= head.mark {
            return Ok(());
        }
        let mut old = connection.prepare_cached("SELECT data FROM fs_data WHERE ino=?1 AND chunk_index=?2")?;
        let mut rows = old.query(params![signed(ino), signed(index)])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        let old = row.get_ref(0)?;
        let bytes = old.as_bytes().unwrap_or_default();
        if data.starts_with(bytes) {
            return Ok(());
        }
        let id = self.next_id(connection, Table::Data, first)?;
        if self.remember_chunked(ino) && is_chunk_saved(connection, ino, index, first)? {
            return Ok(());
        }
        connection
            .prepare_cached("INSERT INTO sandlite_past_data (id, ino, chunk_index, data) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![id, signed(ino), signed(index), bytes])?;
        self.saved(Table::Data, 1, bytes.len() as u64);
        Ok(())
    }

    /// Records that chunks of a file are saved, and returns whether some may have been before.
    fn remember_chunked(&self, ino: Ino) -> bool {
        let mut chunked = self.chunked.borrow_mut();
        let Some(inodes) = chunked.as_mut() else { return true };
        let is_new = inodes.insert(ino);
        if inodes.len() > CHUNKED_MAX {
            *chunked = None;
        }
        !is_new
    }

    /// Saves a directory entry that is about to be removed.
    pub(crate) fn name(&self, connection: &Connection, dir: Ino, name: &str) -> Result<()> {
        let Some((head, first)) = self.version(connection)? else { return Ok(()) };
        if dir >= head.mark {
            return Ok(());
        }
        let id = self.next_id(connection, Table::Dentry, first)?;
        let saved = connection
            .prepare_cached(
                "INSERT INTO sandlite_past_dentry SELECT ?1, 0, parent_ino, name, ino, id FROM fs_dentry
                 WHERE parent_ino=?2 AND name=?3 AND id<?4
                 AND NOT EXISTS (SELECT 1 FROM sandlite_past_dentry INDEXED BY idx_sandlite_past_dentry WHERE parent_ino=?2 AND name=?3 AND id>=?5)",
            )?
            .execute(params![id, signed(dir), name, head.entries, first])?;
        self.saved(Table::Dentry, saved, if saved > 0 { name.len() as u64 } else { 0 });
        Ok(())
    }

    /// Saves the absence of a directory entry, if one with an old number is about to be added.
    pub(crate) fn no_name(&self, connection: &Connection, from: (Ino, &str), to: (Ino, &str)) -> Result<()> {
        let Some((head, first)) = self.version(connection)? else { return Ok(()) };
        if to.0 >= head.mark {
            return Ok(());
        }
        let id = self.next_id(connection, Table::Dentry, first)?;
        let saved = connection
            .prepare_cached(
                "INSERT INTO sandlite_past_dentry (id, state, parent_ino, name) SELECT ?1, ?7, ?2, ?3 FROM fs_dentry
                 WHERE parent_ino=?4 AND name=?5 AND id<?6
                 AND NOT EXISTS (SELECT 1 FROM sandlite_past_dentry INDEXED BY idx_sandlite_past_dentry WHERE parent_ino=?2 AND name=?3 AND id>=?8)",
            )?
            .execute(params![id, signed(to.0), to.1, signed(from.0), from.1, head.entries, ABSENT, first])?;
        self.saved(Table::Dentry, saved, if saved > 0 { to.1.len() as u64 } else { 0 });
        Ok(())
    }

    /// Saves a key with its value, or its absence.
    pub(crate) fn key(&self, connection: &Connection, key: &str) -> Result<()> {
        let Some((_, first)) = self.version(connection)? else { return Ok(()) };
        let id = self.next_id(connection, Table::Key, first)?;
        let is_saved = connection
            .prepare_cached("SELECT 1 FROM sandlite_past_kv INDEXED BY idx_sandlite_past_kv WHERE key=?1 AND id>=?2")?
            .exists(params![key, first])?;
        if is_saved {
            return Ok(());
        }
        let value: u64 = connection
            .prepare_cached("SELECT coalesce(max(octet_length(value)), 0) FROM kv_store WHERE key=?1")?
            .query_row([key], |row| crate::rows::bytes(row, 0))?;
        let saved = connection
            .prepare_cached(
                "INSERT INTO sandlite_past_kv SELECT ?1, ?3, k.key, k.value, k.created_at, k.updated_at, s.version, s.secret
                 FROM kv_store k LEFT JOIN sandlite_kv s ON s.key=k.key WHERE k.key=?2",
            )?
            .execute(params![id, key, ROW])?;
        if saved == 0 {
            connection
                .prepare_cached("INSERT INTO sandlite_past_kv (id, state, key) VALUES (?1, ?2, ?3)")?
                .execute(params![id, ABSENT, key])?;
        }
        self.saved(Table::Key, 1, (2 * key.len() as u64).saturating_add(value));
        Ok(())
    }

    /// Saves a part of a session, or its absence.
    pub(crate) fn session(&self, connection: &Connection, name: &str, part: &str) -> Result<()> {
        let Some((_, first)) = self.version(connection)? else { return Ok(()) };
        let id = self.next_id(connection, Table::Session, first)?;
        let is_saved = connection
            .prepare_cached(
                "SELECT 1 FROM sandlite_past_session INDEXED BY idx_sandlite_past_session WHERE name=?1 AND part=?2 AND id>=?3",
            )?
            .exists(params![name, part, first])?;
        if is_saved {
            return Ok(());
        }
        let state: u64 = connection
            .prepare_cached("SELECT coalesce(max(octet_length(state)), 0) FROM sandlite_session WHERE name=?1 AND part=?2")?
            .query_row([name, part], |row| crate::rows::bytes(row, 0))?;
        let saved = connection
            .prepare_cached(
                "INSERT INTO sandlite_past_session SELECT ?1, ?4, name, part, state, updated_ns FROM sandlite_session
                 WHERE name=?2 AND part=?3",
            )?
            .execute(params![id, name, part, ROW])?;
        if saved == 0 {
            connection
                .prepare_cached("INSERT INTO sandlite_past_session (id, state, name, part) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![id, ABSENT, name, part])?;
        }
        self.saved(Table::Session, 1, (2 * (name.len() + part.len()) as u64).saturating_add(state));
        Ok(())
    }

    /// Saves whether a path is hidden.
    pub(crate) fn whiteout(&self, connection: &Connection, path: &str) -> Result<()> {
        let Some((_, first)) = self.version(connection)? else { return Ok(()) };
        let id = self.next_id(connection, Table::Whiteout, first)?;
        let is_saved = connection
            .prepare_cached(
                "SELECT 1 FROM sandlite_past_whiteout INDEXED BY idx_sandlite_past_whiteout WHERE path=?1 AND id>=?2",
            )?
            .exists(params![path, first])?;
        if is_saved {
            return Ok(());
        }
        let saved = connection
            .prepare_cached(
                "INSERT INTO sandlite_past_whiteout SELECT ?1, ?3, path, parent_path, created_at FROM fs_whiteout WHERE path=?2",
            )?
            .execute(params![id, path, ROW])?;
        if saved == 0 {
            connection
                .prepare_cached("INSERT INTO sandlite_past_whiteout (id, state, path) VALUES (?1, ?2, ?3)")?
                .execute(params![id, ABSENT, path])?;
        }
        self.saved(Table::Whiteout, 1, 2 * path.len() as u64);
        Ok(())
    }
}

/// Returns whether a version saved a chunk.
fn is_chunk_saved(connection: &Connection, ino: Ino, index: u64, first: i64) -> Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM sandlite_past_data INDEXED BY idx_sandlite_past_data WHERE ino=?1 AND chunk_index=?2 AND id>=?3",
        )?
        .exists(params![signed(ino), signed(index), first])
}

const RANGE_OF_DATA: &str = "{insert} SELECT {id}, ino, chunk_index, data FROM fs_data d WHERE ino BETWEEN ?1 AND ?2
  AND NOT EXISTS (SELECT 1 FROM sandlite_past_data p INDEXED BY idx_sandlite_past_data WHERE p.ino=d.ino AND p.chunk_index=d.chunk_index AND p.id>=?3)";
const RANGE_OF_SYMLINKS: &str = "{insert} SELECT {id}, ino, target FROM fs_symlink s WHERE ino BETWEEN ?1 AND ?2
  AND NOT EXISTS (SELECT 1 FROM sandlite_past_symlink p INDEXED BY idx_sandlite_past_symlink WHERE p.ino=s.ino AND p.id>=?3)";
const CHUNKS_OF_FILE: &str = "{insert} SELECT {id}, ino, chunk_index, data FROM fs_data d WHERE ino=?1 AND chunk_index>=?2
  AND NOT EXISTS (SELECT 1 FROM sandlite_past_data p INDEXED BY idx_sandlite_past_data WHERE p.ino=d.ino AND p.chunk_index=d.chunk_index AND p.id>=?3)";
