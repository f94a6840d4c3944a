//! Read access to a foreign file, isolated from everything else.

#![expect(clippy::disallowed_methods, reason = "a foreign file is copied before it is opened")]

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use rusqlite::hooks::{AuthAction, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::{Import, refused};
use crate::clock;
use crate::copy::file_uri;
use crate::error::{Error, NO_DATABASE};
use crate::making::with_suffix;
use crate::patience::bytes_on_disk;
use crate::{schema, stranger};

/// Maximum length of a value: a call's whole output.
const VALUE_MAX: i32 = 80 << 20;
/// The only tables that may be read.
const TABLES: &[&str] = &[
    "fs_config",
    "fs_inode",
    "fs_dentry",
    "fs_data",
    "fs_symlink",
    "fs_whiteout",
    "fs_origin",
    "fs_overlay_config",
    "kv_store",
    "tool_calls",
    "sandlite_kv",
    "sandlite_run",
    "sandlite_session",
    "sandlite_version",
    "sandlite_label",
    "sandlite_past_inode",
    "sandlite_past_dentry",
    "sandlite_past_data",
    "sandlite_past_symlink",
    "sandlite_past_kv",
    "sandlite_past_session",
    "sandlite_past_whiteout",
    "sandlite_setting",
];

/// A private copy of a foreign file, opened read-only.
pub(super) struct Source {
    pub(super) connection: Connection,
    pub(super) chunk_bytes: u64,
    columns: HashSet<(String, String)>,
}

/// Maximum compression ratio of a filesystem.
const COMPRESSED_MAX: u64 = 16;
/// Copies up to this size need no check.
const SMALL: u64 = 16 << 20;

/// Copies a file into our directory.
fn take(file: &Path, to: &Path, max_bytes: u64) -> Result<(), Error> {
    let disk = |source| Error::Disk { path: file.to_owned(), source };
    let from = open_file(file).map_err(disk)?;
    // A hole takes no space in the source but would in the copy. A compressing filesystem exceeds this ratio no more.
    let explained = bytes_on_disk(file).saturating_mul(COMPRESSED_MAX).saturating_add(SMALL);
    if from.metadata().map_err(disk)?.len() > explained {
        return Err(refused("file size", "the file has holes"));
    }
    let mut copy = File::create_new(to).map_err(|source| Error::Disk { path: to.to_owned(), source })?;
    let copied = std::io::copy(&mut from.take(max_bytes.saturating_add(1)), &mut copy).map_err(|source| {
        use std::io::ErrorKind;
        let is_ours = matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
        let directory = to.ancestors().nth(2).filter(|_| is_ours);
        Error::Disk { path: directory.unwrap_or(file).to_owned(), source }
    })?;
    if copied > max_bytes {
        return Err(refused("file size", format!("more than {max_bytes} bytes")));
    }
    Ok(())
}

/// Opens a regular file; does not wait for the writer of a named pipe.
fn open_file(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"))
}

impl Source {
    /// Opens a copy of the file, created in `directory`.
    pub(super) fn open(file: &Path, directory: &Path, import: &Import) -> Result<Self, Error> {
        let path = directory.join("import.db");
        take(file, &path, import.max_bytes)?;
        if import.write_ahead_log {
            let log = with_suffix(file, "-wal");
            if log.exists() {
                take(&log, &with_suffix(&path, "-wal"), import.max_bytes)?;
                replay(&path)?;
            }
        }
        let mut connection = Connection::open_with_flags(
            format!("{}&immutable=1", file_uri(&path, "ro")?),
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI,
        )?;
        restrain(&mut connection, import.deadline)?;
        sound(&connection, &path)?;
        let columns = columns(&connection)?;
        let chunk_bytes = chunk_bytes(&connection)?;
        connection.authorizer(Some(|context: rusqlite::hooks::AuthContext<'_>| match context.action {
            AuthAction::Select => Authorization::Allow,
            // AgentFS's own default for a key's times is resolved when the schema is read but never called; lengths are ours.
            AuthAction::Function { function_name: "unixepoch" | "octet_length" } => Authorization::Allow,
            AuthAction::Read { table_name, .. } if TABLES.contains(&table_name) => Authorization::Allow,
            _ => Authorization::Deny,
        }))?;
        Ok(Self { connection, chunk_bytes, columns })
    }

    pub(super) fn has_table(&self, table: &str) -> bool {
        self.columns.iter().any(|(name, _)| name == table)
    }

    pub(super) fn has(&self, table: &str, column: &str) -> bool {
        self.columns.contains(&(table.to_owned(), column.to_owned()))
    }

    /// Returns whether the file has the older layout of LocalSandbox's snapshots.
    pub(super) fn is_old_layout(&self) -> bool {
        !self.has("fs_inode", "mtime_nsec")
    }

    /// Returns `column`, or `instead` if the file is older than the column.
    pub(super) fn column_or<'a>(&self, table: &str, column: &'a str, instead: &'a str) -> &'a str {
        if self.has(table, column) { column } else { instead }
    }
}

/// Copies the log's pages to their places in the copy.
fn replay(path: &Path) -> Result<(), Error> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    schema::harden(&connection)?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

fn restrain(connection: &mut Connection, deadline: Option<Instant>) -> Result<(), Error> {
    schema::harden(connection)?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, VALUE_MAX),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
        (Limit::SQLITE_LIMIT_COLUMN, 100),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 3),
        (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.execute_batch("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA query_only=ON; PRAGMA temp_store=MEMORY;")?;
    if let Some(deadline) = deadline {
        connection.progress_handler(10_000, Some(move || clock::instant() > deadline))?;
    }
    Ok(())
}

/// Checks the page structure first, so that later steps can rely on the engine.
fn sound(connection: &Connection, path: &Path) -> Result<(), Error> {
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(refused("page structure", verdict)),
        Err(error) => match Error::from(error) {
            Error::Damaged(detail) => Err(refused("page structure", detail)),
            Error::NotADatabase => Err(refused(NO_DATABASE, stranger::file(path))),
            Error::Sqlite(error) => Err(refused("page structure", error.to_string())),
            other => Err(other),
        },
    }
}

/// Returns the columns of the relevant tables; each must be an ordinary table with ordinary columns.
fn columns(connection: &Connection) -> Result<HashSet<(String, String)>, Error> {
    let mut columns = HashSet::new();
    let mut objects = connection.prepare("SELECT type, sql FROM sqlite_schema WHERE lower(name)=?1")?;
    for table in TABLES {
        let mut found = objects.query([table])?;
        let Some(row) = found.next()? else { continue };
        let (kind, sql): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let ordinary = sql.is_some_and(|sql| sql.trim_start().to_ascii_uppercase().starts_with("CREATE TABLE"));
        if kind != "table" || !ordinary || found.next()?.is_some() {
            return Err(refused("no active content", format!("`{table}` is not an ordinary table")));
        }
        let mut info = connection.prepare(&format!("PRAGMA table_xinfo({table})"))?;
        let mut rows = info.query([])?;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(6)? != 0 {
                return Err(refused("no active content", format!("`{table}` has a computed column")));
            }
            columns.insert(((*table).to_owned(), row.get::<_, String>(1)?));
        }
    }
    for (table, column) in [
        ("fs_inode", "ino"),
        ("fs_inode", "mode"),
        ("fs_inode", "size"),
        ("fs_dentry", "name"),
        ("fs_dentry", "parent_ino"),
        ("fs_dentry", "ino"),
        ("fs_data", "ino"),
        ("fs_data", "data"),
    ] {
        if !columns.contains(&(table.to_owned(), column.to_owned())) {
            return Err(refused("tables", format!("no column `{column}` in `{table}`")));
        }
    }
    Ok(columns)
}

fn chunk_bytes(connection: &Connection) -> Result<u64, Error> {
    schema::chunk_bytes(connection).map(|bytes| bytes as u64).map_err(|error| refused("chunk size", error.to_string()))
}
