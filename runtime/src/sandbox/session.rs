//! A Python that remembers: its globals live on between calls, each of which is a command like any other.

use std::fmt;
use std::sync::Arc;

use sqlite_fs::Database;

use super::{Command, Output, Sandbox, UMASK};
use crate::Error;
use crate::clock::GuestClock;
use crate::limits::Meter;
use crate::process::{self, Idle, Kept, Outside, Tree};
use crate::random::Random;
use crate::vfs::Vfs;

/// A live Python interpreter.
///
/// Each call is a command of its own: with limits, a transaction and a history row. Globals, imports and the current
/// directory are kept; open files are not. A call that meets a limit or is killed ends the interpreter, and the next call
/// starts a new one. Dropping it ends it.
///
/// ```no_run
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// let mut session = sandbox.python_session()?;
/// session.python("x = 20")?;
/// assert_eq!(session.python("x + 1")?.stdout, b"21\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct PythonSession {
    sandbox: Sandbox,
    idle: Idle,
    kept: Option<Kept>,
}

impl Sandbox {
    /// Starts a Python that keeps its globals between calls.
    ///
    /// # Errors
    ///
    /// When the interpreter cannot be had.
    pub fn python_session(&self) -> Result<PythonSession, Error> {
        self.host.prepared(&guests::PYTHON)?;
        let nothing = Database::options().open()?.begin(None)?;
        let vfs = Arc::new(Vfs::new(nothing));
        let meter = Meter::new(self.limits.clone());
        let tree = Tree::new(self.host.clone(), meter, vfs, GuestClock::machine(), Random::Machine, Outside::default());
        let idle = Idle::new(tree).map_err(|_| Error::Invalid("a session cannot be started".to_owned()))?;
        Ok(PythonSession { sandbox: self.clone(), idle, kept: None })
    }
}

impl PythonSession {
    /// Runs code. The value of a last expression is printed, as in a notebook.
    ///
    /// # Errors
    ///
    /// Only for the host's own trouble: code that raises is an [`Output`].
    pub fn python(&mut self, code: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::python(code))
    }

    /// Runs a command made by [`Command::python`], with its input, limits and the like. Its environment and directory count
    /// in the first call only.
    ///
    /// # Errors
    ///
    /// As [`python`](Self::python); and when the command is not one of Python code.
    pub fn run(&mut self, mut command: Command) -> Result<Output, Error> {
        match command.args.get_mut(1) {
            Some(option) if command.name == "python" && option == "-c" => SESSION_OPTION.clone_into(option),
            _ => return Err(Error::Invalid("a session runs Python code only".to_owned())),
        }
        let (kept, idle) = (&mut self.kept, &self.idle);
        self.sandbox.run_with(command, |tree, request, descriptors| {
            let program = process::find_program(tree, request)?;
            process::start_kept(tree, program, descriptors, UMASK, kept, idle)
        })
    }

    /// Whether the next call finds what earlier ones left.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.kept.is_some()
    }
}

/// How Python is told that it goes on (`guests/python/lib/_sandlite_main.py`).
const SESSION_OPTION: &str = "--sandlite-session";

impl fmt::Debug for PythonSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonSession").field("live", &self.is_live()).finish_non_exhaustive()
    }
}
