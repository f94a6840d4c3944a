//! `kill` as a program, and the names of signals.

use std::ffi::OsString;

use sys::Signal;

use crate::program::{Args, Outcome, Output, fail, usage, warn};
use crate::quote;

const NAMES: [&str; 32] = [
    "EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",
    "SYS",
];

/// Returns the number behind a signal's name or number; 0 asks only whether a process is there.
pub fn signal_number(text: &str) -> Option<u32> {
    if let Ok(number) = text.parse::<u32>() {
        // An exit status above 128 names the signal behind it.
        let number = if (129..=192).contains(&number) { number - 128 } else { number };
        return (number <= 64).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let alias = match name {
        "IOT" => "ABRT",
        "CLD" => "CHLD",
        "IO" => "POLL",
        name => name,
    };
    NAMES.iter().position(|known| *known == alias).map(|at| at as u32).or(match alias {
        "RTMIN" => Some(34),
        "RTMAX" => Some(64),
        _ => None,
    })
}

/// Returns the name of a signal, without `SIG`.
pub fn signal_name(number: u32) -> Option<String> {
    NAMES.get(number as usize).map(|name| (*name).to_owned()).or_else(|| {
        (34..=64).contains(&number).then(|| if number == 34 { "RTMIN".into() } else { format!("RTMIN+{}", number - 34) })
    })
}

/// Runs `kill`.
pub fn main(args: Args) -> Outcome {
    let mut words: Vec<OsString> = args.into_iter().skip(1).collect();
    let mut signal = Signal::TERM.number().into();
    let (mut list, mut table) = (false, false);
    while let Some(first) = words.first().map(|word| word.to_string_lossy().into_owned()) {
        let value = match first.as_str() {
            "--" => {
                words.remove(0);
                break;
            }
            "--help" => {
                Output::new().text("Usage: kill [-s SIGNAL | -SIGNAL] PID...\n  or:  kill -l [SIGNAL]...\n  or:  kill -t [SIGNAL]...\nSend signals to processes, or list signals.\n");
                return Ok(0);
            }
            "-l" | "--list" | "-L" => {
                list = true;
                words.remove(0);
                continue;
            }
            "-t" | "--table" => {
                (list, table) = (true, true);
                words.remove(0);
                continue;
            }
            "-s" | "-n" | "--signal" => {
                words.remove(0);
                match words.first() {
                    Some(value) => value.to_string_lossy().into_owned(),
                    None => return Err(usage(format!("option requires an argument -- '{}'", first.trim_start_matches('-')))),
                }
            }
            text if text.starts_with("--signal=") => text["--signal=".len()..].to_owned(),
            text if text.starts_with("-s") && text.len() > 2 && signal_number(&text[1..]).is_none() => text[2..].to_owned(),
            text if text.len() > 1 && text.starts_with('-') => text[1..].to_owned(),
            _ => break,
        };
        signal = signal_number(&value).ok_or_else(|| usage(format!("{}: invalid signal", quote::plain(&value))))?;
        words.remove(0);
        // Negative numbers from here on are process groups.
        if words
            .first()
            .is_some_and(|word| word.to_string_lossy().strip_prefix('-').is_some_and(|rest| rest.parse::<u32>().is_ok()))
        {
            break;
        }
    }
    if list {
        return Ok(show_list(&words, table));
    }
    if words.is_empty() {
        return Err(usage("no process ID specified"));
    }
    let mut status = 0;
    for word in &words {
        let Ok(pid) = word.to_string_lossy().parse::<i32>() else {
            warn(format!("{}: invalid process id", quote::plain(word)));
            status = 1;
            continue;
        };
        if let Err(error) = sys::kill(pid, Signal::from_raw(signal)) {
            status = fail(format!("{}: {}", quote::plain(word), sys::message(&error)));
        }
    }
    Ok(status)
}

fn show_list(words: &[OsString], table: bool) -> i32 {
    let mut out = Output::new();
    let mut show = |number: u32| {
        let Some(name) = signal_name(number) else { return };
        out.text(if table { format!("{number:2} {name}\n") } else { format!("{name}\n") });
    };
    if words.is_empty() {
        (1..=64).filter(|number| !(32..34).contains(number)).for_each(&mut show);
        return 0;
    }
    let mut status = 0;
    for word in words {
        let text = word.to_string_lossy();
        match signal_number(&text) {
            Some(number) if !table && text.parse::<u32>().is_err() => out.text(format!("{number}\n")),
            Some(number) => match signal_name(number) {
                Some(name) if table => out.text(format!("{number:2} {name}\n")),
                Some(name) => out.text(format!("{name}\n")),
                None => {}
            },
            None => status = fail(format!("{}: invalid signal", quote::plain(word))),
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, number) in [("TERM", Some(15)), ("sigkill", Some(9)), ("0", Some(0)), ("143", Some(15)), ("NOPE", None)] {
            assert_eq!(signal_number(text), number);
        }
    }
}
