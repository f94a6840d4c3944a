-- The tables of a fresh database.
--
-- What AgentFS has and these lack costs every command pages to write and helps nobody here: its indexes on `kv_store`
-- and `tool_calls` (its SDKs add them when they open the file; SQLite keeps them up from then on) and `AUTOINCREMENT`,
-- whose counter is one more page that every statement changes. The index on `parent_ino` alone has AgentFS's name and another
-- definition: the unique constraint already orders by name, and this one orders by `id`, which makes a directory's cookies a
-- range scan. The output of a run is in the last columns: only there SQLite inserts zeros without building the whole row in
-- memory, and reads the other columns without the output's pages.

CREATE TABLE fs_config (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE fs_inode (ino INTEGER PRIMARY KEY, mode INTEGER NOT NULL, nlink INTEGER NOT NULL DEFAULT 0,
  uid INTEGER NOT NULL DEFAULT 0, gid INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0,
  atime INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, rdev INTEGER NOT NULL DEFAULT 0,
  atime_nsec INTEGER NOT NULL DEFAULT 0, mtime_nsec INTEGER NOT NULL DEFAULT 0, ctime_nsec INTEGER NOT NULL DEFAULT 0);
CREATE TABLE fs_dentry (id INTEGER PRIMARY KEY, name TEXT NOT NULL, parent_ino INTEGER NOT NULL,
  ino INTEGER NOT NULL, UNIQUE(parent_ino, name));
CREATE INDEX idx_fs_dentry_parent ON fs_dentry(parent_ino);
CREATE TABLE fs_data (ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (ino, chunk_index));
CREATE TABLE fs_symlink (ino INTEGER PRIMARY KEY, target TEXT NOT NULL);
CREATE TABLE kv_store (key TEXT PRIMARY KEY, value TEXT NOT NULL, created_at INTEGER DEFAULT (unixepoch()),
  updated_at INTEGER DEFAULT (unixepoch()));
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, name TEXT NOT NULL, parameters TEXT, result TEXT, error TEXT,
  status TEXT NOT NULL DEFAULT 'pending', started_at INTEGER NOT NULL, completed_at INTEGER, duration_ms INTEGER);
CREATE TABLE sandlite_kv (key TEXT PRIMARY KEY, version INTEGER NOT NULL, secret INTEGER NOT NULL DEFAULT 0);
CREATE TABLE sandlite_run (id INTEGER PRIMARY KEY, command TEXT NOT NULL, stdout_truncated INTEGER NOT NULL,
  stderr_truncated INTEGER NOT NULL, interrupted INTEGER NOT NULL, exit_code INTEGER, limit_reached TEXT, usage TEXT, changes TEXT,
  started_ns INTEGER NOT NULL, completed_ns INTEGER NOT NULL, parent INTEGER, stdout BLOB NOT NULL, stderr BLOB NOT NULL);
