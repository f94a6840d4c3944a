//! Turns: in a deterministic run one process of the command runs at a time, and who comes next follows from what has
//! happened and from nothing else.
//!
//! A process gives its turn away when it must wait, when it ends, and after every so many calls of the host. The turn goes
//! round by pid to whoever may find something new. When nobody can go on, the clock jumps to the first moment that
//! somebody waits for: time passes only while nothing else happens.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::Pid;
use crate::clock::{self, GuestClock};

/// Host calls before somebody else has a turn: a process that asks again and again whether another is done must not keep
/// that other from it.
const CALLS_PER_TURN: u32 = 64;

/// How often a process whose turn it is not looks whether the command is overdue.
const LOOK: Duration = Duration::from_millis(5);

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Round>);

#[derive(Debug, Default)]
struct Round {
    current: Option<Pid>,
    members: BTreeMap<Pid, Member>,
    /// How often somebody gave up a turn after having done something.
    news: u64,
}

#[derive(Debug, Default)]
struct Member {
    thread: Option<Thread>,
    /// The news it has seen and found nothing in; `None` when it can go on anyway.
    seen: Option<u64>,
    /// When it wants to go on without news, by the guest's monotonic clock.
    until: Option<u64>,
    calls: u32,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Round> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a process that has not begun.
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

    /// Gives the turn away until there is news, or until a moment; `has_done_something` is such news for others.
    pub(crate) fn give_up(&self, clock: &GuestClock, pid: Pid, until: Option<u64>, has_done_something: bool, deadline: Instant) {
        let mut round = self.lock();
        round.news += u64::from(has_done_something);
        let news = round.news;
        if let Some(member) = round.members.get_mut(&pid) {
            (member.seen, member.until) = (Some(news), until);
        }
        round.pass_on(pid, clock);
        drop(round);
        // It has just looked: it looks again when it is woken, or when it is given the turn.
        self.wait(pid, deadline, false);
    }

    /// Counts a call of the host, and lets others go first now and then; true when it did.
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

    /// Lets others go first.
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

    /// Takes a process off the list that has ended.
    pub(crate) fn leave(&self, clock: &GuestClock, pid: Pid) {
        let mut round = self.lock();
        round.members.remove(&pid);
        round.news += 1;
        if round.current == Some(pid) || round.current.is_none() {
            round.pass_on(pid, clock);
        }
    }

    // When it is nobody's turn, nobody could go on: whoever is woken from outside, by input or by the deadline, may look. Whoever is
    // woken while it is another's turn looks after that one, or what woke it would be lost.
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
    fn the_turn_goes_round_by_pid_to_whoever_may_find_news() {
        let clock = GuestClock::fixed(Duration::ZERO);
        let mut round = round(&[(1, Some(4), None), (2, Some(5), None), (3, Some(4), None)], 5);
        assert_eq!(round.next(1, &clock), Some(3));
        assert_eq!(round.next(3, &clock), Some(1));
    }

    #[test]
    fn when_nobody_can_go_on_the_clock_jumps_to_the_first_sleeper() {
        let clock = GuestClock::fixed(Duration::ZERO);
        let mut both = round(&[(1, Some(5), Some(3_000_000)), (2, Some(5), Some(2_000_000))], 5);
        assert_eq!(both.next(1, &clock), Some(2));
        assert_eq!(clock.passed(), 2_000_000);
        assert_eq!(round(&[(1, Some(5), None)], 5).next(1, &clock), None);
    }
}
