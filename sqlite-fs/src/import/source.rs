//! The foreign file, behind glass.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rusqlite::hooks::{AuthAction, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::{Import, refused};
use crate::copy::file_uri;
use crate::error::Error;
use crate::schema;

/// The longest value that is looked at: a call's whole output.
const VALUE_MAX: i32 = 80 << 20;
/// The tables that may be read, and no other.
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
];

/// A private copy of a foreign file, opened for reading.
pub(super) struct Source {
    pub(super) connection: Connection,
    pub(super) chunk_bytes: u64,
    columns: HashSet<(String, String)>,
    _copy: PrivateCopy,
}

/// A directory that only we can enter, gone when dropped.
struct PrivateCopy(PathBuf);

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl PrivateCopy {
    fn new(near: Option<&Path>) -> Result<Self, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let parent = match near.map(std::path::absolute).transpose() {
            Ok(Some(path)) => path.parent().map_or_else(std::env::temp_dir, Path::to_owned),
            _ => std::env::temp_dir(),
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".sqlite-fs-import-{}-{number}", std::process::id()));
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|source| Error::Disk { path: path.clone(), source })?;
        Ok(Self(path))
    }

    fn take(&self, file: &Path, name: &str, max_bytes: u64) -> Result<PathBuf, Error> {
        let disk = |source| Error::Disk { path: file.to_owned(), source };
        let path = self.0.join(name);
        let from = File::open(file).map_err(disk)?;
        let mut to = File::create_new(&path).map_err(|source| Error::Disk { path: path.clone(), source })?;
        let copied = std::io::copy(&mut from.take(max_bytes.saturating_add(1)), &mut to).map_err(disk)?;
        if copied > max_bytes {
            return Err(refused("file size", format!("more than {max_bytes} bytes")));
        }
        Ok(path)
    }
}

impl Source {
    pub(super) fn open(file: &Path, near: Option<&Path>, import: &Import) -> Result<Self, Error> {
        let copy = PrivateCopy::new(near)?;
        let path = copy.take(file, "import.db", import.max_bytes)?;
        if import.write_ahead_log {
            let mut log = file.as_os_str().to_owned();
            log.push("-wal");
            if Path::new(&log).exists() {
                copy.take(Path::new(&log), "import.db-wal", import.max_bytes)?;
                replay(&path)?;
            }
        }
        let mut connection = Connection::open_with_flags(
            format!("{}&immutable=1", file_uri(&path, "ro")?),
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI,
        )?;
        restrain(&mut connection, import.deadline)?;
        sound(&connection)?;
        let columns = columns(&connection)?;
        let chunk_bytes = chunk_bytes(&connection)?;
        connection.authorizer(Some(|context: rusqlite::hooks::AuthContext<'_>| match context.action {
            AuthAction::Select => Authorization::Allow,
            // AgentFS's own default for a key's times is asked for when the schema is read, and never called; lengths are ours.
            AuthAction::Function { function_name: "unixepoch" | "octet_length" } => Authorization::Allow,
            AuthAction::Read { table_name, .. } if TABLES.contains(&table_name) => Authorization::Allow,
            _ => Authorization::Deny,
        }))?;
        Ok(Self { connection, chunk_bytes, columns, _copy: copy })
    }

    pub(super) fn has_table(&self, table: &str) -> bool {
        self.columns.iter().any(|(name, _)| name == table)
    }

    pub(super) fn has(&self, table: &str, column: &str) -> bool {
        self.columns.contains(&(table.to_owned(), column.to_owned()))
    }

    /// The older layout, which LocalSandbox's snapshots have.
    pub(super) fn is_old_layout(&self) -> bool {
        !self.has("fs_inode", "mtime_nsec")
    }

    /// `column`, or `instead` where the file is older than the column.
    pub(super) fn column_or<'a>(&self, table: &str, column: &'a str, instead: &'a str) -> &'a str {
        if self.has(table, column) { column } else { instead }
    }
}

/// Puts the log's pages where they belong, in the copy.
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
        connection.progress_handler(10_000, Some(move || Instant::now() > deadline))?;
    }
    Ok(())
}

/// The page structure first: what comes after may then trust the engine.
fn sound(connection: &Connection) -> Result<(), Error> {
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(refused("page structure", verdict)),
        Err(error) => match Error::from(error) {
            Error::Damaged(detail) => Err(refused("page structure", detail)),
            Error::Sqlite(error) => Err(refused("page structure", error.to_string())),
            other => Err(other),
        },
    }
}

/// The columns of the tables that matter; each must be an ordinary table with ordinary columns.
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
