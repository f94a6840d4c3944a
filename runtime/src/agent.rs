//! The file tools of an agent: what a model is given instead of a shell for reading, searching and editing.
//!
//! One implementation for MCP, REST and Python. Each tool takes a request, answers with data, is bounded in what it returns, says
//! how to get the rest, and is a row of the history. The tools see the same tree as a command does. Knows nothing about JSON-RPC.

mod bounded;
mod edit;
mod find;
mod grep;
mod list;
mod place;
mod read;
mod text;
mod write;

use serde_json::Value;
use sqlite_fs::{Reader, Transaction};

use self::bounded::Bounded;
use crate::Error;
use crate::cancel::{Cancel, Deadline};
use crate::history::LibraryCall as Call;
use crate::sandbox::Sandbox;

pub use edit::{Edit, EditFile, Edited};
pub use find::{Found, Glob};
pub use grep::{Grep, GrepMode, Grepped, Match, MatchCount};
pub use list::{ListFiles, Listed, ListedFile};
pub use place::{DeleteFile, Deleted, MoveFile, Moved};
pub use read::{ReadFile, ReadWindow};
pub use write::{Encoding, WriteFile, Written};

/// Most bytes of text that one tool returns.
const MAX_OUTPUT: usize = 64 << 10;
/// Most entries that one tool returns.
const MAX_ENTRIES: usize = 1000;
/// The largest file that is edited or searched as a whole, and the largest that an edit makes.
const MAX_WHOLE: u64 = 64 << 20;
/// Longest path, as the tree itself has it: a longer one is refused before it is looked at or recorded.
const MAX_PATH: usize = 4096;
/// Longest pattern: what an expression is parsed into takes many times its length.
const MAX_PATTERN: usize = 16 << 10;

/// A sandbox's file tools, as an agent uses them. Relative paths start in the sandbox's directory.
///
/// ```no_run
/// use sandlite_runtime::agent::{EditFile, Edit, WriteFile};
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// let tools = sandbox.agent();
/// let written = tools.write(&WriteFile::text("notes.txt", "one\ntwo\n"))?;
/// let edit = Edit { old: "two".into(), new: "2".into(), replace_all: false };
/// tools.edit(&EditFile { path: "notes.txt".into(), edits: vec![edit], expected_version: Some(written.version) })?;
/// assert_eq!(sandbox.bash("cat notes.txt")?.stdout, b"one\n2\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Agent<'a> {
    sandbox: &'a Sandbox,
    cancel: Cancel,
}

impl Sandbox {
    /// Returns the file tools of an agent.
    #[must_use]
    pub fn agent(&self) -> Agent<'_> {
        Agent { sandbox: self, cancel: Cancel::default() }
    }
}

impl Agent<'_> {
    /// Lets this [`Cancel`] end what takes long: a search, a walk.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Returns an absolute path, without `.` and doubled slashes; `..` is left to the walk, which knows links.
    pub(crate) fn absolute(&self, path: &str) -> Result<String, Error> {
        if path.is_empty() || path.contains('\0') {
            return Err(Error::Invalid("invalid path: expected a non-empty path without zero bytes".to_owned()));
        }
        if path.len() > MAX_PATH {
            return Err(Error::Invalid(format!("invalid path `{}…`: longer than {MAX_PATH} bytes", text::cut(path, 100))));
        }
        let whole = self.sandbox.resolve(path);
        let parts: Vec<&str> = whole.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        Ok(format!("/{}", parts.join("/")))
    }

    /// Refuses a pattern that is too long to be parsed.
    fn check_pattern(pattern: &str) -> Result<(), Error> {
        if pattern.len() <= MAX_PATTERN {
            return Ok(());
        }
        Err(Error::Invalid(format!("invalid pattern `{}…`: longer than {MAX_PATTERN} bytes", text::cut(pattern, 100))))
    }

    /// Runs a tool that only looks; its history row waits for the next change.
    fn reading<T>(
        &self,
        name: &'static str,
        subject: &str,
        parameters: Value,
        work: impl FnOnce(&Bounded<'_, Reader>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.sandbox.recorder.read(Call::new(name, subject, parameters), || {
            self.sandbox
                .now_until(&self.cancel)?
                .at_one_state(|view| work(&Bounded::new(view, self.deadline())).map_err(|error| view.explain(error)))
        })
    }

    /// Runs a tool that changes files: all it changes and its history row are one transaction; if it fails, nothing is changed.
    fn changing<T>(
        &self,
        name: &'static str,
        subject: &str,
        parameters: Value,
        work: impl FnOnce(&Bounded<'_, Transaction>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.sandbox.refuse_in_the_past()?;
        // Cancelling also ends the wait for a running command.
        let (call, scope) = (Call::new(name, subject, parameters), self.sandbox.scope.of_run(&self.cancel));
        self.sandbox.recorder.change(&scope, call, |run| {
            let view = run.view()?;
            work(&Bounded::new(view, self.deadline())).map_err(|error| view.explain(error))
        })
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.sandbox.limits.wall.0, self.cancel.clone())
    }
}

#[cfg(test)]
mod tests;
