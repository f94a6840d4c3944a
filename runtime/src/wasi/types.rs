//! Preview1's numbers: file types, flags and the layouts of its structs, each written field by field into zeroed bytes so that no
//! host memory leaks through padding (GHSA-96f6).

use abi::stat::{S_IFCHR, S_IFDIR, S_IFLNK, S_IFREG, Stat};

/// `filetype` of anything else, such as a pipe.
pub(super) const UNKNOWN: u8 = 0;
/// `filetype` of a character device.
pub(super) const CHARACTER_DEVICE: u8 = 2;
/// `filetype` of a directory.
pub(super) const DIRECTORY: u8 = 3;
/// `filetype` of a regular file.
pub(super) const REGULAR_FILE: u8 = 4;
/// `filetype` of a symbolic link.
pub(super) const SYMBOLIC_LINK: u8 = 7;

/// `lookupflags`: follow a symbolic link at the end.
pub(super) const LOOKUP_FOLLOW: u32 = 1;

/// `oflags`: create if it does not exist.
pub(super) const OPEN_CREATE: u32 = 1;
/// `oflags`: fail if not a directory.
pub(super) const OPEN_DIRECTORY: u32 = 2;
/// `oflags`: fail if it exists.
pub(super) const OPEN_EXCLUSIVE: u32 = 4;
/// `oflags`: truncate it.
pub(super) const OPEN_TRUNCATE: u32 = 8;

/// `fdflags`: writes go to the end.
pub(super) const FD_APPEND: u32 = 1;
/// `fdflags`: do not block.
pub(super) const FD_NONBLOCK: u32 = 4;

/// `rights`: readable.
pub(super) const RIGHT_READ: u64 = 1 << 1;
/// `rights`: writable.
pub(super) const RIGHT_WRITE: u64 = 1 << 6;
/// `rights`: seek and tell, which libc interprets as "not a terminal".
pub(super) const RIGHTS_SEEK: u64 = 1 << 2 | 1 << 5;
/// `rights`: all.
pub(super) const RIGHTS_ALL: u64 = (1 << 30) - 1;

/// `fstflags`: set the access time to a value, to now; the change time to a value, to now.
pub(super) const SET_ATIME: u32 = 1;
/// See [`SET_ATIME`].
pub(super) const SET_ATIME_NOW: u32 = 2;
/// See [`SET_ATIME`].
pub(super) const SET_MTIME: u32 = 4;
/// See [`SET_ATIME`].
pub(super) const SET_MTIME_NOW: u32 = 8;

/// Returns the `filetype` of `S_IF…` bits.
pub(super) fn file_type(kind: u32) -> u8 {
    match kind {
        S_IFREG => REGULAR_FILE,
        S_IFDIR => DIRECTORY,
        S_IFLNK => SYMBOLIC_LINK,
        S_IFCHR => CHARACTER_DEVICE,
        _ => UNKNOWN,
    }
}

/// Encodes a `filestat`.
pub(super) fn filestat(stat: &Stat) -> [u8; 64] {
    let mut out = [0; 64];
    out[0..8].copy_from_slice(&stat.dev.to_le_bytes());
    out[8..16].copy_from_slice(&stat.ino.to_le_bytes());
    out[16] = file_type(stat.kind());
    out[24..32].copy_from_slice(&u64::from(stat.nlink).to_le_bytes());
    out[32..40].copy_from_slice(&stat.size.to_le_bytes());
    out[40..48].copy_from_slice(&stat.atime.to_le_bytes());
    out[48..56].copy_from_slice(&stat.mtime.to_le_bytes());
    out[56..64].copy_from_slice(&stat.ctime.to_le_bytes());
    out
}

/// Encodes an `fdstat` of a descriptor through which everything can be opened.
pub(super) fn fdstat(file_type: u8, flags: u16, rights: u64) -> [u8; 24] {
    fdstat_with(file_type, flags, rights, RIGHTS_ALL)
}

/// Encodes an `fdstat`.
pub(super) fn fdstat_with(file_type: u8, flags: u16, rights: u64, inheriting: u64) -> [u8; 24] {
    let mut out = [0; 24];
    out[0] = file_type;
    out[2..4].copy_from_slice(&flags.to_le_bytes());
    out[8..16].copy_from_slice(&rights.to_le_bytes());
    out[16..24].copy_from_slice(&inheriting.to_le_bytes());
    out
}

/// Encodes a `dirent` without the following name.
pub(super) fn dirent(next: u64, ino: u64, name_length: u32, file_type: u8) -> [u8; 24] {
    let mut out = [0; 24];
    out[0..8].copy_from_slice(&next.to_le_bytes());
    out[8..16].copy_from_slice(&ino.to_le_bytes());
    out[16..20].copy_from_slice(&name_length.to_le_bytes());
    out[20] = file_type;
    out
}
