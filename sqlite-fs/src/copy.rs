//! Export and fork: a snapshot file of the committed state, and a second database that starts from it.
//!
//! Rows are copied, so that deleted and uncommitted data is not included; only a fork in memory of a database in memory shares its
//! pages, with what was deleted in them, because its exports copy rows again. The statements are here and not in
//! `store/write.rs`: they fill a whole fresh database from another one, and change no row of a database in use.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::compat::Compat;
use crate::database::Database;
use crate::error::Error;
use crate::making::NewFile;
use crate::options::{Durability, Options};
use crate::past::{self, Table};
use crate::patience::stored_bytes;
use crate::schema;
use crate::{gather, settings, whiteout};

/// The content of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Recorded calls with their output.
    pub history: bool,
    /// Secret keys.
    pub secrets: bool,
}

impl Default for Export {
    fn default() -> Self {
        Self { history: true, secrets: false }
    }
}

/// Number of pages that a copy may have besides those that the size of its source explains.
const COPY_PAGES: u64 = 1024;

const FILES: &str = "
DELETE FROM main.fs_inode;
INSERT INTO main.fs_inode SELECT * FROM source.fs_inode;
INSERT INTO main.fs_dentry SELECT * FROM source.fs_dentry;
INSERT INTO main.fs_data SELECT * FROM source.fs_data;
INSERT INTO main.fs_symlink SELECT * FROM source.fs_symlink;
INSERT OR REPLACE INTO main.fs_config SELECT * FROM source.fs_config;
INSERT INTO main.sandlite_session SELECT * FROM source.sandlite_session;
";
const HIDDEN: &str = "
INSERT INTO main.fs_whiteout (path, parent_path, created_at) SELECT path, parent_path, created_at FROM source.fs_whiteout;
";
/// A consumer's position in the list of versions is meaningless without versions.
const SETTINGS: &str = "
INSERT INTO main.sandlite_setting SELECT * FROM source.sandlite_setting WHERE {past} OR name NOT LIKE 'cursor:%';
";
const SECRETS: &str = "
INSERT INTO main.kv_store SELECT * FROM source.kv_store;
INSERT INTO main.sandlite_kv SELECT * FROM source.sandlite_kv;
";
const NO_SECRETS: &str = "
INSERT INTO main.kv_store SELECT * FROM source.kv_store
  WHERE key NOT IN (SELECT key FROM source.sandlite_kv WHERE secret<>0);
INSERT INTO main.sandlite_kv SELECT * FROM source.sandlite_kv WHERE secret=0;
";
const HISTORY: &str = "
INSERT INTO main.tool_calls SELECT * FROM source.tool_calls;
INSERT INTO main.sandlite_run SELECT id, command, stdout_truncated, stderr_truncated, interrupted, exit_code, limit_reached,
  usage, changes, started_ns, completed_ns, {parent}, stdout, stderr FROM source.sandlite_run;
";

/// The versions. Labels and saved rows are copied table by table.
const VERSIONS: &str = "INSERT INTO main.sandlite_version SELECT * FROM source.sandlite_version;";
/// A key that was ever secret is omitted without a trace.
const NO_PAST_SECRETS: &str = " WHERE key NOT IN (SELECT key FROM source.sandlite_kv WHERE secret<>0)
  AND key NOT IN (SELECT key FROM source.sandlite_past_kv WHERE secret<>0)";

/// The extent of a copy.
#[derive(Clone, Copy)]
struct Extent {
    export: Export,
    compat: Option<Compat>,
    past: bool,
}

impl Database {
    /// Writes the committed state to a fresh, compact file at `path`, which must not exist and appears only once it is complete.
    /// A transaction may be running meanwhile. Versions, and with them deleted data, are not included.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Disk`] if `path` exists or cannot be written, [`Error::Moved`] if the database was replaced or removed,
    /// and [`Error::Damaged`] if its rows cannot be read.
    pub fn export(&self, path: &Path, export: Export) -> Result<(), Error> {
        self.export_as(path, export, None)
    }

    /// Same as [`export`](Self::export), with all versions: readers of the file can see deleted data.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`export`](Self::export).
    pub fn export_with_past(&self, path: &Path, export: Export) -> Result<(), Error> {
        self.copy_to(path, Extent { export, compat: None, past: true }, true)
    }

    pub(crate) fn export_as(&self, path: &Path, export: Export, compat: Option<Compat>) -> Result<(), Error> {
        self.copy_to(path, Extent { export, compat, past: false }, true)
    }

    fn copy_to(&self, path: &Path, extent: Extent, power_safe: bool) -> Result<(), Error> {
        if path.symlink_metadata().is_ok() {
            return Err(Error::Disk { path: path.to_owned(), source: std::io::ErrorKind::AlreadyExists.into() });
        }
        let new = NewFile::beside(path)?;
        self.copy_into_file(new.path(), extent)?;
        new.publish_database(power_safe)
    }

    fn copy_into_file(&self, path: &Path, extent: Extent) -> Result<(), Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let mut uri = file_uri(path, "rwc")?;
        if let Some(layer) = gather::layer().and_then(|layer| layer.to_str().ok()) {
            uri.push_str(&format!("&vfs={layer}&gather=1"));
        }
        let mut target = Connection::open_with_flags(uri, flags)?;
        let patience = self.shared.patience_for_copy();
        patience.watch(&mut target, || false)?;
        schema::tune_writer(&target, true, Durability::CrashSafe, false)?;
        // A file that is discarded on any error needs no journal, and its empty tables need not be synced.
        target.execute_batch("PRAGMA main.journal_mode=OFF; PRAGMA main.synchronous=OFF; PRAGMA main.locking_mode=EXCLUSIVE;")?;
        match extent.compat {
            None => schema::create(&target, self.shared.options.clock.now())?,
            Some(compat) => compat.create(&target)?,
        }
        // The commit of the rows is synced, so everything is written by then.
        target.execute_batch("PRAGMA main.synchronous=NORMAL;")?;
        patience.refill();
        patience.explained(self.copy_rows(&target, extent))
    }

    /// Copying damaged pages can be endless (T-SNAP-03), so the copy may not grow beyond what the size of the source explains.
    fn limit_copy(&self, target: &Connection) -> Result<(), Error> {
        let Some(path) = self.path() else { return Ok(()) };
        let page_bytes: i64 = target.query_row("PRAGMA main.page_size", [], |row| row.get(0))?;
        let pages = stored_bytes(path).saturating_mul(3) / page_bytes.unsigned_abs().max(1) + COPY_PAGES;
        Ok(target.query_row(&format!("PRAGMA main.max_page_count={pages}"), [], |_| Ok(()))?)
    }

    /// Creates a second database with the same content, including secrets, history and versions.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`export`](Self::export) and [`Options::open`].
    pub fn fork(&self, options: Options) -> Result<Self, Error> {
        let everything = Extent { export: Export { history: true, secrets: true }, compat: None, past: true };
        match options.path.clone() {
            Some(path) => {
                self.copy_to(&path, everything, options.durability == Durability::PowerSafe)?;
                options.open_published()
            }
            None => {
                if let Some(fork) = self.fork_memory(&options)? {
                    return Ok(fork);
                }
                let fork = options.open()?;
                fork.fill(|store| {
                    store.patience.refill_as(&self.shared.patience_for_copy());
                    let copied = self.copy_rows(&store.connection, everything);
                    schema::limit_pages(&store.connection, &store.quota)?;
                    store.patience.explained(copied)
                })?;
                Ok(fork)
            }
        }
    }

    fn copy_rows(&self, target: &Connection, extent: Extent) -> Result<(), Error> {
        self.limit_copy(target)?;
        self.shared.still_there()?;
        target.execute("ATTACH ?1 AS source", [self.shared.uri_for_reading()?])?;
        self.shared.still_there()?;
        let copied = copy_all(target, extent);
        if copied.is_err() && !target.is_autocommit() {
            target.execute_batch("ROLLBACK")?;
        }
        let detached = target.execute_batch("DETACH source");
        Ok(copied.and(detached)?)
    }
}

/// Copies every row in one transaction, because the list of tables belongs to the copied state.
fn copy_all(target: &Connection, extent: Extent) -> rusqlite::Result<()> {
    target.execute_batch("BEGIN")?;
    let format: i64 = target.query_row("PRAGMA source.user_version", [], |row| row.get(0))?;
    let statements = match extent.compat {
        Some(compat) => compat.rows(extent.export),
        None if whiteout::exists(target, "source")? => {
            format!("{} {HIDDEN} {}", whiteout::TABLE, rows(target, extent, format)?)
        }
        None => rows(target, extent, format)?,
    };
    let settings = match extent.compat {
        None if settings::exists(target, "source")? => {
            let past = if extent.past { "1" } else { "0" };
            format!("{} {}", settings::TABLE, SETTINGS.replace("{past}", past))
        }
        _ => String::new(),
    };
    target.execute_batch(&format!("{statements} {settings} COMMIT;"))
}

/// Returns the statements that copy every row of a file of some format into our tables.
fn rows(target: &Connection, Extent { export, past, .. }: Extent, format: i64) -> rusqlite::Result<String> {
    let keys = if export.secrets { SECRETS } else { NO_SECRETS };
    let history = if export.history { HISTORY } else { "" };
    let parent = if format > 1 { "parent" } else { "NULL" };
    let past = if past && format > 1 { past_rows(target, export)? } else { String::new() };
    Ok(format!("{FILES} {keys} {} {past}", history.replace("{parent}", parent)))
}

/// Returns the statements that copy versions and their saved rows, for the tables that the source has.
fn past_rows(target: &Connection, export: Export) -> rusqlite::Result<String> {
    let mut statements = VERSIONS.to_owned();
    let mut has = target.prepare("SELECT 1 FROM source.sqlite_schema WHERE type='table' AND name=?1")?;
    for table in Table::ALL.into_iter().map(Table::name).chain([past::LABELS]) {
        if !has.exists([table])? {
            continue;
        }
        let is_key = table == Table::Key.name();
        let filter = if is_key && !export.secrets { NO_PAST_SECRETS } else { "" };
        let making = past::making(table);
        statements.push_str(&format!("{making} INSERT INTO main.{table} SELECT * FROM source.{table}{filter};"));
    }
    Ok(statements)
}

/// Returns a path as a SQLite URI, with special characters escaped.
pub(crate) fn file_uri(path: &Path, mode: &str) -> Result<String, Error> {
    let absolute: PathBuf = std::path::absolute(path).map_err(|source| Error::Disk { path: path.to_owned(), source })?;
    let Some(text) = absolute.to_str() else {
        return Err(Error::Invalid { what: "path", reason: "the path is not UTF-8".to_owned() });
    };
    let mut uri = String::from("file:");
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=");
    uri.push_str(mode);
    Ok(uri)
}
