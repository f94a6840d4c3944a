//! Sessions: the shell's state after one call is available to the next one, also in another program and after an export.
//!
//! A session's Python is a live interpreter (`interpreters.rs`) and does not outlive the program. The shell's state is defined by
//! the guest: opaque bytes that are only passed back to a guest. It is stored in the transaction of the call that produced it.

use std::fmt;

use serde_json::json;

use crate::Error;
use crate::history::LibraryCall;
use crate::run::{Command, Output};
use crate::sandbox::{OVERLAYS, Sandbox};

/// Maximum length of a session's name, in bytes.
const NAME_MAX: usize = 255;

/// The shell part of a session.
pub(crate) const SHELL: &str = "shell";

/// A shell and a Python interpreter that continue where their last calls ended.
///
/// The shell's current directory, variables with their attributes, arrays, functions, aliases, options, traps, file creation
/// mask, positional parameters, `$?` and directory stack persist between calls. They are part of the sandbox: they exist after it
/// is reopened, in its exports and in its forks. Jobs, open descriptors and the EXIT trap end with each call, and `exit` ends
/// only the call. A call that reaches a limit or is killed leaves the state unchanged.
///
/// Python keeps its globals in a live interpreter ([`Sandbox::python_in`]): in memory, until the program ends, the sandbox is
/// reopened or a limit is reached. The first call in a new one reports it ([`Output::restarted`]).
///
/// ```
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// let session = sandbox.session("main")?;
/// session.bash("cd /tmp; name=world; greet() { echo \"hello $1\"; }")?;
/// assert_eq!(session.bash("greet \"$name\"; pwd")?.stdout, b"hello world\n/tmp\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Session {
    sandbox: Sandbox,
    name: String,
    /// Its name in the database: a view's sessions are its own.
    stored: String,
}

impl Sandbox {
    /// Returns a session by its name. It starts with its first call; an existing one continues.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is empty, longer than 255 bytes or contains control characters.
    pub fn session(&self, name: impl Into<String>) -> Result<Session, Error> {
        let name = name.into();
        if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(Error::Invalid(format!("invalid session name {name:?}: expected 1 to {NAME_MAX} printable bytes")));
        }
        Ok(Session { sandbox: self.clone(), stored: self.scope.binding.session(&name), name })
    }

    /// Returns the names of the used sessions, in order.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn sessions(&self) -> Result<Vec<String>, Error> {
        let prefix = self.scope.binding.session_prefix();
        let mut names = self.reader()?.sessions()?;
        names.retain(|name| name != OVERLAYS);
        if prefix.is_empty() {
            return Ok(names);
        }
        Ok(names.iter().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect())
    }
}

impl Session {
    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a bash command line where the last one ended.
    ///
    /// # Errors
    ///
    /// Returns an error only if the host fails; a command that fails is an [`Output`].
    pub fn bash(&self, script: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::bash(script))
    }

    /// Runs Python code with the globals of earlier calls.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let session = sandbox.session("main")?;
    /// session.python("x = 20")?;
    /// assert_eq!(session.python("print(x + 1)")?.stdout, b"21\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error only if the host fails; code that raises is an [`Output`].
    pub fn python(&self, code: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::python(code))
    }

    /// Runs a command created by [`Command::bash`] or [`Command::python`], with its input, limits and other options. Arguments of
    /// bash become the positional parameters, its environment is exported, and its directory is entered first; those of Python
    /// apply only to the first call.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`bash`](Self::bash), and an error if the command is Python with a script, which sessions do not
    /// support.
    pub fn run(&self, mut command: Command) -> Result<Output, Error> {
        if command.program.is_python() {
            return self.sandbox.python_in(&self.name, command);
        }
        command.session = Some(self.stored.clone());
        self.sandbox.run(command)
    }

    /// Returns the directory in which the next call starts; `None` before the first call.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let session = sandbox.session("main")?;
    /// session.bash("cd /tmp")?;
    /// assert_eq!(session.directory()?.as_deref(), Some("/tmp"));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn directory(&self) -> Result<Option<String>, Error> {
        let state = self.sandbox.reader()?.session(&self.stored, SHELL)?;
        Ok(state.as_deref().and_then(|state| value_in(state, b"directory")).and_then(|value| String::from_utf8(value).ok()))
    }

    /// Returns whether `exit`, or a failed command under `set -e`, ended the last call before its end. An interactive shell then
    /// ends.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let session = sandbox.session("main")?;
    /// session.bash("(exit 3); x=$(exit 4)")?;
    /// assert!(!session.has_exited()?);
    /// session.bash("if true; then exit 5; fi")?;
    /// assert!(session.has_exited()?);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn has_exited(&self) -> Result<bool, Error> {
        let state = self.sandbox.reader()?.session(&self.stored, SHELL)?;
        Ok(state.is_some_and(|state| value_in(&state, b"exited").is_some()))
    }

    /// Removes the state of the session, including its Python, and returns whether there was any. The next call starts afresh.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be written.
    pub fn remove(&self) -> Result<bool, Error> {
        let call = LibraryCall::new("delete_session", &self.name, json!({ "session": self.name }));
        let removed = self.sandbox.change_answering(call, |run| {
            let removed = run.transaction()?.sessions().remove(&self.stored)?;
            Ok((removed, json!({ "existed": removed })))
        })?;
        let ended = self.sandbox.end_python(&self.name);
        Ok(removed || ended)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Changes the `$?` of a shell's state: of several records for one item, the last one counts.
pub(crate) fn set_status(state: &mut Vec<u8>, status: u8) {
    let status = status.to_string();
    let words = ["status", &status];
    state.extend_from_slice(&2u32.to_le_bytes());
    for word in words {
        state.extend_from_slice(&u32::try_from(word.len()).unwrap_or(0).to_le_bytes());
        state.extend_from_slice(word.as_bytes());
    }
}

// The guest's format (`guests/shell/src/session.rs`): records of a count and as many strings, each preceded by its length. The
// guest wrote it, so it is untrusted.
fn value_in(state: &[u8], kind: &[u8]) -> Option<Vec<u8>> {
    let mut rest = state;
    let mut take = |length: usize| {
        let (taken, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(taken)
    };
    loop {
        let count = u32::from_le_bytes(take(4)?.try_into().ok()?);
        let mut is_wanted = false;
        for index in 0..count {
            let length = u32::from_le_bytes(take(4)?.try_into().ok()?);
            let string = take(usize::try_from(length).ok()?)?;
            match index {
                0 => is_wanted = string == kind,
                1 if is_wanted => return Some(string.to_vec()),
                _ => {}
            }
        }
    }
}
