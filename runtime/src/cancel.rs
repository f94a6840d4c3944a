//! How a run is stopped: by its owner, by a flag that its owner sets, or by its deadline.
//!
//! One [`Cancel`] reaches everything that a run does: processes that compute or wait, the database, and the walks of actions.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use sqlite_fs::Database;

use crate::process::Job;
use crate::tools::ToolContext;
use crate::{RunningFiles, clock};

/// How long an interrupted run may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Stops a run from anywhere, before or while it runs. Clones stop the same run.
///
/// ```
/// # use sandlite_runtime::{Command, Sandbox};
/// # let sandbox = Sandbox::builder().open()?;
/// let command = Command::bash("while :; do :; done");
/// let cancel = command.cancel();
/// std::thread::spawn(move || cancel.kill());
/// assert!(!sandbox.run(command)?.status.success());
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Control>);

type Flag = Box<dyn Fn() -> bool + Send>;

#[derive(Default)]
struct Control {
    killed: AtomicBool,
    flag: Mutex<Option<Flag>>,
    /// Whether the flag interrupts before it kills, and since when it has.
    interrupts: AtomicBool,
    interrupted: Mutex<Option<Instant>>,
    running: Mutex<Option<Running>>,
    /// The fuel of the runs that have ended.
    fuel_used: AtomicU64,
}

/// The target.
struct Running {
    job: Weak<Job>,
    database: Database,
}

impl Cancel {
    /// Ends the run at once, if it has not ended; its output so far is kept.
    pub fn kill(&self) {
        self.0.killed.store(true, Ordering::Release);
        // Taken out first, because stopping wakes threads that may access it.
        let job = self.running().as_ref().and_then(|running| running.job.upgrade());
        if let Some(job) = job {
            job.stop();
        }
    }

    /// Returns whether the owner stopped the run, or requested that it be stopped when it starts.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.0.killed.load(Ordering::Acquire) || !self.0.interrupts.load(Ordering::Relaxed) && self.is_flagged()
    }

    fn is_flagged(&self) -> bool {
        lock(&self.0.flag).as_ref().is_some_and(|is_wanted| is_wanted())
    }

    /// Interrupts the run before it is stopped by its flag.
    pub(crate) fn interrupt_first(&self) {
        self.0.interrupts.store(true, Ordering::Relaxed);
    }

    // Whether the run, which is interrupted first, must be stopped now.
    fn is_past_interrupt(&self) -> bool {
        if !self.0.interrupts.load(Ordering::Relaxed) || !self.is_flagged() {
            return false;
        }
        let mut interrupted = lock(&self.0.interrupted);
        if let Some(since) = *interrupted {
            return clock::now() >= since + GRACE;
        }
        *interrupted = Some(clock::now());
        drop(interrupted);
        let job = self.running().as_ref().and_then(|running| running.job.upgrade());
        if let Some(job) = job {
            job.interrupt();
        }
        false
    }

    /// Returns the fuel that the command has used so far, while it runs. A command that only waits uses none.
    #[must_use]
    pub fn fuel_spent(&self) -> Option<u64> {
        let job = self.running().as_ref().and_then(|running| running.job.upgrade())?;
        Some(job.meter.usage().fuel)
    }

    /// Returns the fuel of all commands that it could have stopped and that have ended, by themselves or not.
    ///
    /// ```
    /// # use sandlite_runtime::{Cancel, Command, Sandbox};
    /// # let sandbox = Sandbox::builder().open()?;
    /// let cancel = Cancel::default();
    /// let first = sandbox.run(Command::bash("true").cancelled_by(cancel.clone()))?;
    /// let second = sandbox.run(Command::bash("false").cancelled_by(cancel.clone()))?;
    /// assert_eq!(cancel.fuel_used(), first.usage.fuel + second.usage.fuel);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn fuel_used(&self) -> u64 {
        self.0.fuel_used.load(Ordering::Relaxed)
    }

    /// Returns the files of the command as its programs see them, while it runs.
    #[must_use]
    pub fn files(&self) -> Option<RunningFiles> {
        let job = self.running().as_ref().and_then(|running| running.job.upgrade())?;
        Some(RunningFiles::new(&job)).filter(|files| !files.is_over())
    }

    /// Returns the context of a function of the embedding program that works for the run, or an unbound context if nothing runs.
    pub(crate) fn call(&self) -> ToolContext {
        let job = self.running().as_ref().and_then(|running| running.job.upgrade());
        job.map_or_else(ToolContext::default, |job| ToolContext::new(job.run, RunningFiles::new(&job), job.meter.pauses(), || ()))
    }

    /// Also stops the run once this returns true. It is called every few milliseconds while the run lasts.
    pub(crate) fn set_flag(&self, is_wanted: impl Fn() -> bool + Send + 'static) {
        *lock(&self.0.flag) = Some(Box::new(is_wanted));
    }

    /// Sets the target processes; an earlier kill takes effect now.
    pub(crate) fn attach(&self, job: &Arc<Job>, database: &Database) {
        *self.running() = Some(Running { job: Arc::downgrade(job), database: database.clone() });
        if self.is_killed() {
            job.stop();
        }
    }

    /// Releases the processes, which have ended. A kill in progress completes before the job is torn down.
    pub(crate) fn detach(&self) {
        let job = self.running().take().and_then(|running| running.job.upgrade());
        if let Some(job) = job {
            self.0.fuel_used.fetch_add(job.meter.usage().fuel, Ordering::Relaxed);
        }
    }

    /// Returns the time until the run must end. Stops the run if its owner requested that, and interrupts the database once no
    /// time is left (T-DOS-14).
    pub(crate) fn look(&self) -> Duration {
        if self.is_killed() || self.is_past_interrupt() {
            self.kill();
        }
        let (job, database) = match &*self.running() {
            Some(running) => (running.job.upgrade(), running.database.clone()),
            None => return Duration::MAX,
        };
        let Some(job) = job else { return Duration::MAX };
        job.meter.reserve(database.settling());
        let left = job.meter.left();
        if left.is_zero() {
            database.interrupter().interrupt();
        }
        left
    }

    /// Returns the time left for the calling thread, which waits for something outside the sandbox: zero if its run or its
    /// process must end, [`Duration::MAX`] if nothing runs.
    pub(crate) fn left_here(&self) -> Duration {
        if self.is_killed() {
            return Duration::ZERO;
        }
        let job = self.running().as_ref().and_then(|running| running.job.upgrade());
        match job {
            None => Duration::MAX,
            Some(job) if job.is_over() || job.must_end_here() => Duration::ZERO,
            Some(job) => job.meter.left(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        lock(&self.0.running)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("killed", &self.0.killed.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

/// A [`Cancel`] with a deadline for work without processes: the walk of an action, the read of a source.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    cancel: Cancel,
    at: Instant,
}

impl Deadline {
    /// Creates a deadline this long from now.
    pub(crate) fn after(time: Duration, cancel: Cancel) -> Self {
        Self { cancel, at: clock::now() + time }
    }

    /// Returns the time by which the work must end, unless it is stopped before.
    pub(crate) fn moment(&self) -> Instant {
        self.at
    }

    /// Returns whether the work must end.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.0.killed.load(Ordering::Acquire) || clock::now() >= self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_stops_as_a_kill_does() {
        let (by_kill, by_flag) = (Cancel::default(), Cancel::default());
        by_flag.set_flag(|| true);
        assert!(!by_kill.is_killed() && by_flag.is_killed());
        by_kill.kill();
        assert!(by_kill.is_killed());
        assert_eq!(by_kill.look(), Duration::MAX);
    }

    #[test]
    fn a_deadline_ends_with_its_time_and_with_a_kill() {
        let cancel = Cancel::default();
        let deadline = Deadline::after(Duration::from_secs(3600), cancel.clone());
        assert!(Deadline::after(Duration::ZERO, cancel.clone()).is_over() && !deadline.is_over());
        cancel.kill();
        assert!(deadline.is_over());
    }
}
