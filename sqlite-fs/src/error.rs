//! What can go wrong, for two audiences: [`FsError`] for the program that uses the files, [`Error`] for the embedder.

use std::path::PathBuf;

/// An error of a file operation, with the meaning of the Linux error number of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FsError {
    /// EPERM: such as a second name for a directory.
    NotPermitted,
    /// ENOENT
    NoEntry,
    /// EINTR: the operation was interrupted and the transaction goes on. Nothing of it was done, but for a large file
    /// that was being cut, removed or filled up: that one is as long as the work had come.
    Interrupted,
    /// EIO: the database answered with an error; the transaction is lost.
    Io,
    /// EBADF
    BadDescriptor,
    /// EACCES
    Access,
    /// EBUSY
    Busy,
    /// EEXIST
    Exists,
    /// EXDEV
    CrossDevice,
    /// ENOTDIR
    NotDirectory,
    /// EISDIR
    IsDirectory,
    /// EINVAL
    Invalid,
    /// EFBIG: the quota's file size is reached.
    FileTooBig,
    /// ENOSPC: the quota's bytes or inodes are used up, or the disk is full.
    NoSpace,
    /// EROFS
    ReadOnly,
    /// EMLINK
    TooManyLinks,
    /// ENAMETOOLONG: a name, a path or the tree's depth.
    NameTooLong,
    /// ENOTEMPTY
    NotEmpty,
    /// ELOOP
    Loop,
}

impl FsError {
    /// Linux's number.
    #[must_use]
    pub fn errno(self) -> i32 {
        match self {
            Self::NotPermitted => 1,
            Self::NoEntry => 2,
            Self::Interrupted => 4,
            Self::Io => 5,
            Self::BadDescriptor => 9,
            Self::Access => 13,
            Self::Busy => 16,
            Self::Exists => 17,
            Self::CrossDevice => 18,
            Self::NotDirectory => 20,
            Self::IsDirectory => 21,
            Self::Invalid => 22,
            Self::FileTooBig => 27,
            Self::NoSpace => 28,
            Self::ReadOnly => 30,
            Self::TooManyLinks => 31,
            Self::NameTooLong => 36,
            Self::NotEmpty => 39,
            Self::Loop => 40,
        }
    }
}

impl std::fmt::Display for FsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "operation not permitted",
            Self::NoEntry => "no such file or directory",
            Self::Interrupted => "interrupted",
            Self::Io => "input/output error",
            Self::BadDescriptor => "bad file descriptor",
            Self::Access => "permission denied",
            Self::Busy => "device or resource busy",
            Self::Exists => "file exists",
            Self::CrossDevice => "invalid cross-device link",
            Self::NotDirectory => "not a directory",
            Self::IsDirectory => "is a directory",
            Self::Invalid => "invalid argument",
            Self::FileTooBig => "file too large",
            Self::NoSpace => "no space left",
            Self::ReadOnly => "read-only file system",
            Self::TooManyLinks => "too many links",
            Self::NameTooLong => "file name too long",
            Self::NotEmpty => "directory not empty",
            Self::Loop => "too many levels of symbolic links",
        })
    }
}

impl std::error::Error for FsError {}

/// An error for the embedder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A path-level operation failed as it would on Linux.
    #[error("cannot {operation} `{path}`: {source}")]
    Fs {
        /// What was tried, as a verb: `read`, `rename`, …
        operation: &'static str,
        /// On which path.
        path: String,
        /// Why not.
        source: FsError,
    },
    /// An inode-level operation failed.
    #[error(transparent)]
    Node(#[from] FsError),
    /// Another process has the file open for writing.
    #[error("`{}` is in use by {}", path.display(), holder(*pid))]
    Locked {
        /// The database.
        path: PathBuf,
        /// The holder's process id, if its lock file says it.
        pid: Option<u32>,
    },
    /// The file is on a filesystem of another machine.
    #[error("`{}` is on a network filesystem ({kind}): its locks and its log would not hold there", path.display())]
    NetworkFilesystem {
        /// The database.
        path: PathBuf,
        /// What the filesystem calls itself.
        kind: String,
    },
    /// The deadline passed while another transaction of this process was running.
    #[error("another transaction is still running")]
    Busy,
    /// The database was opened for reading only.
    #[error("the database is open for reading only")]
    ReadOnly,
    /// [`Interrupter::interrupt`](crate::Interrupter::interrupt) was called.
    #[error("interrupted")]
    Interrupted,
    /// The file is not one of ours.
    #[error("`{}` is not a sandlite database: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The file was made by a newer version.
    #[error("`{}` has format {found}, this version knows up to {known}", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The file is damaged.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// A file from elsewhere breaks a rule, so nothing of it was taken in.
    #[error("the file was refused: {rule}: {detail}")]
    Refused {
        /// The rule, as [`Violation::rule`](crate::Violation::rule) names it.
        rule: &'static str,
        /// Where it is broken.
        detail: String,
    },
    /// SQLite gave up the transaction after an error; nothing of it is stored.
    #[error("the transaction was rolled back: {0}")]
    RolledBack(String),
    /// A key-value pair has another version than expected.
    #[error("key `{key}` has version {found}, not {expected}")]
    Conflict {
        /// The key.
        key: String,
        /// The version asked for (0: must not exist).
        expected: u64,
        /// The version there is (0: none).
        found: u64,
    },
    /// A value or argument that cannot be stored.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// Which argument.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A budget of the [quota](crate::Quota) is used up; nothing was changed.
    #[error("limit `{limit}` reached: {} allowed, {} needed", size(*allowed), size(*needed))]
    Quota {
        /// Its name: `keys` or `sessions`.
        limit: &'static str,
        /// Bytes allowed.
        allowed: u64,
        /// Bytes that there would be.
        needed: u64,
    },
    /// The disk is full.
    #[error("the disk is full")]
    DiskFull(#[source] rusqlite::Error),
    /// SQLite failed.
    #[error("the database failed")]
    Sqlite(#[source] rusqlite::Error),
    /// A file beside the database could not be used.
    #[error("cannot use `{}`", path.display())]
    Disk {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Bytes in the largest unit that shows them to a tenth.
fn size(bytes: u64) -> String {
    for (unit, name) in [(1u64 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")] {
        if bytes >= unit {
            let tenths = (bytes % unit).saturating_mul(10).div_ceil(unit);
            let (whole, tenth) = (bytes / unit + tenths / 10, tenths % 10);
            return if tenth == 0 { format!("{whole} {name}") } else { format!("{whole}.{tenth} {name}") };
        }
    }
    format!("{bytes} B")
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl Error {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Locked { .. } => "end that process, open a copy, or open read-only",
            Self::NetworkFilesystem { .. } => "keep the database on a local disk, and export snapshots to the network",
            Self::Busy => "wait for the running command, or give it a shorter deadline",
            Self::ReadOnly => "open the database without `read_only`",
            Self::Foreign { .. } => "import the file: its rows are checked and copied into a fresh database",
            Self::TooNew { .. } => "use a newer version",
            Self::Damaged(_) => "restore an exported snapshot",
            Self::RolledBack(_) => "the state before the command is intact; run it again",
            Self::Conflict { .. } => "read the key again and repeat",
            Self::DiskFull(_) => "free some space; the state before the command is intact",
            Self::Quota { limit: "keys", .. } => "delete keys that are no longer needed, or raise the quota",
            Self::Quota { .. } => "remove sessions that are no longer needed, or raise the quota",
            Self::Fs { source: FsError::NoSpace | FsError::FileTooBig, .. } => {
                "delete files, or raise the quota (`disk`, `file`, `inodes` or `names`)"
            }
            _ => return None,
        })
    }

    /// The Linux error behind it, if a file operation failed.
    #[must_use]
    pub fn fs_error(&self) -> Option<FsError> {
        match self {
            Self::Fs { source, .. } | Self::Node(source) => Some(*source),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => Self::Interrupted,
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull(error),
            Some(rusqlite::ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => Self::Busy,
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

/// What an operation inside the store fails with: the guest's own mistake, or SQLite.
#[derive(Debug)]
pub(crate) enum Fault {
    Fs(FsError),
    Sql(rusqlite::Error),
}

impl Fault {
    pub(crate) fn as_fs(&self) -> FsError {
        match self {
            Self::Fs(error) => *error,
            Self::Sql(error) => match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::OperationInterrupted) => FsError::Interrupted,
                Some(rusqlite::ErrorCode::DiskFull) => FsError::NoSpace,
                Some(rusqlite::ErrorCode::ReadOnly) => FsError::ReadOnly,
                Some(rusqlite::ErrorCode::TooBig) => FsError::FileTooBig,
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => FsError::Busy,
                _ => FsError::Io,
            },
        }
    }
}

impl From<FsError> for Fault {
    fn from(error: FsError) -> Self {
        Self::Fs(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Fs(FsError::Interrupted) => Self::Interrupted,
            Fault::Fs(error) => Self::Node(error),
            Fault::Sql(error) => error.into(),
        }
    }
}
