//! From the filesystem's errors to WASI's: the one place where the two vocabularies meet.

use abi::Errno;
use sqlite_fs::FsError;

/// The guest's word for a filesystem error.
pub(super) fn from_fs(error: FsError) -> Errno {
    match error {
        FsError::NotPermitted => Errno::PERM,
        FsError::NoEntry => Errno::NOENT,
        FsError::Interrupted => Errno::INTR,
        FsError::BadDescriptor => Errno::BADF,
        FsError::Access => Errno::ACCES,
        FsError::Busy => Errno::BUSY,
        FsError::Exists => Errno::EXIST,
        FsError::CrossDevice => Errno::XDEV,
        FsError::NotDirectory => Errno::NOTDIR,
        FsError::IsDirectory => Errno::ISDIR,
        FsError::Invalid => Errno::INVAL,
        FsError::FileTooBig => Errno::FBIG,
        FsError::NoSpace => Errno::NOSPC,
        FsError::ReadOnly => Errno::ROFS,
        FsError::TooManyLinks => Errno::MLINK,
        FsError::NameTooLong => Errno::NAMETOOLONG,
        FsError::NotEmpty => Errno::NOTEMPTY,
        FsError::Loop => Errno::LOOP,
        // `Io`, and whatever a later version adds.
        _ => Errno::IO,
    }
}
