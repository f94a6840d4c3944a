-- The versions, since format 2. What their rows were before is in tables of their own (`past.sql`).
CREATE TABLE sandlite_version (id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, call INTEGER, mark INTEGER NOT NULL,
  entries INTEGER NOT NULL, total INTEGER NOT NULL, outside INTEGER NOT NULL, inodes BLOB NOT NULL, digest BLOB);
