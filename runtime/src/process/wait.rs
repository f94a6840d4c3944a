//! The only blocking wait: it returns on event, deadline or cancellation.
//!
//! Epochs do not reach a thread that is blocked inside a host call (T-DOS-02), so the wait itself must know the command's
//! deadline. A waiter registers its thread, checks its condition, and parks; the code that changes the condition unparks it.
//! `Thread::unpark` leaves a token, so a change between check and park is never lost.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::{self, Thread};
use std::time::Duration;

use super::{Job, Process};
use crate::clock::{self, Moment};

/// Minimum sleep between two checks: a deadline can pass unnoticed only while the clock is paused.
const SHORTEST: Duration = Duration::from_micros(100);

/// The reason a blocked call ends without its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// The process must end now: killed, or the command has ended or is out of time.
    End,
    /// A signal that the process catches arrived.
    Signal,
}

/// Threads to wake when something changes.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Vec<Thread>>);

impl Waiters {
    /// Registers the calling thread for the next [`wake`](Self::wake).
    pub(crate) fn register(&self) {
        let current = thread::current();
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.iter().all(|thread| thread.id() != current.id()) {
            threads.push(current);
        }
    }

    /// Wakes and removes all registered threads.
    pub(crate) fn wake(&self) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.drain(..).for_each(|thread| thread.unpark());
    }
}

/// Blocks until `ready` returns a value.
///
/// `ready` is called again after each wake-up; it must register the calling thread with the object it checks *before* checking.
/// `until` is the guest's own timeout: when it passes, the result is `Ok(None)`.
pub(crate) fn block<T>(
    job: &Job,
    process: &Process,
    until: Option<Moment>,
    mut ready: impl FnMut() -> Option<T>,
) -> Result<Option<T>, Interruption> {
    let mut has_done_something = true;
    loop {
        if let Some(value) = ready() {
            return Ok(Some(value));
        }
        if process.must_end() || job.is_over() {
            return Err(Interruption::End);
        }
        // The event can no longer occur: as if its own timeout had passed.
        if job.is_interrupted(process) {
            return Ok(None);
        }
        if process.has_caught_signal() {
            return Err(Interruption::Signal);
        }
        if job.meter.check_time().is_err() {
            return Err(Interruption::End);
        }
        let (now, deadline) = (clock::now(), job.meter.deadline());
        let wake_at = match until {
            Some(Moment::Machine(until)) if now >= until => return Ok(None),
            Some(Moment::Fixed(until)) if job.clock.passed() >= until => return Ok(None),
            Some(Moment::Machine(until)) => until.min(deadline),
            _ => deadline,
        };
        if let Some(turns) = &job.turns {
            let until = if let Some(Moment::Fixed(until)) = until { Some(until) } else { None };
            turns.give_up(&job.clock, process.pid, until, has_done_something, deadline);
            has_done_something = false;
            continue;
        }
        thread::park_timeout(wake_at.saturating_duration_since(now).max(SHORTEST));
    }
}
