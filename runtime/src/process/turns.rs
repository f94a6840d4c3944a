//! Turns: in a deterministic run one process of the command runs at a time, and the next one is determined only by previous
//! events.
//!
//! A process yields its turn when it must wait, when it ends, and after a fixed number of host calls. The turn passes on by pid
//! to a process that may have news. When no process can continue, the clock jumps to the earliest wake-up time: time passes only
//! while nothing else happens.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::Pid;
use crate::clock::{self, GuestClock};

/// Number of host calls per turn: a process that polls another one must not starve it.
const CALLS_PER_TURN: u32 = 64;

/// How often a process without the turn checks whether the command is overdue.
const LOOK: Duration = Duration::from_millis(5);

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Round>);

#[derive(Debug, Default)]
struct Round {
    current: Option<Pid>,
    members: BTreeMap<Pid, Member>,
    /// How often a process yielded its turn after having done something.
    news: u64,
}

#[derive(Debug, Default)]
struct Member {
    thread: Option<Thread>,
    /// The news it has seen without effect; `None` if it can continue anyway.
    seen: Option<u64>,
    /// Its wake-up time without news, by the guest's monotonic clock.
    until: Option<u64>,
    calls: u32,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Round> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a process that has not started.
    pub(crate) fn join(&self, pid: Pid) {
        self.lock().members.insert(pid, Member::default());
    }

    /// Waits for a process's first turn, on its own thread.
    pub(crate) fn begin(&self, pid: Pid) {
        if let Some(member) = self.lock().members.get_mut(&pid) {
            member.thread = Some(thread::current());
        }
        self.wait(pid, clock::now(), true);
    }

    /// Yields the turn until there is news, or until a time; `has_done_something` is such news for others.
    pub(crate) fn give_up(&self, clock: &GuestClock, pid: Pid, until: Option<u64>, has_done_something: bool, deadline: Instant) {
        let mut round = self.lock();
        round.news += u64::from(has_done_something);
        let news = round.news;
        if let Some(member) = round.members.get_mut(&pid) {
            (member.seen, member.until) = (Some(news), until);
        }
        round.pass_on(pid, clock);
        drop(round);
        // It has just checked: it checks again when it is woken, or when it gets the turn.
        self.wait(pid, deadline, false);
    }

    /// Counts a host call, and yields to others periodically; returns true if it did.
    pub(crate) fn count_call(&self, clock: &GuestClock, pid: Pid) -> bool {
        let mut round = self.lock();
        let Some(member) = round.members.get_mut(&pid) else { return false };
        member.calls += 1;
        if member.calls < CALLS_PER_TURN {
            return false;
        }
        drop(round);
        self.let_others(clock, pid);
        true
    }

    /// Yields to others.
    pub(crate) fn let_others(&self, clock: &GuestClock, pid: Pid) {
        let mut round = self.lock();
        round.news += 1;
        if let Some(member) = round.members.get_mut(&pid) {
            (member.seen, member.until, member.calls) = (None, None, 0);
        }
        round.pass_on(pid, clock);
        drop(round);
        self.wait(pid, clock::now(), true);
    }

    /// Removes a process that has ended.
    pub(crate) fn leave(&self, clock: &GuestClock, pid: Pid) {
        let mut round = self.lock();
        round.members.remove(&pid);
        round.news += 1;
        if round.current == Some(pid) || round.current.is_none() {
            round.pass_on(pid, clock);
        }
    }

    // If no process has the turn, none could continue: a process that is woken from outside, by input or by the deadline, may
    // check. A process that is woken during another's turn checks after that one, so that the wake-up is not lost.
    fn wait(&self, pid: Pid, deadline: Instant, mut may_look: bool) {
        loop {
            let mut round = self.lock();
            match round.current {
                Some(current) if current == pid => return,
                None if may_look => {
                    round.current = Some(pid);
                    return;
                }
                Some(_) if may_look => {
                    if let Some(member) = round.members.get_mut(&pid) {
                        member.seen = None;
                    }
                }
                _ => {}
            }
            drop(round);
            thread::park_timeout(deadline.saturating_duration_since(clock::now()).max(LOOK));
            may_look = true;
        }
    }
}

impl Round {
    fn pass_on(&mut self, from: Pid, clock: &GuestClock) {
        self.current = self.next(from, clock);
        let thread = self.current.and_then(|pid| self.members.get(&pid)).and_then(|member| member.thread.as_ref());
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    fn next(&mut self, from: Pid, clock: &GuestClock) -> Option<Pid> {
        let news = self.news;
        let may_go_on = |(pid, member): (&Pid, &Member)| member.seen.is_none_or(|seen| seen < news).then_some(*pid);
        let after = self.members.range(from.saturating_add(1)..).find_map(may_go_on);
        if let Some(pid) = after.or_else(|| self.members.range(..=from).find_map(may_go_on)) {
            return Some(pid);
        }
        let (until, pid) = self.members.iter().filter_map(|(pid, member)| Some((member.until?, *pid))).min()?;
        clock.advance_to(until);
        Some(pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(members: &[(Pid, Option<u64>, Option<u64>)], news: u64) -> Round {
        let member = |&(pid, seen, until): &(Pid, Option<u64>, Option<u64>)| (pid, Member { seen, until, ..Member::default() });
        Round { current: None, members: members.iter().map(member).collect(), news }
    }

    #[test]
    fn turns_pass_by_pid_to_processes_with_new_input() {
        let clock = GuestClock::fixed(Duration::ZERO);
        let mut round = round(&[(1, Some(4), None), (2, Some(5), None), (3, Some(4), None)], 5);
        assert_eq!(round.next(1, &clock), Some(3));
        assert_eq!(round.next(3, &clock), Some(1));
    }

    #[test]
    fn if_no_process_can_continue_the_clock_jumps_to_the_first_wake_up() {
        let clock = GuestClock::fixed(Duration::ZERO);
        let mut both = round(&[(1, Some(5), Some(3_000_000)), (2, Some(5), Some(2_000_000))], 5);
        assert_eq!(both.next(1, &clock), Some(2));
        assert_eq!(clock.passed(), 2_000_000);
        assert_eq!(round(&[(1, Some(5), None)], 5).next(1, &clock), None);
    }
}
