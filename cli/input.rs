//! What a command reads: our own standard input, or a file; taken only as the command asks for it.
//!
//! What a command does not read is left where it was: type-ahead belongs to whoever reads the terminal next.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;
use runtime::{ByteSize, ChildStdin, Command, Content};

use crate::printer::Hinted;

/// As much as is moved at once.
const PIECE: usize = 64 << 10;

/// Largest module that is read.
const MODULE_MAX: ByteSize = ByteSize(256 << 20);

/// Both ends of a command's input, until somebody moves bytes between them.
type Ends = Arc<Mutex<Option<(File, ChildStdin)>>>;

/// The command with this file as its input, or with our own.
pub(crate) fn feed(command: Command, file: Option<&Path>) -> anyhow::Result<Command> {
    let source = match file {
        Some(path) => open(path).with_context(|| format!("cannot read `{}`", path.display()))?,
        None => File::from(io::stdin().as_fd().try_clone_to_owned()?),
    };
    let kind = source.metadata()?.file_type();
    Ok(match () {
        () if source.is_terminal() => typed(command, source),
        () if kind.is_file() || kind.is_char_device() => poured(command, source),
        () => copied(command, source),
    })
}

/// The content of a regular file of this machine, read while it is stored.
pub(crate) fn content(path: &Path) -> anyhow::Result<Content> {
    let file = regular_file(path)?;
    let bytes = file.metadata()?.len();
    Ok(Content::new(file).announced(bytes))
}

/// A module of this machine, whole.
pub(crate) fn module(path: &Path) -> anyhow::Result<Vec<u8>> {
    bounded(regular_file(path)?, MODULE_MAX, &format!("`{}`", path.display()))
}

/// The content of our standard input.
pub(crate) fn standard_input() -> anyhow::Result<Content> {
    let mut source = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        return Ok(Content::new(source));
    }
    let left = metadata.len().saturating_sub(source.stream_position()?);
    Ok(Content::new(source).announced(left))
}

/// Opens a file of this machine. Devices and pipes may never end and are refused; opening a pipe does not wait for its writer.
pub(crate) fn regular_file(path: &Path) -> anyhow::Result<File> {
    let failed = || format!("cannot read `{}`", path.display());
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(no_wait).open(path).with_context(failed)?;
    let metadata = file.metadata().with_context(failed)?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory)).with_context(failed);
    }
    if !metadata.is_file() {
        let hint = "name a regular file; `sandlite fs put - /path` stores standard input, up to the limit `file`";
        return Err(Hinted::error(format!("cannot read `{}`: not a regular file", path.display()), hint));
    }
    Ok(file)
}

/// All of a source that has at most `most` bytes.
pub(crate) fn bounded(source: impl Read, most: ByteSize, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.0.saturating_add(1)).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > most.0 {
        anyhow::bail!("{name} is larger than {most}");
    }
    Ok(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
}

// Reading a file does not wait: whoever asks does it.
fn poured(command: Command, source: File) -> Command {
    let ends = Ends::default();
    let asked = Arc::clone(&ends);
    let (command, stdin) = command.stdin_on_demand(move || {
        let mut ends = asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((source, stdin)) = ends.as_mut() {
            let room = stdin.room().min(PIECE);
            if room > 0 && !moved(source, stdin, room) {
                *ends = None;
            }
        }
    });
    *ends.lock().unwrap_or_else(PoisonError::into_inner) = Some((source, stdin));
    command
}

// Another program may write whenever it likes: a thread waits for it, from the first time the command asks. Nobody waits for
// that thread: a command that does not read its input ends whether or not the input does.
fn copied(command: Command, source: File) -> Command {
    let ends = Ends::default();
    let asked = Arc::clone(&ends);
    let (command, stdin) = command.stdin_on_demand(move || {
        if let Some((mut source, mut stdin)) = asked.lock().unwrap_or_else(PoisonError::into_inner).take() {
            thread::spawn(move || while moved(&mut source, &mut stdin, PIECE) {});
        }
    });
    *ends.lock().unwrap_or_else(PoisonError::into_inner) = Some((source, stdin));
    command
}

// A line each time the command asks: the next one may be meant for somebody else.
fn typed(command: Command, source: File) -> Command {
    if !is_foreground() {
        return command;
    }
    let ends = Ends::default();
    let asked = Arc::clone(&ends);
    let (ask, asks) = sync_channel(1);
    let asks = Mutex::new(Some(asks));
    let (command, stdin) = command.stdin_on_demand(move || {
        if let Some((source, stdin)) = asked.lock().unwrap_or_else(PoisonError::into_inner).take()
            && let Some(asks) = asks.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            thread::spawn(move || type_lines(source, stdin, &asks));
        }
        let _ = ask.try_send(());
    });
    *ends.lock().unwrap_or_else(PoisonError::into_inner) = Some((source, stdin));
    command.typed()
}

fn type_lines(mut source: File, mut stdin: ChildStdin, asks: &Receiver<()>) {
    while asks.recv().is_ok() {
        if stdin.is_wanted() && !moved(&mut source, &mut stdin, PIECE) {
            return;
        }
    }
}

// Whether there can be more.
fn moved(source: &mut File, stdin: &mut ChildStdin, most: usize) -> bool {
    let mut piece = vec![0; most];
    loop {
        return match source.read(&mut piece) {
            Ok(0) => false,
            Ok(length) => piece.get(..length).is_some_and(|piece| stdin.write_all(piece).is_ok()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => false,
        };
    }
}

// A background job that reads from its terminal is stopped: it gets no input instead.
fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
