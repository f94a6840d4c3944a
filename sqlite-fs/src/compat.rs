//! Export in the layout of other programs: AgentFS 0.2, as LocalSandbox writes and reads it.
//!
//! LocalSandbox's engine stops at a symbolic link and stores times of calls in milliseconds. Data is kept as far as the layout
//! has a place for it; versions and secrecy of keys and output of calls are omitted.
//!
//! The statements are here for the same reason as in `copy.rs`; the tables are not ours.

use std::path::Path;

use rusqlite::Connection;

use crate::copy::Export;
use crate::database::Database;
use crate::error::Error;

/// The layout of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compat {
    /// LocalSandbox 0.3's snapshots: AgentFS 0.2's tables. A symbolic link is a file that contains `{"__symlink":"target"}`;
    /// calls have milliseconds.
    LocalSandbox,
}

const TABLES: &str = "
CREATE TABLE fs_config (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE fs_inode (ino INTEGER PRIMARY KEY AUTOINCREMENT, mode INTEGER NOT NULL, nlink INTEGER NOT NULL DEFAULT 0,
  uid INTEGER NOT NULL DEFAULT 0, gid INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0,
  atime INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL);
CREATE TABLE fs_dentry (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, parent_ino INTEGER NOT NULL,
  ino INTEGER NOT NULL, UNIQUE(parent_ino, name));
CREATE INDEX idx_fs_dentry_parent ON fs_dentry(parent_ino, name);
CREATE TABLE fs_data (ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (ino, chunk_index));
CREATE TABLE fs_symlink (ino INTEGER PRIMARY KEY, target TEXT NOT NULL);
CREATE TABLE kv_store (key TEXT PRIMARY KEY, value TEXT NOT NULL, created_at INTEGER DEFAULT (unixepoch()),
  updated_at INTEGER DEFAULT (unixepoch()));
CREATE INDEX idx_kv_store_created_at ON kv_store(created_at);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, parameters TEXT, result TEXT, error TEXT,
  status TEXT NOT NULL DEFAULT 'pending', started_at INTEGER NOT NULL, completed_at INTEGER, duration_ms INTEGER);
CREATE INDEX idx_tool_calls_name ON tool_calls(name);
CREATE INDEX idx_tool_calls_started_at ON tool_calls(started_at);
";

/// 40960 is the type of a symbolic link, 33188 a regular file of mode 0644.
const FILES: &str = "
INSERT INTO main.fs_config SELECT key, value FROM source.fs_config WHERE key='chunk_size';
INSERT INTO main.fs_inode SELECT i.ino, iif(s.ino IS NULL, i.mode, 33188), iif((i.mode & 61440)=16384, 1, i.nlink), i.uid, i.gid,
  iif(s.ino IS NULL, i.size, length(CAST(json_object('__symlink', s.target) AS BLOB))), i.atime, i.mtime, i.ctime
  FROM source.fs_inode i LEFT JOIN source.fs_symlink s ON s.ino=i.ino AND (i.mode & 61440)=40960;
INSERT INTO main.fs_dentry SELECT id, name, parent_ino, ino FROM source.fs_dentry;
INSERT INTO main.fs_data SELECT ino, chunk_index, data FROM source.fs_data;
INSERT INTO main.fs_data SELECT ino, 0, CAST(json_object('__symlink', target) AS BLOB) FROM source.fs_symlink;
";
const KEYS: &str = "INSERT INTO main.kv_store SELECT key, value, created_at, updated_at FROM source.kv_store";
const NOT_SECRET: &str = " WHERE key NOT IN (SELECT key FROM source.sandlite_kv WHERE secret<>0)";
/// Fractions of seconds are kept. LocalSandbox's durations are a thousand times too long.
const HISTORY: &str = "
INSERT INTO main.tool_calls
  SELECT id, name, parameters, result, error, status, began, ended, (ended-began)*1000
  FROM (SELECT c.id, c.name, c.parameters, c.result, c.error, c.status,
    coalesce(r.started_ns/1000000, c.started_at*1000) AS began, coalesce(r.completed_ns/1000000, c.completed_at*1000) AS ended
    FROM source.tool_calls c LEFT JOIN source.sandlite_run r ON r.id=c.id);
";

impl Compat {
    pub(crate) fn create(self, connection: &Connection) -> rusqlite::Result<()> {
        match self {
            Self::LocalSandbox => connection.execute_batch(&format!("BEGIN; {TABLES} COMMIT;")),
        }
    }

    /// Returns the statements that copy every row.
    pub(crate) fn rows(self, export: Export) -> String {
        let secret = if export.secrets { "" } else { NOT_SECRET };
        let history = if export.history { HISTORY } else { "" };
        format!("{FILES} {KEYS}{secret}; {history}")
    }
}

impl Database {
    /// Same as [`export`](Self::export), in the layout of another program.
    ///
    /// ```
    /// use sqlite_fs::{Compat, Database, Export, Import};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let database = Database::options().open()?;
    /// let transaction = database.begin(None)?;
    /// transaction.fs().write("/notes.txt", b"hi")?;
    /// transaction.fs().symlink("notes.txt", "/link")?;
    /// transaction.commit()?;
    /// let path = dir.path().join("snapshot.db");
    /// database.export_compat(&path, Export::default(), Compat::LocalSandbox)?;
    /// let (back, _) = Database::import(&path, Database::options(), &Import::default())?;
    /// assert_eq!(back.reader()?.fs().read_link("/link")?, "notes.txt");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`export`](Self::export).
    pub fn export_compat(&self, path: &Path, export: Export, compat: Compat) -> Result<(), Error> {
        self.export_as(path, export, Some(compat))
    }
}
