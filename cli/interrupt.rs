//! Ctrl-C: ends the running command, not the database. The second one ends us.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use runtime::Killer;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Listens for the signals that ask us to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    running: Mutex<Option<Killer>>,
    signal: AtomicI32,
}

impl Interrupts {
    /// Starts to listen. Without this the signals end us at once, and the open transaction with us.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let interrupts = Self::default();
        let shared = Arc::clone(&interrupts.0);
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        thread::Builder::new().name("sandlite signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                shared.receive(signal);
            }
        })?;
        Ok(interrupts)
    }

    /// The command that a signal ends from now on.
    pub(crate) fn watch(&self, killer: Killer) {
        self.0.signal.store(0, Ordering::Release);
        *self.0.running() = Some(killer);
    }

    /// The command has ended; answers which signal ended it, if one did.
    pub(crate) fn unwatch(&self) -> Option<u8> {
        *self.0.running() = None;
        u8::try_from(self.0.signal.swap(0, Ordering::AcqRel)).ok().filter(|&signal| signal != 0)
    }
}

impl Shared {
    fn running(&self) -> std::sync::MutexGuard<'_, Option<Killer>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, signal: i32) {
        let running = self.running().clone();
        match running {
            // The first time the command is given its end, and its row is written.
            Some(killer) if self.signal.swap(signal, Ordering::AcqRel) == 0 => killer.kill(),
            // An open transaction is undone when the database is next opened: leaving is safe at any moment.
            _ => crate::exit::by_signal(signal),
        }
    }
}
