//! What can go wrong with a skill. A script that fails is not an error but a result.

use std::path::PathBuf;

/// What can go wrong with a skill or a catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The package breaks a rule of the format.
    #[error("invalid skill: {0}")]
    Invalid(String),
    /// The archive is hostile or ambiguous.
    #[error("unsafe archive: {0}")]
    Unsafe(String),
    /// The package is larger than the catalog takes.
    #[error("skill too large: {0}")]
    TooLarge(String),
    /// The catalog has no skill of this name.
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
    /// The catalog has this version with other content.
    #[error("version {version} of skill `{name}` exists with other content ({digest})")]
    Conflict {
        /// The skill.
        name: String,
        /// The version.
        version: String,
        /// The digest of the version in the catalog.
        digest: String,
    },
    /// A requirement of the skill cannot be met.
    #[error("cannot install the requirements of skill `{name}`: {reason}")]
    Requirements {
        /// The skill.
        name: String,
        /// Why, for each requirement.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A file of this machine cannot be used.
    #[error("cannot {doing} `{}`", path.display())]
    Host {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The catalog's database cannot be used.
    #[error("cannot use the catalog of skills")]
    Catalog(#[from] rusqlite::Error),
    /// Something the caller gave is invalid.
    #[error("{0}")]
    Argument(String),
    /// The sandbox cannot be used.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
}

impl Error {
    /// Returns the code of the error, as Skillbox's interface has it.
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

    /// Returns what to do about it, when there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid(_) => Some("`sandlite skill lint DIR` lists every finding".to_owned()),
            Self::UnknownSkill(_) => Some("list the skills with `sandlite skill list`".to_owned()),
            Self::UnknownVersion { name, .. } => Some(format!("list its versions with `sandlite skill versions {name}`")),
            Self::Conflict { .. } => Some("raise `version` in SKILL.md, or replace it with `--replace`".to_owned()),
            Self::Requirements { hint, .. } => hint.clone(),
            Self::Runtime(error) => error.hint(),
            _ => None,
        }
    }

    /// Wraps an error of a file of this machine.
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
