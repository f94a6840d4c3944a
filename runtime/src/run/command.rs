//! A command before it runs: the program, the directory, the inputs.

use std::fmt;
use std::time::Duration;

use super::program::Code;
use super::{ChildOutput, ChildStdin, Program, Surroundings, surroundings};
use crate::cancel::Cancel;
use crate::process::pipe::{PipeReader, pipe};
use crate::process::{CaptureWriter, Roots};

/// One of a command's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The source of a command's standard input.
#[derive(Debug, Default)]
pub(crate) enum Stdin {
    /// None.
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
    pub(crate) program: Program,
    pub(crate) text: String,
    pub(crate) args: Vec<String>,
    pub(crate) surroundings: Surroundings,
    pub(crate) stdin: Stdin,
    pub(crate) cancel: Cancel,
    pub(crate) seed: Option<u64>,
    pub(crate) clock: Option<Duration>,
    pub(crate) is_recorded: bool,
    pub(crate) session: Option<String>,
    pub(crate) last_status: Option<u8>,
    pub(crate) new_python_of: Option<String>,
    pub(crate) rollback_on_failure: bool,
    pub(crate) roots: Roots,
    pub(crate) has_only_own_env: bool,
    pub(crate) stdout: CaptureWriter,
    pub(crate) stderr: CaptureWriter,
}

impl Command {
    /// Creates a bash command line, as for `bash -c`.
    #[must_use]
    pub fn bash(script: impl Into<String>) -> Self {
        Self::new(Program::BashScript, script.into(), Vec::new())
    }

    /// Creates a bash command with the arguments of `bash`: a script's path and its arguments, options; none for a script on
    /// standard input.
    #[must_use]
    pub fn bash_with(args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        Self::new(Program::Bash, words("bash", &args), args)
    }

    /// Creates a command of Python code, as for `python3 -c`.
    #[must_use]
    pub fn python(code: impl Into<String>) -> Self {
        Self::new(Program::PythonCode(Code::default()), code.into(), Vec::new())
    }

    /// Creates a Python command with the arguments of `python3`: a script's path, `-m module`, `-` for standard input, and their
    /// arguments.
    #[must_use]
    pub fn python_with(args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        Self::new(Program::Python, words("python3", &args), args)
    }

    /// Creates a command that runs a program of `/usr/local/bin` ([`Builder::program`](crate::Builder::program),
    /// [`Builder::command`](crate::Builder::command)) with these arguments, without a shell.
    ///
    /// ```
    /// # use std::io::Write;
    /// # use sandlite_runtime::{Command, Sandbox};
    /// let sandbox = Sandbox::builder()
    ///     .command("greet", |call| {
    ///         writeln!(call.stdout(), "hello {}", call.args()[1]).map_err(|error| error.to_string())?;
    ///         Ok(3)
    ///     })
    ///     .open()?;
    /// let output = sandbox.run(Command::program("greet", ["you"]))?;
    /// assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"hello you\n"[..], 3));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn program(name: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args: Vec<String> = std::iter::once(name.into()).chain(args.into_iter().map(Into::into)).collect();
        let text = args.split_first().map_or_else(String::new, |(name, rest)| words(name, rest));
        Self::new(Program::Own, text, args)
    }

    /// Restricts custom modules to these directories of the sandbox, each under its own name, instead of all files. No name leads
    /// out of them: neither `..`, nor an absolute path, nor a link.
    #[must_use]
    pub fn directories(mut self, directories: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        self.roots = Roots::Only(directories.into_iter().map(|(name, path)| (name.into(), path.into())).collect());
        self
    }

    /// Starts the command with only the variables of [`env`](Self::env), without the sandbox's defaults.
    #[must_use]
    pub fn only_own_env(mut self) -> Self {
        self.has_only_own_env = true;
        self
    }

    fn new(program: Program, text: String, args: Vec<String>) -> Self {
        Self {
            program,
            text,
            args,
            surroundings: Surroundings::default(),
            stdin: Stdin::Empty,
            cancel: Cancel::default(),
            seed: None,
            clock: None,
            is_recorded: false,
            session: None,
            last_status: None,
            new_python_of: None,
            rollback_on_failure: false,
            roots: Roots::Whole,
            has_only_own_env: false,
            stdout: CaptureWriter::default(),
            stderr: CaptureWriter::default(),
        }
    }

    /// Adds an argument: `$0`, then `$1`, `$2`, … of the script.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    surroundings! {
        /// Lowers some limits for this command.
        limits,
        /// Sets an environment variable for the command.
        env,
        /// Sets the working directory of the command.
        cwd
    }

    /// Sets the command's standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Lets the caller write the command's standard input while it runs; dropping the writer ends the input.
    #[must_use]
    pub fn stdin_pipe(mut self) -> (Self, ChildStdin) {
        let (reader, writer) = pipe(None);
        self.stdin = Stdin::Pipe(reader);
        (self, ChildStdin::new(writer))
    }

    /// Same as [`stdin_pipe`](Self::stdin_pipe), and calls `ask` whenever the command needs input that is not available yet, so
    /// that no input is consumed before the command requests it. The callback may write at most [`ChildStdin::room`] bytes
    /// itself, because it must not block.
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

    /// Makes the input of [`stdin_pipe`](Self::stdin_pipe) or [`stdin_on_demand`](Self::stdin_on_demand) appear as a terminal,
    /// because a person types it: `read -p` and `python3` then prompt.
    #[must_use]
    pub fn typed(self) -> Self {
        if let Stdin::Pipe(reader) = &self.stdin {
            reader.make_terminal();
        }
        self
    }

    /// Makes the run repeatable: processes take turns, time passes only while all of them wait, and random bytes come from this
    /// seed. The same command on the same files then has the same output, files, fuel and peak memory.
    #[must_use]
    pub fn deterministic(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Records all inputs of the command besides files in its history row, so that [`Versions::replay`](crate::Versions::replay)
    /// can run it again and compare. The run is [deterministic](Self::deterministic): without a seed it gets a random one, and
    /// its clock starts at the current time. Standard input must be known before it starts, and nothing may be mounted.
    #[must_use]
    pub fn record(mut self) -> Self {
        self.is_recorded = true;
        self
    }

    /// Prints the value of a last expression, like a notebook: for Python code.
    #[must_use]
    pub fn echo(mut self) -> Self {
        if let Program::PythonCode(code) = &mut self.program {
            code.echo = true;
        }
        self
    }

    /// Starts a session's shell with this `$?`: for a caller that stopped the previous command, which therefore has no status.
    ///
    /// ```
    /// # use sandlite_runtime::{Command, Sandbox};
    /// # let sandbox = Sandbox::builder().open()?;
    /// let session = sandbox.session("terminal")?;
    /// assert_eq!(session.run(Command::bash("echo $?").last_status(130))?.stdout, b"130\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn last_status(mut self, status: u8) -> Self {
        self.last_status = Some(status);
        self
    }

    /// Rolls back the command's file changes if it fails; the history row is kept.
    #[must_use]
    pub fn rollback_on_failure(mut self) -> Self {
        self.rollback_on_failure = true;
        self
    }

    /// Ends the command once this returns true. It is called every few milliseconds while the command runs: for callers that can
    /// only set a flag, such as a signal handler.
    #[must_use]
    pub fn cancel_when(self, is_wanted: impl Fn() -> bool + Send + 'static) -> Self {
        self.cancel.set_flag(is_wanted);
        self
    }

    /// Same as [`cancel_when`](Self::cancel_when), but Python code first gets a `KeyboardInterrupt`, and its session keeps its
    /// globals if it ends within a second.
    #[must_use]
    pub fn interrupt_when(self, is_wanted: impl Fn() -> bool + Send + 'static) -> Self {
        if let Program::PythonCode(_) = self.program {
            self.cancel.interrupt_first();
        }
        self.cancel_when(is_wanted)
    }

    /// Lets this [`Cancel`] end the command, instead of a new one.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Returns the handle that ends the command.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Sets a callback that receives each piece of a stream's output, which is also captured. It must not block: the command does
    /// not end before it returns. [`output_of`](Self::output_of) is for readers that may be slow.
    #[must_use]
    pub fn on_output(self, stream: Stream, sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        self.captured(stream).set_sink(Box::new(sink));
        self
    }

    /// Lets the caller read a stream's output while the command runs; it is also captured. The command waits while its reader is
    /// more than 64 KB behind, once the reader has started reading.
    ///
    /// ```
    /// # use std::io::Read;
    /// # use sandlite_runtime::{Command, Sandbox, Stream};
    /// # let sandbox = Sandbox::builder().open()?;
    /// let command = Command::bash("echo one; echo two");
    /// let mut stdout = command.output_of(Stream::Stdout);
    /// let reader = std::thread::spawn(move || {
    ///     let mut text = String::new();
    ///     stdout.read_to_string(&mut text).map(|_| text)
    /// });
    /// sandbox.run(command)?;
    /// assert_eq!(reader.join().unwrap().unwrap(), "one\ntwo\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn output_of(&self, stream: Stream) -> ChildOutput {
        ChildOutput::new(self.captured(stream).reader())
    }

    fn captured(&self, stream: Stream) -> &CaptureWriter {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }
}

// The command line as shown in the history.
fn words(program: &str, args: &[String]) -> String {
    std::iter::once(program).chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("program", &self.program).field("args", &self.args).finish_non_exhaustive()
    }
}
