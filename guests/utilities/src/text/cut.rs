//! `cut`: bytes or fields of each line.

use std::ffi::OsString;

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, each_line, or_stdin, read_all, usage, warn_file};
use crate::quote;

const SPEC: Spec = Spec {
    short: "b:c:d:f:nsz",
    long: &[
        ("bytes", Needs, 'b'),
        ("characters", Needs, 'c'),
        ("delimiter", Needs, 'd'),
        ("fields", Needs, 'f'),
        ("only-delimited", No, 's'),
        ("output-delimiter", Needs, 'o'),
        ("complement", No, 'C'),
        ("zero-terminated", No, 'z'),
    ],
    help: "OPTION... [FILE]...",
};

/// Ranges, sorted and merged, counted from 1.
fn ranges(list: &str, fields: bool) -> Result<Vec<(usize, usize)>, i32> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    let number = |text: &str| -> Result<usize, i32> {
        match text.parse::<usize>() {
            Ok(0) => {
                Err(usage(if fields { "fields are numbered from 1" } else { "byte/character positions are numbered from 1" }))
            }
            Ok(value) => Ok(value),
            Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => Err(usage(format!(
                "{} number {} is too large",
                if fields { "field" } else { "byte/character offset" },
                quote::plain(text)
            ))),
            Err(_) => Err(usage(format!(
                "invalid {} {}",
                if fields { "field value" } else { "byte or character position" },
                quote::plain(text)
            ))),
        }
    };
    for part in list.split([',', ' ', '\t']) {
        let range = match part.split_once('-') {
            None if part.is_empty() => {
                return Err(usage(if fields {
                    "fields are numbered from 1"
                } else {
                    "byte/character positions are numbered from 1"
                }));
            }
            None => {
                let at = number(part)?;
                (at, at)
            }
            Some(("", "")) => return Err(usage("invalid range with no endpoint: -")),
            Some((low, "")) => (number(low)?, usize::MAX),
            Some(("", high)) => (1, number(high)?),
            Some((low, high)) => (number(low)?, number(high)?),
        };
        if range.0 > range.1 {
            return Err(usage("invalid decreasing range"));
        }
        out.push(range);
    }
    out.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for range in out {
        match merged.last_mut() {
            Some(last) if range.0 <= last.1 => last.1 = last.1.max(range.1),
            _ => merged.push(range),
        }
    }
    Ok(merged)
}

fn complement(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut next = 1;
    for &(low, high) in ranges {
        if next < low {
            out.push((next, low - 1));
        }
        next = high.saturating_add(1);
    }
    if next < usize::MAX {
        out.push((next, usize::MAX));
    }
    out
}

/// Runs `cut`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let lists: Vec<_> = given.options.iter().filter(|(letter, _)| matches!(letter, 'b' | 'c' | 'f')).collect();
    let (kind, list) = match lists.as_slice() {
        [] => return Err(usage("you must specify a list of bytes, characters, or fields")),
        [(kind, list)] => (*kind, list.to_string_lossy()),
        _ => return Err(usage("only one list may be specified")),
    };
    let fields = kind == 'f';
    let delimiter = match given.value('d') {
        Some(text) => match bytes(text) {
            [] => 0,
            [byte] => *byte,
            _ => return Err(usage("the delimiter must be a single character")),
        },
        None => b'\t',
    };
    if !fields && given.has('d') {
        return Err(usage("an input delimiter may be specified only when operating on fields"));
    }
    if !fields && given.has('s') {
        return Err(usage("suppressing non-delimited lines makes sense\n\tonly when operating on fields"));
    }
    let mut chosen = ranges(&list, fields)?;
    if given.has('C') {
        chosen = complement(&chosen);
    }
    let end = if given.has('z') { 0 } else { b'\n' };
    let joint = given.value('o').map(|text| bytes(text).to_vec());
    let mut out = Output::new();
    let between = joint.as_deref().unwrap_or(std::slice::from_ref(&delimiter));
    let by_fields = |line: &[u8], out: &mut Output| cut_fields(line, &chosen, delimiter, between, given.has('s'), end, out);
    if fields && delimiter == end {
        return Ok(whole_files(&given.operands, end, &mut out, by_fields));
    }
    Ok(each_line(&given.operands, end, &mut out, |line, out| {
        let line = line.strip_suffix(&[end]).unwrap_or(line);
        if fields {
            by_fields(line, out);
        } else {
            cut_bytes(line, &chosen, joint.as_deref(), out);
            out.byte(end);
        }
    }))
}

/// Prints whole files as one line where lines are the fields.
fn whole_files(files: &[OsString], end: u8, out: &mut Output, cut: impl Fn(&[u8], &mut Output)) -> i32 {
    let mut status = 0;
    for file in or_stdin(files.to_vec()) {
        match read_all(&file) {
            Ok(all) if all.is_empty() => {}
            Ok(all) => cut(all.strip_suffix(&[end]).unwrap_or(&all), out),
            Err(error) => {
                out.send();
                warn_file(&file, &error);
                status = 1;
            }
        }
    }
    status
}

fn cut_bytes(line: &[u8], ranges: &[(usize, usize)], joint: Option<&[u8]>, out: &mut Output) {
    let mut first = true;
    for &(low, high) in ranges {
        if low > line.len() {
            break;
        }
        if let (Some(joint), false) = (joint, first) {
            out.put(joint);
        }
        first = false;
        out.put(&line[low - 1..high.min(line.len())]);
    }
}

fn cut_fields(
    line: &[u8],
    ranges: &[(usize, usize)],
    delimiter: u8,
    joint: &[u8],
    only_delimited: bool,
    end: u8,
    out: &mut Output,
) {
    let mut splits = memchr::memchr_iter(delimiter, line).peekable();
    if splits.peek().is_none() {
        if !only_delimited {
            out.line(line, end);
        }
        return;
    }
    let mut ranges = ranges.iter().copied().peekable();
    let mut first = true;
    let mut start = 0;
    let mut index = 1;
    loop {
        let stop = splits.next();
        let Some(&(low, high)) = ranges.peek() else { break };
        if index >= low {
            if !first {
                out.put(joint);
            }
            first = false;
            out.put(&line[start..stop.unwrap_or(line.len())]);
            if index >= high {
                ranges.next();
            }
        }
        let Some(stop) = stop else { break };
        start = stop + 1;
        index += 1;
    }
    out.byte(end);
}
