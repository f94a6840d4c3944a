//! `timeout`: a program with a deadline.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use sys::{Signal, WAIT_NO_HANG, WaitStatus};

use super::kill::signal_number;
use crate::command::{self, environment, own_path, request};
use crate::options::{self, Needs, No, Spec};
use crate::process::sleep::duration;
use crate::program::{Args, Outcome, set_failure, usage, warn};
use crate::quote;

/// The interval at which the child is checked: short enough to be unnoticed, long enough to cost nothing.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// Runs `timeout`.
pub fn main(args: Args) -> Outcome {
    set_failure(125);
    let spec = Spec {
        short: "+k:s:v",
        long: &[
            ("foreground", No, 'f'),
            ("kill-after", Needs, 'k'),
            ("preserve-status", No, 'p'),
            ("signal", Needs, 's'),
            ("verbose", No, 'v'),
        ],
        help: "[OPTION] DURATION COMMAND [ARG]...",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.len() < 2 {
        crate::program::hint();
        return Err(125);
    }
    let span = |text: &OsString| {
        text.to_str().and_then(duration).ok_or_else(|| usage(format!("invalid time interval {}", quote::plain(text))))
    };
    let limit = span(&given.operands[0])?;
    let kill_after = given.value('k').map(|text| span(&text.to_owned())).transpose()?;
    let signal = match given.value('s') {
        Some(text) => signal_number(&text.to_string_lossy())
            .and_then(Signal::from_raw)
            .ok_or_else(|| usage(format!("{}: invalid signal", quote::plain(text))))?,
        None => Signal::TERM,
    };
    let words = &given.operands[1..];
    let started = request(words, environment(), own_path().as_deref()).and_then(|mut request| {
        if !given.has('f') {
            request.flags = sys::NEW_GROUP;
        }
        command::start(request)
    });
    let child = match started {
        Ok(pid) => i32::try_from(pid).unwrap_or(0),
        Err(error) => {
            warn(format!("failed to run command {}: {}", quote::plain(&words[0]), sys::message(&error)));
            return Err(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 });
        }
    };
    let target = if given.has('f') { child } else { -child };
    let mut watch = Watch { child, target, verbose: given.has('v'), name: quote::plain(&words[0]) };
    let (status, timed_out) = watch.run(limit, signal, kill_after);
    if let WaitStatus::Signaled(fatal) = status
        && (fatal == Signal::KILL || !timed_out)
    {
        // The parent of this process must see how the command ended.
        let _ = sys::signal_action(fatal, sys::Disposition::Default);
        let own = i32::try_from(sys::process_ids()[0]).unwrap_or(0);
        let _ = sys::kill(own, Some(fatal));
    }
    let code = i32::from(status.shell_code());
    Ok(if timed_out && !given.has('p') { 124 } else { code })
}

struct Watch {
    child: i32,
    target: i32,
    verbose: bool,
    name: String,
}

impl Watch {
    fn run(&mut self, limit: Duration, signal: Signal, kill_after: Option<Duration>) -> (WaitStatus, bool) {
        if limit.is_zero() {
            return (self.wait(None).unwrap_or(WaitStatus::Exited(125)), false);
        }
        if let Some(status) = self.wait(Some(limit)) {
            return (status, false);
        }
        self.send(signal);
        if signal == Signal::KILL {
            return (self.wait(None).unwrap_or(WaitStatus::Exited(125)), true);
        }
        if let Some(grace) = kill_after.filter(|grace| !grace.is_zero()) {
            if let Some(status) = self.wait(Some(grace)) {
                return (status, true);
            }
            self.send(Signal::KILL);
        }
        (self.wait(None).unwrap_or(WaitStatus::Exited(125)), true)
    }

    fn send(&self, signal: Signal) {
        if self.verbose {
            let name = if signal == Signal::KILL {
                "KILL".to_owned()
            } else if signal == Signal::TERM {
                "TERM".into()
            } else {
                signal.number().to_string()
            };
            warn(format!("sending signal {name} to command {}", self.name));
        }
        let _ = sys::kill(self.target, Some(signal));
        if signal != Signal::KILL {
            let _ = sys::kill(self.target, Some(Signal::CONT));
        }
    }

    /// Returns how the child ended, or `None` when the limit came first.
    fn wait(&self, limit: Option<Duration>) -> Option<WaitStatus> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut pause = SHORTEST;
        loop {
            let flags = if limit.is_some() { WAIT_NO_HANG } else { 0 };
            match sys::wait(self.child, flags) {
                Ok(Some(waited)) => return Some(waited.status),
                Ok(None) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Some(WaitStatus::Exited(125)),
            }
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                std::thread::sleep(pause.min(left));
                pause = (pause * 2).min(LONGEST);
            }
        }
    }
}
