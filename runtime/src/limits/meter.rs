//! The meter: counters with limits, shared by all processes of one command.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use presets::{ByteSize, LimitName, Limits, WallTime};

use super::LimitReached;
use super::pauses::{Pause, Pauses};
use super::reached::APPROVAL;
use crate::clock;

/// Output that a command may print when no memory is left, in total and at once, for the error messages of its processes.
const REPORT_ROOM: u64 = 64 << 10;
const LONGEST_REPORT: u64 = 4 << 10;

/// Maximum time for the host to prepare something for a command.
const PREPARING: Duration = Duration::from_secs(3600);

/// The usage and limits of one command.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    started: Instant,
    deadline: Instant,
    pauses: Arc<Pauses>,
    reserved_nanos: AtomicU64,
    fuel_used: AtomicU64,
    memory: AtomicU64,
    memory_peak: AtomicU64,
    memory_refused: AtomicBool,
    files: AtomicU64,
    report_room: AtomicU64,
    output: AtomicU64,
    commands: AtomicU64,
    processes: AtomicU64,
    process_starts: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    reached: OnceLock<LimitReached>,
}

/// The resource usage of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Usage {
    /// Wasm fuel.
    pub fuel: u64,
    /// Wall-clock time; microseconds in JSON.
    #[serde(serialize_with = "as_micros", rename = "wall_us")]
    #[schemars(with = "u64")]
    pub wall: Duration,
    /// Peak memory, in bytes.
    pub memory_peak: u64,
    /// Bytes of output.
    pub output: u64,
    /// Simple commands executed by shells.
    pub commands: u64,
    /// Processes started.
    pub processes: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
}

fn whole_millis(time: Duration) -> WallTime {
    WallTime(Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

fn as_micros<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

impl Meter {
    /// Creates a meter that starts now.
    pub(crate) fn new(limits: Limits) -> Self {
        let started = clock::now();
        Self {
            deadline: started + limits.wall.0,
            started,
            limits,
            pauses: Arc::default(),
            reserved_nanos: AtomicU64::new(0),
            fuel_used: AtomicU64::new(0),
            memory: AtomicU64::new(0),
            memory_peak: AtomicU64::new(0),
            memory_refused: AtomicBool::new(false),
            files: AtomicU64::new(0),
            report_room: AtomicU64::new(REPORT_ROOM),
            output: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            processes: AtomicU64::new(0),
            process_starts: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            reached: OnceLock::new(),
        }
    }

    /// Returns the limits.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the deadline of the command's processes, which leaves time to store their changes.
    pub(crate) fn deadline(&self) -> Instant {
        if let Some(until) = self.pauses.until() {
            return until;
        }
        let end = self.end();
        end.checked_sub(self.reserved()).unwrap_or(end).max(self.started)
    }

    /// Returns the deadline of the whole command.
    pub(crate) fn end(&self) -> Instant {
        self.deadline + self.pauses.excused()
    }

    /// Reserves time at the end to store the changes of the processes so far.
    pub(crate) fn reserve(&self, time: Duration) {
        self.reserved_nanos.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn reserved(&self) -> Duration {
        Duration::from_nanos(self.reserved_nanos.load(Ordering::Relaxed))
    }

    /// Returns the time left for the command's processes; while the clock is paused, the remaining time of the pause.
    pub(crate) fn left(&self) -> Duration {
        self.deadline().saturating_duration_since(clock::now())
    }

    /// Returns whether the wall clock has run out, without recording a reached limit.
    pub(crate) fn is_overdue(&self) -> bool {
        self.is_overdue_at(clock::now())
    }

    fn is_overdue_at(&self, now: Instant) -> bool {
        now > self.deadline()
    }

    /// Pauses the wall clock while the host does something slow on its own account, such as compiling a guest for the first time.
    pub(crate) fn pause(&self) -> Pause {
        self.pauses.begin(PREPARING)
    }

    /// Returns the pauses, for others that may pause the clock.
    pub(crate) fn pauses(&self) -> &Arc<Pauses> {
        &self.pauses
    }

    /// Returns the limit that ended the command, if any.
    pub(crate) fn reached(&self) -> Option<&LimitReached> {
        self.reached.get()
    }

    /// Charges compute and returns the remaining amount; usage beyond the budget reaches the limit.
    pub(crate) fn spend_fuel(&self, amount: u64) -> Result<u64, LimitReached> {
        let used = self.fuel_used.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        self.limits.compute.checked_sub(used).ok_or_else(|| self.compute_reached(used))
    }

    /// Records that a process wanted more compute than was left.
    pub(crate) fn out_of_fuel(&self) -> LimitReached {
        self.compute_reached(self.fuel_used.load(Ordering::Relaxed).max(self.limits.compute))
    }

    fn compute_reached(&self, used: u64) -> LimitReached {
        self.reach(LimitName::Compute, self.limits.compute.to_string(), used.to_string())
    }

    /// Checks whether the wall clock has run out.
    pub(crate) fn check_time(&self) -> Result<(), LimitReached> {
        let now = clock::now();
        if !self.is_overdue() {
            return Ok(());
        }
        if let Some(longest) = self.pauses.longest() {
            let used = format!("{} {APPROVAL}", whole_millis(longest));
            return Err(self.reach(LimitName::Wall, whole_millis(longest).to_string(), used));
        }
        let reserved = whole_millis(self.reserved());
        let mut used = whole_millis((now - self.started).saturating_sub(self.pauses.excused())).to_string();
        if !reserved.0.is_zero() {
            used = format!("{used} and {reserved} reserved to store its changes");
        }
        Err(self.reach(LimitName::Wall, self.limits.wall.to_string(), used))
    }

    /// Returns the limit of a command whose changes could not be stored in time and were rolled back.
    pub(crate) fn too_late_to_store(&self) -> LimitReached {
        let used = whole_millis(clock::now() - self.started).to_string();
        LimitReached { limit: LimitName::Wall, value: self.limits.wall.to_string(), used, rolled_back: true }
    }

    /// Charges memory, or refuses and charges nothing.
    pub(crate) fn take_memory(&self, bytes: u64) -> bool {
        let allowed = self.limits.memory.0.saturating_sub(self.files.load(Ordering::Relaxed));
        let taken = self
            .memory
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| held.checked_add(bytes).filter(|&total| total <= allowed));
        match taken {
            Ok(held) => {
                self.memory_peak.fetch_max(held + bytes, Ordering::Relaxed);
                true
            }
            Err(_) => {
                self.memory_refused.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Charges the files of a sandbox in memory, or refuses and keeps the last charge. Files that exist before the command starts
    /// cannot be refused: they reduce the memory of the guests.
    pub(crate) fn hold_files(&self, bytes: u64) -> bool {
        let held = self.files.load(Ordering::Relaxed);
        let is_first = held == 0;
        if bytes > held && !is_first && self.memory.load(Ordering::Relaxed).saturating_add(bytes) > self.limits.memory.0 {
            self.memory_refused.store(true, Ordering::Relaxed);
            return false;
        }
        self.files.store(bytes, Ordering::Relaxed);
        true
    }

    /// Returns memory.
    pub(crate) fn return_memory(&self, bytes: u64) {
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Records that a process died; if it had been refused memory before, that limit is the cause.
    pub(crate) fn process_died(&self) -> Option<LimitReached> {
        self.memory_refused.load(Ordering::Relaxed).then(|| {
            let LimitReached { limit, value, used, .. } = self.memory_refusal();
            self.reach(limit, value, used)
        })
    }

    /// Returns the limit that refused memory to a process that then failed by itself: the command continues.
    pub(crate) fn memory_refusal(&self) -> LimitReached {
        let (peak, files) = (self.memory_peak.load(Ordering::Relaxed), self.files.load(Ordering::Relaxed));
        let used = if files > self.limits.memory.0 / 4 {
            format!("{} and more, {} of it by files,", ByteSize(peak.saturating_add(files)), ByteSize(files))
        } else {
            format!("{} and more", ByteSize(peak))
        };
        LimitReached { limit: LimitName::Memory, value: self.limits.memory.to_string(), used, rolled_back: false }
    }

    /// Charges memory for captured output; small output fits even if everything else is used, so that a process that ran out of
    /// memory can still report it.
    pub(crate) fn take_output_memory(&self, bytes: u64) -> bool {
        if self.take_memory(bytes) {
            return true;
        }
        let left = self.report_room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(bytes).filter(|_| bytes <= LONGEST_REPORT)
        });
        left.is_ok()
    }

    /// Charges output: returns how many of the `wanted` bytes may still be kept, and whether the limit is now reached.
    pub(crate) fn take_output(&self, wanted: u64) -> (u64, Option<LimitReached>) {
        let before = self.output.fetch_add(wanted, Ordering::Relaxed);
        let room = self.limits.output.0.saturating_sub(before);
        if wanted <= room {
            return (wanted, None);
        }
        let used = ByteSize(before.saturating_add(wanted));
        (room, Some(self.reach(LimitName::Output, self.limits.output.to_string(), used.to_string())))
    }

    /// Counts simple commands of a shell.
    pub(crate) fn count_commands(&self, amount: u64) -> Result<(), LimitReached> {
        let used = self.commands.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        if used <= self.limits.commands {
            return Ok(());
        }
        Err(self.reach(LimitName::Commands, self.limits.commands.to_string(), used.to_string()))
    }

    /// Checks the number of iterations of one loop.
    pub(crate) fn check_loop(&self, rounds: u64) -> Result<(), LimitReached> {
        if rounds <= self.limits.loop_iterations {
            return Ok(());
        }
        Err(self.reach(LimitName::LoopIterations, self.limits.loop_iterations.to_string(), rounds.to_string()))
    }

    /// Charges a process, or refuses: `None` if too many are running (the guest sees EAGAIN), an error if too many were started
    /// in total.
    pub(crate) fn start_process(&self) -> Result<Option<()>, LimitReached> {
        let alive = u64::from(self.limits.processes);
        if self.processes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < alive).then_some(n + 1)).is_err() {
            return Ok(None);
        }
        let starts = self.process_starts.fetch_add(1, Ordering::Relaxed) + 1;
        if starts <= u64::from(self.limits.process_starts) {
            return Ok(Some(()));
        }
        self.end_process();
        self.process_starts.fetch_sub(1, Ordering::Relaxed);
        Err(self.reach(LimitName::ProcessStarts, self.limits.process_starts.to_string(), starts.to_string()))
    }

    /// Releases a process.
    pub(crate) fn end_process(&self) {
        self.processes.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts bytes read from files.
    pub(crate) fn count_read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes written to files.
    pub(crate) fn count_written(&self, bytes: usize) {
        self.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the usage so far.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            fuel: self.fuel_used.load(Ordering::Relaxed),
            wall: self.started.elapsed(),
            memory_peak: self.memory_peak.load(Ordering::Relaxed),
            output: self.output.load(Ordering::Relaxed).min(self.limits.output.0),
            commands: self.commands.load(Ordering::Relaxed),
            processes: self.process_starts.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
        }
    }

    // Only the first reached limit is reported; later ones are consequences.
    fn reach(&self, limit: LimitName, value: String, used: String) -> LimitReached {
        self.reached.get_or_init(|| LimitReached { limit, value, used, rolled_back: false }).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use presets::{Overrides, Preset};

    fn meter(overrides: Overrides) -> Meter {
        Meter::new(Preset::Strict.limits().tighten(&overrides).unwrap())
    }

    // G7: at the limit is allowed, one past it is not.
    #[test]
    fn every_ceiling_allows_exactly_its_value() {
        let commands = meter(Overrides { commands: Some(3), ..Overrides::default() });
        assert_eq!(commands.count_commands(3), Ok(()));
        assert_eq!(commands.count_commands(1).unwrap_err().limit, LimitName::Commands);

        let loops = meter(Overrides { loop_iterations: Some(3), ..Overrides::default() });
        assert_eq!(loops.check_loop(3), Ok(()));
        assert_eq!(loops.check_loop(4).unwrap_err().limit, LimitName::LoopIterations);

        let memory = meter(Overrides { memory: Some(ByteSize(10)), ..Overrides::default() });
        assert!(memory.take_memory(10) && !memory.take_memory(1));
        memory.return_memory(1);
        assert!(memory.take_memory(1));

        let files = meter(Overrides { memory: Some(ByteSize(10)), ..Overrides::default() });
        assert!(files.hold_files(4) && files.take_memory(6) && !files.take_memory(1));
        assert!(!files.hold_files(5) && files.hold_files(3) && files.take_memory(1));

        let alive = meter(Overrides { processes: Some(2), ..Overrides::default() });
        assert_eq!([alive.start_process(), alive.start_process(), alive.start_process()], [Ok(Some(())), Ok(Some(())), Ok(None)]);

        let starts = meter(Overrides { process_starts: Some(1), ..Overrides::default() });
        assert_eq!(starts.start_process(), Ok(Some(())));
        assert_eq!(starts.start_process().unwrap_err().limit, LimitName::ProcessStarts);

        let compute = meter(Overrides { compute: Some(10), ..Overrides::default() });
        assert_eq!([compute.spend_fuel(9), compute.spend_fuel(1)], [Ok(1), Ok(0)]);
        assert_eq!(compute.spend_fuel(1).unwrap_err().limit, LimitName::Compute);

        let output = meter(Overrides { output: Some(ByteSize(5)), ..Overrides::default() });
        assert_eq!(output.take_output(5), (5, None));
        assert_eq!(output.take_output(3).0, 0);
    }

    // G7, T-REL-05: the last moment is allowed, the next one is not; the monotonic clock is used, regardless of changes of the
    // wall clock.
    #[test]
    fn t_rel_05_wall_time_ends_after_exactly_its_value() {
        const MOMENT: Duration = Duration::from_nanos(1);
        for preset in [Preset::Strict, Preset::Normal, Preset::Permissive] {
            let meter = Meter::new(preset.limits());
            let end = meter.started + meter.limits.wall.0;
            let overdue = [end - MOMENT, end, end + MOMENT].map(|now| meter.is_overdue_at(now));
            assert_eq!(overdue, [false, false, true], "{preset:?}");
            let paused = meter.pause();
            assert!(!meter.is_overdue_at(end + MOMENT), "{preset:?}: the clock stands still");
            drop(paused);
        }
    }

    // T-DOS-02: time to store the changes is taken from the processes, not added to the command's.
    #[test]
    fn t_dos_02_processes_end_early_enough_to_store_their_changes() {
        let meter = meter(Overrides::default());
        let end = meter.end();
        meter.reserve(Duration::from_secs(2));
        assert_eq!((meter.end(), meter.deadline()), (end, end - Duration::from_secs(2)));
        assert!(!meter.is_overdue_at(meter.deadline()) && meter.is_overdue_at(end - Duration::from_secs(1)));
        meter.reserve(Duration::from_secs(100));
        let reached = meter.check_time().unwrap_err();
        assert!(reached.to_string().ends_with("and 100 s reserved to store its changes used"), "{reached}");
        meter.reserve(Duration::ZERO);
        assert_eq!(meter.deadline(), end);
    }

    #[test]
    fn the_first_limit_reached_is_reported() {
        let meter = meter(Overrides { commands: Some(1), compute: Some(10), ..Overrides::default() });
        let _ = meter.count_commands(2);
        assert_eq!(meter.spend_fuel(11).unwrap_err().limit, LimitName::Commands);
        assert_eq!(meter.reached().unwrap().to_string(), "too many commands executed (>1)");
    }
}
