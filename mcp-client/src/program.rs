//! A server that is a program of this machine: started with little of our environment, read in bounded lines, ended with all that it started.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Largest message of a server: one line. Bounds what a server can make us keep (T-BRG-02).
pub(crate) const MESSAGE_MAX: usize = 16 << 20;
/// How much of a program's standard error is kept.
const SAID_MAX: usize = 2 << 10;
/// How long a program may take to end by itself, once its standard input is closed.
const PATIENCE: Duration = Duration::from_secs(2);
/// The variables of our own environment that a program is given; the configuration sets the others.
const PASSED_ON: [&str; 8] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

/// A running program. Dropping it ends the program and its children.
pub(crate) struct Program {
    said: Said,
    // Dropped with us: the task that owns the child then ends it.
    end: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

/// The end of what a program wrote to standard error.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<VecDeque<u8>>>);

/// Starts a program; its streams speak the protocol.
#[expect(clippy::disallowed_methods, reason = "a program needs a few variables of our environment to start")]
pub(crate) fn start(
    (command, args): (&str, &[String]),
    env: &BTreeMap<String, String>,
    directory: Option<&Path>,
) -> io::Result<(Program, Lines, ChildStdin)> {
    let mut starting = Command::new(command);
    starting.args(args).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    starting.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(env);
    // A separate process group: `npx` and the like start the real server as a child, and Ctrl-C in a terminal is for us.
    starting.process_group(0).kill_on_drop(true);
    if let Some(directory) = directory {
        starting.current_dir(directory);
    }
    let mut child = starting.spawn()?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("it has no standard streams"));
    };
    let (end, ending) = oneshot::channel();
    let said = Said::default();
    tokio::spawn(said.clone().listen(stderr));
    let ended = tokio::spawn(ended(child, ending));
    Ok((Program { said, end, ended }, Lines { stdout, length: 0 }, stdin))
}

impl Program {
    /// Ends it, and waits for that.
    pub(crate) async fn close(self) {
        drop(self.end);
        drop(self.ended.await);
    }

    /// Returns the end of what it wrote to standard error.
    pub(crate) fn said(&self) -> String {
        let said = self.said.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = said.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

impl Said {
    async fn listen(self, mut stderr: ChildStderr) {
        let mut buffer = [0; 1024];
        while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
            let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            said.extend(buffer.get(..length).unwrap_or_default());
            let over = said.len().saturating_sub(SAID_MAX);
            said.drain(..over);
        }
    }
}

// Waits for the child, or ends it: its standard input is closed by then, which ends the protocol.
async fn ended(mut child: Child, ending: oneshot::Receiver<()>) {
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    tokio::select! {
        _ = child.wait() => {}
        _ = ending => {
            let _ = tokio::time::timeout(PATIENCE, child.wait()).await;
        }
    }
    // Ends the processes that it left behind, if any.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait().await;
}

/// Standard output, of which no line is longer than a message may be.
pub(crate) struct Lines {
    stdout: ChildStdout,
    length: usize,
}

impl AsyncRead for Lines {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stdout).poll_read(context, buffer);
        let new = buffer.filled().get(before..).unwrap_or_default();
        self.length = line_length(self.length, new);
        if self.length > MESSAGE_MAX {
            return Poll::Ready(Err(io::Error::other(format!("a message is longer than {MESSAGE_MAX} bytes"))));
        }
        polled
    }
}

// The length of the line that is being read, after more of it.
fn line_length(before: usize, new: &[u8]) -> usize {
    match new.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => new.len() - at - 1,
        None => before.saturating_add(new.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_counted_from_its_beginning() {
        assert_eq!(line_length(0, b"abc"), 3);
        assert_eq!(line_length(3, b"de"), 5);
        assert_eq!(line_length(5, b"f\ng\nhi"), 2);
        assert_eq!(line_length(5, b"\n"), 0);
    }
}
