//! A digest of the content of a snapshot, so that its recipient can verify that it is the one that was sent (T-SNAP-07).
//!
//! Rows are hashed by meaning, in a defined order (paths, keys, numbers of calls): neither SQLite's layout nor inode numbers,
//! which an import reassigns, matter. Authenticating a digest is up to the caller: it is short enough to be signed by any
//! tool, or to be sent separately from the file.

use std::collections::HashMap;
use std::ffi::CString;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB, Row};

use crate::copy::Export;
use crate::database::Database;
use crate::error::Error;
use crate::fs::Volume;
use crate::node::{FileType, Ino};
use crate::past::{self, Table};
use crate::reader::Reader;
use crate::rows;

/// Number of bytes hashed at once.
const STEP_BYTES: usize = 256 << 10;
/// Permissions that an import does not keep.
const SET_IDS: u32 = 0o6000;
/// Longer values are read piece by piece, because the output of one call can be 64 MB.
const LARGE_BYTES: u64 = 256 << 10;

impl Database {
    /// Returns the digest of what [`export`](Self::export) with the same settings writes, as 64 hexadecimal digits, for the last
    /// committed state. An import verifies it: [`Import::digest`](crate::Import::digest).
    ///
    /// ```
    /// # use sqlite_fs::{Database, Export, Import};
    /// # let directory = std::env::temp_dir().join(format!("sqlite-fs-digest-{}", std::process::id()));
    /// # std::fs::create_dir(&directory).unwrap();
    /// # let file = directory.join("snapshot.db");
    /// # let database = Database::options().open()?;
    /// database.export(&file, Export::default())?;
    /// let digest = database.digest(Export::default())?;
    /// let expect = Import { digest: Some(digest), ..Import::default() };
    /// Database::import(&file, Database::options(), &expect)?;
    /// # std::fs::remove_dir_all(directory).unwrap();
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Moved`] if the file was replaced or removed, and [`Error::Damaged`] if its rows cannot be read.
    pub fn digest(&self, export: Export) -> Result<String, Error> {
        self.reader()?.digest(export)
    }
}

impl Database {
    /// Returns the digest of what [`export_with_past`](Self::export_with_past) with the same settings writes, which covers every
    /// version and its saved rows. An import verifies it too.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`digest`](Self::digest).
    pub fn digest_with_past(&self, export: Export) -> Result<String, Error> {
        let reader = self.reader()?;
        let mut words = Words::default();
        words.bytes(reader.digest(export)?.as_bytes());
        reader.rows(|connection| Ok(digest_past(connection, &mut words, export.secrets)?))?;
        Ok(words.0.finalize().to_hex().to_string())
    }
}

/// Hashes versions, labels and saved rows, without the parts that an import recomputes.
fn digest_past(connection: &Connection, words: &mut Words, secrets: bool) -> rusqlite::Result<()> {
    const VERSIONS: (&str, &[&str]) = ("sandlite_version", &["id", "time_ns", "mark", "entries", "outside"]);
    const LABELS: (&str, &[&str]) = (past::LABELS, &["name", "version", "message", "time_ns"]);
    let saved = Table::ALL.into_iter().map(|table| (table.name(), table.columns()));
    for (table, columns) in [VERSIONS, LABELS].into_iter().chain(saved) {
        words.bytes(table.as_bytes());
        if !rows::has_table(connection, table)? {
            continue;
        }
        let filter = if table == Table::Key.name() && !secrets { NOT_SECRET } else { "" };
        let query = format!("SELECT {} FROM {table}{filter} ORDER BY 1", columns.join(", "));
        let mut statement = connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for (index, column) in columns.iter().enumerate() {
                words.value(column, row.get_ref(index)?);
            }
        }
    }
    Ok(())
}

/// Keys that were never secret.
const NOT_SECRET: &str = " WHERE key NOT IN (SELECT key FROM sandlite_kv WHERE secret<>0)
  AND key NOT IN (SELECT key FROM sandlite_past_kv WHERE secret<>0)";

/// A sequence of values, each with its length, so that different lists have different encodings.
#[derive(Default)]
struct Words(blake3::Hasher);

impl Words {
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    /// Hashes any value with its type.
    fn value(&mut self, column: &str, value: ValueRef<'_>) {
        match value {
            // Normalized as an import stores them.
            ValueRef::Integer(_) if column == "rdev" => self.number(0),
            ValueRef::Integer(number) if column == "mode" => self.number((number & !i64::from(SET_IDS)).cast_unsigned()),
            ValueRef::Integer(number) => self.number(number.cast_unsigned()),
            ValueRef::Real(number) => self.number(number.to_bits()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => self.bytes(bytes),
            ValueRef::Null => self.bytes(b"NULL"),
        }
        self.0.update(&[value.data_type() as u8]);
    }

    /// Hashes the value of a column, which is NULL here if it is large. A missing value equals an empty one, as in an import.
    fn column(&mut self, connection: &Connection, row: &Row<'_>, column: Column, index: usize) -> rusqlite::Result<()> {
        let length = rows::bytes(row, index)?;
        match row.get_ref(index + 1)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => self.bytes(bytes),
            ValueRef::Integer(number) => self.bytes(number.to_string().as_bytes()),
            ValueRef::Real(_) => {
                return Err(rusqlite::Error::InvalidColumnType(index + 1, column.1.to_owned(), rusqlite::types::Type::Real));
            }
            ValueRef::Null if length <= LARGE_BYTES => self.bytes(&[]),
            ValueRef::Null => {
                let (table, name) = (CString::new(column.0)?, CString::new(column.1)?);
                let blob = connection.blob_open(MAIN_DB, &*table, &*name, row.get(0)?, true)?;
                self.number(blob.len() as u64);
                let mut buffer = vec![0; STEP_BYTES];
                for start in (0..blob.len()).step_by(STEP_BYTES) {
                    let piece = buffer.get_mut(..STEP_BYTES.min(blob.len() - start)).unwrap_or_default();
                    blob.read_at_exact(piece, start)?;
                    self.0.update(piece);
                }
            }
        }
        Ok(())
    }
}

/// A table and one of its columns.
type Column = (&'static str, &'static str);

/// Returns the expressions for [`Words::column`]: the length of a column, and its value unless that is large.
fn selected(alias: &str, columns: &[Column]) -> String {
    let each = columns.iter().map(|(_, name)| {
        format!(", octet_length({alias}.{name}), iif(octet_length({alias}.{name})>{LARGE_BYTES}, NULL, {alias}.{name})")
    });
    each.collect()
}

impl Reader {
    fn digest(&self, export: Export) -> Result<String, Error> {
        let mut words = Words::default();
        self.digest_files(&mut words)?;
        self.digest_keys(&mut words, export.secrets)?;
        self.rows(|connection| Ok(digest_beside(connection, &mut words)?))?;
        if export.history {
            self.digest_calls(&mut words)?;
        }
        Ok(words.0.finalize().to_hex().to_string())
    }

    fn digest_files(&self, words: &mut Words) -> Result<(), Error> {
        // Which paths are the same file.
        let mut known: HashMap<Ino, u64> = HashMap::new();
        let mut buffer = vec![0; STEP_BYTES];
        for (path, stat) in self.fs().walk("/")? {
            let next = known.len() as u64;
            words.bytes(path.as_bytes());
            words.number(u64::from(stat.mode & !SET_IDS));
            words.number(u64::from(stat.uid));
            words.number(u64::from(stat.gid));
            words.number(stat.mtime.cast_unsigned());
            match stat.file_type() {
                FileType::Directory => {}
                // Its mode determines its type, and it has no content.
                FileType::Fifo | FileType::Device => {}
                FileType::Symlink => words.bytes(self.fs().read_link(&path)?.as_bytes()),
                FileType::File => match known.get(&stat.ino) {
                    Some(first) => words.number(*first),
                    None => {
                        known.insert(stat.ino, next);
                        words.number(next);
                        words.number(stat.size);
                        let mut offset = 0;
                        while offset < stat.size {
                            let length = Volume::read(self, stat.ino, offset, &mut buffer).map_err(Error::from)?;
                            if length == 0 {
                                break;
                            }
                            words.0.update(buffer.get(..length).unwrap_or_default());
                            offset += length as u64;
                        }
                    }
                },
            }
        }
        Ok(())
    }

    fn digest_keys(&self, words: &mut Words, secrets: bool) -> Result<(), Error> {
        const COLUMNS: [Column; 2] = [("kv_store", "key"), ("kv_store", "value")];
        let query = format!(
            "SELECT k.rowid{} FROM kv_store k LEFT JOIN sandlite_kv s ON s.key=k.key
             WHERE ?1 OR coalesce(s.secret, 0)=0 ORDER BY k.key",
            selected("k", &COLUMNS)
        );
        Ok(self.rows(|connection| Ok(digest_rows(connection, words, &query, [secrets], &COLUMNS)?))?)
    }

    fn digest_calls(&self, words: &mut Words) -> Result<(), Error> {
        Ok(self.rows(|connection| Ok(digest_calls(connection, words)?))?)
    }
}

fn digest_rows(
    connection: &Connection,
    words: &mut Words,
    query: &str,
    parameters: impl rusqlite::Params,
    columns: &[Column],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        for (index, column) in columns.iter().enumerate() {
            words.column(connection, row, *column, 1 + 2 * index)?;
        }
    }
    Ok(())
}

/// Hashes sessions, whiteouts and settings.
fn digest_beside(connection: &Connection, words: &mut Words) -> rusqlite::Result<()> {
    const SESSION: &[Column] = &[("sandlite_session", "name"), ("sandlite_session", "part"), ("sandlite_session", "state")];
    const WHITEOUT: &[Column] = &[("fs_whiteout", "path")];
    for (table, columns, order) in [("sandlite_session", SESSION, "t.name, t.part"), ("fs_whiteout", WHITEOUT, "t.path")] {
        // A file may be older than the table, or never have been part of an overlay.
        if rows::has_table(connection, table)? {
            let query = format!("SELECT t.rowid{} FROM {table} t ORDER BY {order}", selected("t", columns));
            digest_rows(connection, words, &query, [], columns)?;
        }
    }
    const SETTING: &[Column] = &[("sandlite_setting", "name"), ("sandlite_setting", "value")];
    if rows::has_table(connection, "sandlite_setting")? {
        let columns = selected("t", SETTING);
        let query = format!("SELECT t.rowid{columns} FROM sandlite_setting t WHERE t.name NOT LIKE 'cursor:%' ORDER BY t.name");
        digest_rows(connection, words, &query, [], SETTING)?;
    }
    Ok(())
}

/// Hashes the calls, newest first, one at a time.
fn digest_calls(connection: &Connection, words: &mut Words) -> rusqlite::Result<()> {
    const CALL: [Column; 4] =
        [("tool_calls", "name"), ("tool_calls", "parameters"), ("tool_calls", "result"), ("tool_calls", "error")];
    const RUN: [Column; 7] = [
        ("sandlite_run", "command"),
        ("sandlite_run", "stdout"),
        ("sandlite_run", "stderr"),
        ("sandlite_run", "exit_code"),
        ("sandlite_run", "limit_reached"),
        ("sandlite_run", "usage"),
        ("sandlite_run", "changes"),
    ];
    let query = format!(
        "SELECT t.id{}{}, r.id IS NOT NULL FROM tool_calls t LEFT JOIN sandlite_run r ON r.id=t.id ORDER BY t.id DESC",
        selected("t", &CALL),
        selected("r", &RUN)
    );
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        words.number(row.get::<_, i64>(0)?.cast_unsigned());
        for (index, column) in CALL.iter().enumerate() {
            words.column(connection, row, *column, 1 + 2 * index)?;
        }
        if row.get(1 + 2 * (CALL.len() + RUN.len()))? {
            for (index, column) in RUN.iter().enumerate() {
                words.column(connection, row, *column, 1 + 2 * (CALL.len() + index))?;
            }
        }
    }
    Ok(())
}
