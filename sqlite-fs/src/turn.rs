//! Turns: of all processes that have a database open, one at a time has a transaction.
//!
//! The turn is a lock on the write-ahead log, on which SQLite itself holds none. A process that releases it leaves a stamp of its
//! last commit in the lock file: the next holder can distinguish one of our commits, after which it only has to read again, from
//! one of a program that does not use turns.

#![expect(clippy::disallowed_methods, reason = "the log is opened to be locked, and to look at its frames")]

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::clock;
use crate::error::Error;
use crate::gather;
use crate::gauge::FRAME_HEADER;
use crate::making::with_suffix;
use crate::side::{Header, Side, read_at};

/// Size of the log's header.
const LOG_HEADER: u64 = 32;
/// The offset of the salts of the log's current round in that header.
const SALTS_AT: u64 = 16;
/// How often a waiting process checks for its turn.
const STEP: Duration = Duration::from_millis(1);
/// How long a process that had the last turn yields to a waiting one.
const COURTESY: Duration = Duration::from_millis(20);
/// How long after the last attempt another one is part of the same wait: a command waits in short steps, and may be cancelled.
const SAME_WAIT: Duration = Duration::from_secs(1);

/// The last commit in a log: its number of frames, and the salts and checksums of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    frames: u32,
    /// Salts and checksums of the last frame, as stored in the log.
    sums: [u8; 16],
}

impl Stamp {
    pub(crate) const BYTES: usize = 24;
    /// A log without frames.
    pub(crate) const EMPTY: Self = Self { frames: 0, sums: [0; 16] };

    /// Returns the stamp of a log that was emptied after this one. It differs from that of every earlier empty log, so that the
    /// commits in between are noticed.
    fn emptied(self) -> Self {
        Self { frames: 0, sums: u128::from_le_bytes(self.sums).wrapping_add(1).to_le_bytes() }
    }

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        if let Some((frames, sums)) = bytes.split_first_chunk_mut::<8>() {
            *frames = u64::from(self.frames).to_le_bytes();
            sums.copy_from_slice(&self.sums);
        }
        bytes
    }

    pub(crate) fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let frames = bytes.first_chunk::<4>().map_or(0, |frames| u32::from_le_bytes(*frames));
        Self { frames, sums: bytes.last_chunk().copied().unwrap_or_default() }
    }
}

/// The commits that this process has seen. Shared with its readers.
pub(crate) struct Seen {
    side: Side,
    stamp: Stamp,
}

/// The lock file, shared by the holder of the turn and the readers of this process.
pub(crate) type Watch = Arc<Mutex<Seen>>;

/// Returns whether another process has committed since the last call.
pub(crate) fn notices(watch: &Watch) -> bool {
    let mut seen = watch.lock().unwrap_or_else(PoisonError::into_inner);
    let stamp = seen.side.header().stamp;
    std::mem::replace(&mut seen.stamp, stamp) != stamp
}

/// A process's share in a database that others may have open too.
pub(crate) struct Turn {
    watch: Watch,
    path: PathBuf,
    log: File,
    page_bytes: u64,
    /// Number of frames in the log after the last commit of this turn; 0 if there was none.
    frames: Arc<AtomicU32>,
    /// The last commit before this turn.
    before: Stamp,
    /// Whether the log ended with that commit when this turn began.
    was_ours: bool,
    wait: Duration,
    is_held: bool,
    /// The wait for another process: since when, and the last attempt.
    waits: Option<(Instant, Instant)>,
    /// Since when this process yields to a waiting one.
    yields_since: Option<Instant>,
    /// Whether this process had the last turn, as far as it knows.
    was_last: bool,
    /// The last commit when this process gave its turn back.
    left: Option<Stamp>,
    /// Another process has committed between this turn and the one before.
    is_moved: bool,
}

impl Turn {
    /// Joins the turns of a database whose log exists.
    pub(crate) fn new(side: Side, path: &Path, connection: &Connection, wait: Duration) -> Result<Self, Error> {
        // SQLite resolves a symbolic link before it derives the name of the log.
        let log = with_suffix(Path::new(connection.path().unwrap_or_default()), "-wal");
        let log = File::open(&log).map_err(|source| Error::Disk { path: log, source })?;
        let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let stamp = side.header().stamp;
        Ok(Self {
            watch: Arc::new(Mutex::new(Seen { side, stamp })),
            path: path.to_owned(),
            log,
            page_bytes: page_bytes.unsigned_abs(),
            frames: Arc::default(),
            before: stamp,
            was_ours: false,
            wait,
            is_held: false,
            waits: None,
            yields_since: None,
            was_last: false,
            left: None,
            is_moved: true,
        })
    }

    /// Returns the number of frames in the log, to be set at each commit.
    pub(crate) fn frames(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.frames)
    }

    pub(crate) fn watch(&self) -> Watch {
        Arc::clone(&self.watch)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a note of the running call.
    pub(crate) fn note(&self, call: &[u8]) -> Result<(), Error> {
        self.seen().side.note(call)
    }

    /// Removes the note after the call is recorded.
    pub(crate) fn clear(&self) {
        self.seen().side.clear();
    }

    /// Removes the note of a process that died, after its call is recorded.
    pub(crate) fn clear_left(&self) {
        self.seen().side.clear_left();
    }

    /// Waits for the turn until `deadline`, and no longer than this process waits for another one. Returns the note of a call
    /// whose process died.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if the deadline passes and [`Error::Locked`] if the other process takes too long.
    pub(crate) fn take(&mut self, deadline: Option<Instant>) -> Result<Option<Vec<u8>>, Error> {
        let is_late = |now: Instant| deadline.is_some_and(|deadline| now >= deadline);
        let (mut is_announced, is_attempt) = (false, is_late(clock::instant()));
        let header = loop {
            if let Some(header) = self.try_take()? {
                break header;
            }
            // A call that only tries does not shorten the wait of the next call.
            if is_attempt {
                return Err(Error::Busy);
            }
            let now = clock::instant();
            let is_over = self.waited(now) >= self.wait;
            if is_over || is_late(now) {
                if is_announced {
                    self.seen().side.stop_waiting();
                }
                if !is_over {
                    return Err(Error::Busy);
                }
                self.waits = None;
                return Err(Error::Locked { path: self.path.clone(), pid: self.seen().side.header().holder });
            }
            if !self.was_last {
                let mut seen = self.seen();
                // Again if another process has replaced the announcement with its own, and has removed that.
                if !is_announced || seen.side.header().waiter.is_none() {
                    seen.side.set_waiting();
                }
                is_announced = true;
            }
            std::thread::sleep(STEP);
        };
        let mut seen = self.seen();
        if is_announced {
            seen.side.stop_waiting();
        }
        if header.holder != Some(std::process::id()) {
            // Without it a message may name another process.
            let _ = seen.side.hold();
        }
        let note = if header.has_note { seen.side.left_note() } else { None };
        drop(seen);
        self.is_moved = self.left != Some(header.stamp);
        (self.before, self.was_ours) = (header.stamp, self.ends_with(header.stamp));
        self.frames.store(0, Ordering::Relaxed);
        (self.waits, self.yields_since) = (None, None);
        self.was_last = true;
        Ok(note)
    }

    /// Returns how long another process has kept this one waiting, in this call and those directly before it.
    fn waited(&mut self, now: Instant) -> Duration {
        let same = self.waits.filter(|(_, last)| now.saturating_duration_since(*last) < SAME_WAIT);
        let since = same.map_or(now, |(since, _)| since);
        self.waits = Some((since, now));
        now.saturating_duration_since(since)
    }

    fn try_take(&mut self) -> Result<Option<Header>, Error> {
        match self.log.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                self.was_last = false;
                return Ok(None);
            }
            Err(TryLockError::Error(source)) => return Err(Error::Disk { path: self.path.clone(), source }),
        }
        let header = self.seen().side.header();
        if self.is_courteous(&header) {
            let _ = self.log.unlock();
            return Ok(None);
        }
        self.is_held = true;
        Ok(Some(header))
    }

    /// Returns whether the next turn belongs to another waiting process, because locks are granted in no order.
    fn is_courteous(&mut self, header: &Header) -> bool {
        let waits = header.waiter.is_some_and(|pid| pid != std::process::id());
        if !self.was_last || !waits {
            return false;
        }
        let now = clock::instant();
        let since = *self.yields_since.get_or_insert(now);
        if now.saturating_duration_since(since) < COURTESY {
            return true;
        }
        // It has died, or is doing something else. One that still waits announces itself again.
        self.seen().side.remove_waiter();
        false
    }

    /// Releases the turn, and records the last commit for the next holder.
    pub(crate) fn give_back(&mut self) {
        if !std::mem::take(&mut self.is_held) {
            return;
        }
        let stamp = self.last_commit();
        if stamp != self.before {
            let mut seen = self.seen();
            seen.stamp = stamp;
            seen.side.set_stamp(stamp);
        }
        self.left = Some(stamp);
        let _ = self.log.unlock();
    }

    /// Returns whether another process has committed since this one had its last turn: cached counts are out of date.
    pub(crate) fn is_moved(&self) -> bool {
        self.is_moved
    }

    /// Returns whether the log's last commit is one of a holder of the turn, in this process or another.
    pub(crate) fn is_ours(&mut self) -> bool {
        self.was_ours = self.ends_with(self.before);
        self.was_ours
    }

    /// Returns the last commit of a holder of the turn: the one before this turn, unless this process has committed, or has emptied
    /// or restarted the log since. The log may end with a commit of a program without turns, which must not be recorded as ours.
    fn last_commit(&self) -> Stamp {
        let frames = self.frames.load(Ordering::Relaxed);
        match self.sums(frames) {
            Some(sums) => Stamp { frames, sums },
            None if frames > 0 || self.was_ours && !self.ends_with(self.before) => self.before.emptied(),
            None => self.before,
        }
    }

    /// Returns whether a commit is the last one in the log.
    fn ends_with(&self, stamp: Stamp) -> bool {
        // The salts of a frame that is left from an earlier round are not those of the log.
        let is_current = || self.salts().is_some_and(|salts| stamp.sums.starts_with(&salts));
        let is_there = stamp.frames == 0 || self.sums(stamp.frames) == Some(stamp.sums) && is_current();
        is_there && !self.has_commit_after(stamp.frames)
    }

    /// Returns whether the log's current round has a commit after a frame. Frames without one are left from a transaction that
    /// was rolled back, and those with other salts from an earlier round.
    fn has_commit_after(&self, number: u32) -> bool {
        let Some(salts) = self.salts() else { return false };
        let is_current = |frame: &[u8; FRAME_HEADER]| frame.get(8..).is_some_and(|sums| sums.starts_with(&salts));
        let mut after = (1..).map_while(|step| self.frame(number.checked_add(step)?)).take_while(is_current);
        after.any(|frame| gather::commits(&frame) == Some(true))
    }

    /// Returns the salts of the log's current round.
    fn salts(&self) -> Option<[u8; 8]> {
        let mut salts = [0; 8];
        (read_at(&self.log, &mut salts, SALTS_AT).ok()? == salts.len()).then_some(salts)
    }

    /// Returns the header of a frame, counted from 1.
    fn frame(&self, number: u32) -> Option<[u8; FRAME_HEADER]> {
        let bytes = FRAME_HEADER as u64 + self.page_bytes;
        let at = LOG_HEADER + bytes.checked_mul(u64::from(number.checked_sub(1)?))?;
        let mut frame = [0; FRAME_HEADER];
        (read_at(&self.log, &mut frame, at).ok()? == frame.len()).then_some(frame)
    }

    /// Returns the salts and checksums of a frame.
    fn sums(&self, number: u32) -> Option<[u8; 16]> {
        self.frame(number)?.last_chunk().copied()
    }
}
