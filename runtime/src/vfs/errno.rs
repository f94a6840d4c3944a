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

/// The way back, for the embedding program.
pub(crate) fn to_fs(errno: Errno) -> FsError {
    match errno {
        Errno::PERM => FsError::NotPermitted,
        Errno::NOENT => FsError::NoEntry,
        Errno::INTR => FsError::Interrupted,
        Errno::BADF => FsError::BadDescriptor,
        Errno::ACCES => FsError::Access,
        Errno::BUSY => FsError::Busy,
        Errno::EXIST => FsError::Exists,
        Errno::XDEV => FsError::CrossDevice,
        Errno::NOTDIR => FsError::NotDirectory,
        Errno::ISDIR => FsError::IsDirectory,
        Errno::INVAL => FsError::Invalid,
        Errno::FBIG => FsError::FileTooBig,
        Errno::NOSPC => FsError::NoSpace,
        Errno::ROFS => FsError::ReadOnly,
        Errno::MLINK => FsError::TooManyLinks,
        Errno::NAMETOOLONG => FsError::NameTooLong,
        Errno::NOTEMPTY => FsError::NotEmpty,
        Errno::LOOP => FsError::Loop,
        _ => FsError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_vocabularies_agree() {
        for error in [FsError::NoEntry, FsError::ReadOnly, FsError::NotEmpty, FsError::CrossDevice, FsError::Loop, FsError::Busy]
        {
            assert_eq!(to_fs(from_fs(error)), error);
        }
    }
}
