-- What rows were before a version changed them, beside the tables that have what they are now. `docs/format.md` explains them.
-- `id` is the version that changed the row, times 2^32, plus a number: rows of a version are neighbours, the first of two for
-- one key counts, and an index on a key orders by version too. That of an inode is its number, times 2^31, plus the version: it
-- needs no index, and the version has a list of its inodes. `state`: 0 the row, 1 there was none.
-- A file has each of these tables from its first row on: an empty one takes a page, and its index another.
CREATE TABLE IF NOT EXISTS sandlite_label (name TEXT PRIMARY KEY, version INTEGER NOT NULL, message TEXT, time_ns INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sandlite_past_inode (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, mode INTEGER,
  nlink INTEGER, uid INTEGER, gid INTEGER, size INTEGER, atime INTEGER, mtime INTEGER, ctime INTEGER, rdev INTEGER,
  atime_nsec INTEGER, mtime_nsec INTEGER, ctime_nsec INTEGER, dir INTEGER, name TEXT);
CREATE TABLE IF NOT EXISTS sandlite_past_dentry (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, parent_ino INTEGER NOT NULL,
  name TEXT NOT NULL, ino INTEGER, entry INTEGER);
CREATE INDEX IF NOT EXISTS idx_sandlite_past_dentry ON sandlite_past_dentry(parent_ino, name);
CREATE INDEX IF NOT EXISTS idx_sandlite_past_entry ON sandlite_past_dentry(entry);
CREATE TABLE IF NOT EXISTS sandlite_past_data (id INTEGER PRIMARY KEY, ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS idx_sandlite_past_data ON sandlite_past_data(ino, chunk_index);
CREATE TABLE IF NOT EXISTS sandlite_past_symlink (id INTEGER PRIMARY KEY, ino INTEGER NOT NULL, target TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS idx_sandlite_past_symlink ON sandlite_past_symlink(ino);
CREATE TABLE IF NOT EXISTS sandlite_past_kv (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, key TEXT NOT NULL, value TEXT, created_at INTEGER,
  updated_at INTEGER, version INTEGER, secret INTEGER);
CREATE INDEX IF NOT EXISTS idx_sandlite_past_kv ON sandlite_past_kv(key);
CREATE TABLE IF NOT EXISTS sandlite_past_session (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, name TEXT NOT NULL, part TEXT NOT NULL,
  content BLOB, updated_ns INTEGER);
CREATE INDEX IF NOT EXISTS idx_sandlite_past_session ON sandlite_past_session(name, part);
CREATE TABLE IF NOT EXISTS sandlite_past_whiteout (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, path TEXT NOT NULL, parent_path TEXT,
  created_at INTEGER);
CREATE INDEX IF NOT EXISTS idx_sandlite_past_whiteout ON sandlite_past_whiteout(path);
-- What the digest of a version was made of, by inode: of the version that row 0 names (`docs/format.md`).
CREATE TABLE IF NOT EXISTS sandlite_digest (ino INTEGER PRIMARY KEY, digest BLOB NOT NULL, parent INTEGER, mode INTEGER NOT NULL,
  attributes INTEGER NOT NULL);
