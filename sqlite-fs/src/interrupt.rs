//! Interrupting a long operation from another thread.
//!
//! SQLite rolls a whole transaction back if a *writing* statement is interrupted, so only reading statements are interrupted; the
//! writing ones are each bounded (one chunk, one row) and the flag is checked between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
struct Flags {
    wanted: AtomicBool,
    reading: AtomicBool,
}

/// Interrupts the current operation of a transaction, or its next one; see [`Database::interrupter`].
///
/// [`Database::interrupter`]: crate::Database::interrupter
#[derive(Clone, Debug, Default)]
pub struct Interrupter(Arc<Flags>);

impl Interrupter {
    /// Makes the current (or the next) operation fail with `Interrupted`. The transaction stays usable: it can continue, commit
    /// or be dropped.
    pub fn interrupt(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }

    /// Returns whether an interrupt was requested, and clears it.
    pub(crate) fn take(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) && self.0.wanted.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.0.wanted.store(false, Ordering::Relaxed);
    }

    /// Returns whether SQLite should stop its current statement.
    pub(crate) fn stops_statement(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) && self.0.reading.load(Ordering::Relaxed)
    }

    /// Marks a section in which only reading statements run.
    pub(crate) fn reading<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.reading.store(true, Ordering::Relaxed);
        let result = work();
        self.0.reading.store(false, Ordering::Relaxed);
        result
    }
}
