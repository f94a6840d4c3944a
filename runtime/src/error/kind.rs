//! The kind of an error, for interfaces with few kinds: an HTTP status, an exit code, a class of exceptions.

use sqlite_fs::FsError;

use super::Error;

/// The kind of an [`Error`].
///
/// | kind | typical cause | what to do |
/// |---|---|---|
/// | [`NotFound`](Self::NotFound) | reading a missing file, `at("v99")` | check the name |
/// | [`Exists`](Self::Exists) | `rename` onto a directory that is not empty, `export` to an existing file | choose another name |
/// | [`Stale`](Self::Stale) | `write_if_version` or `compare_and_set` after a concurrent change; a version that was pruned | read again, then retry |
/// | [`Conflict`](Self::Conflict) | `update` or `apply` where both sides changed a path | choose a side |
/// | [`Denied`](Self::Denied) | a policy, a commit hook, a read-only mount or sandbox | ask the owner |
/// | [`TooLarge`](Self::TooLarge) | one file, value or command above its limit | use smaller pieces |
/// | [`Full`](Self::Full) | the limits `disk`, `inodes`, `names`, `keys` or `sessions` | remove something |
/// | [`Busy`](Self::Busy) | another process runs a command, or a command did not end in time | retry later |
/// | [`Interrupted`](Self::Interrupted) | [`Cancel`](crate::Cancel) | nothing: the caller requested it |
/// | [`Invalid`](Self::Invalid) | a path with a NUL byte, a limit of zero, an unknown mount option | correct the argument |
/// | [`Foreign`](Self::Foreign) | a file that is not a sandbox, is damaged, or has a newer format | see the hint |
/// | [`Internal`](Self::Internal) | the host: a full or failing disk, no thread, an unusable cache directory | see the causes |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A path, a key or a version does not exist.
    NotFound,
    /// The name is already taken, or a directory is not empty.
    Exists,
    /// A file or a key has another version than the caller expected.
    Stale,
    /// Both sides changed the same path.
    Conflict,
    /// A policy, a hook or a read-only mount rejected the operation.
    Denied,
    /// A file, value or command exceeds a limit.
    TooLarge,
    /// The sandbox is full.
    Full,
    /// Another command or process is using the sandbox.
    Busy,
    /// The caller cancelled the operation.
    Interrupted,
    /// An argument is invalid.
    Invalid,
    /// The file is not a sandbox, is damaged, or has a newer format.
    Foreign,
    /// The host failed: the disk, the engine, a thread.
    Internal,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let error = sandbox.fs().read("/missing").unwrap_err();
    /// assert_eq!(error.kind(), sandlite_runtime::ErrorKind::NotFound);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Database(error) => of_database(error),
            Self::Source { source, .. } => of_file(*source),
            Self::Refused(_) => ErrorKind::Denied,
            Self::CommandTooLong { .. } => ErrorKind::TooLarge,
            Self::TooLarge { limit: presets::LimitName::Disk, .. } => ErrorKind::Full,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Stale { .. } => ErrorKind::Stale,
            Self::Conflict { .. } | Self::Conflicts { .. } => ErrorKind::Conflict,
            Self::Limit(_)
            | Self::Policy(_)
            | Self::Mount { .. }
            | Self::Invalid(_)
            | Self::NotInstalled { .. }
            | Self::Program { .. }
            | Self::Git(_)
            | Self::HostBridge { .. } => ErrorKind::Invalid,
            Self::Guest { .. }
            | Self::Engine { .. }
            | Self::Cache { .. }
            | Self::HostFile { .. }
            | Self::Input { .. }
            | Self::Sum { .. }
            | Self::Thread(_) => ErrorKind::Internal,
        }
    }
}

fn of_database(error: &sqlite_fs::Error) -> ErrorKind {
    use sqlite_fs::Error as E;
    match error {
        E::Fs { source, .. } => of_file(*source),
        E::Node(source) => of_file(*source),
        E::Locked { .. } | E::Busy | E::LockedElsewhere(_) => ErrorKind::Busy,
        E::ReadOnly => ErrorKind::Denied,
        E::Interrupted => ErrorKind::Interrupted,
        E::Foreign { .. } | E::Tampered { .. } | E::TooNew { .. } | E::Damaged(_) | E::NotADatabase | E::Refused { .. } => {
            ErrorKind::Foreign
        }
        E::NoVersion { .. } => ErrorKind::NotFound,
        E::Conflict { .. } => ErrorKind::Stale,
        E::Invalid { .. } => ErrorKind::Invalid,
        E::Quota { .. } => ErrorKind::Full,
        E::Disk { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => ErrorKind::Exists,
        _ => ErrorKind::Internal,
    }
}

fn of_file(error: FsError) -> ErrorKind {
    match error {
        FsError::NoEntry | FsError::Unknown => ErrorKind::NotFound,
        FsError::Exists | FsError::NotEmpty => ErrorKind::Exists,
        FsError::NotPermitted | FsError::Access | FsError::ReadOnly => ErrorKind::Denied,
        FsError::FileTooBig => ErrorKind::TooLarge,
        FsError::NoSpace => ErrorKind::Full,
        FsError::Busy => ErrorKind::Busy,
        FsError::Interrupted => ErrorKind::Interrupted,
        FsError::Stale => ErrorKind::Stale,
        FsError::Damaged => ErrorKind::Foreign,
        FsError::Io => ErrorKind::Internal,
        _ => ErrorKind::Invalid,
    }
}
