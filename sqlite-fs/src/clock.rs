//! Clocks: the wall clock, passed in so that tests and deterministic runs can provide their own, and the machine's monotonic
//! clock for deadlines.

#![expect(clippy::disallowed_methods, reason = "this is the place that asks")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the time to compare a deadline with.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The source of times of files, keys and calls. Never used for deadlines.
pub trait Clock: Send + Sync {
    /// Returns the time in nanoseconds since 1970.
    fn now(&self) -> i64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
        }
    }
}
