//! The operating system as a guest sees it: processes, descriptors, signals, file metadata.
//!
//! On wasm these are thin calls into `abi::calls` and wasi-libc; natively the same functions stand on the real system,
//! so that the shell and the utilities can be tried, tested and fuzzed without a host. Every refusal is an
//! [`std::io::Error`] whose raw number is the platform's; [`message`] words it as GNU's `strerror` does.

pub mod calendar;
pub mod decimal;
pub mod memory;
pub mod padding;
mod posix;
pub mod zone;

#[cfg(not(target_arch = "wasm32"))]
#[path = "native.rs"]
mod platform;
#[cfg(target_arch = "wasm32")]
#[path = "wasm.rs"]
mod platform;

use std::io;
use std::path::Path;

pub use abi::spawn::{Action, NEW_GROUP, Request};
pub use abi::stat::{self, Stat};
pub use abi::{Counter, Disposition, Signal, ToolFailure, WAIT_NO_HANG, WaitStatus, Waited};
pub use platform::{
    chmod, chown, count, dup, dup2, exec, fork, fstat, init, kill, message, mkfifo, pipe, process_ids, session_load,
    session_save, set_close_on_exec, set_group, signal_action, signals_ignored, signals_take, spawn, start_cwd, stat, tool,
    tools, umask, user_ids, wait,
};
pub use posix::{OpenFlags, close, is_terminal, link, open, poll_read, read, seek_current, sleep, truncate_fd, write};

/// The platform's error numbers that guests distinguish.
pub mod errno {
    pub use libc::{
        E2BIG, EACCES, EAGAIN, EBADF, ECHILD, EEXIST, EINTR, EINVAL, EISDIR, ELOOP, EMFILE, ENOENT, ENOEXEC, ENOMEM, ENOTDIR,
        ENOTEMPTY, EPERM, EPIPE, ESRCH,
    };
}

/// Returns whether `fd` names anything.
#[must_use]
pub fn is_open(fd: u32) -> bool {
    fstat(fd).is_ok()
}

/// Writes all of `bytes`, going on after interruptions and short writes.
pub fn write_all(fd: u32, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(fd, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads `fd` to its end.
pub fn read_to_end(fd: u32, out: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match read(fd, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => out.extend_from_slice(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Nanoseconds since 1970.
#[must_use]
pub fn now_ns() -> i128 {
    match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    }
}

/// The kinds of access of a process to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// `-r`.
    Read,
    /// `-w`.
    Write,
    /// `-x`.
    Execute,
}

/// Returns whether the permission bits let this process do it; `false` also when there is no such file.
#[must_use]
pub fn accessible(path: &Path, permission: Permission) -> bool {
    stat(path, true).is_ok_and(|stat| permits(&stat, permission))
}

/// Returns whether the permission bits of `stat` let this process do it.
#[must_use]
pub fn permits(stat: &Stat, permission: Permission) -> bool {
    let [uid, gid] = user_ids();
    let bit = match permission {
        Permission::Read => 4,
        Permission::Write => 2,
        Permission::Execute => 1,
    };
    if uid == 0 {
        // Root may do anything, but execute only what someone may.
        return permission != Permission::Execute || stat.kind() == stat::S_IFDIR || stat.mode & 0o111 != 0;
    }
    let shift = if stat.uid == uid {
        6
    } else if stat.gid == gid {
        3
    } else {
        0
    };
    stat.mode >> shift & bit != 0
}
