//! The tick: while a command runs, the engine's epoch advances every few milliseconds, so that computing guests look at
//! their budget.
//!
//! The thread sleeps without waking while nothing runs.

#![expect(clippy::disallowed_methods, reason = "the tick itself is a sleep, and it blocks nobody")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::Engine;

/// How often a computing guest looks up. Bounds how late a deadline is noticed (T-DOS-01).
const TICK: Duration = Duration::from_millis(4);

/// Advances the epoch while somebody wants it.
pub(super) struct Ticker {
    running: Arc<AtomicUsize>,
    thread: OnceLock<Thread>,
    engine: Engine,
}

/// While this lives, the epoch advances.
pub(crate) struct Ticking<'a>(&'a Ticker);

impl Ticker {
    /// A ticker that has not started its thread.
    pub(super) fn new(engine: Engine) -> Self {
        Self { running: Arc::new(AtomicUsize::new(0)), thread: OnceLock::new(), engine }
    }

    /// Ticks until the guard is dropped.
    pub(super) fn start(&self) -> Ticking<'_> {
        let before = self.running.fetch_add(1, Ordering::AcqRel);
        let thread = self.thread.get_or_init(|| {
            let running = Arc::downgrade(&self.running);
            let engine = self.engine.clone();
            thread::spawn(move || tick(&running, &engine)).thread().clone()
        });
        if before == 0 {
            thread.unpark();
        }
        Ticking(self)
    }
}

fn tick(running: &Weak<AtomicUsize>, engine: &Engine) {
    while let Some(running) = running.upgrade() {
        let idle = running.load(Ordering::Acquire) == 0;
        drop(running);
        if idle {
            thread::park();
        } else {
            thread::sleep(TICK);
            engine.increment_epoch();
        }
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
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
