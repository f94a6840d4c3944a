//! `head`: the first lines or bytes, or all but the last.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};

use crate::lines::Lines;
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, BLOCK, Descriptor, Outcome, Output, bytes, fail, failure, open, or_stdin, os, usage, warn};
use crate::quote;
use crate::size;

const SPEC: Spec = Spec {
    short: "c:n:qvz",
    long: &[
        ("bytes", Needs, 'c'),
        ("lines", Needs, 'n'),
        ("quiet", No, 'q'),
        ("silent", No, 'q'),
        ("verbose", No, 'v'),
        ("zero-terminated", No, 'z'),
    ],
    help: "[OPTION]... [FILE]...",
};

#[derive(Clone, Copy)]
struct Amount {
    count: u64,
    lines: bool,
    from_end: bool,
}

/// `-5`, `-5c`, `-20kq`: the old spelling, made new.
fn modern(mut args: Args) -> Args {
    let Some(first) = args.get(1).map(|arg| bytes(arg).to_vec()) else { return args };
    let digits = first.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    if first.first() != Some(&b'-') || digits == 0 {
        return args;
    }
    let number = &first[1..=digits];
    let (mut unit, mut multiplier, mut flags) = (b'n', Vec::new(), Vec::new());
    for &letter in &first[digits + 1..] {
        match letter {
            b'c' => unit = b'c',
            b'l' => unit = b'n',
            b'b' | b'k' | b'm' => (unit, multiplier) = (b'c', vec![letter]),
            b'q' | b'v' | b'z' => flags.push(letter),
            _ => {
                let _ = usage(format!("invalid trailing option -- {}", char::from(letter)));
                std::process::exit(failure());
            }
        }
    }
    args[1] = os([&[b'-', unit], number, &multiplier].concat());
    for flag in flags {
        args.insert(2, os(vec![b'-', flag]));
    }
    args
}

/// Runs `head`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(modern(args), &SPEC)?;
    let mut amount = Amount { count: 10, lines: true, from_end: false };
    let (mut quiet, mut verbose, mut delimiter) = (false, false, b'\n');
    for (letter, value) in &given.options {
        match letter {
            'c' | 'n' => amount = parse_amount(*letter == 'n', value)?,
            'q' => (quiet, verbose) = (true, false),
            'v' => (quiet, verbose) = (false, true),
            _ => delimiter = 0,
        }
    }
    let files = or_stdin(given.operands);
    let titles = verbose || (files.len() > 1 && !quiet);
    let mut out = Output::new();
    let (mut status, mut first) = (0, true);
    for file in &files {
        let input = match open(file) {
            Ok(input) => input,
            Err(error) => {
                warn(format!("cannot open {} for reading: {}", quote::always(file), sys::message(&error)));
                status = 1;
                continue;
            }
        };
        if titles {
            title(file, &mut first, &mut out);
        }
        if let Err(error) = copy(input, amount, delimiter, &mut out) {
            out.send();
            warn(format!("error reading {}: {}", quote::always(shown(file)), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// Returns the name of a file in titles.
pub fn shown(file: &OsStr) -> &OsStr {
    if file == "-" { OsStr::new("standard input") } else { file }
}

/// Prints the line between files.
pub fn title(file: &OsStr, first: &mut bool, out: &mut Output) {
    if !std::mem::take(first) {
        out.byte(b'\n');
    }
    out.put(b"==> ");
    out.put(bytes(shown(file)));
    out.put(b" <==\n");
}

fn parse_amount(lines: bool, value: &OsString) -> Result<Amount, i32> {
    let text = value.to_string_lossy();
    let (from_end, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_ref()),
    };
    let what = if lines { "lines" } else { "bytes" };
    match size::parse(digits, size::SUFFIXES) {
        Ok(count) if digits.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == ' ') => {
            Ok(Amount { count, lines, from_end })
        }
        Err(size::Trouble::Overflow) => {
            if digits.bytes().all(|byte| byte.is_ascii_digit()) || lines {
                return Ok(Amount { count: u64::MAX, lines, from_end });
            }
            Err(fail(format!("invalid number of {what}: {}: Value too large for defined data type", quote::plain(digits))))
        }
        _ => Err(fail(format!("invalid number of {what}: {}", quote::plain(digits)))),
    }
}

fn copy(input: Descriptor, amount: Amount, delimiter: u8, out: &mut Output) -> io::Result<()> {
    match amount {
        Amount { lines: true, from_end: false, count } => first_lines(input, count, delimiter, out),
        Amount { lines: false, from_end: false, count } => first_bytes(input, count, out),
        Amount { lines: true, from_end: true, count } => all_but_lines(input, count, delimiter, out),
        Amount { lines: false, from_end: true, count } => all_but_bytes(input, count, out),
    }
}

fn first_lines(mut input: Descriptor, mut count: u64, delimiter: u8, out: &mut Output) -> io::Result<()> {
    // The first lines are rarely far in: a small bite, and larger ones if they are.
    let mut buffer = vec![0; 8192];
    while count > 0 {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        let mut end = n;
        for at in memchr::memchr_iter(delimiter, &buffer[..n]) {
            count -= 1;
            if count == 0 {
                end = at + 1;
                break;
            }
        }
        out.put(&buffer[..end]);
        if n == buffer.len() && n < BLOCK {
            buffer.resize(BLOCK, 0);
        }
        if end < n {
            // The next reader of the same file continues right after the last line.
            let back = i64::try_from(n - end).unwrap_or(0);
            let _ = sys::seek_current(input.fd(), -back);
        }
    }
    Ok(())
}

fn first_bytes(mut input: Descriptor, mut count: u64, out: &mut Output) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    while count > 0 {
        let most = usize::try_from(count).unwrap_or(BLOCK).min(BLOCK);
        let n = input.read(&mut buffer[..most])?;
        if n == 0 {
            break;
        }
        out.put(&buffer[..n]);
        count -= n as u64;
    }
    Ok(())
}

fn all_but_lines(input: Descriptor, count: u64, delimiter: u8, out: &mut Output) -> io::Result<()> {
    let mut lines = Lines::of_file(input, delimiter);
    let mut held: VecDeque<Vec<u8>> = VecDeque::new();
    while let Some(line) = lines.next_line()? {
        if count == 0 {
            out.put(line);
            continue;
        }
        if held.len() as u64 == count {
            let mut oldest = held.pop_front().unwrap_or_default();
            out.put(&oldest);
            oldest.clear();
            oldest.extend_from_slice(line);
            held.push_back(oldest);
        } else {
            held.push_back(line.to_vec());
        }
    }
    Ok(())
}

fn all_but_bytes(mut input: Descriptor, count: u64, out: &mut Output) -> io::Result<()> {
    let keep = usize::try_from(count).unwrap_or(usize::MAX);
    let mut held: Vec<u8> = Vec::new();
    let mut buffer = vec![0; BLOCK];
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        held.extend_from_slice(&buffer[..n]);
        // Moving the kept bytes to the front only when it pays: a block at a time, or when the input is slow.
        if held.len() > keep && (held.len() - keep >= keep.min(BLOCK) || n < BLOCK) {
            let ready = held.len() - keep;
            out.put(&held[..ready]);
            held.drain(..ready);
        }
    }
}
