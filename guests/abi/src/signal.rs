//! Signals by their Linux numbers, and what a process wants done with one.

/// A signal. The numbers are Linux's, so that `kill -9` and `128 + n` mean what a shell user expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signal(u8);

impl Signal {
    /// Hang-up.
    pub const HUP: Self = Self(1);
    /// Interrupt from the keyboard.
    pub const INT: Self = Self(2);
    /// Quit from the keyboard.
    pub const QUIT: Self = Self(3);
    /// Abort.
    pub const ABRT: Self = Self(6);
    /// Kill: cannot be caught or ignored.
    pub const KILL: Self = Self(9);
    /// First user signal.
    pub const USR1: Self = Self(10);
    /// Invalid memory reference: how a trapped guest ends.
    pub const SEGV: Self = Self(11);
    /// Second user signal.
    pub const USR2: Self = Self(12);
    /// Write to a pipe without a reader.
    pub const PIPE: Self = Self(13);
    /// Timer.
    pub const ALRM: Self = Self(14);
    /// Polite request to end.
    pub const TERM: Self = Self(15);
    /// A child ended.
    pub const CHLD: Self = Self(17);
    /// Continue if stopped.
    pub const CONT: Self = Self(18);
    /// Stop: cannot be caught or ignored.
    pub const STOP: Self = Self(19);

    /// The largest signal number.
    pub const MAX: u8 = 64;

    /// Returns the signal with this number; 0 and numbers past [`Signal::MAX`] are none.
    #[must_use]
    pub fn from_raw(raw: u32) -> Option<Self> {
        match u8::try_from(raw) {
            Ok(number @ 1..=Self::MAX) => Some(Self(number)),
            _ => None,
        }
    }

    /// Returns the Linux number.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// This signal's bit in a pending mask.
    #[must_use]
    pub fn bit(self) -> u64 {
        1 << (self.0 - 1)
    }

    /// Returns whether the signal ends a process that did nothing about it.
    #[must_use]
    pub fn ends_by_default(self) -> bool {
        !matches!(self.0, 17 | 18 | 19 | 20 | 21 | 22 | 23 | 28)
    }
}

/// The reaction of a process to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Disposition {
    /// End the process, or nothing, depending on the signal.
    #[default]
    Default = 0,
    /// Nothing.
    Ignore = 1,
    /// Remember it: the process asks with `signals_take`, and a blocked call returns EINTR.
    Catch = 2,
}

impl Disposition {
    /// Returns the disposition with this number, if there is one.
    #[must_use]
    pub fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            0 => Some(Self::Default),
            1 => Some(Self::Ignore),
            2 => Some(Self::Catch),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_numbers_past_the_end_are_invalid() {
        assert_eq!(Signal::from_raw(0), None);
        assert_eq!(Signal::from_raw(65), None);
        assert_eq!(Signal::from_raw(64).map(Signal::bit), Some(1 << 63));
    }
}
