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
    /// ENODATA: another program changed this before the version could be saved.
    Unknown,
    /// ESTALE: the version was pruned while it was read.
    Stale,
    /// EUCLEAN: the rows contradict each other, as in a file that somebody tampered with.
    Damaged,
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
            Self::Unknown => 61,
            Self::Stale => 116,
            Self::Damaged => 117,
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
            Self::Unknown => "another program changed it before it was saved",
            Self::Stale => "the version was pruned",
            Self::Damaged => "the database is damaged here",
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
    /// Another process is in a transaction.
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
    #[error("another command of this process is still running in the sandbox")]
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
    /// The file is one of ours, and something in it or beside it would act when it is used.
    #[error("cannot open `{}` as it is: {reason}", path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
        /// What would act.
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
    /// There is no such version.
    #[error("unknown version {version}{}", range(*oldest, *newest))]
    NoVersion {
        /// Its number.
        version: i64,
        /// The oldest one that is kept.
        oldest: Option<i64>,
        /// The newest one.
        newest: Option<i64>,
    },
    /// The file was replaced, renamed or removed while it was open.
    #[error("`{}` was replaced or removed while it was open", path.display())]
    Moved {
        /// Where it was.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// The file is not a SQLite database.
    #[error("the file is not a database")]
    NotADatabase,
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
    /// The disk is full, or the file has reached its largest size.
    #[error("the disk is full")]
    DiskFull(rusqlite::Error),
    /// Reading or writing the file failed.
    #[error("the disk failed while the database was being {}", activity(.0))]
    DiskFailed(rusqlite::Error),
    /// The file cannot be opened.
    #[error("the database file cannot be opened")]
    CannotOpen(rusqlite::Error),
    /// The file's permissions or its filesystem do not allow changes.
    #[error("the database file or its directory cannot be written")]
    NotWritable(rusqlite::Error),
    /// Another program has locked the file in SQLite's own way.
    #[error("another program has locked the database")]
    LockedElsewhere(rusqlite::Error),
    /// The directory of a database does not allow changes.
    #[error("cannot open `{}` for writing", path.display())]
    Unwritable {
        /// The database.
        path: PathBuf,
        /// Why the file beside it cannot be created.
        source: std::io::Error,
    },
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

/// Which versions there are.
fn range(oldest: Option<i64>, newest: Option<i64>) -> String {
    match (oldest, newest) {
        (Some(oldest), Some(newest)) if oldest == newest => format!(": only {newest} is kept"),
        (Some(oldest), Some(newest)) => format!(": {oldest} to {newest} are kept"),
        _ => ": none is kept".to_owned(),
    }
}

/// What SQLite was doing to the file, as a participle.
fn activity(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ffi;
    match error.sqlite_extended_error_code() {
        Some(ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE) => "written",
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => "synced",
        Some(ffi::SQLITE_IOERR_LOCK | ffi::SQLITE_IOERR_SHMLOCK | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK) => "locked",
        Some(ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_FSTAT) => "read",
        _ => "used",
    }
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
            Self::Locked { .. } => {
                "end that process, wait longer with `--wait`, or work in a copy: `sandlite fork` makes one meanwhile"
            }
            Self::NetworkFilesystem { .. } => "keep the database on a local disk, and export snapshots to the network",
            Self::Busy => "wait for that command, or end it",
            Self::ReadOnly => "open the database without `read_only`",
            Self::Foreign { .. } => {
                "name another file; one of AgentFS or LocalSandbox can be imported: `sandlite --db NEW.db import FILE`"
            }
            Self::Tampered { .. } => "import the file: its rows are checked and copied into a fresh database",
            Self::TooNew { .. } => "use a newer version",
            Self::NoVersion { .. } => "list the versions that are kept; older ones were pruned to stay within the budget `past`",
            Self::Moved { .. } => {
                "nothing of this was kept, and what was committed before is in the file that was moved: \
                 put it back, or open the sandbox again"
            }
            Self::Damaged(_) => "restore an exported snapshot; `sandlite export` copies what can still be read",
            Self::NotADatabase => "check the path: a sandbox is a file that `sandlite` created",
            Self::RolledBack(_) => "the state before the command is intact; run it again",
            Self::Conflict { .. } => "read the key again and repeat",
            Self::DiskFull(_) => "free some space; the state before the command is intact",
            Self::DiskFailed(_) => "check the disk, its free space and the limits of this process; what was committed is intact",
            Self::CannotOpen(_) => "check that it is a file and that you may read and write it and its directory",
            Self::NotWritable(_) => "make both writable, or work on a copy elsewhere",
            Self::LockedElsewhere(_) => "close the program that has the file open, then repeat",
            Self::Unwritable { source, .. } | Self::Disk { source, .. } => return disk_hint(source),
            Self::Quota { limit: "keys", .. } => "delete keys that are no longer needed, or use a wider preset",
            Self::Quota { .. } => "remove sessions that are no longer needed, or use a wider preset",
            Self::Fs { source: FsError::NoSpace | FsError::FileTooBig, .. } => {
                "delete files, or use a preset with more `disk`, `file`, `inodes` or `names`"
            }
            Self::Fs { source: FsError::Damaged, .. } => "`sandlite check` lists what is wrong; restore an exported snapshot",
            _ => return None,
        })
    }

    /// Returns the path that the error is about, so that nobody has to read it from the message.
    ///
    /// For [`Error::Fs`] it is a path inside the database. For all others it is a path on the host, and `None` if that one
    /// is not UTF-8.
    ///
    /// ```
    /// let database = sqlite_fs::Database::options().open()?;
    /// let error = database.reader()?.fs().read("/missing").unwrap_err();
    /// assert_eq!(error.path(), Some("/missing"));
    /// # Ok::<(), sqlite_fs::Error>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Fs { path, .. } => Some(path),
            Self::Locked { path, .. }
            | Self::NetworkFilesystem { path, .. }
            | Self::Foreign { path, .. }
            | Self::Tampered { path, .. }
            | Self::TooNew { path, .. }
            | Self::Moved { path }
            | Self::Unwritable { path, .. }
            | Self::Disk { path, .. } => path.to_str(),
            Self::Node(_)
            | Self::Busy
            | Self::ReadOnly
            | Self::Interrupted
            | Self::Damaged(_)
            | Self::NotADatabase
            | Self::Refused { .. }
            | Self::RolledBack(_)
            | Self::Conflict { .. }
            | Self::NoVersion { .. }
            | Self::Invalid { .. }
            | Self::Quota { .. }
            | Self::DiskFull(_)
            | Self::DiskFailed(_)
            | Self::CannotOpen(_)
            | Self::NotWritable(_)
            | Self::LockedElsewhere(_)
            | Self::Sqlite(_) => None,
        }
    }

    /// The same failure as part of another operation: `cannot copy`, where copying began with looking.
    #[must_use]
    pub fn during(self, operation: &'static str) -> Self {
        match self {
            Self::Fs { path, source, .. } => Self::Fs { operation, path, source },
            error => error,
        }
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

fn disk_hint(source: &std::io::Error) -> Option<&'static str> {
    use std::io::ErrorKind;
    Some(match source.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "make its directory writable, or work in another place",
        ErrorKind::NotFound => "create its directory first",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space, or raise the limits of this process"
        }
        ErrorKind::IsADirectory => "name a file",
        ErrorKind::AlreadyExists => "choose a name that is not there",
        _ => return None,
    })
}

/// The error of SQLite in our words.
pub(crate) fn sentence(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(&code) => Error::from(rusqlite::Error::SqliteFailure(code, None)).to_string(),
        None => error.to_string(),
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::{ErrorCode, ffi};
        match error.sqlite_error_code() {
            // Less is there than the file itself says.
            Some(ErrorCode::SystemIoFailure) if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHORT_READ) => {
                Self::Damaged("it is cut short".to_owned())
            }
            Some(ErrorCode::OperationInterrupted) => Self::Interrupted,
            Some(ErrorCode::DiskFull) => Self::DiskFull(error),
            // The index of the log has no room.
            Some(ErrorCode::SystemIoFailure) if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE) => {
                Self::DiskFull(error)
            }
            Some(ErrorCode::SystemIoFailure) => Self::DiskFailed(error),
            Some(ErrorCode::CannotOpen) => Self::CannotOpen(error),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::NotWritable(error),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::LockedElsewhere(error),
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged(what_is_damaged(error)),
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            _ if tells_of_damage(&error) => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

/// What we found to be wrong; SQLite itself says only that something is.
fn what_is_damaged(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(what)) if what != "database disk image is malformed" => what,
        _ => "its pages contradict each other".to_owned(),
    }
}

/// Whether an error means that the file does not hold what it must: damaged pages, or a value of the wrong type.
fn tells_of_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as Sql;
    match error.sqlite_error_code() {
        Some(code) => matches!(code, rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase),
        None => matches!(
            error,
            Sql::InvalidColumnType(..)
                | Sql::FromSqlConversionFailure(..)
                | Sql::IntegralValueOutOfRange(..)
                | Sql::Utf8Error(..)
        ),
    }
}

/// The error for rows that contradict what the format promises.
pub(crate) fn damaged(what: impl Into<String>) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), Some(what.into()))
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
                _ if tells_of_damage(error) => FsError::Damaged,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_path_it_is_about() {
        let check = |error: &Error, expected: Option<&str>| assert_eq!(error.path(), expected, "{error}");
        let (path, source) = (PathBuf::from("/srv/a.db"), || std::io::ErrorKind::NotFound.into());
        check(&Error::Fs { operation: "read", path: "/a`: b".to_owned(), source: FsError::NoEntry }, Some("/a`: b"));
        check(&Error::Locked { path: path.clone(), pid: None }, Some("/srv/a.db"));
        check(&Error::NetworkFilesystem { path: path.clone(), kind: "nfs".to_owned() }, Some("/srv/a.db"));
        check(&Error::Foreign { path: path.clone(), reason: String::new() }, Some("/srv/a.db"));
        check(&Error::Tampered { path: path.clone(), reason: String::new() }, Some("/srv/a.db"));
        check(&Error::TooNew { path: path.clone(), found: 2, known: 1 }, Some("/srv/a.db"));
        check(&Error::Moved { path: path.clone() }, Some("/srv/a.db"));
        check(&Error::Unwritable { path: path.clone(), source: source() }, Some("/srv/a.db"));
        check(&Error::Disk { path, source: source() }, Some("/srv/a.db"));
        check(&Error::Node(FsError::NoEntry), None);
        check(&Error::Busy, None);
        check(&Error::Invalid { what: "path", reason: "`/a` exists".to_owned() }, None);
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_text_is_left_out() {
        let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"/\xFF"));
        assert_eq!(Error::Moved { path }.path(), None);
    }
}
