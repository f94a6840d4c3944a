//! What comes back from a command.

use abi::WaitStatus;
use presets::LimitName;

use crate::{LimitReached, Usage};

/// How a command went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// More was written to standard output than the limit keeps.
    pub stdout_truncated: bool,
    /// More was written to standard error than the limit keeps.
    pub stderr_truncated: bool,
    /// What it used.
    pub usage: Usage,
    /// Its row in the history.
    pub run: i64,
    /// What Python code displayed beside its text: the value of a last expression, and pictures.
    pub shown: Vec<Shown>,
    /// It began in a new Python although its session had used one before: globals of earlier calls are gone.
    pub restarted: bool,
    /// Why a hook refused what the command changed: all of it was rolled back.
    pub refused: Option<String>,
    /// What else to know, such as an option that was not used as it was given.
    pub notes: Vec<String>,
}

/// What a person is told of a run with [`Output::restarted`].
pub const RESTARTED: &str = "the session has a new Python interpreter: state of earlier calls is lost";

/// Something that Python code displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it is: `text/plain` and `application/json` are the value of the last expression, `image/png` and `image/svg+xml` pictures.
    pub mime: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitStatus {
    /// By itself, with this code.
    Exited(u8),
    /// By a signal.
    Signaled(u8),
    /// By a limit.
    Limit(LimitReached),
}

impl Output {
    /// Whether its time was over.
    pub(crate) fn is_overdue(&self) -> bool {
        self.status.limit().is_some_and(|reached| reached.limit == LimitName::Wall)
    }
}

impl ExitStatus {
    /// Whether it exited with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        *self == Self::Exited(0)
    }

    /// One number for all: the exit code, 128 plus the signal, or the limit's own.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Exited(code) => *code,
            Self::Signaled(signal) => 128u8.saturating_add(*signal),
            Self::Limit(reached) => reached.exit_code(),
        }
    }

    /// How it ended, in one word: `exited`, `signaled` or `limit`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exited(_) => "exited",
            Self::Signaled(_) => "signaled",
            Self::Limit(_) => "limit",
        }
    }

    /// The limit that ended it, if one did.
    #[must_use]
    pub fn limit(&self) -> Option<&LimitReached> {
        match self {
            Self::Limit(reached) => Some(reached),
            _ => None,
        }
    }
}

impl From<WaitStatus> for ExitStatus {
    fn from(status: WaitStatus) -> Self {
        match status {
            WaitStatus::Exited(code) => Self::Exited(code),
            WaitStatus::Signaled(signal) => Self::Signaled(signal.number()),
        }
    }
}
