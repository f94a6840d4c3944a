//! Exit codes. No other file chooses them.

use std::process::ExitCode;

use runtime::ExitStatus;

/// The signal that ends a program whose output is closed.
pub(crate) const SIGPIPE: u8 = 13;

/// The outcome reported to our caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Success.
    Success,
    /// A negative result: not found, not possible, damaged.
    Failure,
    /// Sandlite itself failed.
    Sandlite,
    /// The guest's own code: its exit status, 128 plus its signal, 124 for time and compute, 137 for memory.
    Guest(u8),
    /// Stopped by a signal.
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
