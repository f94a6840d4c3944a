//! The files that a reader leaves: the last connection to close removes the log and its index, which a read-only one cannot.
//!
//! A writer cannot remove them either while a reader has them open.

use std::path::Path;

use rusqlite::OpenFlags;

use super::Source;
use crate::side::Side;
use crate::{place, schema};

/// What to do with the log when a reader closes.
#[derive(Clone, Copy)]
pub(super) enum Tidy {
    /// It was empty, or a writer of ours had it: once the last writer has closed, the log is removed with its commits in the file.
    Log,
    /// It was there, with the changes of another program or of a copied file: reading leaves it as it was.
    Empty,
}

impl Tidy {
    /// Looks at the log before a reader opens the database.
    pub(super) fn before(database: &Path) -> Self {
        let has_changes = place::log_bytes(database).is_some_and(|bytes| bytes > 0);
        if has_changes && !Side::path_for(database).exists() { Self::Empty } else { Self::Log }
    }

    /// Removes the log, unless another process has it open. The reader has closed its connections.
    pub(super) fn after(self, source: &Source, database: &Path) {
        let Some(bytes) = place::log_bytes(database) else { return };
        // A writer that opens meanwhile waits.
        let _alone = match (bytes, self) {
            (0, _) => None,
            (_, Self::Empty) => return,
            (_, Self::Log) => match Side::alone(database) {
                Some(alone) => Some(alone),
                None => return,
            },
        };
        let _ = source.connect(OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
            schema::harden(&connection)?;
            connection.query_row("PRAGMA schema_version", [], |_| Ok(()))
        });
    }
}
