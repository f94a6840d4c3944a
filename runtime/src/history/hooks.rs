//! Functions of the embedding program that are asked before something is committed. Each sees what is about to change and can
//! refuse it with a message; then nothing of the run is kept but its row.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use sqlite_fs::{Change, ChangeKind, FileType, Transaction};

use super::changes;
use crate::Error;
use crate::vfs::View;

/// One change that is about to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The absolute path.
    pub path: String,
    /// What happens: `created`, `modified`, `attributes`, `deleted` or `renamed`.
    pub kind: &'static str,
    /// Where it was, if it is renamed.
    pub from: Option<String>,
    /// What it is: `file`, `directory`, `symlink`, `fifo` or `device`; `None` where that is not known any more.
    pub file_type: Option<&'static str>,
    /// Its bytes; 0 if it is deleted.
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

    /// Whether it is about a path or something below it.
    pub(crate) fn is_below(&self, top: &str) -> bool {
        let is_below = |path: &str| {
            path.strip_prefix(top.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_below(&self.path) || self.from.as_deref().is_some_and(is_below)
    }
}

/// What is about to be committed.
pub struct Commit<'a> {
    /// The number of the command; `None` for a call of the library, which gets its number with its commit.
    pub run: Option<i64>,
    /// The command's text; for a call of the library its name and what it is about.
    pub command: &'a str,
    /// The principal of the view that it is made in.
    pub principal: Option<&'a str>,
    /// What changes at or below the hook's path.
    pub changes: Vec<FileChange>,
    view: &'a View<Transaction>,
}

impl Commit<'_> {
    /// The content that a file is about to have. The sandbox itself cannot be asked: it waits for the hook.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        Ok(self.view.rows_content(path)?)
    }
}

type Function = dyn Fn(&Commit<'_>) -> Result<(), String> + Send + Sync;

#[derive(Clone)]
struct Hook {
    path: String,
    function: Arc<Function>,
}

/// The hooks of a sandbox and of everything that is made from it.
#[derive(Default)]
pub(crate) struct Hooks(Mutex<Vec<Hook>>);

impl Hooks {
    /// Asks a function before every commit that changes something at or below a path.
    pub(crate) fn add(&self, path: &str, function: Arc<Function>) -> Result<(), Error> {
        if !path.starts_with('/') {
            return Err(Error::Invalid(format!("invalid path `{path}`: expected an absolute path")));
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Hook { path: path.to_owned(), function });
        Ok(())
    }

    /// Asks all of them about what a run has changed; the message of the first that refuses.
    pub(crate) fn ask(
        &self,
        view: &View<Transaction>,
        (run, command, principal): (Option<i64>, &str, Option<&str>),
    ) -> Result<Option<String>, Error> {
        let hooks = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if hooks.is_empty() {
            return Ok(None);
        }
        let all: Vec<FileChange> = changes::all(view)?.iter().map(FileChange::new).collect();
        for hook in hooks {
            let changes: Vec<_> = all.iter().filter(|change| change.is_below(&hook.path)).cloned().collect();
            if changes.is_empty() {
                continue;
            }
            let commit = Commit { run, command, principal, changes, view };
            // A hook that breaks down has agreed to nothing.
            let asked = catch_unwind(AssertUnwindSafe(|| (hook.function)(&commit)));
            if let Err(message) = asked.unwrap_or_else(|_| Err("the hook panicked".to_owned())) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }
}

/// The name of a type.
pub(crate) fn is_file(change: &FileChange) -> bool {
    change.file_type == changes::type_name(Some(FileType::File))
}
