//! Exit codes: the only place that decides them.

use std::process::ExitCode;

use runtime::ExitStatus;

/// The signal that ends a program whose output nobody reads.
pub(crate) const SIGPIPE: u8 = 13;

/// What the process tells its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// It worked.
    Success,
    /// The answer is no: not there, not possible, not sound.
    Failure,
    /// Sandlite itself failed.
    Sandlite,
    /// The guest's own code: its exit status, 128 plus its signal, 124 for time and compute, 137 for memory.
    Guest(u8),
    /// A signal told us to stop.
    Signal(u8),
}

impl From<&ExitStatus> for Code {
    fn from(status: &ExitStatus) -> Self {
        Self::Guest(status.code())
    }
}

impl From<Code> for u8 {
    fn from(code: Code) -> Self {
        match code {
            Code::Success => 0,
            Code::Failure => 1,
            Code::Sandlite => 125,
            Code::Guest(code) => code,
            Code::Signal(signal) => signal.saturating_add(128),
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(u8::from(code))
    }
}
