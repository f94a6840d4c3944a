//! Detects whether a database is still at its path: changes to a file that was replaced or removed would be lost.
//!
//! Files are compared by device and inode. Content written into the same file is not detected.

#![expect(clippy::disallowed_methods, reason = "this is the place that looks where a database is")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::Error;
use crate::making::with_suffix;

/// Device and inode.
type Identity = (u64, u64);

/// The path of an open database, and the identity of its files.
pub(crate) struct Place {
    path: PathBuf,
    database: Identity,
    /// The write-ahead log of a writer; a reader's log comes and goes with its writer.
    log: Option<(PathBuf, Identity)>,
    /// The index of the log, next to it.
    index: PathBuf,
}

impl Place {
    /// Records the files that a reader has open.
    pub(crate) fn of_reader(path: &Path) -> Result<Self, Error> {
        let database = identity(path).ok_or_else(|| Error::Moved { path: path.to_owned() })?;
        Ok(Self { path: path.to_owned(), database, log: None, index: PathBuf::new() })
    }

    /// Records the files that the writer has open.
    pub(crate) fn of_writer(path: &Path, connection: &Connection) -> Result<Self, Error> {
        let mut place = Self::of_reader(path)?;
        // SQLite resolves a symbolic link before it derives the name of the log.
        let file = Path::new(connection.path().unwrap_or_default());
        let log = with_suffix(file, "-wal");
        place.index = with_suffix(file, "-shm");
        let found = identity(&log).ok_or_else(|| Error::Moved { path: path.to_owned() })?;
        place.log = Some((log, found));
        Ok(place)
    }

    /// Fails if one of the files is no longer at its path.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.has_database() && self.has_log() { Ok(()) } else { Err(Error::Moved { path: self.path.clone() }) }
    }

    fn has_database(&self) -> bool {
        identity(&self.path) == Some(self.database)
    }

    fn has_log(&self) -> bool {
        self.log.as_ref().is_none_or(|(path, log)| identity(path) == Some(*log))
    }

    /// Called before the writer closes: SQLite leaves the log of a moved database where it is, and would read it as part of the
    /// database that now has that name. Copies committed data into the file, wherever it is.
    pub(crate) fn leave(&self, connection: &Connection) {
        let Some((log, _)) = self.log.as_ref().filter(|_| !self.has_database() && self.has_log()) else { return };
        let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        if busy.is_ok_and(|busy| busy == 0) {
            let _ = std::fs::remove_file(log);
            let _ = std::fs::remove_file(&self.index);
        }
    }
}

/// Returns the length of a database's log, if there is one.
pub(crate) fn log_bytes(path: &Path) -> Option<u64> {
    // SQLite resolves a symbolic link before it derives the name of the log.
    let log = std::fs::canonicalize(path).map(|path| with_suffix(&path, "-wal"));
    log.and_then(std::fs::metadata).ok().map(|metadata| metadata.len())
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|_| (0, 0))
}
