//! What is done to files of earlier formats when they are opened for writing. `docs/format.md` lists the formats.
//!
//! A step brings a file from one format to the next. All that a file needs happen in one transaction: it is of the old
//! format or of the present one, and a program that knows only the old one refuses it from then on.

use rusqlite::Connection;

use crate::format::{self, FORMAT};

/// One step.
struct Step {
    /// The format that it begins with.
    from: i64,
    statements: &'static [&'static str],
}

/// All steps, in order. A step is never changed once files of its format exist: `tests/formats` has one of each.
const STEPS: &[Step] = &[
    Step {
        from: 1,
        statements: &[
            // Files of format 1 from before there were sessions or budgets lack these.
            format::SESSIONS,
            format::USAGE,
            format::VERSIONS,
            "ALTER TABLE sandlite_run ADD COLUMN parent INTEGER;",
        ],
    },
    // Since format 3 a file need not have a table of the past that has no rows.
    Step { from: 2, statements: &[] },
];

/// The statements of tables that format 1 had otherwise.
pub(crate) const FORMAT_1: &str = "
CREATE TABLE sandlite_run (id INTEGER PRIMARY KEY, command TEXT NOT NULL, stdout BLOB NOT NULL, stderr BLOB NOT NULL,
  stdout_truncated INTEGER NOT NULL, stderr_truncated INTEGER NOT NULL, interrupted INTEGER NOT NULL, exit_code INTEGER,
  limit_reached TEXT, usage TEXT, changes TEXT, started_ns INTEGER NOT NULL, completed_ns INTEGER NOT NULL);
";

/// The format of a file.
pub(crate) fn format(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

/// Brings a file to the present format.
pub(crate) fn upgrade(connection: &Connection) -> rusqlite::Result<()> {
    if format(connection)? == FORMAT {
        return Ok(());
    }
    let transaction = rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have been quicker.
    let found = format(&transaction)?;
    for step in STEPS.iter().filter(|step| step.from >= found.max(1)) {
        for statements in step.statements {
            transaction.execute_batch(statements)?;
        }
    }
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}
