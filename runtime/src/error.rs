//! Errors of Sandlite itself, for the embedding program.
//!
//! A command that exits 1, traps or reaches a limit is not an error but an [`Output`](crate::Output) with a status.

mod kind;

use std::path::PathBuf;

pub use kind::ErrorKind;

/// An error of the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database returned an error.
    #[error(transparent)]
    Database(#[from] sqlite_fs::Error),
    /// A limit override is zero or exceeds the preset.
    #[error(transparent)]
    Limit(#[from] presets::LimitError),
    /// A hook rejected a commit; nothing was changed.
    #[error("rejected by a hook: {0}")]
    Refused(String),
    /// A policy is invalid.
    #[error(transparent)]
    Policy(#[from] presets::PolicyError),
    /// A guest's wasm cannot be unpacked.
    #[error("cannot unpack guest `{name}`")]
    Guest {
        /// The guest.
        name: &'static str,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// The engine rejected a module, a setting or an instance.
    #[error("the WebAssembly engine failed: {doing}")]
    Engine {
        /// The operation.
        doing: &'static str,
        /// The cause.
        #[source]
        source: EngineError,
    },
    /// The directory for compiled guests cannot be used.
    #[error("cannot use the cache directory `{}`", path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The command exceeds the limit of its preset.
    #[error("the command has {used} bytes; the preset allows {allowed}")]
    CommandTooLong {
        /// Size of the command with its arguments and environment, in bytes.
        used: u64,
        /// Maximum size, in bytes.
        allowed: u64,
    },
    /// A host directory cannot be mounted.
    #[error("cannot mount `{}` at `{guest}`: {reason}", host.display())]
    Mount {
        /// The host directory.
        host: PathBuf,
        /// The mount point.
        guest: String,
        /// The reason.
        reason: String,
        /// The hint.
        hint: Option<&'static str>,
    },
    /// An overlay cannot be moved because both sides changed some paths.
    #[error("cannot update `{path}`: {} changed on both sides: {}", counted(*total), listed(conflicts, *total))]
    Conflict {
        /// The path of the overlay.
        path: String,
        /// The paths, at most a thousand.
        conflicts: Vec<String>,
        /// The total number of paths.
        total: usize,
    },
    /// A mounted source cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Source {
        /// The path in the sandbox.
        path: String,
        /// The message of the source.
        reason: String,
        /// The error for the guest.
        source: sqlite_fs::FsError,
    },
    /// A file on the host cannot be used.
    #[error("cannot use `{}`", path.display())]
    HostFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The content of a new file cannot be read.
    #[error("cannot read the content of `{path}`")]
    Input {
        /// The file in the sandbox.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A new file exceeds a limit of the preset.
    #[error("cannot write `{path}`: the limit `{}` is {allowed}", limit.as_str())]
    TooLarge {
        /// The file.
        path: String,
        /// The limit.
        limit: presets::LimitName,
        /// The limit's value.
        allowed: presets::ByteSize,
    },
    /// A file changed since it was read.
    #[error("`{path}` has version {found}, expected {expected}: it was changed since it was read")]
    Stale {
        /// The file.
        path: String,
        /// The expected version.
        expected: String,
        /// The actual version; `none` if the file does not exist.
        found: String,
    },
    /// Files of a host directory were changed both there and in the sandbox.
    #[error("cannot apply the changes to `{}`: {}", directory.display(), conflicts(paths))]
    Conflicts {
        /// The directory.
        directory: PathBuf,
        /// Paths relative to it, each with a reason.
        paths: Vec<(String, String)>,
    },
    /// An argument is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A separately installed guest is missing.
    #[error("the scientific Python (guest `{guest}`) is not installed")]
    NotInstalled {
        /// The guest.
        guest: &'static str,
    },
    /// A file does not have the expected hash.
    #[error("cannot use `{}`: its sha256 is {found}, expected {expected}", path.display())]
    Sum {
        /// The file.
        path: PathBuf,
        /// The actual hash, in hexadecimal.
        found: String,
        /// The expected hash.
        expected: String,
    },
    /// A custom program cannot be used.
    #[error("cannot use the program `{name}`: {reason}")]
    Program {
        /// Its name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A git repository cannot be read or written.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// Host programs cannot be granted.
    #[error("cannot grant host commands: {reason}")]
    HostBridge {
        /// The reason.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// Maximum number of conflicts listed in an error.
const CONFLICTS_NAMED: usize = 20;

fn conflicts(paths: &[(String, String)]) -> String {
    let named = paths.iter().take(CONFLICTS_NAMED).map(|(path, reason)| format!("`{path}` ({reason})"));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if paths.len() > CONFLICTS_NAMED {
        text.push_str(&format!(" and {} more", paths.len() - CONFLICTS_NAMED));
    }
    text
}

/// An opaque error of the WebAssembly engine, which is not part of our API.
#[derive(Debug)]
pub struct EngineError(wasmtime::Error);

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for EngineError {}

impl Error {
    /// Wraps an engine error with the operation.
    pub(crate) fn engine(doing: &'static str) -> impl FnOnce(wasmtime::Error) -> Self {
        move |source| Self::Engine { doing, source: EngineError(source) }
    }

    /// Creates the error of a failed operation on a path in the sandbox.
    #[must_use]
    pub fn file(operation: &'static str, path: &str, source: sqlite_fs::FsError) -> Self {
        Self::Database(sqlite_fs::Error::Fs { operation, path: path.to_owned(), source })
    }

    /// Returns the underlying Linux error, if a file operation failed.
    #[must_use]
    pub fn fs_error(&self) -> Option<sqlite_fs::FsError> {
        match self {
            Self::Database(error) => error.fs_error(),
            Self::Source { source, .. } => Some(*source),
            _ => None,
        }
    }

    /// Returns whether the sandbox is in use: another process has its file open, or a command did not end in time.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        use sqlite_fs::Error::{Busy, Locked, LockedElsewhere};
        matches!(self, Self::Database(Busy | Locked { .. } | LockedElsewhere(_)))
    }

    /// Returns the path in the sandbox that the error refers to.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Database(error) => error.path(),
            Self::Stale { path, .. } | Self::TooLarge { path, .. } | Self::Input { path, .. } | Self::Source { path, .. } => {
                Some(path)
            }
            _ => None,
        }
    }

    /// Returns the error text and each of its causes, most general first. Causes contained in the text before them are omitted.
    #[must_use]
    pub fn causes(&self) -> Vec<String> {
        causes(self)
    }

    /// Returns a hint, if any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Database(error) => error.hint().map(Into::into),
            Self::Mount { hint, .. } => hint.map(str::to_owned),
            Self::Conflicts { .. } => Some(
                "no changes were made; print the changes with `--patch`, and merge them manually or with `git apply -3`"
                    .to_owned(),
            ),
            Self::Conflict { .. } => Some(
                "use `--ours` to keep the sandbox's changes, or `--theirs` to take the newer ones (`keep` in Python)".to_owned(),
            ),
            Self::Stale { .. } => Some("read the file again and retry".to_owned()),
            Self::Cache { .. } => Some("set SANDLITE_CACHE to a directory that only you can write".to_owned()),
            Self::CommandTooLong { .. } => {
                Some("put the text into a file and run the file, or use a less restrictive preset".to_owned())
            }
            Self::Program { name, reason } if reason.ends_with("not installed") => {
                Some(format!("install it with `sandlite guests add FILE.wasm --as {name}`"))
            }
            Self::HostBridge { reason } if reason.starts_with("bubblewrap") => {
                Some("install the package `bubblewrap`, and allow it to create user namespaces".to_owned())
            }
            Self::NotInstalled { guest } => Some(format!("install it with `sandlite guests add {guest}`")),
            Self::Sum { .. } => Some(
                "remove the file and download it again; if the error persists, the file was changed at its source".to_owned(),
            ),
            Self::TooLarge { limit: presets::LimitName::Disk, .. } => {
                Some("delete files, or use a less restrictive preset; list them with `sandlite presets`".to_owned())
            }
            Self::TooLarge { .. } => Some("use a less restrictive preset; list them with `sandlite presets`".to_owned()),
            Self::Limit(_) => Some("list the limits of each preset with `sandlite presets`".to_owned()),
            _ => None,
        }
    }
}

/// Returns the text of any error and of each of its causes, most general first. Causes contained in the text before them are
/// omitted.
#[must_use]
pub fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let mut said = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(source) = cause {
        let text = source.to_string();
        if said.last().is_none_or(|last| !last.ends_with(&text)) {
            said.push(text);
        }
        cause = source.source();
    }
    said
}

/// Maximum number of paths listed in a message.
const NAMED: usize = 10;

fn counted(total: usize) -> String {
    if total == 1 { "1 path was".to_owned() } else { format!("{total} paths were") }
}

fn listed(paths: &[String], total: usize) -> String {
    let named: Vec<String> = paths.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
    let more = if total > named.len() { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}
