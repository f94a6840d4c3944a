//! The wall clock, passed in so that tests and deterministic runs can bring their own.

use std::time::{SystemTime, UNIX_EPOCH};

/// Where times of files, keys and calls come from. Never used for deadlines.
pub trait Clock: Send + Sync {
    /// Nanoseconds since 1970.
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
