//! The part that both platforms' libc have in common: descriptors by number, which std's owned types cannot express.
#![expect(unsafe_code, reason = "libc functions can only be called through `unsafe`")]

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration;

/// Options for opening a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Create the file if it is missing.
    pub create: bool,
    /// With `create`: refuse when it is there.
    pub exclusive: bool,
    /// Empty it.
    pub truncate: bool,
    /// Each write goes to the end.
    pub append: bool,
    /// A started program loses it.
    pub close_on_exec: bool,
}

fn raw(fd: u32) -> RawFd {
    RawFd::try_from(fd).unwrap_or(-1)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_encoded_bytes())?)
}

/// Opens a file and returns its descriptor; `mode` is used, less the umask, when it is made.
pub fn open(path: &Path, flags: OpenFlags, mode: u32) -> io::Result<u32> {
    let path = c_path(path)?;
    let mut bits = match (flags.read, flags.write || flags.append) {
        (true, true) => libc::O_RDWR,
        (false, true) => libc::O_WRONLY,
        _ => libc::O_RDONLY,
    };
    for (on, bit) in [
        (flags.create, libc::O_CREAT),
        (flags.exclusive, libc::O_EXCL),
        (flags.truncate, libc::O_TRUNC),
        (flags.append, libc::O_APPEND),
    ] {
        if on {
            bits |= bit;
        }
    }
    #[cfg(not(target_arch = "wasm32"))]
    if flags.close_on_exec {
        bits |= libc::O_CLOEXEC;
    }
    // SAFETY: the path is a C string that outlives the call.
    let fd = check(unsafe { libc::open(path.as_ptr(), bits, mode as libc::c_uint) })?;
    let fd = u32::try_from(fd).unwrap_or_default();
    #[cfg(target_arch = "wasm32")]
    if flags.close_on_exec {
        crate::set_close_on_exec(fd, true)?;
    }
    Ok(fd)
}

/// Closes `fd`.
pub fn close(fd: u32) -> io::Result<()> {
    // SAFETY: no pointers; descriptors in a guest are plain numbers without an owner.
    check(unsafe { libc::close(raw(fd)) }).map(drop)
}

/// Reads what is there, at most the buffer; 0 is the end.
pub fn read(fd: u32, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: at most the buffer's length is written to it.
    let n = unsafe { libc::read(raw(fd), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Writes some of `bytes` and returns how many.
pub fn write(fd: u32, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: at most the slice's length is read from it.
    let n = unsafe { libc::write(raw(fd), bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Returns whether `fd` is a terminal.
#[must_use]
pub fn is_terminal(fd: u32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::isatty(raw(fd)) == 1 }
}

/// Moves the offset of `fd` by `delta` and returns the new one; an error when it cannot seek.
pub fn seek_current(fd: u32, delta: i64) -> io::Result<u64> {
    // SAFETY: no pointers.
    let at = unsafe { libc::lseek(raw(fd), delta, libc::SEEK_CUR) };
    u64::try_from(at).map_err(|_| io::Error::last_os_error())
}

/// Sets the length of the open file.
pub fn truncate_fd(fd: u32, length: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: no pointers.
    check(unsafe { libc::ftruncate(raw(fd), length) }).map(drop)
}

/// Makes `new` another name of the file `old`.
pub fn link(old: &Path, new: &Path) -> io::Result<()> {
    std::fs::hard_link(old, new)
}

/// Waits until `fd` has something to read or is at its end; `false` when the time was up first.
pub fn poll_read(fd: u32, timeout: Option<Duration>) -> io::Result<bool> {
    let mut entry = libc::pollfd { fd: raw(fd), events: libc::POLLIN, revents: 0 };
    let millis = timeout.map_or(-1, |timeout| i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    // SAFETY: one entry, which outlives the call.
    let ready = check(unsafe { libc::poll(&raw mut entry, 1, millis) })?;
    Ok(ready > 0)
}

/// Sleeps; a caught signal ends it early with an `Interrupted` error.
pub fn sleep(time: Duration) -> io::Result<()> {
    let request = libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos() as _,
    };
    // SAFETY: the request outlives the call and the remainder is not asked for.
    check(unsafe { libc::nanosleep(&raw const request, std::ptr::null_mut()) }).map(drop)
}
