//! Errors of repositories.

use std::path::{Path, PathBuf};

use crate::Id;

/// The reason a repository cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// The path is not a repository or bundle.
    #[error("`{}` is not a git repository or bundle", path.display())]
    NotRepository {
        /// The path.
        path: PathBuf,
    },
    /// The repository uses a feature that is not supported.
    #[error("unsupported git repository: {0}")]
    Unsupported(String),
    /// The data is inconsistent.
    #[error("damaged git repository: {0}")]
    Damaged(String),
    /// An object is missing, as in a partial clone.
    #[error("damaged git repository: object {0} is missing")]
    Missing(Id),
    /// A limit is exceeded.
    #[error("git repository too large: {0}")]
    TooLarge(String),
    /// A reference does not exist.
    #[error("unknown git reference `{0}`")]
    UnknownReference(String),
    /// The caller cancelled the operation.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path: path.clone(), source }
    }

    pub(crate) fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged(reason.into())
    }
}
