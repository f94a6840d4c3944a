//! Checkpoints of the write-ahead log, and returning free pages to the disk, concurrently with commands.
//!
//! SQLite would copy the log inside the commit that makes it long, and its caller would wait for twice the bytes. A thread does
//! it instead and then exits. A very long log and a file of mostly free pages are handled while no transaction runs: the next
//! transaction waits, and the one that caused it has already returned.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::clock;
use crate::database::{Source, Writer};
use crate::store::Store;

/// WAL size in pages that triggers a checkpoint: 16 MiB.
const BEGIN_PAGES: u32 = 1024;
/// WAL size in pages at which the next transaction waits for a checkpoint: 256 MiB.
const WAIT_PAGES: u32 = 16 * 1024;
/// Free bytes worth returning, if the rest of the file is smaller.
const FREE_BYTES: u64 = 16 << 20;
/// Maximum size of that rest, because SQLite copies it in memory.
const REST_BYTES: u64 = 32 << 20;
/// Maximum duration, because the next transaction waits.
const VACUUM_TIME: Duration = Duration::from_millis(500);

/// Maintains the log of one file.
pub(crate) struct Checkpoint {
    path: PathBuf,
    /// Number of pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpoint {
    /// Takes over checkpointing from SQLite.
    ///
    /// Also sets `frames` to the number of pages in the log after each commit.
    pub(crate) fn new(connection: &mut Connection, path: PathBuf, frames: Arc<AtomicU32>) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let noted = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count: std::ffi::c_int| {
            let count = u32::try_from(count).unwrap_or(0);
            noted.store(count, Ordering::Relaxed);
            frames.store(count, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { path, pages, worker: Mutex::new(None) })
    }

    /// Releases the writer after a transaction: at once, or when a thread is done with the file.
    pub(crate) fn after_transaction(&self, mut store: Box<Store>, writer: &Arc<Writer>) {
        let pages = self.pages.load(Ordering::Relaxed);
        let is_mostly_free = store.is_mostly_free(FREE_BYTES, REST_BYTES);
        let is_long = std::mem::take(&mut store.is_log_long) || pages >= WAIT_PAGES;
        if pages < BEGIN_PAGES && !is_mostly_free && !is_long {
            store.set_leaves_log(false);
            return writer.put_back(store);
        }
        if store.leaves_log && is_long {
            return writer.put_back(store);
        }
        store.set_leaves_log(false);
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_long && !is_mostly_free {
            writer.put_back(store);
            if worker.as_ref().is_some_and(|running| !running.is_finished()) {
                return;
            }
            let path = self.path.clone();
            *worker = spawn(move || bring_back(path)).or(worker.take());
        } else {
            let earlier = worker.take();
            let handed_over = Arc::new(Mutex::new(Some(store)));
            let (mine, back) = (Arc::clone(&handed_over), Arc::clone(writer));
            *worker = spawn(move || {
                join(earlier);
                let Some(mut store) = take(&mine) else { return };
                tidy(&mut store, is_mostly_free);
                back.put_back(store);
            });
            // Without a thread the log keeps its length, and the next commit tries again.
            if worker.is_none()
                && let Some(store) = take(&handed_over)
            {
                writer.put_back(store);
            }
        }
        // Until the next commit there is nothing new to copy.
        self.pages.store(0, Ordering::Relaxed);
    }
}

impl Checkpoint {
    /// Waits for a running checkpoint, because SQLite rejects a second one instead of waiting.
    pub(crate) fn wait(&self) {
        join(self.worker.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        join(self.worker.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn take(store: &Mutex<Option<Box<Store>>>) -> Option<Box<Store>> {
    store.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    std::thread::Builder::new().name("sqlite-fs log".to_owned()).spawn(work).ok()
}

/// The thread does not panic; if it did, the log would only keep its length.
fn join(worker: Option<JoinHandle<()>>) {
    let _ = worker.map(JoinHandle::join);
}

/// Copies the pages of the log that no reader needs. An error loses nothing: the log stays, and the next commit tries again.
fn bring_back(path: PathBuf) {
    let Ok(connection) = Source::File(path).connect(OpenFlags::SQLITE_OPEN_READ_WRITE) else { return };
    if crate::schema::harden(&connection).is_err() {
        return;
    }
    let _ = connection.execute_batch("PRAGMA synchronous=NORMAL; PRAGMA wal_checkpoint(PASSIVE);");
}

/// Returns free pages first, because pages that are no longer part of the file need not be copied.
fn tidy(store: &mut Store, is_mostly_free: bool) {
    if is_mostly_free {
        store.give_back_free_pages(clock::instant() + VACUUM_TIME);
    }
    store.empty_log();
}
