//! The sandboxes that are held open: a bounded number. The least recently used is closed first, and none that is in use.
//!
//! Knows nothing of HTTP. A [`Slot`] is taken before the catalog is asked for the sandbox's row, so that a request that removes the row afterwards
//! finds the slot and waits for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime::{Cancel, Preset, Sandbox};
use tokio::sync::{OwnedMutexGuard, watch};

use super::jobs::Jobs;
use super::quota::Stored;
use crate::mcp::Service;
use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::SandboxRow;
use crate::serve::clock::now;
use crate::serve::problem::Problem;
use crate::serve::shares::Shares;

/// How often the moment of the last use is written: not at every request.
const USED_EVERY: i64 = 60_000;
/// How long a command of another handle is waited for.
const WAIT: Duration = Duration::from_secs(10);
/// Files of one tenant that are being sent at a time.
const MOST_DOWNLOADS: usize = 64;
/// Uploads that are received at a time, and those of one tenant: fewer than there are threads.
const MOST_UPLOADS: usize = 256;
const MOST_UPLOADS_OF_TENANT: usize = 64;
/// Bytes of bodies in memory at a time, and those of one tenant.
const MOST_BODY_BYTES: usize = 2 << 30;
const MOST_BODY_BYTES_OF_TENANT: usize = 512 << 20;
/// Streams of events that are followed at a time, and those of one tenant.
const MOST_STREAMS: usize = 1024;
const MOST_STREAMS_OF_TENANT: usize = 128;
/// Requests that wait for their turn in one sandbox.
const MOST_WAITING: usize = 256;
/// How long requests in a sandbox that is removed have to end.
const LAST_WORDS: Duration = Duration::from_secs(30);
/// The interval at which this is checked.
const LOOK: Duration = Duration::from_millis(5);
/// The age at which a file without a row is an orphan: files of sandboxes under construction are younger.
const ORPHAN: Duration = Duration::from_secs(3600);
/// Suffixes of the files that SQLite and the runtime keep next to a database.
const BESIDE: [&str; 5] = ["", "-journal", "-wal", "-shm", "-running"];

/// The open sandboxes and their state.
pub(crate) struct Opened {
    most: usize,
    /// When this server began, in milliseconds since 1970.
    pub(crate) started: i64,
    table: Mutex<HashMap<String, Arc<Slot>>>,
    uses: AtomicU64,
    /// The uses at the last call of `rest`.
    looked: AtomicU64,
    /// Background runs.
    pub(super) jobs: Jobs,
    /// How much each tenant has stored.
    pub(super) stored: Stored,
    /// Files that are being sent.
    pub(super) downloads: Shares,
    /// Files that are being received.
    pub(super) uploads: Shares,
    /// Bytes of bodies that are in memory.
    pub(in crate::serve) bodies: Shares,
    /// Streams of events that are followed.
    pub(in crate::serve) streams: Shares,
}

/// A sandbox's place: closed, or open.
pub(crate) struct Slot {
    used: AtomicU64,
    /// The use after which its memory was freed.
    rested: AtomicU64,
    noted: AtomicI64,
    sandbox: Mutex<Option<Sandbox>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    waiting: AtomicUsize,
    running: Mutex<HashMap<u64, Cancel>>,
    last: AtomicU64,
    changed: watch::Sender<u64>,
    /// The protocol's services by view.
    pub(in crate::serve) services: Mutex<HashMap<Option<String>, Service>>,
}

/// A run that is noted in its slot, until it is dropped.
pub(crate) struct Noted {
    slot: Arc<Slot>,
    number: u64,
}

impl Opened {
    pub(in crate::serve) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            started: now(),
            table: Mutex::default(),
            uses: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            jobs: Jobs::default(),
            stored: Stored::default(),
            downloads: Shares::new(usize::MAX, MOST_DOWNLOADS),
            uploads: Shares::new(MOST_UPLOADS, MOST_UPLOADS_OF_TENANT),
            bodies: Shares::new(MOST_BODY_BYTES, MOST_BODY_BYTES_OF_TENANT),
            streams: Shares::new(MOST_STREAMS, MOST_STREAMS_OF_TENANT),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are open.
    pub(in crate::serve) fn len(&self) -> usize {
        self.table().len()
    }

    /// The protocol's services of those that are open.
    pub(in crate::serve) fn services(&self) -> Vec<Service> {
        let slots: Vec<Arc<Slot>> = self.table().values().map(Arc::clone).collect();
        let all = slots.iter().flat_map(|slot| {
            let services = slot.services.lock().unwrap_or_else(PoisonError::into_inner);
            services.values().cloned().collect::<Vec<_>>()
        });
        all.collect()
    }

    /// Closes all of them.
    pub(in crate::serve) fn close_all(&self) {
        let closed = std::mem::take(&mut *self.table());
        drop(closed);
    }

    /// Returns a caller's sandbox and its slot; the same answer for one that does not exist and for one of another tenant (T-NET-05).
    pub(crate) fn find(&self, app: &App, caller: &Caller, id: &str) -> Result<(SandboxRow, Arc<Slot>), Problem> {
        self.find_with(id, || Self::row(app, caller, id))
    }

    // Whatever the reason is for which there is no row, no slot is left, and a slot of another tenant is as it was.
    fn find_with(&self, id: &str, row: impl FnOnce() -> Result<SandboxRow, Problem>) -> Result<(SandboxRow, Arc<Slot>), Problem> {
        let slot = self.slot(id);
        match row() {
            Ok(row) => {
                slot.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
                Ok((row, slot))
            }
            Err(problem) => {
                let mut table = self.table();
                // One reference in the table and one here: it is not in use, and was never opened.
                if table
                    .get(id)
                    .is_some_and(|known| Arc::ptr_eq(known, &slot) && Arc::strong_count(known) == 2 && !slot.is_open())
                {
                    table.remove(id);
                }
                Err(problem)
            }
        }
    }

    /// Returns only the row, for operations that do not open the sandbox.
    pub(super) fn row(app: &App, caller: &Caller, id: &str) -> Result<SandboxRow, Problem> {
        app.catalog().sandbox(&caller.tenant, id)?.ok_or_else(|| Problem::not_found("sandbox"))
    }

    fn slot(&self, id: &str) -> Arc<Slot> {
        Arc::clone(self.table().entry(id.to_owned()).or_insert_with(|| Arc::new(Slot::new())))
    }

    // Closes those that were not used for longest until there is room for one more.
    fn make_room(&self) -> Result<(), Problem> {
        loop {
            let mut table = self.table();
            if table.len() <= self.most {
                return Ok(());
            }
            // Those that were looked up and never opened take a place for nothing.
            table.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.sandbox.try_lock().map_or(true, |held| held.is_some()));
            if table.len() <= self.most {
                return Ok(());
            }
            let idle = table.iter().filter(|(_, slot)| Arc::strong_count(slot) == 1);
            let oldest = idle.min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed)).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else {
                return Err(Problem {
                    retry_after: Some(1),
                    ..Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "busy", "every sandbox that may be open is in use")
                });
            };
            let closed = table.remove(&oldest);
            drop(table);
            // Outside the lock: closing a database takes a while.
            drop(closed);
        }
    }

    /// Frees the memory of sandboxes that were not used since the last call, and returns their number. They stay open.
    pub(super) fn rest(&self) -> usize {
        let looked = self.looked.swap(self.uses.load(Ordering::Relaxed), Ordering::Relaxed);
        let idle: Vec<Arc<Slot>> = {
            let table = self.table();
            let unused = table.values().filter(|slot| Arc::strong_count(slot) == 1 && slot.used.load(Ordering::Relaxed) < looked);
            unused
                .filter(|slot| slot.rested.load(Ordering::Relaxed) != slot.used.load(Ordering::Relaxed))
                .map(Arc::clone)
                .collect()
        };
        for slot in &idle {
            slot.rested.store(slot.used.load(Ordering::Relaxed), Ordering::Relaxed);
            // The wait is short: a sandbox that is being opened has no memory to free.
            if let Ok(held) = slot.sandbox.try_lock()
                && let Some(sandbox) = &*held
            {
                sandbox.release_memory();
            }
        }
        idle.len()
    }

    /// Removes a sandbox whose row was deleted: kills its runs and waits until they have ended.
    pub(super) async fn forget(&self, id: &str) {
        let Some(slot) = self.table().remove(id) else { return };
        let services: Vec<Service> =
            slot.services.lock().unwrap_or_else(PoisonError::into_inner).drain().map(|(_, service)| service).collect();
        for service in services {
            service.stop().await;
        }
        let until = tokio::time::Instant::now() + LAST_WORDS;
        while Arc::strong_count(&slot) > 1 && tokio::time::Instant::now() < until {
            slot.running().values().for_each(Cancel::kill);
            tokio::time::sleep(LOOK).await;
        }
        let _ = tokio::task::spawn_blocking(move || drop(slot)).await;
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            used: AtomicU64::new(0),
            rested: AtomicU64::new(u64::MAX),
            noted: AtomicI64::new(0),
            sandbox: Mutex::default(),
            turn: Arc::default(),
            waiting: AtomicUsize::new(0),
            running: Mutex::default(),
            last: AtomicU64::new(0),
            changed: watch::channel(0).0,
            services: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Sandbox>> {
        self.sandbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        self.held().is_some()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Cancel>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sandbox as the caller sees it, opened if it is closed. Reads files: only on a thread that may wait.
    pub(crate) fn open(&self, app: &App, row: &SandboxRow, caller: &Caller) -> Result<Sandbox, Problem> {
        let sandbox = {
            let mut held = self.held();
            match &*held {
                Some(sandbox) => sandbox.clone(),
                None => {
                    app.opened().make_room()?;
                    held.insert(open(app, row)?).clone()
                }
            }
        };
        let at = now();
        if at - self.noted.load(Ordering::Relaxed) > USED_EVERY {
            self.noted.store(at, Ordering::Relaxed);
            app.catalog().use_sandbox(&row.id)?;
        }
        seen_by(sandbox, caller)
    }

    /// Waits for the turn to change something: waiting here costs no thread and none of a command's time.
    pub(crate) async fn turn(&self) -> Result<OwnedMutexGuard<()>, Problem> {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= MOST_WAITING {
            return Err(Problem::limited("too many requests wait for their turn in this sandbox", 1));
        }
        Ok(Arc::clone(&self.turn).lock_owned().await)
    }

    /// Notes a run, so that it can be killed when the sandbox is removed.
    pub(crate) fn note(self: &Arc<Self>, cancel: &Cancel) -> Noted {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.running().insert(number, cancel.clone());
        Noted { slot: Arc::clone(self), number }
    }

    /// Announces that something may have changed.
    pub(crate) fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that is notified when something may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.slot.running().remove(&self.number);
    }
}

/// Changes a sandbox in its turn and in that of its tenant, and announces that; content of the request must fit.
pub(super) async fn change<T: Send + 'static>(
    app: &App,
    caller: Caller,
    (row, slot): (SandboxRow, Arc<Slot>),
    bytes: Option<u64>,
    work: impl FnOnce(&Sandbox) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (turn, asking) = (slot.turn().await?, caller.clone());
    app.run(&asking, Cancel::default(), move |app| {
        let _turn = turn;
        if let Some(bytes) = bytes {
            app.require_room(&row.tenant, bytes)?;
        }
        let done = work(&slot.open(app, &row, &caller)?);
        // What fails can have changed something before that.
        slot.touch();
        done
    })
    .await
}

impl App {
    /// Returns a caller's sandbox and its slot, without holding up other requests while the catalog is busy.
    pub(crate) async fn find_sandbox(&self, caller: &Caller, id: &str) -> Result<(SandboxRow, Arc<Slot>), Problem> {
        let (caller, id) = (caller.clone(), id.to_owned());
        self.look_up(move |app| app.opened().find(app, &caller, &id)).await
    }
}

/// Returns the file of a sandbox: its name is the random id alone.
pub(super) fn file(app: &App, tenant: &str, id: &str) -> Result<PathBuf, Problem> {
    Ok(app.tenant(tenant)?.directory("sandboxes")?.join(format!("{id}.db")))
}

/// Returns the limits of a sandbox with this preset on this server.
pub(super) fn limits(app: &App, preset: &str) -> Result<runtime::Limits, Problem> {
    let preset: Preset =
        preset.parse().map_err(|_| Problem::bad_request("invalid `preset`: expected strict, normal or permissive"))?;
    Ok(preset.limits().tighter_of(&app.config().limits))
}

fn open(app: &App, row: &SandboxRow) -> Result<Sandbox, Problem> {
    let mut builder = builder(app, row)?.database(file(app, &row.tenant, &row.id)?);
    if let Some(base) = &row.base {
        builder = builder.base(file(app, &row.tenant, base)?);
    }
    Ok(builder.open()?)
}

/// Returns how a sandbox of this row is opened, without its file.
pub(super) fn builder(app: &App, row: &SandboxRow) -> Result<runtime::Builder, Problem> {
    Ok(Sandbox::builder().host(app.host()).custom_limits(limits(app, &row.preset)?).wait(WAIT))
}

/// Returns the sandbox as the key's view has it.
fn seen_by(sandbox: Sandbox, caller: &Caller) -> Result<Sandbox, Problem> {
    let Some(view) = &caller.view else { return Ok(sandbox) };
    viewed(&sandbox, view).map_err(|_| Problem::forbidden("the view of this key is invalid: make another key"))
}

fn viewed(sandbox: &Sandbox, view: &str) -> Result<Sandbox, runtime::Error> {
    let (principal, labels) = view.split_once(':').unwrap_or((view, ""));
    sandbox.view(principal, labels.split(',').map(str::trim).filter(|label| !label.is_empty()))
}

/// Refuses a text that cannot be the view of a key.
pub(in crate::serve) fn check_view(builder: runtime::Builder, view: &str) -> Result<(), runtime::Error> {
    viewed(&builder.open()?, view).map(drop)
}

/// Bytes of a sandbox's files on the disk.
#[expect(clippy::disallowed_methods, reason = "the size of the server's own files")]
pub(super) fn size(database: &Path) -> u64 {
    let length = |suffix: &&str| std::fs::metadata(beside(database, suffix)).map_or(0, |metadata| metadata.len());
    ["", "-wal"].iter().map(length).sum()
}

/// Removes a sandbox's file and the files next to it.
#[expect(clippy::disallowed_methods, reason = "the server's own files")]
pub(super) fn remove(database: &Path) -> std::io::Result<()> {
    for suffix in BESIDE {
        match std::fs::remove_file(beside(database, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes files without a row, which a killed server leaves behind.
#[expect(clippy::disallowed_methods, reason = "the server's own files")]
pub(super) fn sweep(app: &App, tenant: &str) -> Result<(), Problem> {
    for entry in std::fs::read_dir(app.tenant(tenant)?.directory("sandboxes")?)?.flatten() {
        let path = entry.path();
        let is_old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|at| at.elapsed().ok())
            .is_some_and(|age| age > ORPHAN);
        let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once(".db")).map(|(id, _)| id);
        let Some(id) = id.filter(|_| is_old) else { continue };
        if !app.catalog().knows_sandbox(id)? {
            remove(&file(app, tenant, id)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> SandboxRow {
        let (id, tenant, preset) = (id.to_owned(), "t".to_owned(), "normal".to_owned());
        SandboxRow { id, tenant, name: None, preset, base: None, created_at: 0, used_at: 0, expires_at: None }
    }

    #[test]
    fn a_row_that_is_missing_or_cannot_be_read_leaves_no_slot() {
        let opened = Opened::new(2);
        for problem in [Problem::not_found("sandbox"), Problem::from(rusqlite::Error::InvalidQuery)] {
            let status = problem.status;
            assert_eq!(opened.find_with("x", || Err(problem)).err().map(|problem| problem.status), Some(status));
            assert_eq!(opened.len(), 0);
        }
        assert!(opened.find_with("x", || Ok(row("x"))).is_ok());
        assert_eq!(opened.len(), 1);
    }

    // T-NET-05: otherwise a stranger could keep the sandbox of another tenant open.
    #[test]
    fn looking_for_the_sandbox_of_another_tenant_does_not_use_it() {
        let opened = Opened::new(2);
        let (_, slot) = opened.find_with("x", || Ok(row("x"))).ok().unwrap();
        let used = slot.used.load(Ordering::Relaxed);
        assert!(opened.find_with("x", || Err(Problem::not_found("sandbox"))).is_err());
        assert_eq!(slot.used.load(Ordering::Relaxed), used);
        assert!(opened.find_with("x", || Ok(row("x"))).is_ok());
        assert!(slot.used.load(Ordering::Relaxed) > used);
    }
}
