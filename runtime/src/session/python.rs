//! A persistent Python: its globals survive between calls, each of which is a command like any other.

use std::fmt;
use std::sync::Arc;

use super::interpreters::Held;
use crate::Error;
use crate::clock::GuestClock;
use crate::defaults::UMASK;
use crate::limits::Meter;
use crate::process::{self, Idle, Job, Kept, Outside};
use crate::random::Random;
use crate::run::{Command, Output, Program};
use crate::sandbox::Sandbox;
use crate::vfs::View;

/// The Python part of a session: exists once it has been used, and is empty, because Python's state is only in memory.
pub(crate) const PYTHON: &str = "python";

/// A live Python interpreter.
///
/// Each call is a separate command with limits, a transaction and a history row. Globals, imports and the current directory are
/// kept; open files are not. A call that reaches a limit or is killed ends the interpreter, and the next call starts a new one.
/// Dropping it ends it.
///
/// It is one of the sandbox's interpreters like the named ones ([`Sandbox::python_in`]), but is never ended for being idle.
///
/// ```no_run
/// # use sandlite_runtime::Command;
/// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
/// let mut session = sandbox.python_session()?;
/// session.python("x = 20")?;
/// assert_eq!(session.run(Command::python("x + 1").echo())?.stdout, b"21\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct PythonSession {
    sandbox: Sandbox,
    held: Held,
}

/// A Python interpreter and its state, without its sandbox.
pub(crate) struct Interpreter {
    idle: Idle,
    kept: Option<Kept>,
}

impl Interpreter {
    /// Creates one that has not run yet.
    pub(crate) fn new(sandbox: &Sandbox) -> Result<Self, Error> {
        sandbox.host.prepared(sandbox.guest_of(&guests::PYTHON))?;
        let view = Arc::new(View::of_nothing()?);
        let meter = Meter::new(sandbox.limits.clone());
        let job = Job::new(sandbox.host.clone(), meter, view, GuestClock::machine(), Random::Machine, Outside::default());
        let idle = Idle::new(job).map_err(|_| Error::Invalid("cannot start a session".to_owned()))?;
        Ok(Self { idle, kept: None })
    }

    /// Runs a command of Python code where the last one ended.
    pub(crate) fn run(&mut self, sandbox: &Sandbox, mut command: Command) -> Result<Output, Error> {
        let Program::PythonCode(code) = &mut command.program else {
            return Err(Error::Invalid("a session runs Python code only".to_owned()));
        };
        code.session = true;
        let (kept, idle) = (&mut self.kept, &self.idle);
        sandbox.run_with(command, |job, request, descriptors| {
            let program = process::find_program(job, request)?;
            process::start_kept(job, program, descriptors, UMASK, kept, idle)
        })
    }

    /// Returns whether the next call finds the state of earlier ones.
    pub(crate) fn is_live(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns its memory between two calls, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.kept.as_ref().map_or(0, Kept::memory)
    }
}

impl Sandbox {
    /// Starts a Python interpreter that keeps its globals between calls.
    ///
    /// # Errors
    ///
    /// Returns an error if the interpreter is not available.
    pub fn python_session(&self) -> Result<PythonSession, Error> {
        Ok(PythonSession { held: self.interpreters.hold(self)?, sandbox: self.clone() })
    }

    /// Runs a command created by [`Command::python`] in the live interpreter with this name, which is started if necessary.
    ///
    /// It is kept in memory by this sandbox and its clones, until it was idle for too long
    /// ([`Builder::python_idle`](crate::Builder::python_idle)), idle ones hold more memory than one command may use and it is the
    /// least recently used, it reaches a limit, is ended, or the sandbox is dropped. After that, and in a reopened sandbox or a
    /// fork, the next call starts a new one ([`is_python_live`](Self::is_python_live) reports it beforehand,
    /// [`Output::restarted`] afterwards). [`Session::python`](crate::Session::python) is the same through a session.
    ///
    /// ```no_run
    /// # use sandlite_runtime::{Command, Sandbox};
    /// # let sandbox = Sandbox::builder().open()?;
    /// sandbox.python_in("analysis", Command::python("x = 20"))?;
    /// assert_eq!(sandbox.python_in("analysis", Command::python("x + 1").echo())?.stdout, b"21\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`PythonSession::run`], and an error if too many are running.
    pub fn python_in(&self, name: &str, command: Command) -> Result<Output, Error> {
        self.interpreters.run(self, &self.scope.binding.session(name), command)
    }

    /// Returns whether the next call in the interpreter with this name finds the state of earlier ones.
    #[must_use]
    pub fn is_python_live(&self, name: &str) -> bool {
        self.interpreters.is_live(&self.scope.binding.session(name))
    }

    /// Ends the interpreter with this name and returns whether there was one.
    pub fn end_python(&self, name: &str) -> bool {
        self.interpreters.end(&self.scope.binding.session(name))
    }
}

impl PythonSession {
    /// Runs code.
    ///
    /// # Errors
    ///
    /// Returns an error only if the host fails; code that raises is an [`Output`].
    pub fn python(&mut self, code: impl Into<String>) -> Result<Output, Error> {
        self.run(Command::python(code))
    }

    /// Runs a command created by [`Command::python`], with its input, limits and other options. Its environment and directory
    /// apply only to the first call.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`python`](Self::python), and an error if the command is not Python code.
    pub fn run(&mut self, command: Command) -> Result<Output, Error> {
        self.sandbox.interpreters.run(&self.sandbox, self.held.name(), command)
    }

    /// Runs a command in this interpreter, but on the files of another sandbox, whose history records it: for queries that must
    /// leave no trace, such as completions of a name. The other sandbox has the same host, Python and limits.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`run`](Self::run).
    pub fn run_in(&mut self, sandbox: &Sandbox, command: Command) -> Result<Output, Error> {
        self.sandbox.interpreters.run(sandbox, self.held.name(), command)
    }

    /// Returns whether the next call finds the state of earlier ones.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.sandbox.interpreters.is_live(self.held.name())
    }
}

impl Drop for PythonSession {
    fn drop(&mut self) {
        self.sandbox.interpreters.end(self.held.name());
    }
}

impl fmt::Debug for PythonSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonSession").field("live", &self.is_live()).finish_non_exhaustive()
    }
}
