//! The developer's machine in the place of the sandbox: the same calls over the real system.
#![expect(unsafe_code, reason = "libc functions can only be called through `unsafe`")]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::{Counter, Disposition, Signal, ToolFailure, WAIT_NO_HANG, WaitStatus, Waited};

use crate::{Action, NEW_GROUP, Request, Stat};

static PENDING: AtomicU64 = AtomicU64::new(0);

extern "C" fn remember(signal: libc::c_int) {
    if let Some(signal) = u32::try_from(signal).ok().and_then(Signal::from_raw) {
        PENDING.fetch_or(signal.bit(), Ordering::Relaxed);
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn raw(fd: u32) -> libc::c_int {
    libc::c_int::try_from(fd).unwrap_or(-1)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Restores SIGPIPE, which Rust ignores and the programs of a pipeline must not. Every program calls this first.
pub fn init() {
    let _ = signal_action(Signal::PIPE, Disposition::Default);
}

/// Returns the text of GNU's `strerror` for an error.
#[must_use]
pub fn message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text.get(..at).unwrap_or_default().to_owned(),
        None => text,
    }
}

/// The arguments of `execve`, created before `fork`: the child of a fork must not allocate.
struct Prepared {
    path: CString,
    cwd: CString,
    _strings: Vec<CString>,
    args: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
}

impl Prepared {
    fn new(request: &Request) -> io::Result<Self> {
        let mut strings = Vec::with_capacity(request.args.len() + request.env.len());
        let mut pointers = |list: &[Vec<u8>]| -> io::Result<Vec<*const libc::c_char>> {
            let mut out = Vec::with_capacity(list.len() + 1);
            for item in list {
                let string = CString::new(item.as_slice())?;
                out.push(string.as_ptr());
                strings.push(string);
            }
            out.push(std::ptr::null());
            Ok(out)
        };
        let args = pointers(&request.args)?;
        let env = pointers(&request.env)?;
        Ok(Self {
            path: CString::new(request.path.as_slice())?,
            cwd: CString::new(request.cwd.as_slice())?,
            args,
            env,
            _strings: strings,
        })
    }

    /// Replaces the program; returns the error number when that failed.
    fn exec(&self, request: &Request) -> i32 {
        // SAFETY: all strings are NUL-terminated and both lists end with a null pointer.
        unsafe {
            for action in &request.actions {
                match *action {
                    Action::Dup { from, fd } if from == fd => {
                        libc::fcntl(raw(fd), libc::F_SETFD, 0);
                    }
                    Action::Dup { from, fd } => {
                        libc::dup2(raw(from), raw(fd));
                    }
                    Action::Close { fd } => {
                        libc::close(raw(fd));
                    }
                }
            }
            if request.flags & NEW_GROUP != 0 {
                libc::setpgid(0, 0);
            }
            if !request.cwd.is_empty() {
                libc::chdir(self.cwd.as_ptr());
            }
            libc::execve(self.path.as_ptr(), self.args.as_ptr(), self.env.as_ptr());
        }
        io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
    }
}

/// Starts a program as a child process.
pub fn spawn(request: &Request) -> io::Result<u32> {
    let prepared = Prepared::new(request)?;
    let [report_read, report_write] = high_pipe()?;
    // SAFETY: the child only calls async-signal-safe functions before `execve` or `_exit`.
    let pid = check(unsafe { libc::fork() });
    if let Ok(0) = pid {
        let errno = prepared.exec(request);
        let _ = crate::write(report_write, &errno.to_le_bytes());
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(127) };
    }
    let _ = crate::close(report_write);
    let mut report = [0; 4];
    let told = pid.is_ok()
        && loop {
            match crate::read(report_read, &mut report) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break matches!(other, Ok(4)),
            }
        };
    let _ = crate::close(report_read);
    let pid = pid?;
    if told {
        // SAFETY: no pointers but a null one.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        return Err(io::Error::from_raw_os_error(i32::from_le_bytes(report)));
    }
    Ok(u32::try_from(pid).unwrap_or_default())
}

/// Returns a close-on-exec pipe out of the way of the numbers that scripts use.
fn high_pipe() -> io::Result<[u32; 2]> {
    const OUT_OF_THE_WAY: u32 = 200;
    let ends = pipe()?;
    let mut high = [0; 2];
    for (at, fd) in ends.into_iter().enumerate() {
        high[at] = dup(fd, OUT_OF_THE_WAY, true)?;
        crate::close(fd)?;
    }
    Ok(high)
}

/// Replaces this process's program; returns only to say why it could not.
#[must_use]
pub fn exec(request: &Request) -> io::Error {
    match Prepared::new(request) {
        Ok(prepared) => io::Error::from_raw_os_error(prepared.exec(request)),
        Err(error) => error,
    }
}

/// Runs `child` in a copy of this process, which exits with its value; returns the copy's pid. Flush first.
pub fn fork(child: impl FnOnce() -> u8) -> io::Result<u32> {
    // SAFETY: guests have one thread, so the child may do all that the parent may; it never returns into this frame.
    let pid = check(unsafe { libc::fork() })?;
    if pid == 0 {
        PENDING.store(0, Ordering::Relaxed);
        let code = child();
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(i32::from(code)) };
    }
    Ok(u32::try_from(pid).unwrap_or_default())
}

/// Waits for a child: `pid` > 0 that one, -1 any; `Ok(None)` only with [`WAIT_NO_HANG`].
pub fn wait(pid: i32, flags: u32) -> io::Result<Option<Waited>> {
    let mut status = 0;
    let options = if flags & WAIT_NO_HANG != 0 { libc::WNOHANG } else { 0 };
    // SAFETY: the result outlives the call.
    let pid = check(unsafe { libc::waitpid(pid, &raw mut status, options) })?;
    let status = if libc::WIFSIGNALED(status) {
        let signal = u32::try_from(libc::WTERMSIG(status)).ok().and_then(Signal::from_raw);
        WaitStatus::Signaled(signal.unwrap_or(Signal::KILL))
    } else {
        WaitStatus::Exited(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(255))
    };
    Ok((pid != 0).then(|| Waited { pid: u32::try_from(pid).unwrap_or_default(), status }))
}

/// Sends a signal; `None` only asks whether the process exists.
pub fn kill(pid: i32, signal: Option<Signal>) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::kill(pid, signal.map_or(0, |signal| i32::from(signal.number()))) }).map(drop)
}

/// Returns the signals that this process ignores, as bits of [`Signal::bit`].
#[must_use]
pub fn signals_ignored() -> u64 {
    let ignored = |signal: &Signal| {
        // SAFETY: a zeroed sigaction is valid, and nothing is set.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(i32::from(signal.number()), std::ptr::null(), &raw mut old) == 0 && old.sa_sigaction == libc::SIG_IGN
        }
    };
    (1..=31).filter_map(Signal::from_raw).filter(ignored).fold(0, |mask, signal| mask | signal.bit())
}

/// Sets what happens on a signal and returns what was set before.
pub fn signal_action(signal: Signal, disposition: Disposition) -> io::Result<Disposition> {
    let handler = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignore => libc::SIG_IGN,
        Disposition::Catch => remember as extern "C" fn(libc::c_int) as *const () as libc::sighandler_t,
    };
    // SAFETY: a zeroed sigaction is valid; the handler only touches an atomic. No SA_RESTART: waits must return.
    let old = unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        let mut old: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler;
        check(libc::sigaction(i32::from(signal.number()), &raw const new, &raw mut old))?;
        old.sa_sigaction
    };
    Ok(match old {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignore,
        _ => Disposition::Catch,
    })
}

/// Returns the caught signals that arrived since the last call, as bits of [`Signal::bit`].
#[must_use]
pub fn signals_take() -> u64 {
    if PENDING.load(Ordering::Relaxed) == 0 { 0 } else { PENDING.swap(0, Ordering::Relaxed) }
}

/// This process, its parent, its group.
#[must_use]
pub fn process_ids() -> [u32; 3] {
    // SAFETY: no pointers.
    unsafe { [libc::getpid(), libc::getppid(), libc::getpgrp()] }.map(|id| u32::try_from(id).unwrap_or_default())
}

/// Returns the user and the group of this process.
#[must_use]
pub fn user_ids() -> [u32; 2] {
    // SAFETY: no pointers.
    unsafe { [libc::geteuid(), libc::getegid()] }
}

/// Moves a process (0: this one) into a group (0: its own).
pub fn set_group(pid: u32, group: u32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setpgid(raw(pid), raw(group)) }).map(drop)
}

/// Returns a new pipe: the reading end, the writing end.
pub fn pipe() -> io::Result<[u32; 2]> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to an array of two.
    check(unsafe { libc::pipe(ends.as_mut_ptr()) })?;
    Ok(ends.map(|fd| u32::try_from(fd).unwrap_or_default()))
}

/// Duplicates `fd` as the lowest free descriptor from `minimum` on.
pub fn dup(fd: u32, minimum: u32, close_on_exec: bool) -> io::Result<u32> {
    let command = if close_on_exec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    // SAFETY: no pointers.
    let new = check(unsafe { libc::fcntl(raw(fd), command, raw(minimum)) })?;
    Ok(u32::try_from(new).unwrap_or_default())
}

/// Makes `to` another name for `fd`, closing what it named; programs inherit it.
pub fn dup2(fd: u32, to: u32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::dup2(raw(fd), raw(to)) }).map(drop)
}

/// Sets whether a started program loses `fd`.
pub fn set_close_on_exec(fd: u32, on: bool) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(raw(fd), libc::F_SETFD, if on { libc::FD_CLOEXEC } else { 0 }) }).map(drop)
}

/// Returns the directory this process was started in.
pub fn start_cwd() -> io::Result<std::path::PathBuf> {
    std::env::current_dir()
}

/// Does nothing: a developer's machine stores no sessions.
pub fn session_load() -> Option<Vec<u8>> {
    None
}

/// Does nothing: a developer's machine stores no sessions.
pub fn session_save(_state: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sets the file creation mask and returns the old one.
pub fn umask(mask: u32) -> u32 {
    // SAFETY: no pointers.
    unsafe { libc::umask(mask as libc::mode_t) }
}

fn convert(raw: &libc::stat) -> Stat {
    let time = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Stat {
        dev: raw.st_dev,
        ino: raw.st_ino,
        mode: raw.st_mode,
        nlink: u32::try_from(raw.st_nlink).unwrap_or(u32::MAX),
        uid: raw.st_uid,
        gid: raw.st_gid,
        rdev: raw.st_rdev,
        size: u64::try_from(raw.st_size).unwrap_or_default(),
        atime: time(raw.st_atime, raw.st_atime_nsec),
        mtime: time(raw.st_mtime, raw.st_mtime_nsec),
        ctime: time(raw.st_ctime, raw.st_ctime_nsec),
    }
}

/// Returns the metadata of a file; of a symbolic link itself unless `follow`.
pub fn stat(path: &Path, follow: bool) -> io::Result<Stat> {
    let path = c_path(path)?;
    // SAFETY: a zeroed stat is valid; path and result outlive the call.
    unsafe {
        let mut raw: libc::stat = std::mem::zeroed();
        check(if follow { libc::stat(path.as_ptr(), &raw mut raw) } else { libc::lstat(path.as_ptr(), &raw mut raw) })?;
        Ok(convert(&raw))
    }
}

/// Returns the metadata of an open file.
pub fn fstat(fd: u32) -> io::Result<Stat> {
    // SAFETY: a zeroed stat is valid; the result outlives the call.
    unsafe {
        let mut result: libc::stat = std::mem::zeroed();
        check(libc::fstat(raw(fd), &raw mut result))?;
        Ok(convert(&result))
    }
}

/// Makes a pipe with a name.
pub fn mkfifo(path: &Path, mode: u32) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path outlives the call.
    check(unsafe { libc::mkfifo(path.as_ptr(), mode as libc::mode_t) }).map(drop)
}

/// Sets the permissions of a file.
pub fn chmod(path: &Path, follow: bool, mode: u32) -> io::Result<()> {
    let path = c_path(path)?;
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    // SAFETY: the path outlives the call.
    check(unsafe { libc::fchmodat(libc::AT_FDCWD, path.as_ptr(), mode as libc::mode_t, flags) }).map(drop)
}

/// Sets the owner and group of a file; `u32::MAX` leaves one as it is.
pub fn chown(path: &Path, follow: bool, uid: u32, gid: u32) -> io::Result<()> {
    let path = c_path(path)?;
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    // SAFETY: the path outlives the call.
    check(unsafe { libc::fchownat(libc::AT_FDCWD, path.as_ptr(), uid, gid, flags) }).map(drop)
}

/// Fails: tools exist only in a sandbox.
pub fn tools(as_json: bool) -> io::Result<Vec<u8>> {
    Ok(if as_json { b"[]".to_vec() } else { Vec::new() })
}

/// Fails: tools exist only in a sandbox.
pub fn tool(name: &[u8], _args: &[u8]) -> io::Result<Result<Vec<u8>, ToolFailure>> {
    let message = format!("there is no tool `{}`: the host offers none", String::from_utf8_lossy(name));
    Ok(Err(ToolFailure { kind: b"unknown".to_vec(), message: message.into_bytes() }))
}

/// Reports an event that counts toward a limit; natively there are no limits.
#[must_use]
pub fn count(_counter: Counter, _amount: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_ends_with_its_value() {
        let pid = fork(|| 7).expect("fork");
        let waited = wait(i32::try_from(pid).expect("pid"), 0).expect("wait");
        assert_eq!(waited, Some(Waited { pid, status: WaitStatus::Exited(7) }));
    }

    #[test]
    fn a_program_that_is_not_there_cannot_be_spawned() {
        let request = Request { path: b"/no/such".to_vec(), args: vec![b"such".to_vec()], ..Request::default() };
        assert_eq!(spawn(&request).map_err(|error| message(&error)), Err("No such file or directory".to_owned()));
    }
}
