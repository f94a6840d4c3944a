//! Errors for two audiences: [`FsError`] for the program that uses the files, [`Error`] for the embedder.

use std::path::PathBuf;

/// An error of a file operation, with the meaning of the Linux error number of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FsError {
    /// EPERM: for example a second name for a directory.
    NotPermitted,
    /// ENOENT
    NoEntry,
    /// EINTR: the operation was interrupted; the transaction remains usable. The operation had no effect, except for a
    /// large file that was being truncated, removed or extended: its size reflects the progress so far.
    Interrupted,
    /// EIO: the database returned an error; the transaction is lost.
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
    /// ESTALE: the version was pruned while it was being read.
    Stale,
    /// EUCLEAN: the rows are inconsistent, for example because the file was tampered with.
    Damaged,
}

impl FsError {
    /// Returns Linux's error number.
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
        /// The attempted operation as a verb: `read`, `rename`, …
        operation: &'static str,
        /// The path.
        path: String,
        /// The cause.
        source: FsError,
    },
    /// An inode-level operation failed.
    #[error(transparent)]
    Node(#[from] FsError),
    /// Another process has an open transaction.
    #[error("`{}` is in use by {}", path.display(), holder(*pid))]
    Locked {
        /// The database.
        path: PathBuf,
        /// The process ID of the holder, if its lock file contains it.
        pid: Option<u32>,
    },
    /// The file is on a network filesystem.
    #[error("`{}` is on a network filesystem ({kind}): locks and the log are not reliable there", path.display())]
    NetworkFilesystem {
        /// The database.
        path: PathBuf,
        /// The type of the filesystem.
        kind: String,
    },
    /// The deadline passed while another transaction of this process was running.
    #[error("another command of this process is still running in the sandbox")]
    Busy,
    /// The database was opened read-only.
    #[error("the database is open read-only")]
    ReadOnly,
    /// [`Interrupter::interrupt`](crate::Interrupter::interrupt) was called.
    #[error("interrupted")]
    Interrupted,
    /// The file is not a Sandlite database.
    #[error("`{}` is not a sandlite database: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file is a Sandlite database, but it or a file next to it contains something that would act when used.
    #[error("cannot open `{}` directly: {reason}", path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file was written by a newer version.
    #[error("`{}` has format {found}; this version supports up to {known}", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest supported format.
        known: i64,
    },
    /// The version does not exist.
    #[error("unknown version {version}{}", range(*oldest, *newest))]
    NoVersion {
        /// Its number.
        version: i64,
        /// The oldest existing one.
        oldest: Option<i64>,
        /// The newest one.
        newest: Option<i64>,
    },
    /// The file was replaced, renamed or removed while it was open.
    #[error("`{}` was replaced or removed while it was open", path.display())]
    Moved {
        /// Its former path.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// The file is not a SQLite database.
    #[error("the file is not a database")]
    NotADatabase,
    /// A foreign file violates a rule, so nothing was imported.
    #[error("the file was rejected: {}", verdict(rule, detail))]
    Refused {
        /// The rule, as [`Violation::rule`](crate::Violation::rule) names it.
        rule: &'static str,
        /// The location of the violation.
        detail: String,
    },
    /// SQLite rolled the transaction back after an error; none of its changes are stored.
    #[error("the transaction was rolled back: {0}")]
    RolledBack(String),
    /// A key has another version than expected.
    #[error("key `{key}` has version {found}, expected {expected}")]
    Conflict {
        /// The key.
        key: String,
        /// The expected version (0: must not exist).
        expected: u64,
        /// The actual version (0: none).
        found: u64,
    },
    /// A value or argument is invalid.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// The argument.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// A budget of the [quota](crate::Quota) is exhausted; nothing was changed.
    #[error("limit `{limit}` reached: {} allowed, {} needed", size(*allowed), size(*needed))]
    Quota {
        /// Its name: `keys` or `sessions`.
        limit: &'static str,
        /// The allowed number of bytes.
        allowed: u64,
        /// The required number of bytes.
        needed: u64,
    },
    /// The disk is full, or the file has reached its maximum size.
    #[error("the disk is full")]
    DiskFull(rusqlite::Error),
    /// Reading or writing the file failed.
    #[error("disk error while the database was being {}", activity(.0))]
    DiskFailed(rusqlite::Error),
    /// The file cannot be opened.
    #[error("the database file cannot be opened")]
    CannotOpen(rusqlite::Error),
    /// The file's permissions or its filesystem do not allow changes.
    #[error("the database file or its directory is not writable")]
    NotWritable(rusqlite::Error),
    /// Another program has locked the file with SQLite's locks.
    #[error("another program has locked the database")]
    LockedElsewhere(rusqlite::Error),
    /// The directory of a database is not writable.
    #[error("cannot open `{}` for writing", path.display())]
    Unwritable {
        /// The database.
        path: PathBuf,
        /// The reason why the file next to it cannot be created.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("database error")]
    Sqlite(#[source] rusqlite::Error),
    /// A file next to the database cannot be used.
    #[error("cannot use `{}`", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// The rule that a foreign file must be a SQLite database.
pub(crate) const NO_DATABASE: &str = "file format";

/// Describes why a file was rejected. If it is not a database at all, the detail explains that without the name of the rule.
fn verdict(rule: &str, detail: &str) -> String {
    if rule == NO_DATABASE { detail.to_owned() } else { format!("{rule}: {detail}") }
}

/// Describes the existing versions.
fn range(oldest: Option<i64>, newest: Option<i64>) -> String {
    match (oldest, newest) {
        (Some(oldest), Some(newest)) if oldest == newest => format!(": only {newest} exists"),
        (Some(oldest), Some(newest)) => format!(": {oldest} to {newest} exist"),
        _ => ": there are none".to_owned(),
    }
}

/// Returns SQLite's activity as a participle.
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

/// Formats bytes in the largest unit with one decimal.
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
    /// Returns a hint for the user, if any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Locked { .. } => "end that process, wait longer with `--wait`, or work in a copy made with `sandlite fork`",
            Self::NetworkFilesystem { .. } => "keep the database on a local disk and export snapshots to the network",
            Self::Busy => "wait for that command, or end it",
            Self::ReadOnly => "open the database without `read_only`",
            Self::Foreign { .. } => {
                "name another file, or import an AgentFS or LocalSandbox file with `sandlite --db NEW.db import FILE`"
            }
            Self::Tampered { .. } => "import the file: its rows are checked and copied into a new database",
            Self::TooNew { .. } => "use a newer version",
            Self::NoVersion { .. } => "list the versions with `sandlite log`; older ones were pruned",
            Self::Moved { .. } => {
                "no changes were made, and earlier changes are in the file that was moved: \
                 put it back, or open the sandbox again"
            }
            Self::Damaged(_) => "restore an exported snapshot, or copy the readable data with `sandlite export`",
            Self::NotADatabase => "check the path: a sandbox is a file that `sandlite` created",
            Self::RolledBack(_) => "run the command again; the state before it is intact",
            Self::Conflict { .. } => "read the key again and retry",
            Self::DiskFull(_) => "free some space; the state before the command is intact",
            Self::DiskFailed(_) => "check the disk, its free space and the limits of this process; committed data is intact",
            Self::CannotOpen(_) => "check that it is a file and that you can read and write it and its directory",
            Self::NotWritable(_) => "make both writable, or work on a copy elsewhere",
            Self::LockedElsewhere(_) => "close the program that has the file open, then retry",
            Self::Unwritable { source, .. } | Self::Disk { source, .. } => return disk_hint(source),
            Self::Quota { limit: "keys", .. } => "delete keys that are no longer needed, or use a less restrictive preset",
            Self::Quota { .. } => "remove sessions that are no longer needed, or use a less restrictive preset",
            Self::Fs { source: FsError::NoSpace | FsError::FileTooBig, .. } => {
                "delete files, or use a preset with more `disk`, `file`, `inodes` or `names`"
            }
            Self::Fs { source: FsError::Damaged, .. } => {
                "list the problems with `sandlite check`, or restore an exported snapshot"
            }
            _ => return None,
        })
    }

    /// Returns the path that the error refers to.
    ///
    /// For [`Error::Fs`] it is a path inside the database. For all others it is a path on the host, or `None` if that is not
    /// UTF-8.
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

    /// Returns the same failure as part of another operation: `cannot copy`, if copying started with a lookup.
    #[must_use]
    pub fn during(self, operation: &'static str) -> Self {
        match self {
            Self::Fs { path, source, .. } => Self::Fs { operation, path, source },
            error => error,
        }
    }

    /// Returns the underlying Linux error, if a file operation failed.
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
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "make its directory writable, or use another directory",
        ErrorKind::NotFound => "create its directory first",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space, or raise the limits of this process"
        }
        ErrorKind::IsADirectory => "name a file",
        ErrorKind::AlreadyExists => "choose a new name",
        _ => return None,
    })
}

/// Translates an error of SQLite.
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
            // The file is shorter than its header claims.
            Some(ErrorCode::SystemIoFailure) if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHORT_READ) => {
                Self::Damaged("it is truncated".to_owned())
            }
            Some(ErrorCode::OperationInterrupted) => Self::Interrupted,
            Some(ErrorCode::DiskFull) => Self::DiskFull(error),
            // The index of the log has no space.
            Some(ErrorCode::SystemIoFailure) if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE) => {
                Self::DiskFull(error)
            }
            Some(ErrorCode::SystemIoFailure) => Self::DiskFailed(error),
            Some(ErrorCode::CannotOpen) => Self::CannotOpen(error),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::NotWritable(error),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::LockedElsewhere(error),
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged(what_is_damaged(error)),
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            _ if is_damage(&error) => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

/// Returns our description of the damage; SQLite itself only reports that there is some.
fn what_is_damaged(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(what)) if what != "database disk image is malformed" => what,
        _ => "its pages are inconsistent".to_owned(),
    }
}

/// Returns whether an error means that the file is damaged: inconsistent pages, or a value of the wrong type.
fn is_damage(error: &rusqlite::Error) -> bool {
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

/// Creates the error for rows that violate the format.
pub(crate) fn damaged(what: impl Into<String>) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), Some(what.into()))
}

/// An error inside the store: the guest's own mistake, or SQLite.
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
                _ if is_damage(error) => FsError::Damaged,
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
    fn a_rejected_file_that_is_not_a_database_needs_no_name_of_a_rule() {
        let shown = |rule, detail: &str| Error::Refused { rule, detail: detail.to_owned() }.to_string();
        assert_eq!(shown("quota", "too many checkpoints"), "the file was rejected: quota: too many checkpoints");
        assert_eq!(shown(NO_DATABASE, "it is a text file"), "the file was rejected: it is a text file");
    }

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

    // The numbers of Linux, as its headers have them.
    #[test]
    fn each_error_has_the_number_of_linux() {
        use rustix::io::Errno;
        for (error, errno) in [
            (FsError::NotPermitted, Errno::PERM),
            (FsError::NoEntry, Errno::NOENT),
            (FsError::Interrupted, Errno::INTR),
            (FsError::Io, Errno::IO),
            (FsError::BadDescriptor, Errno::BADF),
            (FsError::Access, Errno::ACCESS),
            (FsError::Busy, Errno::BUSY),
            (FsError::Exists, Errno::EXIST),
            (FsError::CrossDevice, Errno::XDEV),
            (FsError::NotDirectory, Errno::NOTDIR),
            (FsError::IsDirectory, Errno::ISDIR),
            (FsError::Invalid, Errno::INVAL),
            (FsError::FileTooBig, Errno::FBIG),
            (FsError::NoSpace, Errno::NOSPC),
            (FsError::ReadOnly, Errno::ROFS),
            (FsError::TooManyLinks, Errno::MLINK),
            (FsError::NameTooLong, Errno::NAMETOOLONG),
            (FsError::NotEmpty, Errno::NOTEMPTY),
            (FsError::Loop, Errno::LOOP),
            (FsError::Unknown, Errno::NODATA),
            (FsError::Stale, Errno::STALE),
            (FsError::Damaged, Errno::UCLEAN),
        ] {
            assert_eq!(error.errno(), errno.raw_os_error(), "{error:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_text_is_left_out() {
        let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"/\xFF"));
        assert_eq!(Error::Moved { path }.path(), None);
    }
}
