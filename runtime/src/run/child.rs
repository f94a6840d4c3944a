//! A command that runs while its caller does other things: it can be written to, read from, killed and waited for.

use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use super::{Command, Output};
use crate::Error;
use crate::cancel::Cancel;
use crate::process::pipe::PipeWriter;
use crate::sandbox::Sandbox;

/// A running command.
///
/// Dropping it does not stop the command; [`kill`](Self::kill) does.
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
        let (mut command, stdin) = command.stdin_pipe();
        let (stdout_sender, stdout) = mpsc::channel();
        let (stderr_sender, stderr) = mpsc::channel();
        command.stdout = Some(Box::new(move |bytes: &[u8]| drop(stdout_sender.send(bytes.to_vec()))));
        command.stderr = Some(Box::new(move |bytes: &[u8]| drop(stderr_sender.send(bytes.to_vec()))));
        let cancel = command.cancel.clone();
        let sandbox = self.clone();
        let builder = thread::Builder::new().name("sandlite command".to_owned());
        let thread = builder.spawn(move || sandbox.run(command)).map_err(Error::Thread)?;
        Ok(Child {
            stdin: Some(stdin),
            stdout: Some(ChildOutput::new(stdout)),
            stderr: Some(ChildOutput::new(stderr)),
            cancel,
            thread,
        })
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
        drop(self.stdin.take());
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

    /// Whether the command has asked for input since something was last written.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}

impl Write for ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.0.register();
            match self.0.try_write(bytes) {
                Some(Ok(length)) => return Ok(length),
                Some(Err(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
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
pub struct ChildOutput {
    receiver: Receiver<Vec<u8>>,
    rest: Vec<u8>,
}

impl ChildOutput {
    fn new(receiver: Receiver<Vec<u8>>) -> Self {
        Self { receiver, rest: Vec::new() }
    }
}

impl Read for ChildOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = self.receiver.recv().unwrap_or_default();
        }
        let length = buffer.len().min(self.rest.len());
        buffer[..length].copy_from_slice(&self.rest[..length]);
        self.rest.drain(..length);
        Ok(length)
    }
}
