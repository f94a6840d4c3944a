//! All processes of one command, and their shared state: the budget, the files, the clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use abi::{Errno, WaitStatus, Waited};

use super::pipe::Fifos;
use super::table::{FIRST, Table};
use super::wait::block;
use super::{Fault, KeptState, Pid, Process, Reaping, Roots, Turns, WaitFor};
use sqlite_fs::{MemoryBudget, Transaction};

use crate::Error;
use crate::clock::GuestClock;
use crate::host::Host;
use crate::limits::Meter;
use crate::random::Random;
use crate::run::Shown;
use crate::tools::Tools;
use crate::vfs::View;

/// Maximum number of values that one command can display.
const MOST_SHOWN: usize = 64;

/// A command's processes.
pub(crate) struct Job {
    /// The engine.
    pub(crate) host: Host,
    /// The limits and usage.
    pub(crate) meter: Meter,
    /// The files.
    pub(crate) view: Arc<View<Transaction>>,
    /// The guests' clock.
    pub(crate) clock: GuestClock,
    /// Their random bytes.
    pub(crate) random: Random,
    /// The available tools of the embedding program.
    pub(crate) tools: Arc<Tools>,
    /// The command's row in the history; 0 if it has none.
    pub(crate) run: i64,
    /// Whether the run can be replayed.
    pub(crate) is_recorded: bool,
    /// Its session.
    pub(crate) session: Option<Arc<KeptState>>,
    /// The files that custom modules can reach.
    pub(crate) roots: Roots,
    /// The memories being released.
    pub(crate) reaping: Arc<Reaping>,
    /// The turns of a deterministic run.
    pub(crate) turns: Option<Turns>,
    /// The open named pipes.
    pub(crate) fifos: Fifos,
    shown: Mutex<Vec<Shown>>,
    table: Mutex<Table>,
    over: AtomicBool,
    /// Whether the first process must be interrupted: its wait ends, and it is notified at its next tick.
    interrupted: AtomicBool,
    alive: Arc<Alive>,
}

/// The functions of the embedding program that a command's processes can reach, and their context.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// The available functions.
    pub(crate) tools: Arc<Tools>,
    /// The command's row in the history; 0 if it has none.
    pub(crate) run: i64,
    /// Whether the run can be replayed: results of tools are then recorded in full.
    pub(crate) is_recorded: bool,
    /// Its session.
    pub(crate) session: Option<Arc<KeptState>>,
    /// The memories of the sandbox's processes being released.
    pub(crate) reaping: Arc<Reaping>,
    /// The files that custom modules can reach.
    pub(crate) roots: Roots,
}

/// Memory that the host holds for a command, charged to the same budget as the guests' own (T-DOS-03).
#[derive(Debug)]
pub(crate) struct MemoryCharge {
    job: Arc<Job>,
    bytes: u64,
}

impl MemoryCharge {
    /// Charges memory, or nothing.
    pub(crate) fn take(job: &Arc<Job>, bytes: usize) -> Option<Self> {
        let bytes = bytes as u64;
        job.meter.take_memory(bytes).then(|| Self { job: Arc::clone(job), bytes })
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        self.job.meter.return_memory(self.bytes);
    }
}

/// The files of a sandbox in memory, charged to the same budget as the guests' own memory (T-DOS-03).
struct FilesInMemory(Weak<Job>);

impl MemoryBudget for FilesInMemory {
    fn hold(&self, bytes: u64) -> bool {
        // Without a job the command has ended, and further writes are the host's own.
        self.0.upgrade().is_none_or(|job| job.meter.hold_files(bytes))
    }
}

/// The number of processes that still hold the job. Separate from it, so that a process can release the job before it reports
/// that.
#[derive(Debug, Default)]
pub(crate) struct Alive {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Alive {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decrements the count.
    pub(crate) fn leave(&self) {
        let mut count = self.lock();
        *count = count.saturating_sub(1);
        self.changed.notify_all();
    }

    fn wait_for_none(&self) {
        let mut count = self.lock();
        while *count > 0 {
            count = self.changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Job {
    /// Creates a command without processes.
    pub(crate) fn new(
        host: Host,
        meter: Meter,
        view: Arc<View<Transaction>>,
        clock: GuestClock,
        random: Random,
        outside: Outside,
    ) -> Arc<Self> {
        let Outside { tools, run, is_recorded, session, reaping, roots } = outside;
        let turns = matches!(clock, GuestClock::Fixed { .. }).then(Turns::default);
        Arc::new(Self {
            host,
            meter,
            view,
            clock,
            random,
            tools,
            run,
            is_recorded,
            session,
            roots,
            reaping,
            turns,
            fifos: Fifos::default(),
            shown: Mutex::default(),
            table: Mutex::default(),
            over: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            alive: Arc::default(),
        })
    }

    /// Charges the files of a sandbox in memory to the command's memory, starting with the existing ones.
    pub(crate) fn charge_files_in_memory(self: &Arc<Self>) -> Result<(), Error> {
        let budget = Arc::new(FilesInMemory(Arc::downgrade(self)));
        Ok(self.view.transaction().set_memory_budget(budget)?)
    }

    /// Stores a value that Python code displays; it counts as output.
    pub(crate) fn show(&self, shown: Shown) -> Result<(), Fault> {
        let bytes = shown.data.len() as u64;
        let (_, reached) = self.meter.take_output(bytes);
        if let Some(reached) = reached {
            return Err(reached.into());
        }
        let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_SHOWN {
            return Err(Errno::NOSPC.into());
        }
        if !self.meter.take_output_memory(bytes) {
            return Err(Errno::NOMEM.into());
        }
        all.push(shown);
        Ok(())
    }

    /// Takes the displayed values.
    pub(crate) fn take_shown(&self) -> Vec<Shown> {
        std::mem::take(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the pid table.
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a process, if the limits allow it.
    pub(crate) fn add_process(&self, parent: Pid, new_group: bool) -> Result<Arc<Process>, Fault> {
        if self.is_over() {
            return Err(Errno::AGAIN.into());
        }
        self.meter.start_process()?.ok_or(Errno::AGAIN)?;
        *self.alive.lock() += 1;
        let process = self.table().add(parent, new_group);
        if let Some(turns) = &self.turns {
            turns.join(process.pid);
        }
        Ok(process)
    }

    /// Records that a process has ended completely, and releases the job.
    pub(crate) fn process_ended(self: Arc<Self>, pid: Pid, status: WaitStatus) {
        self.table().end(pid, status);
        self.meter.end_process();
        if let Some(turns) = &self.turns {
            // The next process must find that the command has ended, instead of running until it is stopped.
            if pid == FIRST {
                self.over.store(true, Ordering::Release);
                self.table().kill_others(FIRST);
            }
            turns.leave(&self.clock, pid);
        }
        let alive = Arc::clone(&self.alive);
        drop(self);
        alive.leave();
    }

    /// Waits for a process's first turn in a deterministic run; returns false if it must not start.
    pub(crate) fn begin_turn(&self, process: &Process) -> bool {
        let Some(turns) = &self.turns else { return true };
        turns.begin(process.pid);
        !(process.must_end() || self.is_over())
    }

    /// Waits for a child; `Ok(None)` if `hang` is false and none has ended.
    pub(crate) fn wait_for(&self, process: &Process, which: WaitFor, hang: bool) -> Result<Option<Waited>, Fault> {
        let first = self.table().reap(process.pid, which)?;
        if first.is_some() || !hang {
            return Ok(first);
        }
        // A child that ends wakes its parent's thread, so no registration is needed.
        let waited = block(self, process, None, || self.table().reap(process.pid, which).transpose())?;
        Ok(waited.transpose()?)
    }

    /// Returns whether the command has ended, so that every process must end.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends every process: computing, waiting or in the database. Does not wait for them.
    pub(crate) fn stop(&self) {
        self.over.store(true, Ordering::Release);
        if self.table().kill_others(0) > 0 {
            self.host.interrupt();
        }
    }

    /// Returns whether the process of the calling thread must end.
    pub(crate) fn must_end_here(&self) -> bool {
        self.table().must_end_here()
    }

    /// Interrupts the first process, which may continue (`process/python.rs`).
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.table().wake(FIRST);
        self.host.interrupt();
    }

    /// Returns whether this process must be interrupted.
    pub(crate) fn is_interrupted(&self, process: &Process) -> bool {
        process.pid == FIRST && self.interrupted.load(Ordering::Acquire)
    }

    /// Records that it was.
    pub(crate) fn was_interrupted(&self) {
        self.interrupted.store(false, Ordering::Release);
    }

    /// Ends all processes that the first one left behind, and waits for them (T-DOS-05).
    pub(crate) fn finish(&self) {
        self.over.store(true, Ordering::Release);
        if self.table().kill_others(FIRST) > 0 {
            self.host.interrupt();
        }
        self.alive.wait_for_none();
    }

    /// Returns the rest of a finished command: its usage and its uncommitted changes.
    pub(crate) fn take_apart(self: Arc<Self>) -> Result<(Meter, View<Transaction>), Error> {
        let in_use = || Error::Invalid("a process of the command is still running".to_owned());
        // Another thread may be killing a command that has just ended by itself.
        let mut shared = self;
        let job = loop {
            match Arc::try_unwrap(shared) {
                Ok(job) => break job,
                Err(still) => shared = still,
            }
            std::thread::yield_now();
        };
        let view = Arc::into_inner(job.view).ok_or_else(in_use)?;
        Ok((job.meter, view.after_guests()?))
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}
