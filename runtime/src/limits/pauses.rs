//! Time that does not count: while the host prepares something, and while a person decides.
//!
//! Each pause has its own end, so that nothing waits forever. Overlapping pauses count once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// The pauses of one command.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    ongoing: Mutex<Option<Ongoing>>,
    // Read by every call of a guest, so without the lock.
    count: AtomicU64,
    excused_nanos: AtomicU64,
}

/// The clock is paused.
#[derive(Clone, Copy, Debug)]
struct Ongoing {
    since: Instant,
    until: Instant,
    longest: Duration,
}

impl Pauses {
    fn lock(&self) -> MutexGuard<'_, Option<Ongoing>> {
        self.ongoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses the clock until the result is dropped, for at most this long.
    pub(crate) fn begin(self: &Arc<Self>, longest: Duration) -> Pause {
        let now = clock::now();
        let until = now.checked_add(longest).unwrap_or(now);
        let mut ongoing = self.lock();
        *ongoing = Some(match *ongoing {
            Some(first) if first.until >= until => first,
            Some(first) => Ongoing { until, longest, ..first },
            None => Ongoing { since: now, until, longest },
        });
        self.count.fetch_add(1, Ordering::AcqRel);
        Pause(Arc::clone(self))
    }

    /// Returns the time at which the clock has been paused for too long; `None` while it runs.
    pub(crate) fn until(&self) -> Option<Instant> {
        if self.count.load(Ordering::Acquire) == 0 { None } else { self.lock().map(|ongoing| ongoing.until) }
    }

    /// Returns the maximum duration of the pause; `None` while it runs.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.lock().map(|ongoing| ongoing.longest)
    }

    /// Returns the time that did not count.
    pub(crate) fn excused(&self) -> Duration {
        Duration::from_nanos(self.excused_nanos.load(Ordering::Acquire))
    }
}

/// Pauses the clock while it lives.
#[derive(Debug)]
pub(crate) struct Pause(Arc<Pauses>);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut ongoing = self.0.lock();
        if self.0.count.load(Ordering::Acquire) == 1
            && let Some(Ongoing { since, until, .. }) = ongoing.take()
        {
            // Updated before the count, so that a thread that sees the clock running sees the excused time.
            let stood = clock::now().min(until).saturating_duration_since(since);
            let nanos = u64::try_from(stood.as_nanos()).unwrap_or(u64::MAX);
            self.0.excused_nanos.fetch_add(nanos, Ordering::AcqRel);
        }
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_that_overlap_count_once_and_end_with_the_longest() {
        let pauses = Arc::new(Pauses::default());
        assert_eq!((pauses.until(), pauses.excused()), (None, Duration::ZERO));
        let before = clock::now();
        let (first, second) = (pauses.begin(Duration::from_secs(100)), pauses.begin(Duration::from_secs(10)));
        assert!(pauses.until().unwrap() >= before + Duration::from_secs(100));
        assert_eq!(pauses.longest(), Some(Duration::from_secs(100)));
        drop(first);
        assert!(pauses.until().is_some() && pauses.excused().is_zero());
        drop(second);
        let passed = before.elapsed();
        assert!(pauses.until().is_none() && !pauses.excused().is_zero() && pauses.excused() <= passed);
    }
}
