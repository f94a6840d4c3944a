//! The imports of module `sandlite`, made safe: the only place in a guest that talks to the host beyond WASI.
#![expect(unsafe_code, reason = "imports of a wasm module can only be called through `unsafe`")]

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::spawn::Request;
use crate::stat::Stat;
use crate::{Counter, Disposition, Errno, Signal, ToolFailure, WaitStatus, Waited};

mod raw {
    #[link(wasm_import_module = "sandlite")]
    unsafe extern "C" {
        pub fn spawn(request: *const u8, length: usize, pid: *mut u32) -> u32;
        pub fn exec(request: *const u8, length: usize) -> u32;
        pub fn fork(closure: *mut u8, pid: *mut u32) -> u32;
        pub fn wait(pid: i32, flags: u32, out: *mut [u32; 2]) -> u32;
        pub fn kill(pid: i32, signal: u32) -> u32;
        pub fn signal_action(signal: u32, disposition: u32, old: *mut u32) -> u32;
        pub fn signals_take(mask: *mut u64) -> u32;
        pub fn signals_ignored(mask: *mut u64) -> u32;
        pub fn process_ids(out: *mut [u32; 3]) -> u32;
        pub fn set_group(pid: u32, group: u32) -> u32;
        pub fn pipe(out: *mut [u32; 2]) -> u32;
        pub fn dup(fd: u32, minimum: u32, close_on_exec: u32, out: *mut u32) -> u32;
        pub fn dup2(fd: u32, to: u32) -> u32;
        pub fn set_close_on_exec(fd: u32, on: u32) -> u32;
        pub fn cwd(buffer: *mut u8, capacity: usize, length: *mut usize) -> u32;
        pub fn umask(mask: u32, old: *mut u32) -> u32;
        pub fn session_load(buffer: *mut u8, capacity: usize, length: *mut usize) -> u32;
        pub fn session_save(state: *const u8, length: usize) -> u32;
        pub fn stat(path: *const u8, length: usize, follow: u32, out: *mut [u8; 72]) -> u32;
        pub fn fstat(fd: u32, out: *mut [u8; 72]) -> u32;
        pub fn chmod(path: *const u8, length: usize, follow: u32, mode: u32) -> u32;
        pub fn mkfifo(path: *const u8, length: usize, mode: u32) -> u32;
        pub fn chown(path: *const u8, length: usize, follow: u32, uid: u32, gid: u32) -> u32;
        pub fn tools(as_json: u32, length: *mut usize) -> u32;
        pub fn tool(name: *const u8, name_length: usize, args: *const u8, args_length: usize, length: *mut usize) -> u32;
        pub fn answer(buffer: *mut u8, length: usize) -> u32;
        pub fn count(counter: u32, amount: u32) -> u32;
    }
}

fn check(errno: u32) -> Result<(), Errno> {
    match Errno::from_raw(errno as u16) {
        None => Ok(()),
        Some(errno) => Err(errno),
    }
}

/// Starts a program as a child process.
pub fn spawn(request: &Request) -> Result<u32, Errno> {
    let bytes = request.encode();
    let mut pid = 0;
    // SAFETY: the buffer and the result outlive the call, and the host writes only the result.
    check(unsafe { raw::spawn(bytes.as_ptr(), bytes.len(), &raw mut pid) })?;
    Ok(pid)
}

/// Replaces this process's program; returns only to say why it could not.
pub fn exec(request: &Request) -> Errno {
    let bytes = request.encode();
    // SAFETY: the buffer outlives the call.
    match check(unsafe { raw::exec(bytes.as_ptr(), bytes.len()) }) {
        Err(errno) => errno,
        Ok(()) => Errno::NOSYS,
    }
}

type Child<'a> = Box<dyn FnOnce() -> u8 + 'a>;

/// Runs `child` in a copy of this process and returns the copy's pid; the copy exits with the closure's value.
///
/// Flush buffered output first: the copy has the same buffers.
pub fn fork(child: impl FnOnce() -> u8) -> Result<u32, Errno> {
    let mut boxed: Option<Child<'_>> = Some(Box::new(child));
    let mut pid = 0;
    // SAFETY: the child's memory is a copy made during this call, so `boxed` is alive there too; the child takes the
    // closure out of its own copy and never returns into this frame.
    check(unsafe { raw::fork((&raw mut boxed).cast(), &raw mut pid) })?;
    Ok(pid)
}

/// Where the host enters a forked child; see [`fork`].
#[unsafe(no_mangle)]
extern "C" fn sandlite_fork_entry(closure: *mut u8) -> u32 {
    // SAFETY: the host passes exactly the pointer that `fork` gave it, inside a copy of that memory.
    let slot = unsafe { &mut *closure.cast::<Option<Child<'static>>>() };
    slot.take().map_or(255, |child| u32::from(child()))
}

/// Waits for a child: `pid` > 0 that one, -1 any, 0 any of this group, < -1 any of group `-pid`.
///
/// `Ok(None)` only with [`crate::WAIT_NO_HANG`], when no such child has ended yet.
pub fn wait(pid: i32, flags: u32) -> Result<Option<Waited>, Errno> {
    let mut out = [0; 2];
    // SAFETY: the result outlives the call.
    check(unsafe { raw::wait(pid, flags, &raw mut out) })?;
    let [pid, status] = out;
    Ok((pid != 0).then(|| Waited { pid, status: WaitStatus::from_raw(status) }))
}

/// Sends a signal to a process (`pid` > 0), to this group (0), or to group `-pid`; `None` only asks whether it exists.
pub fn kill(pid: i32, signal: Option<Signal>) -> Result<(), Errno> {
    // SAFETY: no pointers.
    check(unsafe { raw::kill(pid, signal.map_or(0, |signal| u32::from(signal.number()))) })
}

/// Sets what happens on a signal and returns what was set before.
pub fn signal_action(signal: Signal, disposition: Disposition) -> Result<Disposition, Errno> {
    let mut old = 0;
    // SAFETY: the result outlives the call.
    check(unsafe { raw::signal_action(u32::from(signal.number()), disposition as u32, &raw mut old) })?;
    Ok(Disposition::from_raw(old).unwrap_or_default())
}

/// The caught signals that arrived since the last call, as bits of [`Signal::bit`].
#[must_use]
pub fn signals_take() -> u64 {
    let mut mask = 0;
    // SAFETY: the result outlives the call.
    let _ = unsafe { raw::signals_take(&raw mut mask) };
    mask
}

/// Returns the signals that this process ignores, as bits of [`Signal::bit`].
#[must_use]
pub fn signals_ignored() -> u64 {
    let mut mask = 0;
    // SAFETY: the result outlives the call.
    let _ = unsafe { raw::signals_ignored(&raw mut mask) };
    mask
}

/// This process, its parent, its group.
#[must_use]
pub fn process_ids() -> [u32; 3] {
    let mut ids = [0; 3];
    // SAFETY: the result outlives the call.
    let _ = unsafe { raw::process_ids(&raw mut ids) };
    ids
}

/// Moves a process (0: this one) into a group (0: its own).
pub fn set_group(pid: u32, group: u32) -> Result<(), Errno> {
    // SAFETY: no pointers.
    check(unsafe { raw::set_group(pid, group) })
}

/// Returns a new pipe: the reading end, the writing end.
pub fn pipe() -> Result<[u32; 2], Errno> {
    let mut ends = [0; 2];
    // SAFETY: the result outlives the call.
    check(unsafe { raw::pipe(&raw mut ends) })?;
    Ok(ends)
}

/// Duplicates `fd` as the lowest free descriptor from `minimum` on.
pub fn dup(fd: u32, minimum: u32, close_on_exec: bool) -> Result<u32, Errno> {
    let mut out = 0;
    // SAFETY: the result outlives the call.
    check(unsafe { raw::dup(fd, minimum, u32::from(close_on_exec), &raw mut out) })?;
    Ok(out)
}

/// Makes `to` another name for `fd`, closing what it named; the new name is inherited by programs.
pub fn dup2(fd: u32, to: u32) -> Result<(), Errno> {
    // SAFETY: no pointers.
    check(unsafe { raw::dup2(fd, to) })
}

/// Sets whether a started program loses `fd`.
pub fn set_close_on_exec(fd: u32, on: bool) -> Result<(), Errno> {
    // SAFETY: no pointers.
    check(unsafe { raw::set_close_on_exec(fd, u32::from(on)) })
}

/// Returns the directory this process was started in.
pub fn cwd() -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 4096];
    let mut length = 0;
    // SAFETY: the host writes at most `capacity` bytes of the buffer, and both outlive the call.
    check(unsafe { raw::cwd(buffer.as_mut_ptr(), buffer.len(), &raw mut length) })?;
    buffer.truncate(length);
    Ok(buffer)
}

/// Returns what the last command of this session left, the host's flags first; `None` outside of a session, and for all but a
/// command's first process.
#[must_use]
pub fn session_load() -> Option<Vec<u8>> {
    let mut length = 0;
    // SAFETY: without capacity the host only writes the length, which outlives the call.
    check(unsafe { raw::session_load(core::ptr::null_mut(), 0, &raw mut length) }).ok()?;
    let mut state = vec![0; length];
    // SAFETY: the host writes at most `capacity` bytes of the buffer, and both outlive the call.
    check(unsafe { raw::session_load(state.as_mut_ptr(), state.len(), &raw mut length) }).ok()?;
    Some(state)
}

/// Leaves something to the next command of this session.
pub fn session_save(state: &[u8]) -> Result<(), Errno> {
    // SAFETY: the buffer outlives the call.
    check(unsafe { raw::session_save(state.as_ptr(), state.len()) })
}

/// Sets the file creation mask and returns the old one.
#[must_use]
pub fn umask(mask: u32) -> u32 {
    let mut old = 0;
    // SAFETY: the result outlives the call.
    let _ = unsafe { raw::umask(mask, &raw mut old) };
    old
}

/// Returns the metadata of the file at an absolute path.
pub fn stat(path: &[u8], follow: bool) -> Result<Stat, Errno> {
    let mut out = [0; Stat::SIZE];
    // SAFETY: the path and the result outlive the call.
    check(unsafe { raw::stat(path.as_ptr(), path.len(), u32::from(follow), &raw mut out) })?;
    Ok(Stat::decode(&out))
}

/// Returns the metadata of an open file.
pub fn fstat(fd: u32) -> Result<Stat, Errno> {
    let mut out = [0; Stat::SIZE];
    // SAFETY: the result outlives the call.
    check(unsafe { raw::fstat(fd, &raw mut out) })?;
    Ok(Stat::decode(&out))
}

/// Makes a pipe with a name; what the mask of this process takes from `mode` is gone.
pub fn mkfifo(path: &[u8], mode: u32) -> Result<(), Errno> {
    // SAFETY: the path outlives the call.
    check(unsafe { raw::mkfifo(path.as_ptr(), path.len(), mode) })
}

/// Sets the permissions of the file at an absolute path.
pub fn chmod(path: &[u8], follow: bool, mode: u32) -> Result<(), Errno> {
    // SAFETY: the path outlives the call.
    check(unsafe { raw::chmod(path.as_ptr(), path.len(), u32::from(follow), mode) })
}

/// Sets the owner and group of the file at an absolute path; `u32::MAX` leaves one as it is.
pub fn chown(path: &[u8], follow: bool, uid: u32, gid: u32) -> Result<(), Errno> {
    // SAFETY: the path outlives the call.
    check(unsafe { raw::chown(path.as_ptr(), path.len(), u32::from(follow), uid, gid) })
}

/// Returns what of the embedding program may be called: a line for each tool, or a list in JSON.
pub fn tools(as_json: bool) -> Result<Vec<u8>, Errno> {
    let mut length = 0;
    // SAFETY: the result outlives the call.
    check(unsafe { raw::tools(u32::from(as_json), &raw mut length) })?;
    answer(length)
}

/// Calls a tool with arguments in JSON: its result in JSON, or its complaint.
pub fn tool(name: &[u8], args: &[u8]) -> Result<Result<Vec<u8>, ToolFailure>, Errno> {
    let mut length = 0;
    // SAFETY: both buffers and the result outlive the call, and the host writes only the result.
    check(unsafe { raw::tool(name.as_ptr(), name.len(), args.as_ptr(), args.len(), &raw mut length) })?;
    let mut answer = answer(length)?;
    let failed = answer.first() != Some(&0);
    answer.drain(..1.min(length));
    Ok(if failed { Err(ToolFailure::decode(&answer)) } else { Ok(answer) })
}

fn answer(length: usize) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; length];
    // SAFETY: the host writes at most `length` bytes of the buffer, which outlives the call.
    check(unsafe { raw::answer(buffer.as_mut_ptr(), buffer.len()) })?;
    Ok(buffer)
}

/// Reports an event that counts toward a limit to the host. ECANCELED means that the limit is reached: flush and exit at once, for the
/// next call does not return.
pub fn count(counter: Counter, amount: u32) -> Result<(), Errno> {
    // SAFETY: no pointers.
    check(unsafe { raw::count(counter as u32, amount) })
}
