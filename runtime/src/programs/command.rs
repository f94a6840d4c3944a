//! Commands of the embedding program: a function with arguments, standard streams and an exit status.
//!
//! The function runs on its own thread, which cannot be terminated. So it holds nothing of the command that calls it: its reads
//! and writes are requests to the process's thread, and after that has ended every stream is broken and every file access fails.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use abi::Errno;
use serde_json::json;

use crate::process::wait::{Interruption, Waiters, block};
use crate::process::{Ended, Fault, State};
use crate::tools::{ToolContext, ToolPause, prefix};
use crate::{RunningFiles, absolute};

/// Maximum number of bytes moved at once.
const PIECE: usize = 64 << 10;

/// Maximum length of a printed error of a command.
const MAX_COMPLAINT_BYTES: usize = 4 << 10;

/// A command's function: returns the exit status, or a message to print on standard error before it exits with 1.
pub(crate) type Action = dyn Fn(&mut CommandCall) -> Result<u8, String> + Send + Sync;

/// A call of a command.
///
/// ```
/// use std::io::{Read, Write};
/// use sandlite_runtime::Sandbox;
///
/// let sandbox = Sandbox::builder()
///     .command("shout", |call| {
///         let mut text = String::new();
///         call.stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
///         write!(call.stdout(), "{}", text.to_uppercase()).map_err(|error| error.to_string())?;
///         Ok(0)
///     })
///     .open()?;
/// assert_eq!(sandbox.bash("echo hi | shout | cat")?.stdout, b"HI\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CommandCall {
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: String,
    context: ToolContext,
    line: Arc<Line>,
}

impl CommandCall {
    /// Returns the words of the command line, starting with the name that was called.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// Returns the environment.
    #[must_use]
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Returns the value of an environment variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the working directory.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    /// Returns an absolute path in the sandbox; relative ones start in [`cwd`](Self::cwd).
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        absolute(&self.cwd, path)
    }

    /// Returns its standard input, read on demand.
    #[must_use]
    pub fn stdin(&self) -> CommandInput {
        CommandInput(Arc::clone(&self.line))
    }

    /// Returns its standard output.
    #[must_use]
    pub fn stdout(&self) -> CommandOutput {
        CommandOutput { line: Arc::clone(&self.line), fd: 1 }
    }

    /// Returns its standard error.
    #[must_use]
    pub fn stderr(&self) -> CommandOutput {
        CommandOutput { line: Arc::clone(&self.line), fd: 2 }
    }

    /// Returns the files as the calling program sees them, including the changes of the run so far. Writes become part of the
    /// run.
    #[must_use]
    pub fn files(&self) -> &RunningFiles {
        self.context.files()
    }

    /// Returns the call in the form of a tool's context.
    #[must_use]
    pub fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Returns the history row of its run.
    #[must_use]
    pub fn run(&self) -> i64 {
        self.context.run()
    }

    /// Returns whether the process was ended: a long-running function should check this periodically, and return.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.context.is_over()
    }

    /// Pauses the run's clock until the result is dropped; see [`ToolContext::pause`].
    #[must_use]
    pub fn pause(&self, longest: Duration) -> ToolPause {
        self.context.pause(longest)
    }
}

/// The standard input of a [`CommandCall`].
#[derive(Debug)]
pub struct CommandInput(Arc<Line>);

impl Read for CommandInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let bytes = self.0.ask(Asked::Read { most: buffer.len().min(PIECE) })?;
        buffer.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
        Ok(bytes.len())
    }
}

/// The standard output or standard error of a [`CommandCall`]. Unbuffered.
#[derive(Debug)]
pub struct CommandOutput {
    line: Arc<Line>,
    fd: u32,
}

impl Write for CommandOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = bytes.get(..PIECE).unwrap_or(bytes);
        self.line.ask(Asked::Write { fd: self.fd, bytes: bytes.to_vec() })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The function's requests to its process.
enum Asked {
    Read { most: usize },
    Write { fd: u32, bytes: Vec<u8> },
    End(Result<u8, String>),
}

type Reply = SyncSender<io::Result<Vec<u8>>>;

/// The channel between the function's thread and that of its process.
#[derive(Default)]
struct Line {
    queue: Mutex<Queue>,
    waiters: Waiters,
}

#[derive(Default)]
struct Queue {
    asked: VecDeque<(Asked, Option<Reply>)>,
    is_over: bool,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, asked: Asked, reply: Option<Reply>) -> io::Result<()> {
        let mut queue = self.lock();
        if queue.is_over {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        queue.asked.push_back((asked, reply));
        drop(queue);
        self.waiters.wake();
        Ok(())
    }

    // The process exists as long as its end of the channel: it never waits for one that has ended.
    fn ask(&self, asked: Asked) -> io::Result<Vec<u8>> {
        let (reply, answer) = sync_channel(1);
        self.push(asked, Some(reply))?;
        answer.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

/// Breaks the channel when the process ends, in any way.
struct Ends<'a>(&'a Line);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_over = true;
        queue.asked.clear();
    }
}

/// Runs a command as a process; returns its outcome and the data to record.
pub(super) fn run(state: &State, name: &str, action: &Arc<Action>) -> (Ended, serde_json::Value) {
    let ended = serve(state, name, action).unwrap_or_else(|fault| match fault {
        Fault::End(ended) => ended,
        Fault::Errno(_) => Ended::Exit(1),
    });
    (ended, json!({}))
}

fn serve(state: &State, name: &str, action: &Arc<Action>) -> Result<Ended, Fault> {
    let (job, process) = (&state.job, &state.process);
    let line = Arc::new(Line::default());
    let _ends = Ends(&line);
    let waking = Arc::clone(&line);
    let context = ToolContext::new(job.run, RunningFiles::new(job), job.meter.pauses(), move || waking.waiters.wake());
    let _over = context.ends();
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let pair = |variable: &Vec<u8>| {
        let variable = text(variable);
        let (name, value) = variable.split_once('=').unwrap_or((&variable, ""));
        (name.to_owned(), value.to_owned())
    };
    let mut call = CommandCall {
        args: state.args.iter().map(text).collect(),
        env: state.env.iter().map(pair).collect(),
        cwd: text(&state.cwd),
        context,
        line: Arc::clone(&line),
    };
    let action = Arc::clone(action);
    let work = move || {
        let result = catch_unwind(AssertUnwindSafe(|| action(&mut call)));
        // After the process has ended, this is discarded.
        let _ = call.line.push(Asked::End(result.unwrap_or_else(|_| Err("the command panicked".to_owned()))), None);
    };
    thread::Builder::new().name("sandlite command".to_owned()).spawn(work).map_err(|_| Errno::AGAIN)?;
    loop {
        let next = block(job, process, None, || {
            line.waiters.register();
            line.lock().asked.pop_front()
        });
        let (asked, reply) = match next {
            Ok(Some(next)) => next,
            // A signal that the function cannot see: the next check handles it.
            Err(Interruption::Signal) => {
                process.take_caught();
                continue;
            }
            Ok(None) | Err(Interruption::End) => return Err(Ended::Killed.into()),
        };
        let answer = match asked {
            Asked::Read { most } => read(state, most),
            Asked::Write { fd, bytes } => write(state, fd, &bytes).map(|()| Vec::new()),
            Asked::End(result) => return end(state, name, result),
        };
        let answer = match answer {
            Ok(bytes) => Ok(bytes),
            Err(Fault::Errno(Errno::PIPE)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(Fault::Errno(errno)) => Err(io::Error::other(errno.message())),
            Err(ended) => return Err(ended),
        };
        if let Some(reply) = reply {
            let _ = reply.send(answer);
        }
    }
}

fn end(state: &State, name: &str, result: Result<u8, String>) -> Result<Ended, Fault> {
    match result {
        Ok(status) => Ok(Ended::Exit(status)),
        Err(complaint) => {
            let complaint = format!("{name}: {}\n", prefix(&complaint, MAX_COMPLAINT_BYTES));
            match write(state, 2, complaint.as_bytes()) {
                Err(Fault::End(ended)) => Ok(ended),
                _ => Ok(Ended::Exit(1)),
            }
        }
    }
}

fn read(state: &State, most: usize) -> Result<Vec<u8>, Fault> {
    let file = Arc::clone(state.descriptors.get(0)?);
    let mut bytes = vec![0; most];
    let length = file.read(&state.job, &state.process, &mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn write(state: &State, fd: u32, mut bytes: &[u8]) -> Result<(), Fault> {
    let file = Arc::clone(state.descriptors.get(fd)?);
    while !bytes.is_empty() {
        let written = file.write(&state.job, &state.process, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}
