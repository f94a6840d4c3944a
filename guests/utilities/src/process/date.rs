//! `date`: the clock, or another moment, in a format of one's choice.

use std::ffi::OsStr;
use std::path::Path;

use common::strftime::{self, Dialect};
use sys::zone::Zone;

use crate::date;
use crate::lines::Lines;
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, fail, open, usage, warn};
use crate::quote;

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

/// Runs `date`.
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
    let mut print = |time: i128| out.line(&strftime::format(format.as_bytes(), time, &zone, Dialect::Program), b'\n');
    let now = sys::now_ns();
    let invalid = |text: &OsStr| fail(format!("invalid date {}", quote::plain(text)));
    if setting {
        if let Some(text) = given.value('s')
            && date::read::parse(&text.to_string_lossy(), now, &zone).is_none()
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
        print(date::read::parse(&text.to_string_lossy(), now, &zone).ok_or_else(|| invalid(text))?);
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
    let mut lines = Lines::of_file(input, b'\n');
    let mut status = 0;
    while let Some(line) =
        lines.next_content().map_err(|error| fail(format!("{}: {}", quote::maybe(file), sys::message(&error))))?
    {
        let text = String::from_utf8_lossy(line).into_owned();
        match date::read::parse(&text, now, zone) {
            Some(time) => print(time),
            None => status = fail(format!("invalid date {}", quote::plain(text))),
        }
    }
    Ok(status)
}
