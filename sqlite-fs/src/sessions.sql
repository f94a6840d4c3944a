-- What sessions leave. Files from before there were sessions get it when they are opened.
CREATE TABLE IF NOT EXISTS sandlite_session (name TEXT NOT NULL, part TEXT NOT NULL,
  state BLOB NOT NULL, updated_ns INTEGER NOT NULL, PRIMARY KEY (name, part));
