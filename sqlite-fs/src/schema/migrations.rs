//! Upgrades of files of earlier formats when they are opened for writing. `docs/format.md` lists the formats.
//!
//! A step converts a file from one format to the next. All steps that a file needs run in one transaction: it has either the old
//! format or the current one, and a program that supports only the old one rejects it from then on.

use rusqlite::Connection;

use crate::format::{self, FORMAT};

/// One step.
struct Step {
    /// The format that it starts from.
    from: i64,
    statements: &'static [&'static str],
}

/// All steps, in order. A step is never changed once files of its format exist: `tests/formats` has one of each.
const STEPS: &[Step] = &[
    Step {
        from: 1,
        statements: &[
            // Files of format 1 created before there were sessions or budgets lack these.
            format::SESSIONS,
            format::USAGE,
            format::VERSIONS,
            "ALTER TABLE sandlite_run ADD COLUMN parent INTEGER;",
        ],
    },
    // Since format 3 a file need not have tables of the past without rows.
    Step { from: 2, statements: &[] },
];

/// The statements of tables in a file that was upgraded from format 1, or created before their columns had another order.
pub(crate) const UPGRADED: &str = "
CREATE TABLE sandlite_run (id INTEGER PRIMARY KEY, command TEXT NOT NULL, stdout BLOB NOT NULL, stderr BLOB NOT NULL,
  stdout_truncated INTEGER NOT NULL, stderr_truncated INTEGER NOT NULL, interrupted INTEGER NOT NULL, exit_code INTEGER,
  limit_reached TEXT, usage TEXT, changes TEXT, started_ns INTEGER NOT NULL, completed_ns INTEGER NOT NULL, parent INTEGER);
";

/// The statements of tables that were different in format 1.
pub(crate) const FORMAT_1: &str = "
CREATE TABLE sandlite_run (id INTEGER PRIMARY KEY, command TEXT NOT NULL, stdout BLOB NOT NULL, stderr BLOB NOT NULL,
  stdout_truncated INTEGER NOT NULL, stderr_truncated INTEGER NOT NULL, interrupted INTEGER NOT NULL, exit_code INTEGER,
  limit_reached TEXT, usage TEXT, changes TEXT, started_ns INTEGER NOT NULL, completed_ns INTEGER NOT NULL);
";

/// Returns the format of a file.
pub(crate) fn format(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

/// Upgrades a file to the current format.
pub(crate) fn upgrade(connection: &Connection) -> rusqlite::Result<()> {
    if format(connection)? == FORMAT {
        return Ok(());
    }
    let transaction = rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let found = format(&transaction)?;
    for step in STEPS.iter().filter(|step| step.from >= found.max(1)) {
        for statements in step.statements {
            transaction.execute_batch(statements)?;
        }
    }
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}
