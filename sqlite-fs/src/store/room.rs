//! Returning space to the disk between transactions.

use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;

use super::{FREED_LOOK, Store};
use crate::clock;
use crate::error::Error;

impl Store {
    /// Returns whether the file has at least `free` bytes of free pages, and fewer bytes than that, and than `rest`, in other
    /// pages. Counts only after much was removed.
    pub(crate) fn is_mostly_free(&mut self, free: u64, rest: u64) -> bool {
        if self.freed_bytes < FREED_LOOK {
            return false;
        }
        self.freed_bytes = 0;
        let number = |pragma: &str| {
            self.connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0)).map_or(0, i64::unsigned_abs)
        };
        let (page, pages, free_pages) = (number("page_size"), number("page_count"), number("freelist_count"));
        let used = pages.saturating_sub(free_pages).saturating_mul(page);
        let found = free_pages.saturating_mul(page);
        found >= free && used < found && used < rest
    }

    /// Rewrites the file without its free pages, unless that takes too long: then it is unchanged.
    pub(crate) fn give_back_free_pages(&mut self, until: Instant) {
        let _ = self.connection.progress_handler(1000, Some(move || clock::instant() > until));
        // An error loses nothing: SQLite copies first and replaces afterwards, in one transaction.
        let _ = self.connection.execute_batch("VACUUM");
        let interrupter = self.interrupter.clone();
        let _ = self.patience.watch(&mut self.connection, move || interrupter.stops_statement());
    }

    /// Same, without a time limit, and empties the log.
    pub(crate) fn compact(&mut self) -> Result<(), Error> {
        self.notice_others()?;
        let interrupter = self.interrupter.clone();
        self.connection.progress_handler(1000, Some(move || interrupter.stops_statement()))?;
        let compacted = self.connection.execute_batch("VACUUM");
        let interrupter = self.interrupter.clone();
        self.patience.watch(&mut self.connection, move || interrupter.stops_statement())?;
        self.empty_log();
        self.freed_bytes = 0;
        Ok(compacted?)
    }

    /// Returns the bytes of all pages, including free ones.
    pub(crate) fn page_bytes(&self) -> Result<u64, Error> {
        let bytes = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        Ok(self.connection.query_row(bytes, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    /// Sets whether the log is left next to the file when it is closed, instead of being copied into it.
    pub(crate) fn set_leaves_log(&mut self, leaves: bool) {
        if self.leaves_log != leaves {
            self.leaves_log = leaves;
            // If SQLite refuses, closing takes longer.
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leaves);
        }
    }

    /// Copies the log into the file and truncates it, as far as no reader needs it.
    pub(crate) fn empty_log(&mut self) {
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = self.connection.busy_timeout(crate::schema::BUSY);
    }
}
