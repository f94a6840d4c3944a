//! The sandboxes of a service: the main one, its forks, and those created from snapshots.

#![expect(clippy::disallowed_methods, reason = "snapshots are files in a directory that the user names")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Settings;
use super::scratch::{Scratch, TemporaryDatabase};
use runtime::Sandbox;
use runtime::actions::{Answer, quoted};

/// Maximum number of sandboxes besides the main one.
const MOST: usize = 16;
/// Maximum number of snapshots.
const MOST_SNAPSHOTS: usize = 100;
/// The main sandbox's name.
pub(super) const MAIN: &str = "main";

/// A sandbox with a name.
pub(super) struct Named {
    /// Its name.
    pub(super) name: String,
    /// The sandbox.
    pub(super) sandbox: Sandbox,
    // Declared after the sandbox because fields are dropped in order: the file is removed when it is no longer used.
    _file: Option<TemporaryDatabase>,
    /// The lock for changes: waiting for it uses no thread and none of a command's time.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// All sandboxes of a service.
pub(super) struct Sandboxes {
    main: Arc<Named>,
    others: Mutex<BTreeMap<String, Arc<Named>>>,
    settings: Settings,
    scratch: OnceLock<Scratch>,
    made: AtomicU64,
}

impl Sandboxes {
    pub(super) fn new(sandbox: Sandbox, settings: Settings) -> Self {
        let main = Arc::new(named(MAIN, sandbox, None));
        Self { main, others: Mutex::default(), settings, scratch: OnceLock::new(), made: AtomicU64::new(0) }
    }

    /// Returns the main sandbox.
    pub(super) fn main(&self) -> &Sandbox {
        &self.main.sandbox
    }

    /// Returns the sandbox with this name.
    pub(super) fn get(&self, name: Option<&str>) -> Result<Arc<Named>, Answer> {
        let Some(name) = name.filter(|name| *name != MAIN) else { return Ok(Arc::clone(&self.main)) };
        let others = self.others();
        others.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = std::iter::once(MAIN).chain(others.keys().map(String::as_str)).collect();
            Answer::error(format!("error: unknown sandbox `{}`\nhint: use one of {}", quoted(name), known.join(", ")))
        })
    }

    fn others(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Named>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a name for a new sandbox: the requested one, or a generated one.
    fn free_name(&self, asked: Option<&str>, kind: &str, replace: bool) -> Result<String, Answer> {
        let others = self.others();
        let name = match asked {
            Some(name) => {
                check_name(name)?;
                name.to_owned()
            }
            None => (1..).map(|number| format!("{kind}-{number}")).find(|name| !others.contains_key(name)).unwrap_or_default(),
        };
        if name == MAIN || (others.contains_key(&name) && !replace) {
            return Err(Answer::error(format!(
                "error: sandbox `{name}` already exists\nhint: choose another name, or set replace"
            )));
        }
        if others.len() >= MOST && !others.contains_key(&name) {
            return Err(Answer::error(format!(
                "error: too many sandboxes (maximum {MOST})\nhint: drop one with drop_sandbox, or set replace"
            )));
        }
        Ok(name)
    }

    /// Returns the names of all sandboxes, the main one first.
    pub(super) fn names(&self) -> Vec<String> {
        std::iter::once(MAIN.to_owned()).chain(self.others().keys().cloned()).collect()
    }

    /// Removes a sandbox. Its file is deleted when the calls that use it have ended.
    pub(super) fn drop(&self, name: &str) -> Result<(), Answer> {
        if name == MAIN {
            return Err(Answer::error(format!("error: `{MAIN}` cannot be dropped: it is the user's own sandbox")));
        }
        let dropped = self.others().remove(name);
        match dropped {
            // Outside the lock, because closing a database takes a while.
            Some(dropped) => {
                drop(dropped);
                Ok(())
            }
            None => self.get(Some(name)).map(drop),
        }
    }

    /// Removes every sandbox except the main one and deletes their files, at the end of the service.
    pub(super) fn close(&self) {
        self.others().clear();
        if let Some(scratch) = self.scratch.get() {
            scratch.empty();
        }
    }

    fn add(&self, name: String, sandbox: Sandbox, file: TemporaryDatabase) -> Arc<Named> {
        let added = Arc::new(named(&name, sandbox, Some(file)));
        self.others().insert(name, Arc::clone(&added));
        added
    }

    /// Creates an independent copy of a sandbox.
    pub(super) fn fork(&self, of: &Sandbox, asked: Option<&str>, replace: bool) -> Result<Arc<Named>, Answer> {
        let name = self.free_name(asked, "fork", replace)?;
        let file = TemporaryDatabase(self.new_file("db")?);
        let sandbox = of.fork_to(&file.0)?;
        Ok(self.add(name, sandbox, file))
    }

    /// Creates a sandbox from a snapshot; its rows are checked and copied.
    pub(super) fn import(&self, snapshot: &Path, asked: Option<&str>, replace: bool) -> Result<Arc<Named>, Answer> {
        let name = self.free_name(asked, "import", replace)?;
        let builder = Sandbox::builder().host(&self.settings.host).custom_limits(self.settings.limits.clone());
        let file = TemporaryDatabase(self.new_file("db")?);
        let sandbox = builder.database(&file.0).import(snapshot).open()?;
        Ok(self.add(name, sandbox, file))
    }

    /// Returns the path of a new snapshot.
    pub(super) fn new_snapshot(&self, asked: Option<&str>) -> Result<(String, PathBuf), Answer> {
        let directory = self.snapshots()?;
        let taken = |name: &str| file_of(&directory, name).exists();
        let name = match asked {
            Some(name) => {
                check_name(name)?;
                name.to_owned()
            }
            None => (1..).map(|number| format!("snapshot-{number}")).find(|name| !taken(name)).unwrap_or_default(),
        };
        if taken(&name) {
            return Err(Answer::error(format!("error: snapshot `{name}` already exists\nhint: choose another name")));
        }
        let kept = std::fs::read_dir(&directory).map_or(0, Iterator::count);
        if kept >= MOST_SNAPSHOTS {
            return Err(Answer::error(format!(
                "error: too many snapshots (maximum {MOST_SNAPSHOTS})\nhint: ask the user to remove some"
            )));
        }
        let path = file_of(&directory, &name);
        Ok((name, path))
    }

    /// Returns the path of an existing snapshot.
    pub(super) fn snapshot(&self, name: &str) -> Result<PathBuf, Answer> {
        check_name(name)?;
        let path = file_of(&self.snapshots()?, name);
        if path.is_file() { Ok(path) } else { Err(Answer::error(format!("error: unknown snapshot `{name}`"))) }
    }

    /// Creates a temporary file, which is deleted with the server.
    pub(super) fn new_file(&self, extension: &str) -> Result<PathBuf, Answer> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(self.scratch()?.join(format!("{number}.{extension}")))
    }

    /// Returns whether snapshots outlive the server.
    pub(super) fn keeps_snapshots(&self) -> bool {
        self.settings.snapshots.is_some()
    }

    fn snapshots(&self) -> Result<PathBuf, Answer> {
        let directory = match &self.settings.snapshots {
            Some(directory) => directory.clone(),
            None => self.scratch()?.join("snapshots"),
        };
        std::fs::create_dir_all(&directory)
            .map_err(|error| Answer::error(format!("error: cannot use the snapshot directory: {error}")))?;
        Ok(directory)
    }

    fn scratch(&self) -> Result<&Path, Answer> {
        if self.scratch.get().is_none() {
            let made = Scratch::new();
            let made = made.map_err(|error| Answer::error(format!("error: cannot create a temporary directory: {error}")))?;
            let _ = self.scratch.set(made);
        }
        self.scratch.get().map(Scratch::path).ok_or_else(|| Answer::error("error: cannot create a temporary directory"))
    }
}

fn named(name: &str, sandbox: Sandbox, file: Option<TemporaryDatabase>) -> Named {
    Named { name: name.to_owned(), sandbox, _file: file, turn: tokio::sync::Mutex::new(()) }
}

fn file_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.db"))
}

// Names become file names, so only harmless characters are accepted (T-NET-05).
fn check_name(name: &str) -> Result<(), Answer> {
    let fine = (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if fine { Ok(()) } else { Err(Answer::error("error: invalid name: expected 1 to 64 of the characters A-Z a-z 0-9 _ -")) }
}
