//! Clocks. No other file reads the machine's time.
//!
//! Limits always use the machine's monotonic clock, so that changes of the wall clock do not move a deadline (T-REL-05). A
//! *guest* can instead see a fixed clock that advances by itself, in deterministic runs.

#![expect(clippy::disallowed_methods, reason = "this is the place that asks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time that guests see.
#[derive(Debug)]
pub(crate) enum GuestClock {
    /// The machine's own clocks.
    Machine {
        /// The origin of the guest's monotonic clock, so that guests cannot learn the host's uptime.
        origin: Instant,
    },
    /// Starts at a fixed time and advances by a fixed step at every query.
    Fixed {
        /// Nanoseconds since 1970 at the first query.
        start: u64,
        /// Number of queries so far; file times are counted separately.
        asked: Arc<AtomicU64>,
    },
}

/// The step of a fixed clock: enough that two timestamps differ, too little to matter.
const FIXED_STEP_NANOS: u64 = 1_000;

/// Returns the machine's monotonic time, for deadlines.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns nanoseconds since 1970 by the machine's clock, for display and file times.
pub(crate) fn unix_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl GuestClock {
    /// Creates the machine's clocks, with the monotonic one starting now.
    pub(crate) fn machine() -> Self {
        Self::Machine { origin: now() }
    }

    /// Creates a clock that always returns the same sequence.
    pub(crate) fn fixed(start: Duration) -> Self {
        Self::Fixed { start: u64::try_from(start.as_nanos()).unwrap_or(u64::MAX), asked: Arc::default() }
    }

    /// Returns nanoseconds since 1970.
    pub(crate) fn realtime(&self) -> u64 {
        match self {
            Self::Machine { .. } => unix_nanos(),
            Self::Fixed { start, asked } => start.saturating_add(step(asked)),
        }
    }

    /// Returns nanoseconds since the start of the command; never decreases.
    pub(crate) fn monotonic(&self) -> u64 {
        match self {
            Self::Machine { origin } => u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Fixed { asked, .. } => step(asked),
        }
    }

    /// Returns the time this far from now, if it can be represented.
    pub(crate) fn after(&self, nanos: u64) -> Option<Moment> {
        match self {
            Self::Machine { .. } => now().checked_add(Duration::from_nanos(nanos)).map(Moment::Machine),
            Self::Fixed { .. } => Some(Moment::Fixed(self.passed().saturating_add(nanos))),
        }
    }

    /// Returns the next value of a fixed clock without advancing it.
    pub(crate) fn passed(&self) -> u64 {
        match self {
            Self::Machine { .. } => 0,
            Self::Fixed { asked, .. } => asked.load(Ordering::Relaxed).saturating_mul(FIXED_STEP_NANOS),
        }
    }

    /// Advances a fixed clock to a wake-up time.
    pub(crate) fn advance_to(&self, nanos: u64) {
        if let Self::Fixed { asked, .. } = self {
            asked.fetch_max(nanos.div_ceil(FIXED_STEP_NANOS), Ordering::Relaxed);
        }
    }

    /// Returns the clock for file times, if it is not the machine's.
    pub(crate) fn for_files(&self) -> Option<Arc<dyn sqlite_fs::Clock>> {
        match self {
            Self::Machine { .. } => None,
            Self::Fixed { start, asked } => Some(Arc::new(FileClock { start: *start, asked: Arc::clone(asked) })),
        }
    }
}

/// The end of a guest's wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// By the machine's clock.
    Machine(Instant),
    /// By a fixed one.
    Fixed(u64),
}

/// A fixed clock as used by the database.
struct FileClock {
    start: u64,
    asked: Arc<AtomicU64>,
}

impl sqlite_fs::Clock for FileClock {
    fn now(&self) -> i64 {
        i64::try_from(self.start.saturating_add(step(&self.asked))).unwrap_or(i64::MAX)
    }
}

fn step(asked: &AtomicU64) -> u64 {
    asked.fetch_add(1, Ordering::Relaxed).saturating_mul(FIXED_STEP_NANOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_repeats_its_readings() {
        let ask = || {
            let clock = GuestClock::fixed(Duration::from_secs(5));
            [clock.realtime(), clock.monotonic(), clock.realtime()]
        };
        assert_eq!(ask(), [5_000_000_000, 1_000, 5_000_002_000]);
        assert_eq!(ask(), ask());
    }
}
