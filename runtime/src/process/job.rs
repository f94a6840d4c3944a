//! All processes of one command, and what they share: the budget, the files, the clock.

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

/// Things that one command can display.
const MOST_SHOWN: usize = 64;

/// A command's processes.
pub(crate) struct Job {
    /// The engine they run on.
    pub(crate) host: Host,
    /// What they may use.
    pub(crate) meter: Meter,
    /// The files they see.
    pub(crate) view: Arc<View<Transaction>>,
    /// The time they are told.
    pub(crate) clock: GuestClock,
    /// Their random bytes.
    pub(crate) random: Random,
    /// What they may call of the embedding program.
    pub(crate) tools: Arc<Tools>,
    /// The command's row in the history; 0 when it has none.
    pub(crate) run: i64,
    /// Whether the run can be replayed.
    pub(crate) is_recorded: bool,
    /// The session it is a call of.
    pub(crate) session: Option<Arc<KeptState>>,
    /// Which files modules of the owner can reach.
    pub(crate) roots: Roots,
    /// The memories that their processes left.
    pub(crate) reaping: Arc<Reaping>,
    /// Whose turn it is, in a deterministic run.
    pub(crate) turns: Option<Turns>,
    /// The pipes with names that are open.
    pub(crate) fifos: Fifos,
    shown: Mutex<Vec<Shown>>,
    table: Mutex<Table>,
    over: AtomicBool,
    /// The first process is to be interrupted: what it waits for is over, and it is told at its next tick.
    interrupted: AtomicBool,
    alive: Arc<Alive>,
}

/// What of the embedding program a command's processes can reach, and in whose name.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// The functions they may call.
    pub(crate) tools: Arc<Tools>,
    /// The command's row in the history; 0 when it has none.
    pub(crate) run: i64,
    /// Whether the run can be replayed: what tools said is then kept whole.
    pub(crate) is_recorded: bool,
    /// The session it is a call of.
    pub(crate) session: Option<Arc<KeptState>>,
    /// The memories that processes of the sandbox left.
    pub(crate) reaping: Arc<Reaping>,
    /// Which files modules of the owner can reach.
    pub(crate) roots: Roots,
}

/// Memory that the host holds for a command, drawn from the same pot as the guests' own (T-DOS-03).
#[derive(Debug)]
pub(crate) struct MemoryCharge {
    job: Arc<Job>,
    bytes: u64,
}

impl MemoryCharge {
    /// Takes memory, or nothing.
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

/// The files of a sandbox in memory, drawn from the same pot as the guests' own memory (T-DOS-03).
struct FilesInMemory(Weak<Job>);

impl MemoryBudget for FilesInMemory {
    fn hold(&self, bytes: u64) -> bool {
        // Without a job the command is over, and what is still written is the host's own.
        self.0.upgrade().is_none_or(|job| job.meter.hold_files(bytes))
    }
}

/// How many processes still hold the job. Apart from it, so that a process can let go of the job before it says so.
#[derive(Debug, Default)]
pub(crate) struct Alive {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Alive {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One process less.
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
    /// A command without processes.
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

    /// Counts the files of a sandbox in memory in the command's memory, those that are there already first.
    pub(crate) fn charge_files_in_memory(self: &Arc<Self>) -> Result<(), Error> {
        let budget = Arc::new(FilesInMemory(Arc::downgrade(self)));
        Ok(self.view.transaction().set_memory_budget(budget)?)
    }

    /// Keeps something that Python code displays; it counts as output.
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

    /// Takes what was displayed.
    pub(crate) fn take_shown(&self) -> Vec<Shown> {
        std::mem::take(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The pid table.
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a new process, if the limits allow one more.
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

    /// Notes that a process has ended and nothing of it is left, and lets go of the job.
    pub(crate) fn process_ended(self: Arc<Self>, pid: Pid, status: WaitStatus) {
        self.table().end(pid, status);
        self.meter.end_process();
        if let Some(turns) = &self.turns {
            // Whoever comes next must find the command over, and not run on until somebody says so.
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

    /// Waits for a process's first turn, where processes take turns; false when it must not begin any more.
    pub(crate) fn begin_turn(&self, process: &Process) -> bool {
        let Some(turns) = &self.turns else { return true };
        turns.begin(process.pid);
        !(process.must_end() || self.is_over())
    }

    /// Waits for a child; `Ok(None)` when `hang` is false and none has ended.
    pub(crate) fn wait_for(&self, process: &Process, which: WaitFor, hang: bool) -> Result<Option<Waited>, Fault> {
        let first = self.table().reap(process.pid, which)?;
        if first.is_some() || !hang {
            return Ok(first);
        }
        // A child that ends wakes its parent's thread, so there is nothing to register.
        let waited = block(self, process, None, || self.table().reap(process.pid, which).transpose())?;
        Ok(waited.transpose()?)
    }

    /// Whether the command is over and every process of it must end.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends every process: those that compute, those that wait, those in the database. Does not wait for them.
    pub(crate) fn stop(&self) {
        self.over.store(true, Ordering::Release);
        if self.table().kill_others(0) > 0 {
            self.host.interrupt();
        }
    }

    /// Whether the process that the calling thread runs must end.
    pub(crate) fn must_end_here(&self) -> bool {
        self.table().must_end_here()
    }

    /// Interrupts the first process, which may go on (`process/python.rs`).
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.table().wake(FIRST);
        self.host.interrupt();
    }

    /// Whether this process is to be interrupted.
    pub(crate) fn is_interrupted(&self, process: &Process) -> bool {
        process.pid == FIRST && self.interrupted.load(Ordering::Acquire)
    }

    /// Notes that it was.
    pub(crate) fn was_interrupted(&self) {
        self.interrupted.store(false, Ordering::Release);
    }

    /// Ends whatever the first process left behind, and waits until it is gone (T-DOS-05).
    pub(crate) fn finish(&self) {
        self.over.store(true, Ordering::Release);
        if self.table().kill_others(FIRST) > 0 {
            self.host.interrupt();
        }
        self.alive.wait_for_none();
    }

    /// What is left of a finished command: what it used, and its uncommitted changes.
    pub(crate) fn take_apart(self: Arc<Self>) -> Result<(Meter, View<Transaction>), Error> {
        let in_use = || Error::Invalid("a process of the command is still running".to_owned());
        // Somebody may be in the middle of killing a command that has just ended by itself.
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
