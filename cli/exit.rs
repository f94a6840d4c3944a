//! Exit codes: the only place that decides them.

use std::process::ExitCode;

use runtime::ExitStatus;

/// What the process tells its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// It worked.
    Success,
    /// What was asked for is not there.
    NotFound,
    /// Sandlite itself failed.
    Sandlite,
    /// The guest's own code: its exit status, 128 plus its signal, 124 for time and compute, 137 for memory.
    Guest(u8),
}

impl From<&ExitStatus> for Code {
    fn from(status: &ExitStatus) -> Self {
        Self::Guest(status.code())
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        match code {
            Code::Success => Self::SUCCESS,
            Code::NotFound => Self::from(1),
            Code::Sandlite => Self::from(125),
            Code::Guest(code) => Self::from(code),
        }
    }
}
