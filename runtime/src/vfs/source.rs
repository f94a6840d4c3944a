//! Sources: everything that can be mounted. A source is a readable tree; a mount shows it directly or as an overlay.
//!
//! Implementers know nothing about rows, nodes or guests. Everything that they return is checked in `mounts.rs`, so a faulty
//! source cannot cause harm.

mod callback;
mod database;
mod git_tree;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sqlite_fs::{FileType, FsError};

use crate::{Cancel, Error, clock};

pub(crate) use callback::{CallbackSource, is_generating};
pub use callback::{NodeContext, ProvidedNode, Provider};
pub(crate) use database::DatabaseSource;
pub(crate) use git_tree::GitTree;

/// Maximum number of names in one directory; more is an error, so that the host's memory is bounded (T-DOS-03).
pub(crate) const NAMES_MAX: usize = 200_000;

/// Maximum number of error messages per view.
const COMPLAINTS_MAX: usize = 16;
/// Maximum length of an error message.
const COMPLAINT_BYTES: usize = 4 << 10;
/// How often a wait checks whether its process was killed: a kill wakes it, but another wake-up may have replaced it.
const LOOK: Duration = Duration::from_millis(20);

/// Returns the path of a name in a directory, relative to the root of a tree, whose own path is empty.
pub(crate) fn path_in(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// A tree of files that can be mounted.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Returns its type in `/proc/mounts`.
    fn kind(&self) -> &'static str;

    /// Returns the type of its root: a directory, unless it is one file.
    fn root(&self) -> FileType {
        FileType::Directory
    }

    /// Returns it as a source with states of which an overlay shows one, if it has any.
    fn as_moving(&self) -> Option<&dyn Moving> {
        None
    }

    /// Opens it for one view, which sees one state of it as far as the source supports that.
    fn open(self: Arc<Self>, context: SourceContext) -> Result<Box<dyn SourceFiles>, FsError>;
}

/// A state of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A version of a database.
    Version(i64),
    /// A commit of a repository.
    Commit(git::Id),
}

impl State {
    /// Returns it for the history.
    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::Version(number) => number.into(),
            Self::Commit(id) => id.to_string().into(),
        }
    }
}

/// A source that changes. An overlay over it stays on one state, because its changes are relative to that, until it is moved.
pub(crate) trait Moving {
    /// Returns the state that it shows; `None` if that is always the newest.
    fn shown(&self) -> Option<State>;

    /// Returns a state by its name, or the newest one, and the data by which it is found when the sandbox is opened again.
    fn resolve(&self, name: Option<&str>) -> Result<(State, Value), Error>;

    /// Opens one of its states; `None` if it no longer exists.
    fn open_at(&self, state: State, context: SourceContext) -> Result<Option<Box<dyn SourceFiles>>, Error>;

    /// Returns the paths at which two of its states may differ; `None` if they are not known. If a directory exists in only one of
    /// them, the paths below it may be missing.
    fn changed(&self, from: State, to: State, is_over: &dyn Fn() -> bool) -> Result<Option<BTreeSet<String>>, Error>;

    /// Shows another state from the next view on.
    fn move_to(&self, state: State);

    /// Returns the same source, moved independently.
    fn for_another(&self) -> Arc<dyn Source>;
}

/// The files of a source, as seen by one view.
///
/// A path is relative to the root: plain names joined by `/`, without following links. The empty path is the root itself. Slow
/// operations use [`SourceContext::wait`], or check [`SourceContext::is_over`] periodically.
pub(crate) trait SourceFiles: Send + Sync {
    /// Returns the metadata of a path. Only files, directories and links exist.
    fn stat(&self, path: &str) -> Result<SourceStat, FsError>;

    /// Returns the names in a directory with their types, in any order.
    fn list(&self, path: &str) -> Result<Vec<(String, FileType)>, FsError>;

    /// Reads from a regular file; 0 at its end.
    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError>;

    /// Returns the target of a symbolic link.
    fn read_link(&self, path: &str) -> Result<String, FsError>;

    /// Returns the content of a file that is generated when it is opened; `None` for a file that is read by offset.
    fn generate(&self, _path: &str) -> Result<Option<Arc<[u8]>>, FsError> {
        Ok(None)
    }

    /// Returns whether a guest needs the owner's permission bits of a directory to search it. Those of host directories already
    /// apply to the host's user.
    fn binds_guests(&self) -> bool {
        false
    }
}

/// The metadata from a source; the rest is synthetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceStat {
    /// Its type.
    pub(crate) kind: FileType,
    /// Permissions, without set-user-ID and set-group-ID bits.
    pub(crate) mode: u32,
    /// Size in bytes. A generated file has the size of its last content, or 0.
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) atime: i64,
    /// The same.
    pub(crate) mtime: i64,
    /// The same.
    pub(crate) ctime: i64,
}

/// The reader of a source, and its time limit: the same for all mounts of a sandbox until a run starts.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// The cancellation of the run.
    pub(crate) cancel: Cancel,
    /// Maximum wait of a reader that is not a run.
    pub(crate) longest: Duration,
    /// The sandbox's number.
    pub(crate) sandbox: u64,
}

impl Patience {
    /// Creates the reader of a new sandbox, outside its runs.
    pub(crate) fn of_sandbox(longest: Duration) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Self { cancel: Cancel::default(), longest, sandbox: NUMBER.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { cancel: Cancel::default(), longest: Duration::from_secs(60), sandbox: 0 }
    }
}

/// The context of a source, from the view that opens it.
#[derive(Clone, Debug)]
pub(crate) struct SourceContext {
    patience: Patience,
    /// The mount point of the source.
    path: Arc<str>,
    complaints: Complaints,
}

/// Error messages of the sources of a view, for the person who reads the command's output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Complaints(Arc<Mutex<Vec<(String, String)>>>);

impl Complaints {
    /// Returns all of them so far: paths and reasons.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SourceContext {
    /// Creates the context of a mount.
    pub(crate) fn new(patience: &Patience, path: &str, complaints: &Complaints) -> Self {
        Self { patience: patience.clone(), path: path.into(), complaints: complaints.clone() }
    }

    /// Returns the cancellation of the reading run.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.patience.cancel
    }

    /// Returns the number of the reading sandbox.
    pub(crate) fn sandbox(&self) -> u64 {
        self.patience.sandbox
    }

    /// Returns the path in the sandbox of a path of the source.
    pub(crate) fn full_path(&self, path: &str) -> String {
        if path.is_empty() { self.path.to_string() } else { format!("{}/{path}", self.path) }
    }

    /// Returns whether the run or the calling process must end.
    pub(crate) fn is_over(&self) -> bool {
        self.patience.cancel.left_here().is_zero()
    }

    /// Stores an error message about a path of the source for the command's standard error.
    pub(crate) fn complain(&self, path: &str, message: &str) {
        let mut message = message.trim_end().to_owned();
        message.truncate(message.floor_char_boundary(COMPLAINT_BYTES));
        let mut complaints = self.complaints.0.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.len() < COMPLAINTS_MAX {
            complaints.push((self.full_path(path), message));
        }
    }

    /// Runs `work` on its own thread and waits for it until the run must end. After that the thread is abandoned, and its result
    /// is discarded.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Interrupted`] if the run or its process must end, and [`FsError::Io`] if there is no thread, the work
    /// panics, or a reader without a run has waited as long as a run may take.
    pub(crate) fn wait<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, FsError> {
        enum Said<T> {
            Nothing,
            Result(T),
            /// Its thread ended without a result.
            Gone,
        }
        struct Saying<T>(Arc<Mutex<Said<T>>>, thread::Thread);
        impl<T> Saying<T> {
            fn say(&self, said: Said<T>) {
                let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*slot, Said::Nothing) {
                    *slot = said;
                }
                drop(slot);
                self.1.unpark();
            }
        }
        impl<T> Drop for Saying<T> {
            fn drop(&mut self) {
                self.say(Said::Gone);
            }
        }
        let said = Arc::new(Mutex::new(Said::Nothing));
        let saying = Saying(Arc::clone(&said), thread::current());
        let started = thread::Builder::new().name("sandlite source".to_owned()).spawn(move || saying.say(Said::Result(work())));
        started.map_err(|_| FsError::Io)?;
        let until = clock::now() + self.patience.longest;
        loop {
            match std::mem::replace(&mut *said.lock().unwrap_or_else(PoisonError::into_inner), Said::Nothing) {
                Said::Result(result) => return Ok(result),
                Said::Gone => return Err(FsError::Io),
                Said::Nothing => {}
            }
            let left = self.patience.cancel.left_here();
            if left.is_zero() {
                return Err(FsError::Interrupted);
            }
            // A run has its own deadline.
            if left == Duration::MAX && clock::now() >= until {
                return Err(FsError::Io);
            }
            thread::park_timeout(left.min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(patience: &Patience) -> SourceContext {
        SourceContext::new(patience, "/m", &Complaints::default())
    }

    // T-SRC-02.
    #[test]
    fn a_wait_ends_with_its_result_its_panic_its_time_and_a_kill() {
        let patience = Patience { longest: Duration::from_millis(5), ..Patience::default() };
        assert_eq!(context(&patience).wait(|| 7), Ok(7));
        let slow = || loop {
            thread::park_timeout(Duration::from_secs(1));
        };
        assert_eq!(context(&patience).wait::<()>(slow), Err(FsError::Io));
        assert_eq!(context(&Patience::default()).wait::<()>(|| panic!("on purpose")), Err(FsError::Io));
        let killed = Patience::default();
        killed.cancel.kill();
        assert!(context(&killed).is_over());
        assert_eq!(context(&killed).wait::<()>(slow), Err(FsError::Interrupted));
    }

    #[test]
    fn complaints_are_few_and_short() {
        let complaints = Complaints::default();
        let context = SourceContext::new(&Patience::default(), "/m", &complaints);
        context.complain("a/b", "it broke\n");
        (0..100).for_each(|_| context.complain("", &"é".repeat(10_000)));
        let all = complaints.all();
        assert_eq!(all[0], ("/m/a/b".to_owned(), "it broke".to_owned()));
        assert_eq!(all.len(), COMPLAINTS_MAX);
        assert!(all.iter().all(|(_, message)| message.len() <= COMPLAINT_BYTES));
    }
}
