//! The result of a command.

use abi::WaitStatus;
use presets::LimitName;

use crate::{LimitReached, Usage};

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The status.
    pub status: ExitStatus,
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The standard error.
    pub stderr: Vec<u8>,
    /// Whether standard output exceeded the limit and is truncated.
    pub stdout_truncated: bool,
    /// Whether standard error exceeded the limit and is truncated.
    pub stderr_truncated: bool,
    /// The resource usage.
    pub usage: Usage,
    /// Its row in the history.
    pub run: i64,
    /// Values that Python code displayed besides its text: the value of a last expression, and images.
    pub shown: Vec<Shown>,
    /// Whether it ran in a new Python although its session had used one before, so that globals of earlier calls are lost.
    pub restarted: bool,
    /// The message of a hook that rejected the command's changes, all of which were rolled back.
    pub refused: Option<String>,
    /// Notes, such as an option that was adjusted.
    pub notes: Vec<String>,
}

/// The note for a run with [`Output::restarted`].
pub const RESTARTED: &str = "the session has a new Python interpreter: state of earlier calls is lost";

/// A value that Python code displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The type: `text/plain` and `application/json` are the value of the last expression, `image/png` and `image/svg+xml`
    /// images.
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
    /// Returns whether it timed out.
    pub(crate) fn is_overdue(&self) -> bool {
        self.status.limit().is_some_and(|reached| reached.limit == LimitName::Wall)
    }
}

impl ExitStatus {
    /// Returns whether it exited with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        *self == Self::Exited(0)
    }

    /// Returns one number for all cases: the exit code, 128 plus the signal, or the limit's own.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Exited(code) => *code,
            Self::Signaled(signal) => 128u8.saturating_add(*signal),
            Self::Limit(reached) => reached.exit_code(),
        }
    }

    /// Returns the kind of status: `exited`, `signaled` or `limit`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exited(_) => "exited",
            Self::Signaled(_) => "signaled",
            Self::Limit(_) => "limit",
        }
    }

    /// Returns the limit that ended it, if any.
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
