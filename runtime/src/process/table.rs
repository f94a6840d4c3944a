//! The pid table of one command: parents and children, ended processes and their status, signals.
//!
//! Knows nothing about wasm; `run.rs` runs the processes listed here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use abi::{Disposition, Errno, Signal, WaitStatus, Waited};

/// A process id, unique within its command.
pub(crate) type Pid = u32;

/// The pid of a command's first process, as on any system.
pub(crate) const FIRST: Pid = 1;

/// The part of a process that other threads may access.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its id.
    pub(crate) pid: Pid,
    thread: OnceLock<Thread>,
    ending_signal: AtomicU32,
    caught: AtomicU64,
    dispositions: Mutex<[Disposition; Signal::MAX as usize]>,
}

impl Process {
    fn new(pid: Pid, dispositions: [Disposition; Signal::MAX as usize]) -> Arc<Self> {
        Arc::new(Self {
            pid,
            thread: OnceLock::new(),
            ending_signal: AtomicU32::new(0),
            caught: AtomicU64::new(0),
            dispositions: Mutex::new(dispositions),
        })
    }

    /// Registers the calling thread as the one that runs it.
    pub(crate) fn adopt_thread(&self) {
        let _ = self.thread.set(thread::current());
    }

    /// Returns whether a signal requested its end.
    pub(crate) fn must_end(&self) -> bool {
        self.ending_signal.load(Ordering::Acquire) != 0
    }

    /// Returns the signal that requested its end.
    pub(crate) fn ending_signal(&self) -> Option<Signal> {
        Signal::from_raw(self.ending_signal.load(Ordering::Acquire))
    }

    /// Returns whether a caught signal is pending.
    pub(crate) fn has_caught_signal(&self) -> bool {
        self.caught.load(Ordering::Acquire) != 0
    }

    /// Takes the caught signals.
    pub(crate) fn take_caught(&self) -> u64 {
        self.caught.swap(0, Ordering::AcqRel)
    }

    /// Sets the disposition of a signal.
    pub(crate) fn set_disposition(&self, signal: Signal, disposition: Disposition) -> Disposition {
        let mut dispositions = self.dispositions.lock().unwrap_or_else(PoisonError::into_inner);
        match dispositions.get_mut(usize::from(signal.number() - 1)) {
            Some(slot) => std::mem::replace(slot, disposition),
            None => Disposition::Default,
        }
    }

    /// Returns the disposition of a signal.
    pub(crate) fn disposition(&self, signal: Signal) -> Disposition {
        let dispositions = self.dispositions.lock().unwrap_or_else(PoisonError::into_inner);
        dispositions.get(usize::from(signal.number() - 1)).copied().unwrap_or_default()
    }

    /// Returns the ignored signals, as bits of [`Signal::bit`].
    pub(crate) fn ignored(&self) -> u64 {
        let dispositions = self.dispositions.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = (1..).zip(dispositions.iter()).filter(|(_, disposition)| **disposition == Disposition::Ignore);
        numbers.filter_map(|(number, _)| Signal::from_raw(number)).fold(0, |mask, signal| mask | signal.bit())
    }

    /// Resets dispositions for a new program: ignored stays ignored, caught becomes default.
    pub(crate) fn reset_caught_dispositions(&self) {
        let mut dispositions = self.dispositions.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in dispositions.iter_mut().filter(|slot| **slot == Disposition::Catch) {
            *slot = Disposition::Default;
        }
        self.caught.store(0, Ordering::Release);
    }

    /// Delivers a signal.
    pub(crate) fn deliver(&self, signal: Signal) {
        let disposition =
            if matches!(signal, Signal::KILL | Signal::STOP) { Disposition::Default } else { self.disposition(signal) };
        match disposition {
            Disposition::Ignore => return,
            Disposition::Catch => {
                self.caught.fetch_or(signal.bit(), Ordering::AcqRel);
            }
            Disposition::Default if signal.ends_by_default() => {
                let _ = self.ending_signal.compare_exchange(0, u32::from(signal.number()), Ordering::AcqRel, Ordering::Acquire);
            }
            Disposition::Default => return,
        }
        self.wake();
    }

    /// Wakes its thread, if it is blocked.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// The children that a `wait` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// This one.
    Child(Pid),
    /// Any.
    Any,
    /// Any of this group.
    Group(Pid),
}

#[derive(Debug)]
struct Entry {
    parent: Pid,
    group: Pid,
    process: Arc<Process>,
    ended: Option<WaitStatus>,
}

/// All processes of one command.
#[derive(Debug, Default)]
pub(crate) struct Table {
    entries: BTreeMap<Pid, Entry>,
    last: Pid,
}

impl Table {
    /// Adds a process. Pids are not reused within a command: the limit on starts bounds them.
    pub(crate) fn add(&mut self, parent: Pid, new_group: bool) -> Arc<Process> {
        self.last += 1;
        let pid = self.last;
        let parent_entry = self.entries.get(&parent);
        let group = match parent_entry {
            Some(entry) if !new_group => entry.group,
            _ => pid,
        };
        let dispositions = parent_entry.map_or([Disposition::Default; Signal::MAX as usize], |entry| {
            *entry.process.dispositions.lock().unwrap_or_else(PoisonError::into_inner)
        });
        let process = Process::new(pid, dispositions);
        self.entries.insert(pid, Entry { parent, group, process: Arc::clone(&process), ended: None });
        process
    }

    /// Returns whether the process of the calling thread must end, ignoring processes that the thread ran before.
    pub(crate) fn must_end_here(&self) -> bool {
        let here = thread::current().id();
        let mut running = self.entries.values().filter(|entry| entry.ended.is_none()).map(|entry| &entry.process);
        running.any(|process| process.must_end() && process.thread.get().is_some_and(|thread| thread.id() == here))
    }

    /// Records that a process has ended. Its children are adopted by the first process; its parent is notified.
    pub(crate) fn end(&mut self, pid: Pid, status: WaitStatus) {
        for entry in self.entries.values_mut().filter(|entry| entry.parent == pid) {
            entry.parent = FIRST;
        }
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        entry.ended = Some(status);
        let parent = entry.parent;
        if let Some(parent) = self.entries.get(&parent) {
            parent.process.deliver(Signal::CHLD);
            parent.process.wake();
        }
    }

    /// Removes a process that never started.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.entries.remove(&pid);
    }

    /// Takes an ended child of `parent`: `Ok(None)` while none has ended.
    pub(crate) fn reap(&mut self, parent: Pid, which: WaitFor) -> Result<Option<Waited>, Errno> {
        let mut any = false;
        let mut ended = None;
        for (&pid, entry) in &self.entries {
            let meant = match which {
                WaitFor::Child(child) => child == pid,
                WaitFor::Any => true,
                WaitFor::Group(group) => entry.group == group,
            };
            if entry.parent != parent || !meant {
                continue;
            }
            any = true;
            if let Some(status) = entry.ended {
                ended = Some(Waited { pid, status });
                break;
            }
        }
        match ended {
            Some(waited) => {
                self.entries.remove(&waited.pid);
                Ok(Some(waited))
            }
            None if any => Ok(None),
            None => Err(Errno::CHILD),
        }
    }

    /// Sends a signal: to a process (> 0), to the sender's group (0), to everybody (-1) or to group `-pid`. Without a signal it
    /// only checks whether a target exists.
    pub(crate) fn signal(&self, sender: Pid, pid: i32, signal: Option<Signal>) -> Result<(), Errno> {
        let own_group = self.group(sender);
        let mut found = false;
        for (&candidate, entry) in &self.entries {
            let meant = match pid {
                0 => entry.group == own_group,
                -1 => candidate != sender,
                1.. => candidate == pid.unsigned_abs(),
                _ => entry.group == pid.unsigned_abs(),
            };
            if !meant {
                continue;
            }
            found = true;
            if let (Some(signal), None) = (signal, entry.ended) {
                entry.process.deliver(signal);
            }
        }
        if found { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// Returns the group of a process; 0 if the process does not exist.
    pub(crate) fn group(&self, pid: Pid) -> Pid {
        self.entries.get(&pid).map_or(0, |entry| entry.group)
    }

    /// Returns the parent of a process; 0 for the first.
    pub(crate) fn parent(&self, pid: Pid) -> Pid {
        self.entries.get(&pid).map_or(0, |entry| entry.parent)
    }

    /// Moves `pid` (0: the caller) into `group` (0: its own).
    pub(crate) fn set_group(&mut self, caller: Pid, pid: Pid, group: Pid) -> Result<(), Errno> {
        let pid = if pid == 0 { caller } else { pid };
        let group = if group == 0 { pid } else { group };
        if group != pid && !self.entries.values().any(|entry| entry.group == group) {
            return Err(Errno::PERM);
        }
        match self.entries.get_mut(&pid) {
            Some(entry) if pid == caller || entry.parent == caller => {
                entry.group = group;
                Ok(())
            }
            _ => Err(Errno::SRCH),
        }
    }

    /// Wakes a process, if it is blocked.
    pub(crate) fn wake(&self, pid: Pid) {
        if let Some(entry) = self.entries.get(&pid) {
            entry.process.wake();
        }
    }

    /// Ends every process but one, and returns how many were still running.
    pub(crate) fn kill_others(&self, survivor: Pid) -> usize {
        let running = self.entries.values().filter(|entry| entry.ended.is_none() && entry.process.pid != survivor);
        running.map(|entry| entry.process.deliver(Signal::KILL)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_parent_reaps_and_only_once() {
        let mut table = Table::default();
        let shell = table.add(0, true).pid;
        let child = table.add(shell, false).pid;
        assert_eq!(table.reap(shell, WaitFor::Any), Ok(None));
        table.end(child, WaitStatus::Exited(3));
        assert_eq!(table.reap(child, WaitFor::Any), Err(Errno::CHILD));
        assert_eq!(table.reap(shell, WaitFor::Child(child)), Ok(Some(Waited { pid: child, status: WaitStatus::Exited(3) })));
        assert_eq!(table.reap(shell, WaitFor::Any), Err(Errno::CHILD));
    }

    #[test]
    fn an_orphan_becomes_the_first_process_child() {
        let mut table = Table::default();
        let shell = table.add(0, true).pid;
        let middle = table.add(shell, false).pid;
        let orphan = table.add(middle, false).pid;
        table.end(middle, WaitStatus::Exited(0));
        table.end(orphan, WaitStatus::Exited(1));
        assert_eq!(table.parent(orphan), shell);
    }

    #[test]
    fn a_signal_reaches_its_group_and_a_caught_one_does_not_kill() {
        let mut table = Table::default();
        let shell = table.add(0, true);
        let job = table.add(shell.pid, true);
        shell.set_disposition(Signal::TERM, Disposition::Catch);
        table.signal(shell.pid, -(job.pid as i32), Some(Signal::TERM)).unwrap();
        assert!(job.must_end() && !shell.must_end() && !shell.has_caught_signal());
        table.signal(shell.pid, 0, Some(Signal::TERM)).unwrap();
        assert!(!shell.must_end());
        assert_eq!(shell.take_caught(), Signal::TERM.bit());
    }
}
