//! The cost of the running transaction's log: its bytes so far, and the work left for the commit.
//!
//! Written by the connection that fills the log and read from any thread, without a lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// Nothing yet.
const NONE: u64 = u64::MAX;
/// Size of the header of each page in the log.
pub(crate) const FRAME_HEADER: usize = 24;

/// Bytes of a log whose checksums one second of a commit computes: a fifth of the speed of an idle machine.
const CHECKED_BYTES: u64 = 700 << 20;
/// Bytes of rows that one second of a commit adds or removes, on the same assumption.
const WRITTEN_BYTES: u64 = 250 << 20;
/// Bytes that one second of a commit syncs to the disk, if it is synced.
const SYNCED_BYTES: u64 = 200 << 20;
/// Durations below this are ignored, because the slack of the deadline covers them.
const NEGLIGIBLE: Duration = Duration::from_millis(8);
/// Additional time for ending processes and recording the run.
const BESIDE: Duration = Duration::from_millis(10);
/// Maximum number of pages that SQLite has changed but not yet written.
const CACHED_BYTES: u64 = 8 << 20;
/// Bytes that an idle machine writes to a log in a second. A machine that was slower for this transaction's log is assumed to be
/// as slow for its commit.
const PACE_BYTES: u64 = 2 << 30;
/// Maximum assumed slowdown.
const SLOWEST: u32 = 4;

/// The running transaction's part of the log.
#[derive(Debug)]
pub(crate) struct Gauge {
    /// The offset of its first frame.
    begin: AtomicU64,
    /// The end of its last frame.
    end: AtomicU64,
    /// The first page that was written a second time: at commit, SQLite recomputes the checksums from there on.
    again: AtomicU64,
    /// Bytes written since the log was last synced.
    unsynced: AtomicU64,
    /// Bytes of rows that the commit has to add or remove first.
    pending: AtomicU64,
    /// Bytes written in long stretches, and the time that took.
    paced_bytes: AtomicU64,
    paced_nanos: AtomicU64,
    /// Whether commits are synced.
    syncs: AtomicBool,
    /// The deadline of a running commit.
    until: Mutex<Option<Instant>>,
    is_limited: AtomicBool,
}

impl Default for Gauge {
    fn default() -> Self {
        Self {
            begin: AtomicU64::new(NONE),
            end: AtomicU64::new(0),
            again: AtomicU64::new(NONE),
            unsynced: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            paced_bytes: AtomicU64::new(0),
            paced_nanos: AtomicU64::new(0),
            syncs: AtomicBool::new(false),
            until: Mutex::new(None),
            is_limited: AtomicBool::new(false),
        }
    }
}

impl Gauge {
    pub(crate) fn set_syncs(&self, syncs: bool) {
        self.syncs.store(syncs, Ordering::Relaxed);
    }

    /// Resets the gauge at the start of a transaction.
    pub(crate) fn reset(&self) {
        self.begin.store(NONE, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
        self.again.store(NONE, Ordering::Relaxed);
        self.pending.store(0, Ordering::Relaxed);
        self.paced_bytes.store(0, Ordering::Relaxed);
        self.paced_nanos.store(0, Ordering::Relaxed);
    }

    /// Records that a long stretch was written.
    pub(crate) fn wrote(&self, bytes: usize, time: Duration) {
        self.paced_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.paced_nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns how many times slower than an idle machine this one is.
    fn slowness(&self) -> u32 {
        let expected = seconds(self.paced_bytes.load(Ordering::Relaxed), PACE_BYTES).as_nanos().max(1);
        let times = u128::from(self.paced_nanos.load(Ordering::Relaxed)) / expected;
        u32::try_from(times).unwrap_or(SLOWEST).clamp(1, SLOWEST)
    }

    /// Records a piece that is about to be written: a frame's header, or its page.
    pub(crate) fn writes(&self, at: u64, len: usize) {
        let end = at.saturating_add(len as u64);
        self.unsynced.fetch_add(len as u64, Ordering::Relaxed);
        if len == FRAME_HEADER {
            if self.begin.load(Ordering::Relaxed) == NONE {
                self.begin.store(at, Ordering::Relaxed);
            }
        } else if end <= self.end.load(Ordering::Relaxed) {
            self.again.fetch_min(at, Ordering::Relaxed);
        }
        if self.begin.load(Ordering::Relaxed) != NONE {
            self.end.fetch_max(end, Ordering::Relaxed);
        }
    }

    /// Records that the log is synced.
    pub(crate) fn synced(&self) {
        self.unsynced.store(0, Ordering::Relaxed);
    }

    /// Returns the number of unsynced bytes, if commits are synced.
    pub(crate) fn unsynced(&self) -> u64 {
        if self.syncs.load(Ordering::Relaxed) { self.unsynced.load(Ordering::Relaxed) } else { 0 }
    }

    /// Sets the number of bytes of rows that the commit has to add or remove first.
    pub(crate) fn set_pending(&self, bytes: u64) {
        self.pending.store(bytes, Ordering::Relaxed);
    }

    /// Returns the transaction's bytes in the log.
    pub(crate) fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed).saturating_sub(self.begin.load(Ordering::Relaxed))
    }

    /// Returns the estimated maximum duration of a commit; zero if negligible.
    pub(crate) fn settling(&self) -> Duration {
        let again = self.end.load(Ordering::Relaxed).saturating_sub(self.again.load(Ordering::Relaxed));
        // The headers of all those frames change, and with each a block of the disk: a quarter of a page.
        let synced = if self.syncs.load(Ordering::Relaxed) { self.unsynced().saturating_add(again / 4) } else { 0 };
        let written = self.pending.load(Ordering::Relaxed).saturating_add(self.bytes().min(CACHED_BYTES));
        let time =
            (seconds(again, CHECKED_BYTES) + seconds(written, WRITTEN_BYTES)) * self.slowness() + seconds(synced, SYNCED_BYTES);
        if time < NEGLIGIBLE { Duration::ZERO } else { time + BESIDE }
    }

    /// Makes writes to the log fail after this time, so that a commit ends by then.
    pub(crate) fn limit(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        self.is_limited.store(until.is_some(), Ordering::Relaxed);
    }

    /// Returns whether that time has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.is_limited.load(Ordering::Relaxed)
            && self.until.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| clock::instant() > until)
    }
}

fn seconds(bytes: u64, a_second: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000) / (a_second / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 16_384;
    const FRAME: u64 = (PAGE + FRAME_HEADER) as u64;

    fn write(gauge: &Gauge, frame: u64) {
        gauge.writes(32 + frame * FRAME, FRAME_HEADER);
        gauge.writes(32 + frame * FRAME + FRAME_HEADER as u64, PAGE);
    }

    #[test]
    fn the_log_of_a_transaction_is_counted_from_its_first_frame() {
        let gauge = Gauge::default();
        gauge.writes(0, 32);
        assert_eq!(gauge.bytes(), 0);
        (0..10).for_each(|frame| write(&gauge, frame));
        assert_eq!(gauge.bytes(), 10 * FRAME);
        gauge.reset();
        (7..9).for_each(|frame| write(&gauge, frame));
        assert_eq!(gauge.bytes(), 2 * FRAME);
    }

    #[test]
    fn a_page_that_is_written_again_costs_checksums_and_no_bytes() {
        let gauge = Gauge::default();
        (0..10_000).for_each(|frame| write(&gauge, frame));
        let before = gauge.settling();
        gauge.writes(32 + 9_999 * FRAME + FRAME_HEADER as u64, PAGE);
        assert!(gauge.settling() < before + Duration::from_millis(1));
        gauge.writes(32 + FRAME_HEADER as u64, PAGE);
        assert_eq!(gauge.bytes(), 10_000 * FRAME);
        assert!(gauge.settling() > before + Duration::from_millis(100));
    }

    #[test]
    fn a_small_transaction_reserves_nothing() {
        let gauge = Gauge::default();
        (0..60).for_each(|frame| write(&gauge, frame));
        gauge.set_pending(100_000);
        assert_eq!(gauge.settling(), Duration::ZERO);
    }

    #[test]
    fn future_rows_and_the_disk_are_part_of_the_estimate() {
        let gauge = Gauge::default();
        gauge.set_pending(250 << 20);
        assert_eq!(gauge.settling(), Duration::from_secs(1) + BESIDE);
        gauge.reset();
        (0..6_400).for_each(|frame| write(&gauge, frame));
        let before = gauge.settling();
        gauge.set_syncs(true);
        assert!(gauge.settling() > before + Duration::from_millis(400));
        gauge.synced();
        assert_eq!(gauge.settling(), before);
    }

    #[test]
    fn a_machine_that_writes_slowly_commits_slowly() {
        let gauge = Gauge::default();
        gauge.set_pending(250 << 20);
        gauge.wrote(2 << 20, Duration::from_micros(900));
        assert_eq!(gauge.settling(), Duration::from_secs(1) + BESIDE);
        gauge.wrote(2 << 20, Duration::from_millis(5));
        assert_eq!(gauge.settling(), Duration::from_secs(3) + BESIDE);
        gauge.wrote(2 << 20, Duration::from_secs(5));
        assert_eq!(gauge.settling(), Duration::from_secs(4) + BESIDE);
    }

    #[test]
    fn a_commit_is_late_only_after_its_moment() {
        let gauge = Gauge::default();
        assert!(!gauge.is_late());
        gauge.limit(Some(Instant::now()));
        assert!(gauge.is_late());
        gauge.limit(None);
        assert!(!gauge.is_late());
    }
}
