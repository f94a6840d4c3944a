//! Functions of the embedding program that are called before a commit. Each receives the pending changes and can reject them with
//! a message; then only the row of the run is stored.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use sqlite_fs::{Change, ChangeKind, FileType, FsError, Transaction};

use super::changes;
use crate::Error;
use crate::vfs::{SourceFiles, View};

/// The message for a run whose changes cannot all be shown to a hook.
const TOO_MANY: &str = "too many changes for a hook to check; make them in several runs";

/// A pending change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The absolute path.
    pub path: String,
    /// The kind: `created`, `modified`, `attributes`, `deleted` or `renamed`.
    pub kind: &'static str,
    /// The previous path, if it is renamed.
    pub from: Option<String>,
    /// The type: `file`, `directory`, `symlink`, `fifo` or `device`; `None` if it is no longer known.
    pub file_type: Option<&'static str>,
    /// The size, in bytes; 0 if it is deleted.
    pub size: u64,
}

impl FileChange {
    pub(crate) fn new(change: &Change) -> Self {
        let from = match &change.kind {
            ChangeKind::Renamed { from } => Some(from.clone()),
            _ => None,
        };
        let file_type = changes::type_name(change.file_type);
        Self { path: change.path.clone(), kind: changes::kind_name(&change.kind), from, file_type, size: change.size }
    }

    /// Returns whether it concerns a path or something below it.
    pub(crate) fn is_below(&self, top: &str) -> bool {
        below(&self.path, top).is_some() || self.from.as_deref().is_some_and(|from| below(from, top).is_some())
    }

    /// Returns whether it moved a directory with this path in it, here or away. A move is listed as one change.
    pub(crate) fn moved(&self, path: &str, exists: &dyn Fn(&str) -> bool) -> bool {
        let Some(from) = &self.from else { return false };
        // Names that were removed from the directory meanwhile are listed themselves.
        let is_gone = below(path, from).is_some_and(|rest| exists(&format!("{}{rest}", self.path)));
        is_gone || (below(path, &self.path).is_some() && exists(path))
    }
}

// The rest of a path at or below another one.
fn below<'a>(path: &'a str, top: &str) -> Option<&'a str> {
    path.strip_prefix(top.trim_end_matches('/')).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The changes that are visible when an overlay is moved onto another state of its source.
pub(crate) struct Moved {
    /// The changes, in the order of their paths.
    pub(crate) changes: Vec<Change>,
    /// Whether there are no others.
    pub(crate) is_complete: bool,
    /// The mount point of the overlay: empty for the root directory.
    pub(crate) place: String,
    /// The files of the new state.
    pub(crate) files: Box<dyn SourceFiles>,
}

/// Number of bytes read at once from a source.
const PIECE: usize = 256 << 10;

impl Moved {
    // The content of a file that comes from the new state; `None` if the path does not.
    fn read(&self, path: &str) -> Option<Result<Vec<u8>, FsError>> {
        let index = self.changes.binary_search_by(|change| change.path.as_str().cmp(path)).ok()?;
        self.changes.get(index).filter(|change| change.kind != ChangeKind::Deleted)?;
        let at = path.get(self.place.len()..)?.trim_start_matches('/');
        Some(self.content(at))
    }

    fn content(&self, at: &str) -> Result<Vec<u8>, FsError> {
        let (mut content, mut piece) = (Vec::new(), vec![0; PIECE]);
        loop {
            let read = self.files.read(at, content.len() as u64, &mut piece)?;
            if read == 0 {
                return Ok(content);
            }
            content.extend_from_slice(piece.get(..read).unwrap_or_default());
        }
    }
}

/// A pending commit.
pub struct Commit<'a> {
    /// The number of the command; `None` for a library call, which gets its number with its commit.
    pub run: Option<i64>,
    /// The text of the command; for a library call its name and subject.
    pub command: &'a str,
    /// The principal of the view that makes the commit.
    pub principal: Option<&'a str>,
    /// The changes at the hook's path or below it, and the moves of directories that contained it or contain it now.
    pub changes: Vec<FileChange>,
    view: &'a View<Transaction>,
    moved: Option<&'a Moved>,
}

impl Commit<'_> {
    /// Returns the new content of a file. The sandbox itself cannot be used because it waits for the hook.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        match self.moved.and_then(|moved| moved.read(path)) {
            Some(read) => read.map_err(|source| Error::file("read", path, source)),
            None => Ok(self.view.unguarded().read(path)?),
        }
    }
}

type Function = dyn Fn(&Commit<'_>) -> Result<(), String> + Send + Sync;

#[derive(Clone)]
struct Hook {
    path: String,
    function: Arc<Function>,
}

/// The hooks of a sandbox and of everything derived from it.
#[derive(Default)]
pub(crate) struct Hooks(Mutex<Vec<Hook>>);

impl Hooks {
    /// Registers a function to be called before every commit that changes something at a path or below it.
    pub(crate) fn add(&self, path: &str, function: Arc<Function>) -> Result<(), Error> {
        let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        // A path that no change can have would be guarded by nothing.
        if !path.starts_with('/') || names.iter().any(|name| *name == ".." || name.contains('\0')) {
            return Err(Error::Invalid(format!("invalid path {path:?}: expected an absolute path without `..`")));
        }
        let path = format!("/{}", names.join("/"));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Hook { path, function });
        Ok(())
    }

    /// Calls all hooks for the changes of a run; returns the message of the first rejection.
    pub(crate) fn ask(
        &self,
        view: &View<Transaction>,
        (run, command, principal): (Option<i64>, &str, Option<&str>),
        moved: Option<&Moved>,
    ) -> Result<Option<String>, Error> {
        let hooks = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if hooks.is_empty() {
            return Ok(None);
        }
        // A change that a hook is not shown would not be approved by it.
        let Some(all) = changes::all(view, moved)? else { return Ok(Some(TOO_MANY.to_owned())) };
        let all: Vec<FileChange> = all.iter().map(FileChange::new).collect();
        let exists = |path: &str| view.unguarded().symlink_metadata(path).is_ok();
        for hook in hooks {
            let is_shown = |change: &&FileChange| change.is_below(&hook.path) || change.moved(&hook.path, &exists);
            let changes: Vec<_> = all.iter().filter(is_shown).cloned().collect();
            if changes.is_empty() {
                continue;
            }
            let commit = Commit { run, command, principal, changes, view, moved };
            // A hook that panics has not approved anything.
            let asked = catch_unwind(AssertUnwindSafe(|| (hook.function)(&commit)));
            if let Err(message) = asked.unwrap_or_else(|_| Err("the hook panicked".to_owned())) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }
}

/// Returns whether the type is a file.
pub(crate) fn is_file(change: &FileChange) -> bool {
    change.file_type == changes::type_name(Some(FileType::File))
}
