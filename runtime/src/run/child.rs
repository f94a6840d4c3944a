//! A command that runs while its caller does other things: it can be written to, read from, killed and waited for.

use std::io::{self, Read, Write};
use std::thread::{self, JoinHandle};

use super::{Command, Output, Stream};
use crate::Error;
use crate::cancel::Cancel;
use crate::process::CaptureReader;
use crate::process::pipe::PipeWriter;
use crate::sandbox::Sandbox;

/// A running command.
///
/// Dropping it does not stop the command; [`kill`](Self::kill) does. The command waits for a reader of its output that has begun
/// and is more than 64 KB behind. Output that nobody reads is in what [`wait`](Self::wait) returns, as all of it is.
///
/// ```no_run
/// # use std::io::{Read, Write};
/// # use sandlite_runtime::{Command, Sandbox};
/// # let sandbox = Sandbox::builder().open()?;
/// let mut child = sandbox.spawn(Command::bash("tr a-z A-Z"))?;
/// let mut stdin = child.stdin.take().expect("it is taken once");
/// stdin.write_all(b"shout").expect("the command reads");
/// drop(stdin);
/// assert_eq!(child.wait()?.stdout, b"SHOUT");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
pub struct Child {
    /// What the command reads; drop it to let the command see the end.
    pub stdin: Option<ChildStdin>,
    /// What the command writes to standard output, as it comes.
    pub stdout: Option<ChildOutput>,
    /// What the command writes to standard error, as it comes.
    pub stderr: Option<ChildOutput>,
    cancel: Cancel,
    thread: JoinHandle<Result<Output, Error>>,
}

impl Sandbox {
    /// Starts a command and returns at once.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn spawn(&self, command: Command) -> Result<Child, Error> {
        let (command, stdin) = command.stdin_pipe();
        let (stdout, stderr) = (command.output_of(Stream::Stdout), command.output_of(Stream::Stderr));
        let cancel = command.cancel.clone();
        let sandbox = self.clone();
        let builder = thread::Builder::new().name("sandlite command".to_owned());
        let thread = builder.spawn(move || sandbox.run(command)).map_err(Error::Thread)?;
        Ok(Child { stdin: Some(stdin), stdout: Some(stdout), stderr: Some(stderr), cancel, thread })
    }
}

impl Child {
    /// Ends the command at once.
    pub fn kill(&self) {
        self.cancel.kill();
    }

    /// Returns what ends the command from another thread.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Waits for the end; closes the command's standard input first if it was not taken.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::run`].
    pub fn wait(mut self) -> Result<Output, Error> {
        drop((self.stdin.take(), self.stdout.take(), self.stderr.take()));
        self.thread.join().unwrap_or_else(|_| Err(Error::Invalid("the command's thread panicked".to_owned())))
    }
}

/// Writes to a command's standard input.
pub struct ChildStdin(PipeWriter);

impl ChildStdin {
    pub(crate) fn new(writer: PipeWriter) -> Self {
        Self(writer)
    }

    /// Bytes that can be written now without waiting; none once the command no longer reads.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.available().unwrap_or(0)
    }

    /// Writes what fits without waiting; `None` if nothing does.
    ///
    /// # Errors
    ///
    /// Returns [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the command no longer reads.
    pub fn try_write(&mut self, bytes: &[u8]) -> Option<io::Result<usize>> {
        self.0.try_write(bytes).map(|written| written.map_err(|_| io::ErrorKind::BrokenPipe.into()))
    }

    /// Registers the calling thread to be unparked when there may be room.
    pub fn register(&self) {
        self.0.register();
    }

    /// Whether the command has asked for input since something was last written.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}

impl Write for ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.register();
            match self.try_write(bytes) {
                Some(written) => return written,
                // The command ends by its deadline at the latest, and its end of the pipe with it.
                None => thread::park(),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a command's output as it comes.
#[derive(Debug)]
pub struct ChildOutput(CaptureReader);

impl ChildOutput {
    pub(crate) fn new(reader: CaptureReader) -> Self {
        Self(reader)
    }

    /// Bytes that can be read now without waiting: 0 at the end, `None` if there is nothing yet.
    #[must_use]
    pub fn available(&self) -> Option<usize> {
        self.0.available()
    }

    /// Reads what is there, up to `most` bytes, without waiting.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<u8> {
        self.0.read(most, <[u8]>::to_vec)
    }

    /// Lets the command wait for this reader when it is behind; reading does that too.
    pub fn follow(&self) {
        self.0.follow(true);
    }

    /// Lets the command run on without this reader; output is kept meanwhile.
    pub fn ignore(&self) {
        self.0.follow(false);
    }

    /// Registers the calling thread to be unparked when there may be something to read.
    pub fn register(&self) {
        self.0.register();
    }
}

impl Read for ChildOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.follow();
        loop {
            self.register();
            if self.available().is_some() {
                return Ok(self.0.read(buffer.len(), |bytes| {
                    buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                    bytes.len()
                }));
            }
            // The command ends by its deadline at the latest, and its output with it.
            thread::park();
        }
    }
}
