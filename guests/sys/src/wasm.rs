//! The sandbox: processes, signals and metadata through the host's imports.

use std::io;
use std::path::Path;

use abi::calls;
use abi::{Counter, Disposition, Errno, Signal, ToolFailure, Waited};

use crate::{Request, Stat};

fn error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(i32::from(errno.raw()))
}

/// Returns `path` as the host expects it: wasi-libc keeps the working directory inside the process, so only this side can join it.
fn absolute(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        return Err(error(Errno::NOENT));
    }
    if bytes.starts_with(b"/") {
        return Ok(bytes.to_vec());
    }
    Ok(std::env::current_dir()?.join(path).into_os_string().into_encoded_bytes())
}

/// Enters the directory the program was started in. Every program calls this first.
pub fn init() {
    if let Ok(cwd) = start_cwd() {
        // A directory that is gone by now leaves the process at the root.
        let _ = std::env::set_current_dir(cwd);
    }
}

/// Returns the text of GNU's `strerror` for an error.
#[must_use]
pub fn message(error: &io::Error) -> String {
    match error.raw_os_error().and_then(|raw| u16::try_from(raw).ok()).and_then(Errno::from_raw) {
        Some(errno) => errno.message().to_owned(),
        None => error.to_string(),
    }
}

/// Starts a program as a child process.
pub fn spawn(request: &Request) -> io::Result<u32> {
    calls::spawn(request).map_err(error)
}

/// Replaces this process's program; returns only to say why it could not.
#[must_use]
pub fn exec(request: &Request) -> io::Error {
    error(calls::exec(request))
}

/// Runs `child` in a copy of this process, which exits with its value; returns the copy's pid. Flush first.
pub fn fork(child: impl FnOnce() -> u8) -> io::Result<u32> {
    calls::fork(child).map_err(error)
}

/// Waits for a child; see [`calls::wait`].
pub fn wait(pid: i32, flags: u32) -> io::Result<Option<Waited>> {
    calls::wait(pid, flags).map_err(error)
}

/// Sends a signal; see [`calls::kill`].
pub fn kill(pid: i32, signal: Option<Signal>) -> io::Result<()> {
    calls::kill(pid, signal).map_err(error)
}

/// Sets what happens on a signal and returns what was set before.
pub fn signal_action(signal: Signal, disposition: Disposition) -> io::Result<Disposition> {
    calls::signal_action(signal, disposition).map_err(error)
}

/// Returns the caught signals that arrived since the last call, as bits of [`Signal::bit`].
#[must_use]
pub fn signals_take() -> u64 {
    calls::signals_take()
}

/// Returns the signals that this process ignores, as bits of [`Signal::bit`].
#[must_use]
pub fn signals_ignored() -> u64 {
    calls::signals_ignored()
}

/// This process, its parent, its group.
#[must_use]
pub fn process_ids() -> [u32; 3] {
    calls::process_ids()
}

/// Returns the user and the group of this process: a sandbox has one of each.
#[must_use]
pub fn user_ids() -> [u32; 2] {
    [1000, 1000]
}

/// Moves a process (0: this one) into a group (0: its own).
pub fn set_group(pid: u32, group: u32) -> io::Result<()> {
    calls::set_group(pid, group).map_err(error)
}

/// Returns a new pipe: the reading end, the writing end.
pub fn pipe() -> io::Result<[u32; 2]> {
    calls::pipe().map_err(error)
}

/// Duplicates `fd` as the lowest free descriptor from `minimum` on.
pub fn dup(fd: u32, minimum: u32, close_on_exec: bool) -> io::Result<u32> {
    calls::dup(fd, minimum, close_on_exec).map_err(error)
}

/// Makes `to` another name for `fd`, closing what it named; programs inherit it.
pub fn dup2(fd: u32, to: u32) -> io::Result<()> {
    calls::dup2(fd, to).map_err(error)
}

/// Sets whether a started program loses `fd`.
pub fn set_close_on_exec(fd: u32, on: bool) -> io::Result<()> {
    calls::set_close_on_exec(fd, on).map_err(error)
}

/// Returns the directory this process was started in.
pub fn start_cwd() -> io::Result<std::path::PathBuf> {
    use std::os::wasi::ffi::OsStringExt;
    let bytes = calls::cwd().map_err(error)?;
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

/// Returns what the last command of this session left, after a byte of the host's; `None` where there is no session.
pub fn session_load() -> Option<Vec<u8>> {
    calls::session_load()
}

/// Leaves something to the next command of this session.
pub fn session_save(state: &[u8]) -> io::Result<()> {
    calls::session_save(state).map_err(error)
}

/// Sets the file creation mask and returns the old one.
pub fn umask(mask: u32) -> u32 {
    calls::umask(mask)
}

/// Returns the metadata of a file; of a symbolic link itself unless `follow`.
pub fn stat(path: &Path, follow: bool) -> io::Result<Stat> {
    calls::stat(&absolute(path)?, follow).map_err(error)
}

/// Returns the metadata of an open file.
pub fn fstat(fd: u32) -> io::Result<Stat> {
    calls::fstat(fd).map_err(error)
}

/// Makes a pipe with a name.
pub fn mkfifo(path: &Path, mode: u32) -> io::Result<()> {
    calls::mkfifo(&absolute(path)?, mode).map_err(error)
}

/// Sets the permissions of a file.
pub fn chmod(path: &Path, follow: bool, mode: u32) -> io::Result<()> {
    calls::chmod(&absolute(path)?, follow, mode).map_err(error)
}

/// Sets the owner and group of a file; `u32::MAX` leaves one as it is.
pub fn chown(path: &Path, follow: bool, uid: u32, gid: u32) -> io::Result<()> {
    calls::chown(&absolute(path)?, follow, uid, gid).map_err(error)
}

/// Returns what of the embedding program may be called: a line for each tool, or a list in JSON.
pub fn tools(as_json: bool) -> io::Result<Vec<u8>> {
    calls::tools(as_json).map_err(error)
}

/// Calls a tool with arguments in JSON: its result in JSON, or its complaint.
pub fn tool(name: &[u8], args: &[u8]) -> io::Result<Result<Vec<u8>, ToolFailure>> {
    calls::tool(name, args).map_err(error)
}

/// Reports an event that counts toward a limit to the host. Returns `false` if the limit is reached: flush and exit at once.
#[must_use]
pub fn count(counter: Counter, amount: u32) -> bool {
    calls::count(counter, amount).is_ok()
}
