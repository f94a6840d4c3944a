//! Signals by name, and the traps set on them.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Linux's names by number; 0 is the pseudo-signal `EXIT`.
const NAMES: [&str; 32] = [
    "EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR",
    "SYS",
];

/// The number of the first real-time signal that programs may use.
const REALTIME_FIRST: u32 = 34;
const REALTIME_LAST: u32 = 64;

/// The events of traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A signal by number; 0 is the shell's end.
    Signal(u32),
    /// Before each simple command.
    Debug,
    /// After a failing command.
    Err,
    /// After a function or a sourced file.
    Return,
}

impl Event {
    /// The shell's end.
    pub const EXIT: Self = Self::Signal(0);

    /// Returns the event behind `INT`, `SIGINT`, `2`, `EXIT`, `DEBUG` …
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        match upper.as_str() {
            "DEBUG" => Some(Self::Debug),
            "ERR" => Some(Self::Err),
            "RETURN" => Some(Self::Return),
            _ => signal_number(text).map(Self::Signal),
        }
    }

    /// Returns the name that `trap -p` prints.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Signal(0) => "EXIT".to_owned(),
            Self::Signal(number) => format!("SIG{}", signal_name(number).unwrap_or_default()),
            Self::Debug => "DEBUG".to_owned(),
            Self::Err => "ERR".to_owned(),
            Self::Return => "RETURN".to_owned(),
        }
    }
}

/// Returns the name of a signal without `SIG`.
#[must_use]
pub fn signal_name(number: u32) -> Option<String> {
    if let Some(name) = NAMES.get(number as usize) {
        return Some((*name).to_owned());
    }
    match number {
        REALTIME_FIRST => Some("RTMIN".to_owned()),
        REALTIME_LAST => Some("RTMAX".to_owned()),
        n @ 35..=49 => Some(format!("RTMIN+{}", n - REALTIME_FIRST)),
        n @ 50..=63 => Some(format!("RTMAX-{}", REALTIME_LAST - n)),
        _ => None,
    }
}

/// Returns the number behind a name with or without `SIG`, in any case, or behind a number.
#[must_use]
pub fn signal_number(text: &str) -> Option<u32> {
    if let Ok(number) = text.parse::<u32>() {
        return (number <= REALTIME_LAST).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some(at) = NAMES.iter().position(|own| *own == name) {
        return u32::try_from(at).ok();
    }
    match name {
        "CLD" => Some(17),
        "POLL" => Some(29),
        "IOT" => Some(6),
        _ => (REALTIME_FIRST..=REALTIME_LAST).find(|&number| signal_name(number).as_deref() == Some(name)),
    }
}

/// Returns the message for a program that was killed by a signal.
#[must_use]
pub fn signal_description(number: u32) -> &'static str {
    match number {
        1 => "Hangup",
        2 => "Interrupt",
        3 => "Quit",
        4 => "Illegal instruction",
        5 => "Trace/breakpoint trap",
        6 => "Aborted",
        7 => "Bus error",
        8 => "Floating point exception",
        9 => "Killed",
        10 => "User defined signal 1",
        11 => "Segmentation fault",
        12 => "User defined signal 2",
        13 => "Broken pipe",
        14 => "Alarm clock",
        15 => "Terminated",
        24 => "CPU time limit exceeded",
        25 => "File size limit exceeded",
        _ => "Killed",
    }
}

/// The traps that are set.
#[derive(Clone, Debug, Default)]
pub struct Traps {
    /// The command of each; an empty one means that the signal is ignored.
    pub commands: BTreeMap<Event, Rc<str>>,
    /// Traps that a subshell inherited for display only: they no longer act.
    pub shown: BTreeMap<Event, Rc<str>>,
    /// Signals that were ignored when the shell started: they cannot be trapped.
    pub ignored_at_start: u64,
    /// The events whose traps are being run now.
    pub running: Vec<Event>,
}

impl Traps {
    /// Returns the command set for an event, if it is not being run already.
    #[must_use]
    pub fn armed(&self, event: Event) -> Option<Rc<str>> {
        let command = self.commands.get(&event)?;
        (!command.is_empty() && !self.running.contains(&event)).then(|| Rc::clone(command))
    }
}
