//! A Python that remembers: its globals live on between calls, each of which is a command like any other.

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

/// The part of a session that is Python's: there once it has been used, and empty, since what Python knows is in memory only.
pub(crate) const PYTHON: &str = "python";

/// A live Python interpreter.
///
/// Each call is a command of its own: with limits, a transaction and a history row. Globals, imports and the current
/// directory are kept; open files are not. A call that meets a limit or is killed ends the interpreter, and the next call
/// starts a new one. Dropping it ends it.
///
/// It is one of the sandbox's interpreters like those that have a name ([`Sandbox::python_in`]), but is never ended for being idle.
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

/// A Python and what it remembers, without the sandbox it works in.
pub(crate) struct Interpreter {
    idle: Idle,
    kept: Option<Kept>,
}

impl Interpreter {
    /// One that has not run yet.
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

    /// Whether the next call finds what earlier ones left.
    pub(crate) fn is_live(&self) -> bool {
        self.kept.is_some()
    }

    /// Bytes of memory that it holds between two calls.
    pub(crate) fn memory(&self) -> u64 {
        self.kept.as_ref().map_or(0, Kept::memory)
    }
}

impl Sandbox {
    /// Starts a Python that keeps its globals between calls.
    ///
    /// # Errors
    ///
    /// When the interpreter cannot be had.
    pub fn python_session(&self) -> Result<PythonSession, Error> {
        Ok(PythonSession { held: self.interpreters.hold(self)?, sandbox: self.clone() })
    }

    /// Runs a command made by [`Command::python`] in the live interpreter of this name, which is started if there is none.
    ///
    /// It is kept in memory by this sandbox and its clones, until it is idle for too long
    /// ([`Builder::python_idle`](crate::Builder::python_idle)), idle ones hold more memory than one command may use and it is the
    /// least recently used, it meets a limit, is ended, or the sandbox is gone: after that,
    /// and in a sandbox that was opened again or forked, the next call starts a new one
    /// ([`is_python_live`](Self::is_python_live) tells beforehand, [`Output::restarted`] afterwards).
    /// [`Session::python`](crate::Session::python) is the same by way of a session.
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
    /// As [`PythonSession::run`]; and when too many are running.
    pub fn python_in(&self, name: &str, command: Command) -> Result<Output, Error> {
        self.interpreters.run(self, &self.scope.binding.session(name), command)
    }

    /// Whether the next call in the interpreter of this name finds what earlier ones left.
    #[must_use]
    pub fn is_python_live(&self, name: &str) -> bool {
        self.interpreters.is_live(&self.scope.binding.session(name))
    }

    /// Ends the interpreter of this name and answers whether there was one.
    pub fn end_python(&self, name: &str) -> bool {
        self.interpreters.end(&self.scope.binding.session(name))
    }
}

impl PythonSession {
    /// Runs code.
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
    pub fn run(&mut self, command: Command) -> Result<Output, Error> {
        self.sandbox.interpreters.run(&self.sandbox, self.held.name(), command)
    }

    /// Runs a command in this interpreter, but on the files of another sandbox, whose history has its row: for questions that are to
    /// leave nothing behind, such as what a name could be completed to. The other sandbox has the same host, Python and limits.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_in(&mut self, sandbox: &Sandbox, command: Command) -> Result<Output, Error> {
        self.sandbox.interpreters.run(sandbox, self.held.name(), command)
    }

    /// Whether the next call finds what earlier ones left.
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
