//! Preview1's rights of a descriptor, and of files opened through it.

use abi::Errno;

use super::super::call::Call;
use crate::process::descriptor::{Grant, Object, OpenFile};

/// `fd_datasync`.
pub(crate) const FD_DATASYNC: u64 = 1 << 0;
/// `fd_read` and `fd_pread`.
pub(crate) const FD_READ: u64 = 1 << 1;
/// `fd_seek`.
pub(crate) const FD_SEEK: u64 = 1 << 2;
/// `fd_fdstat_set_flags`.
pub(crate) const FD_SET_FLAGS: u64 = 1 << 3;
/// `fd_sync`.
pub(crate) const FD_SYNC: u64 = 1 << 4;
/// `fd_tell`.
pub(crate) const FD_TELL: u64 = 1 << 5;
/// `fd_write` and `fd_pwrite`.
pub(crate) const FD_WRITE: u64 = 1 << 6;
/// `fd_advise`.
pub(crate) const FD_ADVISE: u64 = 1 << 7;
/// `fd_allocate`.
pub(crate) const FD_ALLOCATE: u64 = 1 << 8;
/// `path_create_directory`.
pub(crate) const PATH_CREATE_DIRECTORY: u64 = 1 << 9;
/// `path_open` with `oflags::creat`.
pub(crate) const PATH_CREATE_FILE: u64 = 1 << 10;
/// `path_link` from here.
pub(crate) const PATH_LINK_SOURCE: u64 = 1 << 11;
/// `path_link` to here.
pub(crate) const PATH_LINK_TARGET: u64 = 1 << 12;
/// `path_open`.
pub(crate) const PATH_OPEN: u64 = 1 << 13;
/// `fd_readdir`.
pub(crate) const FD_READDIR: u64 = 1 << 14;
/// `path_readlink`.
pub(crate) const PATH_READLINK: u64 = 1 << 15;
/// `path_rename` from here.
pub(crate) const PATH_RENAME_SOURCE: u64 = 1 << 16;
/// `path_rename` to here.
pub(crate) const PATH_RENAME_TARGET: u64 = 1 << 17;
/// `path_filestat_get`.
pub(crate) const PATH_FILESTAT_GET: u64 = 1 << 18;
/// `path_open` with `oflags::trunc`.
pub(crate) const PATH_FILESTAT_SET_SIZE: u64 = 1 << 19;
/// `path_filestat_set_times`.
pub(crate) const PATH_FILESTAT_SET_TIMES: u64 = 1 << 20;
/// `fd_filestat_get`.
pub(crate) const FD_FILESTAT_GET: u64 = 1 << 21;
/// `fd_filestat_set_size`.
pub(crate) const FD_FILESTAT_SET_SIZE: u64 = 1 << 22;
/// `fd_filestat_set_times`.
pub(crate) const FD_FILESTAT_SET_TIMES: u64 = 1 << 23;
/// `path_symlink`.
pub(crate) const PATH_SYMLINK: u64 = 1 << 24;
/// `path_remove_directory`.
pub(crate) const PATH_REMOVE_DIRECTORY: u64 = 1 << 25;
/// `path_unlink_file`.
pub(crate) const PATH_UNLINK_FILE: u64 = 1 << 26;
/// `poll_oneoff` on it.
pub(crate) const POLL: u64 = 1 << 27;

/// All rights that apply to a directory.
pub(crate) const DIRECTORY: u64 = PATH_CREATE_DIRECTORY
    | PATH_CREATE_FILE
    | PATH_LINK_SOURCE
    | PATH_LINK_TARGET
    | PATH_OPEN
    | FD_READDIR
    | PATH_READLINK
    | PATH_RENAME_SOURCE
    | PATH_RENAME_TARGET
    | PATH_FILESTAT_GET
    | PATH_FILESTAT_SET_SIZE
    | PATH_FILESTAT_SET_TIMES
    | FD_FILESTAT_GET
    | FD_FILESTAT_SET_TIMES
    | FD_DATASYNC
    | FD_SYNC
    | FD_SET_FLAGS
    | PATH_SYMLINK
    | PATH_REMOVE_DIRECTORY
    | PATH_UNLINK_FILE;

/// All rights that apply to a file.
pub(crate) const FILE: u64 = FD_DATASYNC
    | FD_READ
    | FD_SEEK
    | FD_SET_FLAGS
    | FD_SYNC
    | FD_TELL
    | FD_WRITE
    | FD_ADVISE
    | FD_ALLOCATE
    | FD_FILESTAT_GET
    | FD_FILESTAT_SET_SIZE
    | FD_FILESTAT_SET_TIMES
    | POLL;

/// Checks that a descriptor has some rights.
///
/// # Errors
///
/// Returns [`Errno::BADF`] if it is not open and [`Errno::NOTCAPABLE`] if it lacks one.
pub(super) fn need(call: &Call<'_>, fd: u32, rights: u64) -> Result<(), Errno> {
    let grant = call.state.descriptors.grant(fd)?;
    if grant.base & rights == rights { Ok(()) } else { Err(Errno::NOTCAPABLE) }
}

/// Returns the rights to an inherited file.
pub(crate) fn inherited(file: &OpenFile) -> Grant {
    let mut base = if matches!(file.object, Object::Directory(_)) { DIRECTORY } else { FILE };
    if !file.readable {
        base &= !FD_READ;
    }
    if !file.writable {
        base &= !(FD_WRITE | FD_ALLOCATE | FD_FILESTAT_SET_SIZE);
    }
    // Without these rights, libc takes a character device for a terminal.
    if matches!(&file.object, Object::Reader(reader) if reader.is_terminal()) {
        base &= !(FD_SEEK | FD_TELL);
    }
    Grant { base, inheriting: DIRECTORY | FILE, ..Grant::default() }
}

/// Returns the rights to a preopened directory, and its name.
pub(crate) fn preopened(name: &str) -> Grant {
    Grant { base: DIRECTORY, inheriting: DIRECTORY | FILE, preopen: Some(name.into()), ..Grant::default() }
}
