-- What counts towards the budgets of names, keys, sessions and history: one row, NULL where nobody has counted yet.
-- Files from before there were budgets get the table when they are opened.
CREATE TABLE IF NOT EXISTS sandlite_usage (id INTEGER PRIMARY KEY, names INTEGER, keys INTEGER, sessions INTEGER,
  history INTEGER, output INTEGER, counted_to INTEGER, pruned_to INTEGER, pages INTEGER);
