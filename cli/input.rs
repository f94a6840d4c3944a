//! A command's standard input, from our own or from a file, read only on demand.
//!
//! Unread input stays where it is: type-ahead belongs to the next reader of the terminal.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;
use runtime::{ByteSize, ChildStdin, Command, Content};

use crate::printer::Hinted;

/// Number of bytes moved at once.
const PIECE: usize = 64 << 10;

/// Maximum size of a module.
const MODULE_MAX: ByteSize = ByteSize(256 << 20);

/// Both ends of a command's input, until bytes are moved between them.
type Ends = Arc<Mutex<Option<(File, ChildStdin)>>>;

/// Sets the command's input: this file, or our own standard input.
pub(crate) fn feed(command: Command, file: Option<&Path>) -> anyhow::Result<Command> {
    let source = match file {
        Some(path) => open(path).with_context(|| format!("cannot read `{}`", path.display()))?,
        None => File::from(io::stdin().as_fd().try_clone_to_owned()?),
    };
    let metadata = source.metadata()?;
    let kind = metadata.file_type();
    Ok(match () {
        () if source.is_terminal() => typed(command, source),
        // It stays the null device: with an empty pipe, `rg PATTERN` would search the pipe instead of the directory.
        () if is_null(&metadata) => command,
        () if kind.is_file() || kind.is_char_device() => poured(command, source),
        () => copied(command, source),
    })
}

fn is_null(source: &Metadata) -> bool {
    source.file_type().is_char_device() && Path::new("/dev/null").metadata().is_ok_and(|null| null.rdev() == source.rdev())
}

/// Maximum size of input that must be known before a command starts.
const WHOLE_MAX: ByteSize = ByteSize(8 << 20);

/// Sets the command's input to all of our own standard input, which is read to its end first; that of a terminal is empty.
pub(crate) fn whole(command: Command) -> anyhow::Result<Command> {
    if is_typed() {
        return Ok(command);
    }
    Ok(command.stdin(bounded(io::stdin().lock(), WHOLE_MAX, "standard input")?))
}

/// Returns whether our standard input is a terminal.
pub(crate) fn is_typed() -> bool {
    io::stdin().is_terminal()
}

/// Opens a regular file on this machine, whose content is read while it is stored.
pub(crate) fn content(path: &Path) -> anyhow::Result<Content> {
    let file = regular_file(path)?;
    let bytes = file.metadata()?.len();
    Ok(Content::new(file).announced(bytes))
}

/// Reads a whole module on this machine.
pub(crate) fn module(path: &Path) -> anyhow::Result<Vec<u8>> {
    bounded(regular_file(path)?, MODULE_MAX, &format!("`{}`", path.display()))
}

/// Returns the content of our standard input.
pub(crate) fn standard_input() -> anyhow::Result<Content> {
    let mut source = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        return Ok(Content::new(source));
    }
    let left = metadata.len().saturating_sub(source.stream_position()?);
    Ok(Content::new(source).announced(left))
}

/// Opens a file on this machine. Devices and pipes may never end and are rejected; opening a pipe does not wait for a writer.
pub(crate) fn regular_file(path: &Path) -> anyhow::Result<File> {
    let failed = || format!("cannot read `{}`", path.display());
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(no_wait).open(path).with_context(failed)?;
    let metadata = file.metadata().with_context(failed)?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory)).with_context(failed);
    }
    if !metadata.is_file() {
        let hint = "name a regular file, or store standard input with `sandlite fs put - /path`, up to the limit `file`";
        return Err(Hinted::error(format!("cannot read `{}`: not a regular file", path.display()), hint));
    }
    Ok(file)
}

/// Reads a source of at most `most` bytes completely.
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

// Reading a file does not block, so it happens on the caller's thread.
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

// Another program may write at any time, so a thread waits for it from the first read on. Nothing joins that thread: a command
// that does not read its input can exit before the input ends.
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

// One line per read, because the next line may be meant for another program.
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

// Whether more input can follow.
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

// Instead of being stopped, a background job that reads from its terminal gets no input.
fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
