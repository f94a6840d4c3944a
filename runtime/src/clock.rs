//! Clocks: the only place that asks the machine what time it is.
//!
//! Limits always use the machine's monotonic clock, so that no step of the wall clock moves a deadline (T-REL-05). What
//! a *guest* sees can instead be a fixed clock that advances by itself: deterministic runs read it.

#![expect(clippy::disallowed_methods, reason = "this is the place that asks")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What guests are told when they ask for the time.
#[derive(Debug)]
pub(crate) enum GuestClock {
    /// The machine's own clocks.
    Machine {
        /// Where the guest's monotonic clock is zero: guests learn nothing of the host's uptime.
        origin: Instant,
    },
    /// Starts at a fixed moment and advances by a fixed step at every question.
    Fixed {
        /// Nanoseconds since 1970 at the first question.
        start: u64,
        /// Questions so far.
        asked: AtomicU64,
    },
}

/// How far a fixed clock moves at each question: enough that two timestamps differ, too little to run into tomorrow.
const FIXED_STEP_NANOS: u64 = 1_000;

/// The monotonic time of the machine, for deadlines.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since 1970 by the machine's clock, for display and file times.
pub(crate) fn unix_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl GuestClock {
    /// The machine's clocks, the monotonic one starting now.
    pub(crate) fn machine() -> Self {
        Self::Machine { origin: now() }
    }

    /// A clock that always says the same things in the same order.
    pub(crate) fn fixed(start: Duration) -> Self {
        Self::Fixed { start: u64::try_from(start.as_nanos()).unwrap_or(u64::MAX), asked: AtomicU64::new(0) }
    }

    /// Nanoseconds since 1970.
    pub(crate) fn realtime(&self) -> u64 {
        match self {
            Self::Machine { .. } => unix_nanos(),
            Self::Fixed { start, asked } => start.saturating_add(step(asked)),
        }
    }

    /// Nanoseconds since the command began, never going back.
    pub(crate) fn monotonic(&self) -> u64 {
        match self {
            Self::Machine { origin } => u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Fixed { asked, .. } => step(asked),
        }
    }

    /// Whether a guest's sleep really takes time.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed { .. })
    }

    /// Moves a fixed clock past a sleep that did not really happen.
    pub(crate) fn skip(&self, nanos: u64) {
        if let Self::Fixed { asked, .. } = self {
            asked.fetch_add(nanos / FIXED_STEP_NANOS, Ordering::Relaxed);
        }
    }
}

fn step(asked: &AtomicU64) -> u64 {
    asked.fetch_add(1, Ordering::Relaxed).saturating_mul(FIXED_STEP_NANOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_says_the_same_things_in_the_same_order() {
        let ask = || {
            let clock = GuestClock::fixed(Duration::from_secs(5));
            [clock.realtime(), clock.monotonic(), clock.realtime()]
        };
        assert_eq!(ask(), [5_000_000_000, 1_000, 5_000_002_000]);
        assert_eq!(ask(), ask());
    }
}
