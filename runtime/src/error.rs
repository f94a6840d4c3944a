//! What an embedding program sees when Sandlite itself could not do its work.
//!
//! A command that exits 1, traps or meets a limit is not here: that is an [`Output`](crate::Output) with its status.

mod kind;

use std::path::PathBuf;

pub use kind::ErrorKind;

/// The host's own trouble.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database refused.
    #[error(transparent)]
    Database(#[from] sqlite_fs::Error),
    /// A limit override is zero or above the preset.
    #[error(transparent)]
    Limit(#[from] presets::LimitError),
    /// A hook refused what was about to be committed; nothing of it is kept.
    #[error("refused by a hook: {0}")]
    Refused(String),
    /// A policy makes no sense.
    #[error(transparent)]
    Policy(#[from] presets::PolicyError),
    /// A guest's wasm could not be unpacked.
    #[error("guest `{name}` cannot be unpacked")]
    Guest {
        /// The guest.
        name: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The engine refused a module, a setting or an instance.
    #[error("the WebAssembly engine refused: {doing}")]
    Engine {
        /// What was being done.
        doing: &'static str,
        /// Why.
        #[source]
        source: EngineError,
    },
    /// The directory for compiled guests cannot be used.
    #[error("cannot use the cache directory `{}`", path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The command is longer than its preset allows.
    #[error("the command has {used} bytes, and the preset allows {allowed}")]
    CommandTooLong {
        /// Bytes of the command with its arguments and environment.
        used: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// A host directory is not mounted.
    #[error("cannot mount `{}` at `{guest}`: {reason}", host.display())]
    Mount {
        /// The host directory.
        host: PathBuf,
        /// Where it was to be seen.
        guest: String,
        /// Why not.
        reason: String,
        /// What to do about it.
        hint: Option<&'static str>,
    },
    /// An overlay cannot be moved: both sides have changed some paths.
    #[error("cannot update `{path}`: {} changed on both sides: {}", counted(*total), listed(conflicts, *total))]
    Conflict {
        /// Where the overlay is.
        path: String,
        /// The paths, at most a thousand.
        conflicts: Vec<String>,
        /// How many there are.
        total: usize,
    },
    /// A source that is mounted cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Source {
        /// The path in the sandbox.
        path: String,
        /// What the source said.
        reason: String,
        /// The error that a guest gets.
        source: sqlite_fs::FsError,
    },
    /// A file of the host cannot be used.
    #[error("cannot use `{}`", path.display())]
    HostFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The content of a new file could not be read.
    #[error("cannot read the content of `{path}`")]
    Input {
        /// The file in the sandbox.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A new file is larger than the preset allows.
    #[error("cannot write `{path}`: the limit `{}` is {allowed}", limit.as_str())]
    TooLarge {
        /// The file.
        path: String,
        /// The limit it would exceed.
        limit: presets::LimitName,
        /// The limit's value.
        allowed: presets::ByteSize,
    },
    /// A file is not the one that was read: versions stand for content.
    #[error("`{path}` has version {found}, not {expected}: it was changed since it was read")]
    Stale {
        /// The file.
        path: String,
        /// The version the caller has seen.
        expected: String,
        /// The version there is; `none` when there is no file.
        found: String,
    },
    /// Files of a host directory were changed there and in the sandbox.
    #[error("cannot apply the changes to `{}`: {}", directory.display(), conflicts(paths))]
    Conflicts {
        /// The directory.
        directory: PathBuf,
        /// Paths below it, each with the reason.
        paths: Vec<(String, String)>,
    },
    /// Something the caller gave makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A guest that is installed apart is not there.
    #[error("the scientific Python is not installed: there is no guest `{guest}`")]
    NotInstalled {
        /// The guest.
        guest: &'static str,
    },
    /// A file is not the one that this version of Sandlite knows.
    #[error("`{}` has the sha256 {found}, not {expected}: it is not used", path.display())]
    Sum {
        /// The file.
        path: PathBuf,
        /// What it has, in hexadecimal.
        found: String,
        /// What it should have.
        expected: String,
    },
    /// A program of the owner cannot be used.
    #[error("cannot use the program `{name}`: {reason}")]
    Program {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A git repository cannot be read or written.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// No program of the host can be granted.
    #[error("cannot grant host commands: {reason}")]
    HostBridge {
        /// Why.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// Conflicts that an error names.
const CONFLICTS_NAMED: usize = 20;

fn conflicts(paths: &[(String, String)]) -> String {
    let named = paths.iter().take(CONFLICTS_NAMED).map(|(path, reason)| format!("`{path}` ({reason})"));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if paths.len() > CONFLICTS_NAMED {
        text.push_str(&format!(" and {} more", paths.len() - CONFLICTS_NAMED));
    }
    text
}

/// An error of the WebAssembly engine, kept opaque: the engine is not part of our interface.
#[derive(Debug)]
pub struct EngineError(wasmtime::Error);

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for EngineError {}

impl Error {
    /// Wraps an engine error with what was being done.
    pub(crate) fn engine(doing: &'static str) -> impl FnOnce(wasmtime::Error) -> Self {
        move |source| Self::Engine { doing, source: EngineError(source) }
    }

    /// An operation on a path of the sandbox that failed as it would on Linux.
    #[must_use]
    pub fn file(operation: &'static str, path: &str, source: sqlite_fs::FsError) -> Self {
        Self::Database(sqlite_fs::Error::Fs { operation, path: path.to_owned(), source })
    }

    /// The Linux error behind it, if an operation on a file failed.
    #[must_use]
    pub fn fs_error(&self) -> Option<sqlite_fs::FsError> {
        match self {
            Self::Database(error) => error.fs_error(),
            Self::Source { source, .. } => Some(*source),
            _ => None,
        }
    }

    /// Returns whether somebody else has the sandbox: another process has its file open, or a command did not end in time.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        use sqlite_fs::Error::{Busy, Locked, LockedElsewhere};
        matches!(self, Self::Database(Busy | Locked { .. } | LockedElsewhere(_)))
    }

    /// The path in the sandbox that it is about.
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

    /// What it is and each of its causes, most general first. Causes that the text before them says already are left out.
    #[must_use]
    pub fn causes(&self) -> Vec<String> {
        let mut said = vec![self.to_string()];
        let mut cause = std::error::Error::source(self);
        while let Some(source) = cause {
            let text = source.to_string();
            if said.last().is_none_or(|last| !last.ends_with(&text)) {
                said.push(text);
            }
            cause = source.source();
        }
        said
    }

    /// What to do about it, when there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Database(error) => error.hint().map(Into::into),
            Self::Mount { hint, .. } => hint.map(str::to_owned),
            Self::Conflicts { .. } => {
                Some("nothing was changed; `--patch` prints the changes, to be merged by hand or with `git apply -3`".to_owned())
            }
            Self::Conflict { .. } => {
                Some("`--ours` keeps the sandbox's own, `--theirs` takes the newer ones (`keep` in Python)".to_owned())
            }
            Self::Stale { .. } => Some("read the file again and repeat".to_owned()),
            Self::Cache { .. } => Some("set SANDLITE_CACHE to a directory that only you can write".to_owned()),
            Self::CommandTooLong { .. } => Some("put the text into a file and run the file, or choose a wider preset".to_owned()),
            Self::Program { name, reason } if reason.ends_with("not installed") => {
                Some(format!("install it with `sandlite guests add FILE.wasm --as {name}`"))
            }
            Self::HostBridge { reason } if reason.starts_with("bubblewrap") => {
                Some("install the package `bubblewrap`, and allow it to create user namespaces".to_owned())
            }
            Self::NotInstalled { guest } => Some(format!("`sandlite guests add {guest}` installs it")),
            Self::Sum { .. } => {
                Some("remove the file and fetch it again; if that does not help, it was changed at its source".to_owned())
            }
            Self::TooLarge { limit: presets::LimitName::Disk, .. } => {
                Some("delete files, or choose a wider preset; `sandlite presets` shows what each one allows".to_owned())
            }
            Self::TooLarge { .. } => Some("choose a wider preset; `sandlite presets` shows what each one allows".to_owned()),
            Self::Limit(_) => Some("`sandlite presets` shows what each preset allows".to_owned()),
            _ => None,
        }
    }
}

/// Paths that a message about many of them names.
const NAMED: usize = 10;

fn counted(total: usize) -> String {
    if total == 1 { "1 path was".to_owned() } else { format!("{total} paths were") }
}

fn listed(paths: &[String], total: usize) -> String {
    let named: Vec<String> = paths.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
    let more = if total > named.len() { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}
