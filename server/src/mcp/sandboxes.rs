//! The sandboxes of a service: the main one, its forks, and those filled from snapshots.

#![expect(clippy::disallowed_methods, reason = "snapshots are files in a directory that the user names")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Settings;
use super::scratch::{Scratch, TemporaryDatabase};
use runtime::Sandbox;
use runtime::actions::{Answer, quoted};

/// Sandboxes beside the main one.
const MOST: usize = 16;
/// Snapshots kept.
const MOST_SNAPSHOTS: usize = 100;
/// The main sandbox's name.
pub(super) const MAIN: &str = "main";

/// A sandbox with a name.
pub(super) struct Named {
    /// Its name.
    pub(super) name: String,
    /// The sandbox.
    pub(super) sandbox: Sandbox,
    // After the sandbox, for fields are dropped in order: its file goes when nobody uses it any more.
    _file: Option<TemporaryDatabase>,
    /// Whose turn it is to change something: waiting here costs no thread and none of a command's time.
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

    /// The main sandbox.
    pub(super) fn main(&self) -> &Sandbox {
        &self.main.sandbox
    }

    /// The sandbox of a name.
    pub(super) fn get(&self, name: Option<&str>) -> Result<Arc<Named>, Answer> {
        let Some(name) = name.filter(|name| *name != MAIN) else { return Ok(Arc::clone(&self.main)) };
        let others = self.others();
        others.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = std::iter::once(MAIN).chain(others.keys().map(String::as_str)).collect();
            Answer::error(format!("error: there is no sandbox `{}`\nhint: there are {}", quoted(name), known.join(", ")))
        })
    }

    fn others(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Named>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that can be given to a new sandbox: the one asked for, or one made up.
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
                "error: there is a sandbox `{name}` already\nhint: choose another name, or set replace"
            )));
        }
        if others.len() >= MOST && !others.contains_key(&name) {
            return Err(Answer::error(format!(
                "error: {MOST} sandboxes are the most\nhint: drop_sandbox one that is no longer needed, or set replace"
            )));
        }
        Ok(name)
    }

    /// The names of all sandboxes, the main one first.
    pub(super) fn names(&self) -> Vec<String> {
        std::iter::once(MAIN.to_owned()).chain(self.others().keys().cloned()).collect()
    }

    /// Forgets a sandbox. Its file is removed when the calls that use it have ended.
    pub(super) fn drop(&self, name: &str) -> Result<(), Answer> {
        if name == MAIN {
            return Err(Answer::error(format!("error: `{MAIN}` cannot be dropped: it is the user's own sandbox")));
        }
        let dropped = self.others().remove(name);
        match dropped {
            // Outside the lock: closing a database takes a while.
            Some(dropped) => {
                drop(dropped);
                Ok(())
            }
            None => self.get(Some(name)).map(drop),
        }
    }

    /// Forgets every sandbox but the main one, and removes their files: the end of the service.
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

    /// A copy of a sandbox that goes its own way.
    pub(super) fn fork(&self, of: &Sandbox, asked: Option<&str>, replace: bool) -> Result<Arc<Named>, Answer> {
        let name = self.free_name(asked, "fork", replace)?;
        let file = TemporaryDatabase(self.new_file("db")?);
        let sandbox = of.fork_to(&file.0)?;
        Ok(self.add(name, sandbox, file))
    }

    /// A sandbox filled from a snapshot: its rows are checked and copied.
    pub(super) fn import(&self, snapshot: &Path, asked: Option<&str>, replace: bool) -> Result<Arc<Named>, Answer> {
        let name = self.free_name(asked, "import", replace)?;
        let builder = Sandbox::builder().host(&self.settings.host).custom_limits(self.settings.limits.clone());
        let file = TemporaryDatabase(self.new_file("db")?);
        let sandbox = builder.database(&file.0).import(snapshot).open()?;
        Ok(self.add(name, sandbox, file))
    }

    /// The file of a snapshot that is to be written.
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
            return Err(Answer::error(format!("error: there is a snapshot `{name}` already\nhint: choose another name")));
        }
        let kept = std::fs::read_dir(&directory).map_or(0, Iterator::count);
        if kept >= MOST_SNAPSHOTS {
            return Err(Answer::error(format!(
                "error: {MOST_SNAPSHOTS} snapshots are the most\nhint: ask the user to remove some"
            )));
        }
        let path = file_of(&directory, &name);
        Ok((name, path))
    }

    /// The file of a snapshot that is there.
    pub(super) fn snapshot(&self, name: &str) -> Result<PathBuf, Answer> {
        check_name(name)?;
        let path = file_of(&self.snapshots()?, name);
        if path.is_file() { Ok(path) } else { Err(Answer::error(format!("error: there is no snapshot `{name}`"))) }
    }

    /// A new file of ours, gone with the server.
    pub(super) fn new_file(&self, extension: &str) -> Result<PathBuf, Answer> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(self.scratch()?.join(format!("{number}.{extension}")))
    }

    /// Whether snapshots outlive the server.
    pub(super) fn keeps_snapshots(&self) -> bool {
        self.settings.snapshots.is_some()
    }

    fn snapshots(&self) -> Result<PathBuf, Answer> {
        let directory = match &self.settings.snapshots {
            Some(directory) => directory.clone(),
            None => self.scratch()?.join("snapshots"),
        };
        std::fs::create_dir_all(&directory)
            .map_err(|error| Answer::error(format!("error: the directory of the snapshots cannot be used: {error}")))?;
        Ok(directory)
    }

    fn scratch(&self) -> Result<&Path, Answer> {
        if self.scratch.get().is_none() {
            let made = Scratch::new();
            let made = made.map_err(|error| Answer::error(format!("error: no temporary directory: {error}")))?;
            let _ = self.scratch.set(made);
        }
        self.scratch.get().map(Scratch::path).ok_or_else(|| Answer::error("error: no temporary directory"))
    }
}

fn named(name: &str, sandbox: Sandbox, file: Option<TemporaryDatabase>) -> Named {
    Named { name: name.to_owned(), sandbox, _file: file, turn: tokio::sync::Mutex::new(()) }
}

fn file_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.db"))
}

// Names become file names: only what is harmless in one (T-NET-05).
fn check_name(name: &str) -> Result<(), Answer> {
    let fine = (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if fine { Ok(()) } else { Err(Answer::error("error: a name has 1 to 64 of the characters A-Z a-z 0-9 _ -")) }
}
