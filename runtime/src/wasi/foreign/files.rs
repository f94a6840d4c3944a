//! Preview1's `fd_*` with rights: each function checks the rights of its descriptor, then does the same as for our own guests.

use abi::Errno;

use super::super::call::Call;
use super::super::{files, metadata, types};
use super::rights::{self, need};
use crate::process::Fault;
use crate::process::descriptor::Object;

/// `fdflags` that are stored and reported, but have no effect: `dsync`, `rsync`, `sync`.
const SYNC_FLAGS: u32 = 1 << 1 | 1 << 3 | 1 << 4;
/// All `fdflags`.
const FLAGS: u32 = types::FD_APPEND | types::FD_NONBLOCK | SYNC_FLAGS;

/// The last kind of advice.
const ADVICE_LAST: u32 = 5;

/// `whence` of `fd_seek`: from where it is.
const WHENCE_CURRENT: u32 = 1;

/// Checks flags, and returns those that are only stored.
pub(super) fn sync_flags(flags: u32) -> Result<u16, Errno> {
    if flags & !FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    u16::try_from(flags & SYNC_FLAGS).map_err(|_| Errno::INVAL)
}

/// `fd_read`, `fd_pread`.
pub(super) fn read(call: &mut Call<'_>, fd: u32, buffers: u32, count: u32, offset: Option<u64>, out: u32) -> Result<(), Fault> {
    need(call, fd, rights::FD_READ).map_err(|_| Errno::BADF)?;
    files::read(call, fd, buffers, count, offset, out)
}

/// `fd_write`, `fd_pwrite`.
pub(super) fn write(call: &mut Call<'_>, fd: u32, buffers: u32, count: u32, offset: Option<u64>, out: u32) -> Result<(), Fault> {
    need(call, fd, rights::FD_WRITE).map_err(|_| Errno::BADF)?;
    files::write(call, fd, buffers, count, offset, out)
}

/// `fd_seek`: the right to tell is sufficient to query the position.
pub(super) fn seek(call: &mut Call<'_>, fd: u32, offset: i64, whence: u32, out: u32) -> Result<(), Fault> {
    if (offset, whence) == (0, WHENCE_CURRENT) {
        return tell(call, fd, out);
    }
    need(call, fd, rights::FD_SEEK)?;
    files::seek(call, fd, offset, whence, out)
}

/// `fd_tell`: the right to seek includes it.
pub(super) fn tell(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    need(call, fd, rights::FD_TELL).or_else(|_| need(call, fd, rights::FD_SEEK))?;
    files::seek(call, fd, 0, WHENCE_CURRENT, out)
}

/// `fd_advise`: nothing is ever read ahead.
pub(super) fn advise(call: &mut Call<'_>, fd: u32, advice: u32) -> Result<(), Fault> {
    need(call, fd, rights::FD_ADVISE)?;
    if advice > ADVICE_LAST {
        return Err(Errno::INVAL.into());
    }
    sync_object(call, fd)
}

/// `fd_allocate`.
pub(super) fn allocate(call: &mut Call<'_>, fd: u32, offset: u64, length: u64) -> Result<(), Fault> {
    need(call, fd, rights::FD_ALLOCATE)?;
    files::allocate(call, fd, offset, length)
}

/// `fd_sync`, `fd_datasync`: only the command's transaction is made durable.
pub(super) fn sync(call: &mut Call<'_>, fd: u32, right: u64) -> Result<(), Fault> {
    need(call, fd, right)?;
    sync_object(call, fd)
}

fn sync_object(call: &Call<'_>, fd: u32) -> Result<(), Fault> {
    match &files::file(call, fd)?.object {
        Object::Reader(_) | Object::Writer(_) | Object::Both(..) => Err(Errno::INVAL.into()),
        _ => Ok(()),
    }
}

/// `fd_fdstat_get`.
pub(super) fn fdstat(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    let file = files::file(call, fd)?;
    let file_type = match &file.object {
        Object::Device(_) => types::CHARACTER_DEVICE,
        _ => types::file_type(metadata::of_file(call.state, &file)?.kind()),
    };
    let grant = call.state.descriptors.grant(fd)?;
    let flags = if file.append() { types::FD_APPEND } else { 0 } | if file.nonblocking() { types::FD_NONBLOCK } else { 0 };
    let flags = u16::try_from(flags).map_err(|_| Errno::OVERFLOW)? | grant.sync_flags;
    let stat = types::fdstat_with(file_type, flags, grant.base, grant.inheriting);
    Ok(call.memory.write(out, &stat)?)
}

/// `fd_fdstat_set_flags`.
pub(super) fn set_flags(call: &mut Call<'_>, fd: u32, flags: u32) -> Result<(), Fault> {
    need(call, fd, rights::FD_SET_FLAGS)?;
    let kept = sync_flags(flags)?;
    files::set_flags(call, fd, flags)?;
    call.state.descriptors.grant_mut(fd)?.sync_flags = kept;
    Ok(())
}

/// `fd_fdstat_set_rights`: rights can be dropped, but not added.
pub(super) fn set_rights(call: &mut Call<'_>, fd: u32, base: u64, inheriting: u64) -> Result<(), Fault> {
    let grant = call.state.descriptors.grant_mut(fd)?;
    if base & !grant.base != 0 || inheriting & !grant.inheriting != 0 {
        return Err(Errno::NOTCAPABLE.into());
    }
    (grant.base, grant.inheriting) = (base, inheriting);
    Ok(())
}

/// `fd_filestat_get`.
pub(super) fn filestat(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    need(call, fd, rights::FD_FILESTAT_GET)?;
    let file = files::file(call, fd)?;
    let stat = metadata::of_file(call.state, &file)?;
    Ok(call.memory.write(out, &types::filestat(&stat))?)
}

/// `fd_filestat_set_size`.
pub(super) fn set_size(call: &mut Call<'_>, fd: u32, size: u64) -> Result<(), Fault> {
    need(call, fd, rights::FD_FILESTAT_SET_SIZE)?;
    files::set_size(call, fd, size)
}

/// `fd_filestat_set_times`.
pub(super) fn set_times(call: &mut Call<'_>, fd: u32, atime: u64, mtime: u64, flags: u32) -> Result<(), Fault> {
    need(call, fd, rights::FD_FILESTAT_SET_TIMES)?;
    files::set_times(call, fd, atime, mtime, flags)
}

/// `fd_prestat_get`.
pub(super) fn prestat(call: &mut Call<'_>, fd: u32, out: u32) -> Result<(), Fault> {
    let name = call.state.descriptors.grant(fd)?.preopen.as_ref().ok_or(Errno::BADF)?;
    let length = u32::try_from(name.len()).map_err(|_| Errno::OVERFLOW)?;
    call.memory.write_u32(out, 0)?;
    Ok(call.memory.write_u32(out.checked_add(4).ok_or(Errno::FAULT)?, length)?)
}

/// `fd_prestat_dir_name`.
pub(super) fn prestat_name(call: &mut Call<'_>, fd: u32, buffer: u32, length: u32) -> Result<(), Fault> {
    let name = call.state.descriptors.grant(fd)?.preopen.clone().ok_or(Errno::BADF)?;
    if name.len() > length as usize {
        return Err(Errno::NAMETOOLONG.into());
    }
    Ok(call.memory.write(buffer, name.as_bytes())?)
}

/// `fd_readdir`.
pub(super) fn readdir(call: &mut Call<'_>, fd: u32, buffer: u32, length: u32, cookie: u64, out: u32) -> Result<(), Fault> {
    let node = files::file(call, fd)?.directory()?;
    need(call, fd, rights::FD_READDIR)?;
    files::list(call, node, (buffer, length), cookie, out)
}
