//! The tick: while a command runs, the engine's epoch advances every few milliseconds, so that computing guests look at
//! their budget, and what sits in the database past its deadline is interrupted there.
//!
//! The thread sleeps without waking while nothing runs.
#![expect(clippy::disallowed_methods, reason = "the tick itself is a sleep, and it blocks nobody")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use sqlite_fs::Interrupter;

use super::Engines;

/// How often a computing guest looks up, unless a deadline comes first (T-DOS-01).
const TICK: Duration = Duration::from_millis(4);
/// How often it does once its command is overdue.
const OVERDUE_TICK: Duration = Duration::from_millis(1);

/// Advances the epoch while somebody wants it.
pub(super) struct Ticker {
    running: Arc<Running>,
    started: AtomicU64,
    thread: OnceLock<Thread>,
    engines: Arc<Engines>,
}

#[derive(Default)]
struct Running(Mutex<Vec<Watched>>);

/// A command that runs: how much time it has left, and how to reach it inside the database (T-DOS-14).
struct Watched {
    number: u64,
    left: Box<dyn Fn() -> Duration + Send>,
    interrupter: Interrupter,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While this lives, the epoch advances.
pub(crate) struct Ticking<'a> {
    ticker: &'a Ticker,
    number: u64,
}

impl Ticker {
    /// A ticker that has not started its thread.
    pub(super) fn new(engines: Arc<Engines>) -> Self {
        Self { running: Arc::default(), started: AtomicU64::new(0), thread: OnceLock::new(), engines }
    }

    /// Ticks until the guard is dropped; interrupts the database once the command has no time left.
    pub(super) fn start(&self, left: impl Fn() -> Duration + Send + 'static, interrupter: Interrupter) -> Ticking<'_> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.running.lock().push(Watched { number, left: Box::new(left), interrupter });
        self.thread.get_or_init(|| thread::spawn(self.ticks()).thread().clone()).unpark();
        Ticking { ticker: self, number }
    }

    /// What this thread is to do from now on, unless there is one already: ticking.
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
        let next = watched.iter().map(next_look).min();
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

/// Interrupts a command that is overdue, and answers when to look at it again: no later than at its deadline.
fn next_look(one: &Watched) -> Duration {
    let left = (one.left)();
    if left.is_zero() {
        one.interrupter.interrupt();
        return OVERDUE_TICK;
    }
    left.min(TICK)
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
    fn the_next_look_is_no_later_than_the_deadline() {
        let watched = |left: Duration| Watched { number: 0, left: Box::new(move || left), interrupter: Interrupter::default() };
        let micros = Duration::from_micros;
        assert_eq!(next_look(&watched(Duration::from_secs(9))), TICK);
        assert_eq!(next_look(&watched(micros(700))), micros(700));
        assert_eq!(next_look(&watched(Duration::ZERO)), OVERDUE_TICK);
    }
}
