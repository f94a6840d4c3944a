//! The sandboxes of sessions: opened when they are used, closed when others need the room, synced and removed when idle.

#![expect(clippy::disallowed_methods, reason = "the databases of sessions are removed here")]

use std::collections::HashMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtime::{Cancel, Content, Sandbox};

use super::{files, sessions, store};
use crate::serve::app::{App, Tenant};
use crate::serve::clock::now;
use crate::serve::problem::Problem;

/// The directory that a session's commands start in, and whose files are the session's.
pub(super) const ROOT: &str = "/sandbox/session";
/// Directories that exist from the beginning.
const DIRECTORIES: [&str; 3] = [ROOT, "/sandbox/session/skills", "/sandbox/session/outputs"];
/// The directory of a tenant that holds the databases.
const DIRECTORY: &str = "sessions";
/// Suffixes of the files that SQLite and the runtime keep next to a database.
const BESIDE: [&str; 5] = ["", "-wal", "-shm", "-journal", "-running"];
/// Largest file that is kept in a session.
const MOST_BYTES: u64 = 100 << 20;
/// How often the moment of the last use is written: not at every request.
const USED_EVERY: i64 = 60_000;
/// How long commands in a sandbox that is removed have to end.
const LAST_WORDS: Duration = Duration::from_secs(30);
/// How often to check whether they have.
const LOOK: Duration = Duration::from_millis(5);

/// The sandboxes that are open, by tenant and session.
#[derive(Default)]
pub(super) struct Shells(Mutex<HashMap<(String, String), Arc<Shell>>>);

/// The sandbox of one session, if it is open.
struct Shell {
    sandbox: Mutex<Option<Sandbox>>,
    used: Mutex<Instant>,
    /// When its use was last written to the row of the session, in milliseconds since 1970.
    noted: AtomicI64,
    /// Commands under way.
    running: Mutex<HashMap<u64, Cancel>>,
    last: AtomicU64,
}

/// The sandbox of a session in use: until this is dropped, it is neither closed nor idle.
pub(super) struct Used {
    sandbox: Sandbox,
    shell: Arc<Shell>,
    number: u64,
}

impl Used {
    fn new(sandbox: &Sandbox, shell: &Arc<Shell>) -> Self {
        let number = shell.last.fetch_add(1, Ordering::Relaxed);
        Self { sandbox: sandbox.clone(), shell: Arc::clone(shell), number }
    }

    /// Notes a command, so that it is killed when the sandbox is removed.
    pub(super) fn note(&self, cancel: &Cancel) {
        locked(&self.shell.running).insert(self.number, cancel.clone());
    }
}

impl Deref for Used {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        locked(&self.shell.running).remove(&self.number);
        *locked(&self.shell.used) = Instant::now();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shells {
    // There is one for each session while anybody has it, so that a database is opened once.
    fn get(&self, tenant: &str, session: &str) -> Arc<Shell> {
        let mut table = locked(&self.0);
        // Entries that are unused and closed are not needed.
        table.retain(|_, shell| Arc::strong_count(shell) > 1 || locked(&shell.sandbox).is_some());
        let new = || {
            let (sandbox, used) = (Mutex::default(), Mutex::new(Instant::now()));
            Arc::new(Shell { sandbox, used, noted: AtomicI64::new(0), running: Mutex::default(), last: AtomicU64::new(0) })
        };
        let shell = Arc::clone(table.entry((tenant.to_owned(), session.to_owned())).or_insert_with(new));
        *locked(&shell.used) = Instant::now();
        shell
    }

    fn has_open(&self, tenant: &str, session: &str) -> bool {
        let table = locked(&self.0);
        let known = table.get(&(tenant.to_owned(), session.to_owned()));
        known.is_some_and(|shell| Arc::strong_count(shell) > 1 || locked(&shell.sandbox).is_some())
    }

    // Closes the least recently used one that is idle, if there are too many.
    fn make_room(&self, most: usize) {
        let table = locked(&self.0);
        if table.len() < most.max(1) {
            return;
        }
        let idle = table.values().filter(|shell| Arc::strong_count(shell) == 1);
        if let Some(oldest) = idle.min_by_key(|shell| *locked(&shell.used)) {
            drop(locked(&oldest.sandbox).take());
        }
    }
}

// No path is made from the name itself (T-NET-05).
fn database(tenant: &Tenant, session: &str) -> Result<PathBuf, Problem> {
    Ok(tenant.directory(DIRECTORY)?.join(format!("{}.db", blake3::hash(session.as_bytes()).to_hex())))
}

/// Returns the sandbox of a session, and notes the use in the session's row, which is all that remains of it after a restart.
pub(super) fn open(app: &App, tenant: &Tenant, session: &str) -> Result<Used, Problem> {
    let used = enter(app, tenant, session)?;
    let (at, noted) = (now(), &used.shell.noted);
    if at - noted.load(Ordering::Relaxed) > USED_EVERY {
        app.catalog().use_session(&tenant.name, session)?;
        noted.store(at, Ordering::Relaxed);
    }
    Ok(used)
}

// Returns the sandbox of a session, created with the session's files if there is none.
fn enter(app: &App, tenant: &Tenant, session: &str) -> Result<Used, Problem> {
    let shells = &app.skillbox().shells;
    let shell = shells.get(&tenant.name, session);
    let mut place = locked(&shell.sandbox);
    if let Some(sandbox) = &*place {
        return Ok(Used::new(sandbox, &shell));
    }
    shells.make_room(app.config().open_sessions);
    let path = database(tenant, session)?;
    let builder = Sandbox::builder().host(app.host()).custom_limits(app.config().limits.clone()).cwd(ROOT);
    let sandbox = match path.exists() {
        true => builder.database(&path).open()?,
        false => {
            let kept = sessions::begin(app, tenant, session)?;
            let new = builder.open()?;
            furnish(&new, kept)?;
            // It appears whole, or not at all.
            new.fork_to(&path)?
        }
    };
    let used = Used::new(&sandbox, &shell);
    *place = Some(sandbox);
    Ok(used)
}

fn furnish(sandbox: &Sandbox, kept: Vec<(String, Vec<u8>)>) -> Result<(), Problem> {
    let above = kept.iter().filter_map(|(name, _)| Some(format!("{ROOT}/{}", name.rsplit_once('/')?.0)));
    let directories: Vec<String> = DIRECTORIES.iter().map(|name| (*name).to_owned()).chain(above).collect();
    sandbox.fs().create_dirs(&directories)?;
    let files = kept.into_iter().map(|(name, content)| (format!("{ROOT}/{name}"), Content::from(content)));
    Ok(sandbox.fs().write_all(files.collect())?)
}

/// Makes the files of a sandbox those of its session. Empty ones are left out, as are those that are not new.
pub(super) fn sync(app: &App, tenant: &Tenant, session: &str, sandbox: &Sandbox) -> Result<(), Problem> {
    let known: HashMap<String, (String, i64)> =
        app.catalog().session_files(&tenant.name, session)?.into_iter().map(|row| (row.name, (row.id, row.size_bytes))).collect();
    let mut new = Vec::new();
    for found in sandbox.fs().walk(ROOT)? {
        let Some(name) = found.path.strip_prefix(ROOT).and_then(|name| name.strip_prefix('/')) else { continue };
        let size = found.stat.size;
        if !found.stat.is_file() || size == 0 || size > MOST_BYTES || !files::is_name(name) {
            continue;
        }
        let content = sandbox.fs().read(&found.path)?;
        let is_known = known.get(name).is_some_and(|(id, length)| {
            u64::try_from(*length) == Ok(size) && store::read(tenant, id).is_ok_and(|known| known == content)
        });
        if !is_known {
            new.push((name.to_owned(), content));
        }
    }
    sessions::keep(app, tenant, session, new)
}

/// Syncs the sandbox of a session and removes it; `false` if there is none.
pub(super) fn destroy(app: &App, tenant: &Tenant, session: &str) -> Result<bool, Problem> {
    if !database(tenant, session)?.exists() {
        return Ok(false);
    }
    let sandbox = enter(app, tenant, session)?;
    sync(app, tenant, session, &sandbox)?;
    drop(sandbox);
    discard(app, tenant, session)?;
    Ok(true)
}

/// Removes the sandbox of a session with all that was not synced, and kills what runs in it.
pub(super) fn discard(app: &App, tenant: &Tenant, session: &str) -> Result<(), Problem> {
    let shell = app.skillbox().shells.get(&tenant.name, session);
    let until = Instant::now() + LAST_WORDS;
    // One reference in the table and one here.
    while Arc::strong_count(&shell) > 2 && Instant::now() < until {
        locked(&shell.running).values().for_each(Cancel::kill);
        std::thread::park_timeout(LOOK);
    }
    let mut place = locked(&shell.sandbox);
    drop(place.take());
    let path = database(tenant, session)?;
    for suffix in BESIDE {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        match std::fs::remove_file(name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

// Syncs and removes the sandbox of an idle session, unless it is used again meanwhile.
fn put_away(app: &App, tenant: &Tenant, session: &str) -> Result<(), Problem> {
    if !database(tenant, session)?.exists() {
        return Ok(());
    }
    let sandbox = enter(app, tenant, session)?;
    sync(app, tenant, session, &sandbox)?;
    // One reference in the table and one here.
    if Arc::strong_count(&sandbox.shell) > 2 {
        return Ok(());
    }
    drop(sandbox);
    discard(app, tenant, session)
}

// One that cannot be put away, because it is damaged or its tenant has no room, stays, and keeps none of the others. The next sweep tries again.
fn try_to_put_away(app: &App, tenant: &str, session: &str) {
    let _ = app.tenant(tenant).and_then(|tenant| put_away(app, &tenant, session));
}

/// Syncs and removes the sandboxes of sessions that were not used for a while.
pub(super) fn expire(app: &App) {
    let idle = app.config().session_idle;
    let over: Vec<(String, String)> = locked(&app.skillbox().shells.0)
        .iter()
        .filter(|(_, shell)| Arc::strong_count(shell) == 1 && locked(&shell.used).elapsed() > idle)
        .map(|(key, _)| key.clone())
        .collect();
    for (tenant, session) in over {
        try_to_put_away(app, &tenant, &session);
    }
}

/// The same for those that were not opened since the server started: their rows have the time of the last use.
pub(super) fn expire_unopened(app: &App) -> Result<(), Problem> {
    let idle = i64::try_from(app.config().session_idle.as_millis()).unwrap_or(i64::MAX);
    let since = now().saturating_sub(idle);
    for (name, session) in app.catalog().sessions_unused_since(since)? {
        if !app.skillbox().shells.has_open(&name, &session) {
            try_to_put_away(app, &name, &session);
            let _ = forget(app, &name, &session, since);
        }
    }
    Ok(())
}

// A session without files and without a sandbox is a name and nothing else.
fn forget(app: &App, tenant: &str, session: &str, since: i64) -> Result<(), Problem> {
    if !database(&*app.tenant(tenant)?, session)?.exists() {
        app.catalog().forget_session(tenant, session, since)?;
    }
    Ok(())
}
