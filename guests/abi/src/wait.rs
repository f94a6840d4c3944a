//! The end of a child, as reported by `wait`.

use crate::Signal;

/// `wait` returns at once, with pid 0, when no child has ended yet.
pub const WAIT_NO_HANG: u32 = 1;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStatus {
    /// It ended by itself with this code.
    Exited(u8),
    /// A signal ended it.
    Signaled(Signal),
}

impl WaitStatus {
    /// Returns the number on the wire: the code, or the signal shifted up by eight bits.
    #[must_use]
    pub fn to_raw(self) -> u32 {
        match self {
            Self::Exited(code) => u32::from(code),
            Self::Signaled(signal) => u32::from(signal.number()) << 8,
        }
    }

    /// Returns the status behind a number on the wire.
    #[must_use]
    pub fn from_raw(raw: u32) -> Self {
        match Signal::from_raw(raw >> 8) {
            Some(signal) => Self::Signaled(signal),
            None => Self::Exited((raw & 0xff) as u8),
        }
    }

    /// Returns what a shell puts into `$?`: the code, or 128 plus the signal.
    #[must_use]
    pub fn shell_code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128u8.saturating_add(signal.number()),
        }
    }
}

/// An ended child: which, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The child's process id.
    pub pid: u32,
    /// How it ended.
    pub status: WaitStatus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_the_wire() {
        for status in [WaitStatus::Exited(0), WaitStatus::Exited(255), WaitStatus::Signaled(Signal::PIPE)] {
            assert_eq!(WaitStatus::from_raw(status.to_raw()), status);
        }
    }

    #[test]
    fn a_shell_sees_128_plus_the_signal() {
        assert_eq!(WaitStatus::Signaled(Signal::TERM).shell_code(), 143);
    }
}
