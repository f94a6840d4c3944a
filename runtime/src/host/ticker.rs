//! The ticker: while a command runs, the engine's epoch advances every few milliseconds, so that computing guests check their
//! budget, and database operations past the deadline are interrupted.
//!
//! The thread sleeps without waking while nothing runs.
#![expect(clippy::disallowed_methods, reason = "the tick itself is a sleep, and it blocks nobody")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use super::Engines;
use crate::cancel::Cancel;

/// How often a computing guest checks its budget, unless a deadline comes first (T-DOS-01).
const TICK: Duration = Duration::from_millis(4);
/// How often it does so once its command is overdue.
const OVERDUE_TICK: Duration = Duration::from_millis(1);

/// Advances the epoch on demand.
pub(super) struct Ticker {
    running: Arc<Running>,
    started: AtomicU64,
    thread: OnceLock<Thread>,
    engines: Arc<Engines>,
}

#[derive(Default)]
struct Running(Mutex<Vec<Watched>>);

/// A running command, and how to stop it.
struct Watched {
    number: u64,
    cancel: Cancel,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Advances the epoch while it lives.
pub(crate) struct Ticking<'a> {
    ticker: &'a Ticker,
    number: u64,
}

impl Ticker {
    /// Creates a ticker without starting its thread.
    pub(super) fn new(engines: Arc<Engines>) -> Self {
        Self { running: Arc::default(), started: AtomicU64::new(0), thread: OnceLock::new(), engines }
    }

    /// Ticks until the guard is dropped, and checks at each tick whether the command must end.
    pub(super) fn start(&self, cancel: Cancel) -> Ticking<'_> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.running.lock().push(Watched { number, cancel });
        self.thread.get_or_init(|| thread::spawn(self.ticks()).thread().clone()).unpark();
        Ticking { ticker: self, number }
    }

    /// Turns this thread into the ticker for the rest of its life, unless there is one already.
    pub(super) fn thread_for_life(&self) -> Option<impl FnOnce() + use<>> {
        self.thread.set(thread::current()).is_ok().then(|| self.ticks())
    }

    fn ticks(&self) -> impl FnOnce() + Send + use<> {
        let (running, engines) = (Arc::downgrade(&self.running), Arc::clone(&self.engines));
        move || tick(&running, &engines)
    }
}

fn tick(running: &Weak<Running>, engines: &Engines) {
    while let Some(running) = running.upgrade() {
        let watched = running.lock();
        let next = watched.iter().map(|one| next_look(one.cancel.look())).min();
        drop(watched);
        drop(running);
        match next {
            None => thread::park(),
            Some(next) => {
                thread::sleep(next);
                engines.increment_epoch();
            }
        }
    }
}

/// Returns the time of the next check of a command with this much time left: no later than its deadline.
fn next_look(left: Duration) -> Duration {
    if left.is_zero() { OVERDUE_TICK } else { left.min(TICK) }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        let mut watched = self.ticker.running.lock();
        if let Some(index) = watched.iter().position(|one| one.number == self.number) {
            watched.swap_remove(index);
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.running = Arc::default();
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_tick_is_not_later_than_the_deadline() {
        let micros = Duration::from_micros;
        assert_eq!(next_look(Duration::from_secs(9)), TICK);
        assert_eq!(next_look(micros(700)), micros(700));
        assert_eq!(next_look(Duration::ZERO), OVERDUE_TICK);
    }
}
