//! Releasing large memories of ended processes: the system frees their pages on another thread, so that the result does not wait.
//!
//! They still count: the next command of the sandbox waits until the pages are freed, so that two commands never hold the memory
//! of both.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use wasmtime::Store;

use super::descriptor::Descriptors;
use super::kept::{Idle, nothing};
use super::state::Start;
use super::{Job, Outside, State};
use crate::clock::GuestClock;
use crate::limits::Meter;
use crate::random::Random;
use crate::vfs::View;

/// Smaller memories are freed at once, which is faster than handing them over.
const LARGE: usize = 32 << 20;

/// The memories of one sandbox's processes that are being freed.
#[derive(Debug, Default)]
pub(crate) struct Reaping {
    memories: Mutex<usize>,
    changed: Condvar,
}

/// A memory that is being freed.
struct Reaped(Arc<Reaping>);

impl Reaping {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>) -> Reaped {
        *self.lock() += 1;
        Reaped(Arc::clone(self))
    }

    /// Waits until all are freed.
    pub(crate) fn wait(&self) {
        let mut memories = self.lock();
        while *memories > 0 {
            memories = self.changed.wait(memories).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        let mut memories = self.0.lock();
        *memories = memories.saturating_sub(1);
        self.0.changed.notify_all();
    }
}

/// Releases a process that has ended, with all its resources.
pub(super) fn let_go(mut store: Store<State>) {
    let is_large = store.data().memory.is_some_and(|memory| memory.data_size(&store) >= LARGE);
    if !is_large {
        return;
    }
    let job = Arc::clone(&store.data().job);
    let Some(idle) = nowhere(&job) else { return };
    // Its files and its share of the budget are released now.
    let start = Start { args: Vec::new(), env: Vec::new(), cwd: Vec::new() };
    let descriptors = Descriptors::new([nothing(), nothing(), nothing()], 3);
    store.data_mut().move_to(idle.job, idle.process, descriptors, start, 0);
    let reaped = job.reaping.begin();
    let host = job.host.clone();
    drop(job);
    // Without a thread the store is dropped here, with the closure.
    let _ = host.run_on_worker(move || {
        drop(store);
        drop(reaped);
    });
}

// An idle job on an empty database.
fn nowhere(job: &Job) -> Option<Idle> {
    let meter = Meter::new(job.meter.limits().clone());
    let view = Arc::new(View::of_nothing().ok()?);
    let job = Job::new(job.host.clone(), meter, view, GuestClock::machine(), Random::Machine, Outside::default());
    Idle::new(job).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    // T-DOS-03
    #[test]
    fn t_dos_03_the_next_command_waits_for_the_memory_of_the_last() {
        let reaping = Arc::new(Reaping::default());
        let reaped = reaping.begin();
        let waiting = Arc::clone(&reaping);
        let (saying, said) = std::sync::mpsc::channel();
        let next = std::thread::spawn(move || {
            waiting.wait();
            saying.send(()).unwrap();
        });
        assert!(said.recv_timeout(Duration::from_millis(100)).is_err(), "it began while the memory was there");
        drop(reaped);
        said.recv().unwrap();
        next.join().unwrap();
        reaping.wait();
    }
}
