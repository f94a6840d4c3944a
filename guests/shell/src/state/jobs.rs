//! Background work: which processes belong to which job, and how they ended.

use sys::{WAIT_NO_HANG, WaitStatus};

/// One process of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its process id.
    pub pid: u32,
    /// How it ended, once it has.
    pub status: Option<WaitStatus>,
}

/// A pipeline started with `&`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number in `%1`.
    pub number: usize,
    /// Its processes; the last one gives the status.
    pub members: Vec<Member>,
    /// The command as `jobs` shows it.
    pub text: String,
    /// `jobs` or `wait` has reported that it ended.
    pub reported: bool,
    /// It belongs to the shell that this one was forked from: shown, but not ours to wait for.
    pub foreign: bool,
    /// `disown -h`.
    pub keep_on_hangup: bool,
}

impl Job {
    /// Returns the status, once all its processes have ended.
    #[must_use]
    pub fn status(&self) -> Option<WaitStatus> {
        if self.members.iter().any(|member| member.status.is_none()) {
            return None;
        }
        self.members.last().and_then(|member| member.status)
    }

    /// Returns the process id that `$!` gives.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.members.last().map_or(0, |member| member.pid)
    }
}

/// How many ended processes' statuses are remembered for `wait pid`.
const REMEMBERED: usize = 512;

/// All jobs of this shell.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    /// By age.
    pub list: Vec<Job>,
    /// Statuses of processes whose job was already cleaned away.
    pub past: Vec<(u32, WaitStatus)>,
}

impl Jobs {
    /// Adds a job and returns its number.
    pub fn add(&mut self, pids: &[u32], text: String) -> usize {
        self.list.retain(|job| !job.foreign);
        let number = self.list.iter().map(|job| job.number).max().unwrap_or(0) + 1;
        let members = pids.iter().map(|&pid| Member { pid, status: None }).collect();
        self.list.push(Job { number, members, text, reported: false, foreign: false, keep_on_hangup: false });
        number
    }

    /// Forgets the jobs in a forked copy of the shell: they are the parent's.
    pub fn disown_all(&mut self) {
        self.list.iter_mut().for_each(|job| job.foreign = true);
        self.past.clear();
    }

    /// Notes that a process ended.
    pub fn ended(&mut self, pid: u32, status: WaitStatus) {
        for job in &mut self.list {
            for member in job.members.iter_mut().filter(|member| member.pid == pid) {
                member.status = Some(status);
            }
        }
    }

    /// Notes all children that have ended by now, without waiting.
    pub fn poll(&mut self) {
        let running: Vec<u32> = self
            .list
            .iter()
            .filter(|job| !job.foreign)
            .flat_map(|job| &job.members)
            .filter(|member| member.status.is_none())
            .map(|member| member.pid)
            .collect();
        for pid in running {
            if let Ok(Some(waited)) = sys::wait(i32::try_from(pid).unwrap_or(-1), WAIT_NO_HANG) {
                self.ended(waited.pid, waited.status);
            }
        }
    }

    /// Returns the job that holds a process.
    #[must_use]
    pub fn of_pid(&self, pid: u32) -> Option<&Job> {
        self.list.iter().find(|job| job.members.iter().any(|member| member.pid == pid))
    }

    /// Takes a job out, remembering how its processes ended.
    pub fn remove(&mut self, number: usize) {
        if let Some(at) = self.list.iter().position(|job| job.number == number) {
            let job = self.list.remove(at);
            for member in job.members {
                if let Some(status) = member.status {
                    self.past.push((member.pid, status));
                }
            }
            if self.past.len() > REMEMBERED {
                self.past.remove(0);
            }
        }
    }

    /// Returns the current (`%+`) and the previous (`%-`) job: the newest two.
    #[must_use]
    pub fn current(&self) -> (Option<usize>, Option<usize>) {
        let mut newest = self.list.iter().rev().map(|job| job.number);
        (newest.next(), newest.next())
    }

    /// Returns the job behind `%1`, `%+`, `%%`, `%-`, `%name`, `%?text`; `Err(true)` when several match.
    pub fn find(&self, spec: &str) -> Result<usize, bool> {
        let spec = spec.strip_prefix('%').unwrap_or(spec);
        let (current, previous) = self.current();
        if spec.is_empty() || spec == "+" || spec == "%" {
            return current.ok_or(false);
        }
        if spec == "-" {
            return previous.or(current).ok_or(false);
        }
        if let Ok(number) = spec.parse::<usize>() {
            return self.list.iter().find(|job| job.number == number).map(|job| job.number).ok_or(false);
        }
        let matches: Vec<usize> = match spec.strip_prefix('?') {
            Some(part) => self.list.iter().filter(|job| job.text.contains(part)).map(|job| job.number).collect(),
            None => self.list.iter().filter(|job| job.text.starts_with(spec)).map(|job| job.number).collect(),
        };
        match matches.as_slice() {
            [one] => Ok(*one),
            [] => Err(false),
            _ => Err(true),
        }
    }
}
