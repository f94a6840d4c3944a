//! Preview1's `fd_*`: all functions on a descriptor.

use std::sync::Arc;

use abi::Errno;
use abi::stat::{S_IFREG, Stat};
use sqlite_fs::{Entry, FileType, Volume, VolumeMut};

use super::call::Call;
use super::memory::{Buffer, MAX_IO_BYTES};
use super::metadata;
use super::types;
use crate::process::descriptor::{Object, OpenFile, ROOT_DESCRIPTOR, Whence};
use crate::process::{Fault, State};
use crate::vfs::{Node, ROOT_NODE, Thing, descriptor_entries};

/// Returns the open file of a descriptor.
pub(super) fn file(call: &Call<'_>, fd: u32) -> Result<Arc<OpenFile>, Errno> {
    call.state.descriptors.get(fd).map(Arc::clone)
}

/// Returns the directory of a descriptor, for `path_*`: 3 is always the root (see `process::descriptor`).
pub(super) fn directory(call: &Call<'_>, fd: u32) -> Result<Node, Errno> {
    if fd == ROOT_DESCRIPTOR { Ok(ROOT_NODE) } else { file(call, fd)?.directory() }
}

// The value of 3 in `fd_*` calls if a script has not assigned it.
fn is_root(call: &Call<'_>, fd: u32) -> bool {
    fd == ROOT_DESCRIPTOR && call.state.descriptors.get(fd).is_err()
}

/// `fd_read`, `fd_pread`.
pub(super) fn read(call: &mut Call<'_>, fd: u32, buffers: u32, count: u32, offset: Option<u64>, out: u32) -> Result<(), Fault> {
    let file = file(call, fd)?;
    let total = scatter(call, buffers, count, |call, buffer, done| {
        let job = Arc::clone(&call.state.job);
        let process = Arc::clone(&call.state.process);
        let bytes = call.memory.bytes_mut(buffer.pointer, buffer.length)?;
        match offset {
            Some(offset) => file.read_at(&job, offset.saturating_add(done), bytes),
            None => file.read(&job, &process, bytes),
        }
    })?;
    if matches!(file.object, Object::Reader(_)) {
        call.may_wait();
    }
    Ok(call.memory.write_u32(out, total)?)
}

/// `fd_write`, `fd_pwrite`.
pub(super) fn write(call: &mut Call<'_>, fd: u32, buffers: u32, count: u32, offset: Option<u64>, out: u32) -> Result<(), Fault> {
    let file = file(call, fd)?;
    let total = scatter(call, buffers, count, |call, buffer, done| {
        let bytes = call.memory.bytes(buffer.pointer, buffer.length)?;
        match offset {
            Some(offset) => file.write_at(&call.state.job, offset.saturating_add(done), bytes),
            None => file.write(&call.state.job, &call.state.process, bytes),
        }
    })?;
    if matches!(file.object, Object::Writer(_)) {
        call.may_wait();
    }
    Ok(call.memory.write_u32(out, total)?)
}

// Processes the buffers of a scattered call until one is not filled, or until enough was moved for one call. Once something was
// moved, a later failure is not reported: the guest gets it at its next call.
fn scatter(
    call: &mut Call<'_>,
    buffers: u32,
    count: u32,
    mut step: impl FnMut(&mut Call<'_>, Buffer, u64) -> Result<usize, Fault>,
) -> Result<u32, Fault> {
    let mut total: u32 = 0;
    for buffer in call.memory.buffers(buffers, count)? {
        let room = MAX_IO_BYTES.saturating_sub(total);
        let bounded = Buffer { length: buffer.length.min(room), ..buffer };
        if bounded.length == 0 && buffer.length > 0 {
            break;
        }
        let moved = match step(call, bounded, u64::from(total)) {
            Ok(moved) => moved,
            Err(Fault::Errno(_)) if total > 0 => break,
            Err(fault) => return Err(fault),
        };
        call.charge_bytes(moved);
        total = total.saturating_add(u32::try_from(moved).unwrap_or(u32::MAX));
        if moved < buffer.length as usize {
            break;
        }
    }
    Ok(total)
}

/// `fd_seek`, `fd_tell`.
pub(super) fn seek(call: &mut Call<'_>, fd: u32, offset: i64, whence: u32, out: u32) -> Result<(), Fault> {
    let whence = match whence {
        0 => Whence::Start,
        1 => Whence::Current,
        2 => Whence::End,
        _ => return Err(Errno::INVAL.into()),
    };
    let position = file(call, fd)?.seek(&call.state.job, offset, whence)?;
    Ok(call.memory.write_u64(out, position)?)
}

/// `fd_close`.
pub(super) fn close(call: &mut Call<'_>, fd: u32) -> Result<(), Fault> {
    Ok(call.state.descriptors.close(fd)?)
}

/// `fd_renumber`: moves `fd` to `to`.
pub(super) fn renumber(call: &mut Call<'_>, fd: u32, to: u32) -> Result<(), Fault> {
    call.state.descriptors.get(to)?;
    call.state.descriptors.duplicate_to(fd, to)?;
    if fd != to {
        call.state.descriptors.close(fd)?;
    }
    Ok(())
}

/// `fd_fdstat_get`.
pub(super) fn fdstat(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    if is_root(call, fd) {
        return Ok(call.memory.write(out, &types::fdstat(types::DIRECTORY, 0, types::RIGHTS_ALL))?);
    }
    let file = file(call, fd)?;
    let file_type = match &file.object {
        Object::Device(_) => types::CHARACTER_DEVICE,
        _ => types::file_type(metadata::of_file(call.state, &file)?.kind()),
    };
    let flags = if file.append() { types::FD_APPEND } else { 0 } | if file.nonblocking() { types::FD_NONBLOCK } else { 0 };
    let mut rights = types::RIGHTS_SEEK | types::RIGHTS_ALL & !(types::RIGHT_READ | types::RIGHT_WRITE);
    if file.readable {
        rights |= types::RIGHT_READ;
    }
    if file.writable {
        rights |= types::RIGHT_WRITE;
    }
    // Without that right, libc takes a character device for a terminal.
    if matches!(&file.object, Object::Reader(reader) if reader.is_terminal()) {
        rights &= !types::RIGHTS_SEEK;
    }
    Ok(call.memory.write(out, &types::fdstat(file_type, u16::try_from(flags).map_err(|_| Errno::OVERFLOW)?, rights))?)
}

/// `fd_fdstat_set_flags`.
pub(super) fn set_flags(call: &mut Call<'_>, fd: u32, flags: u32) -> Result<(), Fault> {
    file(call, fd)?.set_flags(flags & types::FD_APPEND != 0, flags & types::FD_NONBLOCK != 0);
    Ok(())
}

/// `fd_filestat_get`.
pub(super) fn filestat(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    let stat = stat(call, fd)?;
    Ok(call.memory.write(out, &types::filestat(&stat))?)
}

/// Returns the metadata of a descriptor.
pub(super) fn stat(call: &Call<'_>, fd: u32) -> Result<Stat, Fault> {
    if is_root(call, fd) {
        return Ok(call.state.job.view.attributes(ROOT_NODE)?);
    }
    let file = file(call, fd)?;
    metadata::of_file(call.state, &file)
}

/// `fd_filestat_set_size`.
pub(super) fn set_size(call: &mut Call<'_>, fd: u32, size: u64) -> Result<(), Fault> {
    let file = file(call, fd)?;
    match &file.object {
        Object::File(held) if file.writable => Ok(call.state.job.view.truncate(held.node, size)?),
        _ => Err(Errno::INVAL.into()),
    }
}

/// `fd_allocate`: files grow by writing, so only the size can be requested.
pub(super) fn allocate(call: &mut Call<'_>, fd: u32, offset: u64, length: u64) -> Result<(), Fault> {
    let end = offset.checked_add(length).ok_or(Errno::FBIG)?;
    let stat = stat(call, fd)?;
    if stat.kind() != S_IFREG {
        return Err(Errno::NODEV.into());
    }
    if end > stat.size { set_size(call, fd, end) } else { Ok(()) }
}

/// `fd_filestat_set_times`.
pub(super) fn set_times(call: &mut Call<'_>, fd: u32, atime: u64, mtime: u64, flags: u32) -> Result<(), Fault> {
    let file = file(call, fd)?;
    let (Object::File(held) | Object::Directory(held) | Object::Generated(held, ..)) = &file.object else {
        return Err(Errno::INVAL.into());
    };
    metadata::set_times(call.state, held.node, atime, mtime, flags)
}

/// `fd_sync`, `fd_datasync`, `fd_advise`: only the command's transaction is made durable.
pub(super) fn sync(call: &mut Call<'_>, fd: u32) -> Result<(), Fault> {
    if is_root(call, fd) {
        return Ok(());
    }
    match &file(call, fd)?.object {
        Object::Reader(_) | Object::Writer(_) => Err(Errno::INVAL.into()),
        _ => Ok(()),
    }
}

/// `fd_prestat_get`: the root directory is the only preopened one.
pub(super) fn prestat(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    if fd != ROOT_DESCRIPTOR {
        return Err(Errno::BADF.into());
    }
    call.memory.write_u32(out, 0)?;
    Ok(call.memory.write_u32(out.checked_add(4).ok_or(Errno::FAULT)?, 1)?)
}

/// `fd_prestat_dir_name`.
pub(super) fn prestat_name(call: &mut Call<'_>, fd: u32, buffer: u32, length: u32) -> Result<(), Fault> {
    match (fd, length) {
        (ROOT_DESCRIPTOR, 1..) => Ok(call.memory.write(buffer, b"/")?),
        (ROOT_DESCRIPTOR, 0) => Err(Errno::NAMETOOLONG.into()),
        _ => Err(Errno::BADF.into()),
    }
}

/// Number of names read from a directory at once.
const NAMES_PER_STEP: usize = 256;

/// `fd_readdir`: `.` and `..`, then the names; the last entry is truncated at the end of the buffer.
pub(super) fn readdir(call: &mut Call<'_>, fd: u32, buffer: u32, length: u32, cookie: u64, out: u32) -> Result<(), Fault> {
    let node = if is_root(call, fd) { ROOT_NODE } else { file(call, fd)?.directory()? };
    list(call, node, (buffer, length), cookie, out)
}

/// Lists a directory into a buffer of the guest.
pub(super) fn list(call: &mut Call<'_>, node: Node, (buffer, length): (u32, u32), cookie: u64, out: u32) -> Result<(), Fault> {
    let length = length.min(MAX_IO_BYTES);
    call.memory.bytes(buffer, length)?;
    let mut written: u32 = 0;
    let mut cookie = cookie;
    while written < length {
        let entries = names(call.state, node, cookie)?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            let name_length = u32::try_from(entry.name.len()).map_err(|_| Errno::OVERFLOW)?;
            let mut encoded = types::dirent(entry.cookie, entry.ino, name_length, types::file_type(entry.kind.bits())).to_vec();
            encoded.extend_from_slice(entry.name.as_bytes());
            let room = (length - written) as usize;
            encoded.truncate(room);
            call.memory.write(buffer.checked_add(written).ok_or(Errno::FAULT)?, &encoded)?;
            call.charge_bytes(encoded.len());
            written += u32::try_from(encoded.len()).map_err(|_| Errno::OVERFLOW)?;
            cookie = entry.cookie;
            if written == length {
                break;
            }
        }
    }
    Ok(call.memory.write_u32(out, written)?)
}

// The first two cookies are `.` and `..`; the directory's own follow.
const DOTS: u64 = 2;

fn names(state: &State, node: Node, cookie: u64) -> Result<Vec<Entry>, Fault> {
    let mut entries = Vec::new();
    let view = &state.job.view;
    for (name, dot) in [(".", 0), ("..", 1)] {
        if cookie <= dot {
            let ino = view.stat(node).map_or(1, |stat| stat.ino);
            entries.push(Entry { name: name.to_owned(), ino, kind: FileType::Directory, cookie: dot + 1 });
        }
    }
    let after = cookie.saturating_sub(DOTS);
    entries.extend(children(state, node, after)?.into_iter().map(|entry| Entry { cookie: entry.cookie + DOTS, ..entry }));
    Ok(entries)
}

/// Returns the next names of a directory, without `.` and `..`.
pub(super) fn children(state: &State, node: Node, after: u64) -> Result<Vec<Entry>, Fault> {
    match state.job.view.thing(node) {
        Some(Thing::Descriptors) => Ok(descriptor_entries(&state.descriptors.numbers(), after)),
        _ => Ok(state.job.view.readdir(node, after, NAMES_PER_STEP)?),
    }
}
