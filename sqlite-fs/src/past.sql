-- What rows were before a version changed them, beside the tables that have what they are now. `docs/format.md` explains them.
-- `id` is the version that changed the row, times 2^32, plus a number: rows of a version are neighbours, the first of two for
-- one key counts, and an index on a key orders by version too. That of an inode is its number, times 2^31, plus the version: it
-- needs no index, and the version has a list of its inodes. `state`: 0 the row, 1 there was none.
CREATE TABLE sandlite_version (id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, call INTEGER, mark INTEGER NOT NULL,
  entries INTEGER NOT NULL, total INTEGER NOT NULL, outside INTEGER NOT NULL, inodes BLOB NOT NULL, digest BLOB);
CREATE TABLE sandlite_label (name TEXT PRIMARY KEY, version INTEGER NOT NULL, message TEXT, time_ns INTEGER NOT NULL);
CREATE TABLE sandlite_past_inode (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, mode INTEGER,
  nlink INTEGER, uid INTEGER, gid INTEGER, size INTEGER, atime INTEGER, mtime INTEGER, ctime INTEGER, rdev INTEGER,
  atime_nsec INTEGER, mtime_nsec INTEGER, ctime_nsec INTEGER, dir INTEGER, name TEXT);
CREATE TABLE sandlite_past_dentry (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, parent_ino INTEGER NOT NULL, name TEXT NOT NULL,
  ino INTEGER, entry INTEGER);
CREATE INDEX idx_sandlite_past_dentry ON sandlite_past_dentry(parent_ino, name);
CREATE INDEX idx_sandlite_past_entry ON sandlite_past_dentry(entry);
CREATE TABLE sandlite_past_data (id INTEGER PRIMARY KEY, ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX idx_sandlite_past_data ON sandlite_past_data(ino, chunk_index);
CREATE TABLE sandlite_past_symlink (id INTEGER PRIMARY KEY, ino INTEGER NOT NULL, target TEXT NOT NULL);
CREATE INDEX idx_sandlite_past_symlink ON sandlite_past_symlink(ino);
CREATE TABLE sandlite_past_kv (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, key TEXT NOT NULL, value TEXT, created_at INTEGER,
  updated_at INTEGER, version INTEGER, secret INTEGER);
CREATE INDEX idx_sandlite_past_kv ON sandlite_past_kv(key);
CREATE TABLE sandlite_past_session (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, name TEXT NOT NULL, part TEXT NOT NULL,
  content BLOB, updated_ns INTEGER);
CREATE INDEX idx_sandlite_past_session ON sandlite_past_session(name, part);
CREATE TABLE sandlite_past_whiteout (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, path TEXT NOT NULL, parent_path TEXT,
  created_at INTEGER);
CREATE INDEX idx_sandlite_past_whiteout ON sandlite_past_whiteout(path);
