//! Failures of host calls: the guest receives an errno, or the guest ends.

use std::fmt;
use std::sync::Arc;

use abi::spawn::Action;
use abi::{Errno, Signal};
use sqlite_fs::FsError;

use super::state::Start;
use super::wait::Interruption;
use crate::host::Prepared;
use crate::limits::LimitReached;

/// The replacement of a process by another program.
pub(crate) struct Exec {
    /// Changes to its descriptors.
    pub(crate) actions: Vec<Action>,
    /// The program.
    pub(crate) prepared: Prepared,
    /// Its arguments and environment.
    pub(crate) start: Start,
}

impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec").field("args", &self.start.args).finish_non_exhaustive()
    }
}

// Not compared: equal programs are the same program.
impl PartialEq for Exec {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Exec {}

/// The reason a process ends. Propagated through the engine as the error of the wasm call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It called `proc_exit`.
    Exit(u8),
    /// It is replaced by another program.
    Exec(Arc<Exec>),
    /// A signal ended it, or the command has ended; the process stores which.
    Killed,
    /// It did something that ends a process by this signal.
    Signal(Signal),
    /// The command reached a limit.
    Limit,
    /// The host's own code panicked in a call of this process; the instance is not run again (T-DOS-10).
    HostPanic,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process ended: {self:?}")
    }
}

impl std::error::Error for Ended {}

/// How a host call fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The guest sees this errno.
    Errno(Errno),
    /// The guest ends.
    End(Ended),
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<FsError> for Fault {
    fn from(error: FsError) -> Self {
        Self::Errno(errno(error))
    }
}

/// Returns the guest's errno for a filesystem error. The only conversion between the two.
fn errno(error: FsError) -> Errno {
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
        // `Io`, and any error added later.
        _ => Errno::IO,
    }
}

impl From<Ended> for Fault {
    fn from(ended: Ended) -> Self {
        Self::End(ended)
    }
}

impl From<LimitReached> for Fault {
    fn from(_: LimitReached) -> Self {
        Self::End(Ended::Limit)
    }
}

impl From<Interruption> for Fault {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::End => Self::End(Ended::Killed),
            Interruption::Signal => Self::Errno(Errno::INTR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Every pair: a program in the sandbox acts on the number.
    #[test]
    fn each_error_of_files_has_the_errno_of_linux() {
        let pairs = [
            (FsError::NotPermitted, "EPERM"),
            (FsError::NoEntry, "ENOENT"),
            (FsError::Interrupted, "EINTR"),
            (FsError::Io, "EIO"),
            (FsError::BadDescriptor, "EBADF"),
            (FsError::Access, "EACCES"),
            (FsError::Busy, "EBUSY"),
            (FsError::Exists, "EEXIST"),
            (FsError::CrossDevice, "EXDEV"),
            (FsError::NotDirectory, "ENOTDIR"),
            (FsError::IsDirectory, "EISDIR"),
            (FsError::Invalid, "EINVAL"),
            (FsError::FileTooBig, "EFBIG"),
            (FsError::NoSpace, "ENOSPC"),
            (FsError::ReadOnly, "EROFS"),
            (FsError::TooManyLinks, "EMLINK"),
            (FsError::NameTooLong, "ENAMETOOLONG"),
            (FsError::NotEmpty, "ENOTEMPTY"),
            (FsError::Loop, "ELOOP"),
        ];
        for (error, name) in pairs {
            assert_eq!(errno(error).name(), name, "{error:?}");
        }
        // Preview 1 has no number for these.
        for error in [FsError::Unknown, FsError::Stale, FsError::Damaged] {
            assert_eq!(errno(error), Errno::IO, "{error:?}");
        }
    }
}
