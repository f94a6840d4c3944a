//! A command that runs concurrently with its caller: it can be written to, read from, killed and waited for.

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
/// Dropping it does not stop the command; [`kill`](Self::kill) does. The command waits for a reader of its output that has
/// started reading and is more than 64 KB behind. All output, read or not, is in the result of [`wait`](Self::wait).
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
    /// The command's standard input; drop it to let the command see the end.
    pub stdin: Option<ChildStdin>,
    /// The command's standard output.
    pub stdout: Option<ChildOutput>,
    /// The command's standard error.
    pub stderr: Option<ChildOutput>,
    cancel: Cancel,
    thread: JoinHandle<Result<Output, Error>>,
}

impl Sandbox {
    /// Starts a command and returns at once.
    ///
    /// # Errors
    ///
    /// Returns an error if no thread can be started.
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
    /// Kills the command.
    pub fn kill(&self) {
        self.cancel.kill();
    }

    /// Returns a handle that ends the command from another thread.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Waits for the end; first closes the command's standard input if it was not taken.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sandbox::run`].
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

    /// Returns the number of bytes that can be written without blocking; 0 once the command no longer reads.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.available().unwrap_or(0)
    }

    /// Writes what fits without blocking; `None` if nothing does.
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

    /// Returns whether the command has requested input since the last write.
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
                // The command ends by its deadline at the latest, and with it its end of the pipe.
                None => thread::park(),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a command's output while it runs.
#[derive(Debug)]
pub struct ChildOutput(CaptureReader);

impl ChildOutput {
    pub(crate) fn new(reader: CaptureReader) -> Self {
        Self(reader)
    }

    /// Returns the number of bytes that can be read without blocking: 0 at the end, `None` if there are none yet.
    #[must_use]
    pub fn available(&self) -> Option<usize> {
        self.0.available()
    }

    /// Reads available bytes, up to `most`, without blocking.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<u8> {
        self.0.read(most, <[u8]>::to_vec)
    }

    /// Makes the command wait for this reader when it is behind; reading does that too.
    pub fn follow(&self) {
        self.0.follow(true);
    }

    /// Lets the command continue without this reader; output is buffered meanwhile.
    pub fn ignore(&self) {
        self.0.follow(false);
    }

    /// Leaves output that is unread when the command ends to its result, so that it is not stored twice. It cannot be read from
    /// here then.
    pub fn leave_rest(&self) {
        self.0.leave_rest();
    }

    /// Registers the calling thread to be unparked when there may be data to read.
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
            // The command ends by its deadline at the latest, and with it its output.
            thread::park();
        }
    }
}
