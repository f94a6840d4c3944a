//! How a host call can go wrong: the guest learns an errno, or the guest ends.

use abi::spawn::Request;
use abi::{Errno, Signal};

use super::wait::Interruption;
use crate::limits::LimitReached;

/// Why a process ends. Travels through the engine as the error of the wasm call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It called `proc_exit`.
    Exit(u8),
    /// It becomes another program.
    Exec(Box<Request>),
    /// A signal ended it, or the command is over; the process knows which.
    Killed,
    /// It did something that ends a process by this signal.
    Signal(Signal),
    /// The command met a limit.
    Limit,
    /// The host's own code panicked in a call of this process; the instance is not run again (T-DOS-10).
    HostPanic,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process ended: {self:?}")
    }
}

impl std::error::Error for Ended {}

/// How a host call fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The guest sees this errno.
    Errno(Errno),
    /// The guest ends.
    End(Ended),
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<Ended> for Fault {
    fn from(ended: Ended) -> Self {
        Self::End(ended)
    }
}

impl From<LimitReached> for Fault {
    fn from(_: LimitReached) -> Self {
        Self::End(Ended::Limit)
    }
}

impl From<Interruption> for Fault {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::End => Self::End(Ended::Killed),
            Interruption::Signal => Self::Errno(Errno::INTR),
        }
    }
}
