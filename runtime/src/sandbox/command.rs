//! A command before it runs: what, where, with what.

use std::fmt;

use super::surroundings::{Surroundings, surroundings};
use super::{ChildStdin, Killer};
use crate::process::Sink;
use crate::process::pipe::{PipeReader, pipe};

/// One of a command's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Where a command's standard input comes from.
#[derive(Debug, Default)]
pub(super) enum Stdin {
    /// Nowhere.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A pipe that the caller writes to.
    Pipe(PipeReader),
}

/// A command to run in a [`Sandbox`](crate::Sandbox).
///
/// ```no_run
/// # use sandlite_runtime::{Command, Sandbox};
/// # let sandbox = Sandbox::builder().open()?;
/// let output = sandbox.run(Command::bash("tr a-z A-Z").stdin(*b"shout").cwd("/tmp"))?;
/// assert_eq!(output.stdout, b"SHOUT");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Command {
    pub(super) name: &'static str,
    pub(crate) guest: &'static guests::Guest,
    pub(super) text: String,
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) surroundings: Surroundings,
    pub(super) stdin: Stdin,
    pub(super) killer: Killer,
    pub(super) kill_when: Option<Box<dyn Fn() -> bool + Send>>,
    pub(super) seed: Option<u64>,
    pub(super) echo: bool,
    pub(super) session: Option<String>,
    pub(super) new_python_of: Option<String>,
    pub(super) rollback_on_failure: bool,
    pub(super) stdout: Option<Sink>,
    pub(super) stderr: Option<Sink>,
}

impl Command {
    /// A bash command line, as `bash -c` takes it.
    #[must_use]
    pub fn bash(script: impl Into<String>) -> Self {
        let text = script.into();
        let args = ["bash", "-c", &text].map(str::to_owned).to_vec();
        Self::new(&guests::SHELL, "bash", "/bin/bash", args, text)
    }

    /// Bash with the arguments of `bash`: a script's path and its arguments, options; nothing for a script on standard input.
    #[must_use]
    pub fn bash_with(args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args: Vec<String> = std::iter::once("bash".to_owned()).chain(args.into_iter().map(Into::into)).collect();
        let text = args.join(" ");
        Self::new(&guests::SHELL, "bash", "/bin/bash", args, text)
    }

    /// Python code, as `python3 -c` takes it.
    #[must_use]
    pub fn python(code: impl Into<String>) -> Self {
        let text = code.into();
        let args = ["python3", "-c", &text].map(str::to_owned).to_vec();
        Self::new(&guests::PYTHON, "python", "/usr/bin/python3", args, text)
    }

    /// Python with the arguments of `python3`: a script's path, `-m module`, `-` for standard input, and what follows.
    #[must_use]
    pub fn python_with(args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args: Vec<String> = std::iter::once("python3".to_owned()).chain(args.into_iter().map(Into::into)).collect();
        let text = args.join(" ");
        Self::new(&guests::PYTHON, "python", "/usr/bin/python3", args, text)
    }

    fn new(guest: &'static guests::Guest, name: &'static str, program: &str, args: Vec<String>, text: String) -> Self {
        Self {
            name,
            guest,
            program: program.to_owned(),
            args,
            text,
            surroundings: Surroundings::default(),
            stdin: Stdin::Empty,
            killer: Killer::default(),
            kill_when: None,
            seed: None,
            echo: false,
            session: None,
            new_python_of: None,
            rollback_on_failure: false,
            stdout: None,
            stderr: None,
        }
    }

    /// Adds an argument: `$0`, then `$1`, `$2`, … of the script.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    surroundings! {
        /// Tightens some limits for this command alone.
        limits,
        /// Sets a variable of the command's environment.
        env,
        /// The directory the command starts in.
        cwd
    }

    /// What the command reads as its standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Lets the caller write what the command reads while it runs; dropping the writer is the end of the input.
    #[must_use]
    pub fn stdin_pipe(mut self) -> (Self, ChildStdin) {
        let (reader, writer) = pipe(None);
        self.stdin = Stdin::Pipe(reader);
        (self, ChildStdin::new(writer))
    }

    /// The same, and `ask` is called whenever the command wants input that is not there yet: so that nothing is read ahead of a
    /// command that may never ask. It may write at most [`ChildStdin::room`] bytes itself, for it must not wait.
    ///
    /// ```
    /// # use std::io::Write;
    /// # use std::sync::{Arc, Mutex};
    /// # use sandlite_runtime::{ChildStdin, Command, Sandbox};
    /// # let sandbox = Sandbox::builder().open()?;
    /// let answer = Arc::new(Mutex::new(None::<ChildStdin>));
    /// let slot = Arc::clone(&answer);
    /// let (command, stdin) = Command::bash("read line; echo got $line").stdin_on_demand(move || {
    ///     if let Some(mut stdin) = slot.lock().unwrap().take() {
    ///         stdin.write_all(b"asked for\n").unwrap();
    ///     }
    /// });
    /// *answer.lock().unwrap() = Some(stdin);
    /// assert_eq!(sandbox.run(command)?.stdout, b"got asked for\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn stdin_on_demand(mut self, ask: impl Fn() + Send + Sync + 'static) -> (Self, ChildStdin) {
        let (reader, writer) = pipe(None);
        reader.on_demand(ask);
        self.stdin = Stdin::Pipe(reader);
        (self, ChildStdin::new(writer))
    }

    /// Makes the run repeatable: processes take turns, time passes only while all of them wait, random bytes come from this
    /// seed. The same command on the same files then gives the same output, files, fuel and peak memory.
    #[must_use]
    pub fn deterministic(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Prints the value of a last expression, as a notebook does: for Python code.
    #[must_use]
    pub fn echo(mut self) -> Self {
        self.echo = true;
        self
    }

    /// Undoes the command's file changes when it does not succeed; the history row stays.
    #[must_use]
    pub fn rollback_on_failure(mut self) -> Self {
        self.rollback_on_failure = true;
        self
    }

    /// Ends the command once this is so. Asked every few milliseconds while it runs: for those who can only set a flag, such as a
    /// handler of signals.
    #[must_use]
    pub fn kill_when(mut self, is_wanted: impl Fn() -> bool + Send + 'static) -> Self {
        self.kill_when = Some(Box::new(is_wanted));
        self
    }

    /// Whether it is to end.
    pub(super) fn is_killed(&self) -> bool {
        self.killer.is_killed() || self.kill_when.as_ref().is_some_and(|is_wanted| is_wanted())
    }

    /// Lets this killer end the command, instead of a new one.
    #[must_use]
    pub fn killed_by(mut self, killer: Killer) -> Self {
        self.killer = killer;
        self
    }

    /// Something that can end the command while it runs.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// Is given each piece of a stream's output as it comes, besides its being kept.
    #[must_use]
    pub fn on_output(mut self, stream: Stream, sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        match stream {
            Stream::Stdout => self.stdout = Some(Box::new(sink)),
            Stream::Stderr => self.stderr = Some(Box::new(sink)),
        }
        self
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("program", &self.program).field("args", &self.args).finish_non_exhaustive()
    }
}
