//! Errors of skills and catalogs. A script that fails is a result, not an error.

use std::path::PathBuf;

/// An error of a skill or a catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The package violates the format.
    #[error("invalid skill: {0}")]
    Invalid(String),
    /// The archive is hostile or ambiguous.
    #[error("unsafe archive: {0}")]
    Unsafe(String),
    /// The package exceeds the maximum size.
    #[error("skill too large: {0}")]
    TooLarge(String),
    /// The catalog has no skill with this name.
    #[error("unknown skill `{0}`")]
    UnknownSkill(String),
    /// The catalog has no such version of the skill.
    #[error("unknown version `{version}` of skill `{name}`")]
    UnknownVersion {
        /// The skill.
        name: String,
        /// The version.
        version: String,
    },
    /// The catalog already has this version with other content.
    #[error("version {version} of skill `{name}` already exists with different content ({digest})")]
    Conflict {
        /// The skill.
        name: String,
        /// The version.
        version: String,
        /// The digest of the version in the catalog.
        digest: String,
    },
    /// A requirement of the skill cannot be installed.
    #[error("cannot install the requirements of skill `{name}`: {reason}")]
    Requirements {
        /// The skill.
        name: String,
        /// The reasons.
        reason: String,
        /// The hint.
        hint: Option<String>,
    },
    /// A file on this machine cannot be read or written.
    #[error("cannot {doing} `{}`", path.display())]
    Host {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The catalog's database cannot be read or written.
    #[error("cannot access the skill catalog")]
    Catalog(#[from] rusqlite::Error),
    /// An argument of the caller is invalid.
    #[error("{0}")]
    Argument(String),
    /// The sandbox failed.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
}

impl Error {
    /// Returns the error code of Skillbox's API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) | Self::Requirements { .. } => "invalid_skill",
            Self::Unsafe(_) => "security_scan_failed",
            Self::TooLarge(_) => "too_large",
            Self::UnknownSkill(_) | Self::UnknownVersion { .. } => "not_found",
            Self::Conflict { .. } => "conflict",
            Self::Argument(_) => "bad_request",
            Self::Host { .. } | Self::Catalog(_) | Self::Runtime(_) => "internal_error",
        }
    }

    /// Returns a hint, if any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid(_) => Some("list all problems with `sandlite skill lint DIR`".to_owned()),
            Self::UnknownSkill(_) => Some("list the skills with `sandlite skill list`".to_owned()),
            Self::UnknownVersion { name, .. } => Some(format!("list its versions with `sandlite skill versions {name}`")),
            Self::Conflict { .. } => Some("increase `version` in SKILL.md, or replace the content with `--replace`".to_owned()),
            Self::Requirements { hint, .. } => hint.clone(),
            Self::Runtime(error) => error.hint(),
            _ => None,
        }
    }

    /// Wraps an I/O error of a file on this machine.
    pub(crate) fn host(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Host { doing, path, source }
    }
}

impl From<Error> for runtime::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Runtime(error) => error,
            other => {
                let cause = std::error::Error::source(&other).map(|cause| format!(": {cause}")).unwrap_or_default();
                Self::Invalid(format!("{other}{cause}"))
            }
        }
    }
}
