//! Bringing the write-ahead log back into the file, beside the commands.
//!
//! SQLite would do it inside the commit that makes the log long, and its caller would wait for twice the bytes. A thread
//! does it instead, for as long as that takes, and ends. Only when the log outgrows that by far does a commit wait.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, OpenFlags};

use crate::database::Source;

/// Pages in the log from which on it is brought back: 16 MiB.
const BEGIN_PAGES: u32 = 1024;
/// Pages in the log from which on a commit waits for that: 256 MiB.
const WAIT_PAGES: u32 = 16 * 1024;

/// Looks after the log of one file.
pub(crate) struct Checkpoint {
    path: PathBuf,
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpoint {
    /// Takes the care of the log over from SQLite.
    pub(crate) fn new(connection: &mut Connection, path: PathBuf) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let noted = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count: std::ffi::c_int| {
            noted.store(u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { path, pages, worker: Mutex::new(None) })
    }

    /// After a commit, before the next transaction can begin.
    pub(crate) fn after_commit(&self) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < BEGIN_PAGES {
            return;
        }
        let must_wait = pages >= WAIT_PAGES;
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = worker.take_if(|running| must_wait || running.is_finished()) {
            // It does not panic, and if it did the log would only stay as long as it is.
            let _ = running.join();
        }
        if worker.is_none() {
            let path = self.path.clone();
            let spawned = std::thread::Builder::new().name("sqlite-fs log".to_owned()).spawn(move || bring_back(path));
            *worker = spawned.ok();
        }
        if must_wait && let Some(running) = worker.take() {
            let _ = running.join();
        }
        // Until the next commit there is nothing new to bring back.
        self.pages.store(0, Ordering::Relaxed);
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        if let Some(running) = self.worker.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = running.join();
        }
    }
}

/// Copies the log's pages that no reader needs where they are. An error loses nothing: the log stays, and the next commit
/// tries again.
fn bring_back(path: PathBuf) {
    let Ok(connection) = Source::File(path).connect(OpenFlags::SQLITE_OPEN_READ_WRITE) else { return };
    if crate::schema::harden(&connection).is_err() {
        return;
    }
    let _ = connection.execute_batch("PRAGMA synchronous=NORMAL; PRAGMA wal_checkpoint(PASSIVE);");
}
