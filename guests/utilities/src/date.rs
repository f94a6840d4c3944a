//! Dates: reading what people write, printing, and `date` itself.

pub mod cal;
mod format;
mod read;

use std::ffi::OsStr;
use std::path::Path;

use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, Lines, Outcome, Output, fail, open, usage, warn};
use crate::quote;

use sys::calendar;
pub use sys::zone::Zone;

/// Nanoseconds of a second.
pub const SECOND: i128 = 1_000_000_000;

/// A moment as `strftime` prints it, in the zone that `TZ` names.
pub fn format(format: &[u8], time: i128) -> Vec<u8> {
    format::format(format, time, &Zone::local())
}

/// The moment that people's words mean, counted from `now`; `None` when they mean none.
pub fn parse(text: &str, now: i128) -> Option<i128> {
    read::parse(text, now, &Zone::local())
}

/// The moment of a `touch -t` stamp: `[[CC]YY]MMDDhhmm[.ss]`.
pub fn parse_stamp(stamp: &str, now: i128) -> Option<i64> {
    let (digits, seconds) = match stamp.split_once('.') {
        Some((digits, seconds)) => (digits, (seconds.len() == 2).then(|| seconds.parse::<i64>().ok())??),
        None => (stamp, 0),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let pair = |at: usize| digits.get(at..at + 2).and_then(|pair| pair.parse::<i64>().ok());
    let zone = Zone::local();
    let (year, at) = match digits.len() {
        8 => (calendar::from_days((now.div_euclid(SECOND) as i64).div_euclid(86400)).0, 0),
        10 => (pair(0).map(|year| if year < 69 { 2000 + year } else { 1900 + year })?, 2),
        12 => (digits.get(..4)?.parse().ok()?, 4),
        _ => return None,
    };
    let (month, day, hour, minute) = (pair(at)?, pair(at + 2)?, pair(at + 4)?, pair(at + 6)?);
    if !(1..=12).contains(&month)
        || !(1..=i64::from(calendar::days_in_month(year, month as u32))).contains(&day)
        || hour > 23
        || minute > 59
        || seconds > 60
    {
        return None;
    }
    let local = calendar::to_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + seconds;
    zone.to_utc(local).checked_mul(SECOND as i64)
}

const SPEC: Spec = Spec {
    short: "d:f:I::r:Rs:u",
    long: &[
        ("date", Needs, 'd'),
        ("debug", No, 'D'),
        ("file", Needs, 'f'),
        ("iso-8601", May, 'I'),
        ("reference", Needs, 'r'),
        ("resolution", No, 'O'),
        ("rfc-email", No, 'R'),
        ("rfc-822", No, 'R'),
        ("rfc-2822", No, 'R'),
        ("rfc-3339", Needs, '3'),
        ("set", Needs, 's'),
        ("uct", No, 'u'),
        ("utc", No, 'u'),
        ("universal", No, 'u'),
    ],
    help: "[OPTION]... [+FORMAT]",
};

/// `date`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let zone = if given.has('u') { Zone::utc() } else { Zone::local() };
    let mut chosen: Option<String> = None;
    let mut choose = |format: &str| -> Result<(), i32> {
        if chosen.replace(format.to_owned()).is_some() {
            return Err(fail("multiple output formats specified"));
        }
        Ok(())
    };
    for (letter, value) in &given.options {
        match letter {
            'R' => choose("%a, %d %b %Y %H:%M:%S %z")?,
            'I' => {
                let kinds = [
                    ("hours", "%Y-%m-%dT%H%:z"),
                    ("minutes", "%Y-%m-%dT%H:%M%:z"),
                    ("date", "%Y-%m-%d"),
                    ("seconds", "%Y-%m-%dT%H:%M:%S%:z"),
                    ("ns", "%Y-%m-%dT%H:%M:%S,%N%:z"),
                ];
                choose(if value.is_empty() { "%Y-%m-%d" } else { options::choose("--iso-8601", value, &kinds)? })?;
            }
            '3' => {
                let kinds = [("date", "%Y-%m-%d"), ("seconds", "%Y-%m-%d %H:%M:%S%:z"), ("ns", "%Y-%m-%d %H:%M:%S.%N%:z")];
                choose(options::choose("--rfc-3339", value, &kinds)?)?;
            }
            _ => {}
        }
    }
    let mut setting = given.has('s');
    for (index, operand) in given.operands.iter().enumerate() {
        let text = operand.to_string_lossy();
        match text.strip_prefix('+') {
            Some(format) if index == 0 => choose(format)?,
            _ if index > 0 => return Err(usage(format!("extra operand {}", quote::plain(operand)))),
            _ if given.has('d') || given.has('f') || given.has('r') => {
                warn(format!("the argument {} lacks a leading '+';", quote::plain(operand)));
                let _ = sys::write_all(2, b"when using an option to specify date(s), any non-option\nargument must be a format string beginning with '+'\n");
                crate::program::hint();
                return Err(1);
            }
            _ => setting = true,
        }
    }
    let sources = ['d', 'f', 'r', 'O'].iter().filter(|letter| given.has(**letter)).count();
    if sources > 1 {
        return Err(usage("the options to specify dates for printing are mutually exclusive"));
    }
    if setting && sources > 0 {
        return Err(usage("the options to print and set the time may not be used together"));
    }
    let format = chosen.unwrap_or_else(|| if given.has('O') { "%s.%N".into() } else { "%a %b %e %H:%M:%S %Z %Y".into() });
    let mut out = Output::new();
    let mut print = |time: i128| out.line(&format::format(format.as_bytes(), time, &zone), b'\n');
    let now = sys::now_ns();
    let invalid = |text: &OsStr| fail(format!("invalid date {}", quote::plain(text)));
    if setting {
        if let Some(text) = given.value('s')
            && read::parse(&text.to_string_lossy(), now, &zone).is_none()
        {
            return Err(invalid(text));
        }
        if let Some(operand) = given.operands.first().filter(|operand| !operand.as_encoded_bytes().starts_with(b"+"))
            && !stamp_fits(&operand.to_string_lossy())
        {
            return Err(invalid(operand));
        }
        return Err(fail("cannot set date: Operation not permitted"));
    }
    if given.has('O') {
        print(1);
    } else if let Some(text) = given.value('d') {
        print(read::parse(&text.to_string_lossy(), now, &zone).ok_or_else(|| invalid(text))?);
    } else if let Some(file) = given.value('r') {
        let stat = sys::stat(Path::new(file), true)
            .map_err(|error| fail(format!("{}: {}", quote::maybe(file), sys::message(&error))))?;
        print(i128::from(stat.mtime));
    } else if let Some(file) = given.value('f') {
        return from_file(file, now, &zone, &mut print);
    } else {
        print(now);
    }
    Ok(0)
}

fn stamp_fits(text: &str) -> bool {
    let digits = text.split('.').next().unwrap_or_default();
    matches!(digits.len(), 8 | 10 | 12) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn from_file(file: &OsStr, now: i128, zone: &Zone, print: &mut impl FnMut(i128)) -> Outcome {
    let input = open(file).map_err(|error| fail(format!("{}: {}", quote::maybe(file), sys::message(&error))))?;
    let mut lines = Lines::new(input, b'\n');
    let mut status = 0;
    while let Some(line) =
        lines.next_content().map_err(|error| fail(format!("{}: {}", quote::maybe(file), sys::message(&error))))?
    {
        let text = String::from_utf8_lossy(line).into_owned();
        match read::parse(&text, now, zone) {
            Some(time) => print(time),
            None => status = fail(format!("invalid date {}", quote::plain(text))),
        }
    }
    Ok(status)
}
