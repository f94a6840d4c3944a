//! `--check`: lists of checksums compared with the files they name.

use std::ffi::OsStr;
use std::io;

use super::{Algorithm, digest};
use crate::lines::Lines;
use crate::options::Given;
use crate::program::{Outcome, Output, open, or_stdin, os, warn, warn_file};
use crate::quote;

struct Expected {
    sum: String,
    name: Vec<u8>,
    bits: usize,
}

fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = name.iter();
    while let Some(&byte) = rest.next() {
        out.push(match byte {
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(out)
}

fn is_hex(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit)
}

/// Parses one line of a list, in GNU's or BSD's form.
fn parse(line: &[u8], algorithm: Algorithm) -> Option<Expected> {
    let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start();
    let (escaped, line) = match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let finish = |sum: &[u8], name: &[u8], bits: usize| {
        let name = if escaped { unescape(name)? } else { name.to_vec() };
        Some(Expected { sum: String::from_utf8_lossy(sum).to_ascii_lowercase(), name, bits })
    };
    let tag = algorithm.tag(512);
    if let Some(rest) = line.strip_prefix(tag.as_bytes()) {
        let (bits, rest) = match rest.strip_prefix(b"-").filter(|_| algorithm == Algorithm::Blake2b) {
            Some(rest) => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                (std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?, &rest[digits..])
            }
            None => (algorithm.bits(), rest),
        };
        let rest = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"(")?;
        let close = rest.iter().rposition(|byte| *byte == b')')?;
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let after = &rest[close + 1..];
        let after = &after[after.iter().take_while(|byte| blank(byte)).count()..];
        let sum = after.strip_prefix(b"=")?;
        let sum = &sum[sum.iter().take_while(|byte| blank(byte)).count()..];
        return (is_hex(sum) && sum.len() * 4 == bits).then(|| finish(sum, &rest[..close], bits))?;
    }
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let fits = if algorithm == Algorithm::Blake2b {
        digits % 2 == 0 && (2..=128).contains(&digits)
    } else {
        digits * 4 == algorithm.bits()
    };
    if !fits {
        return None;
    }
    let (sum, rest) = line.split_at(digits);
    let name = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *")).or_else(|| rest.strip_prefix(b" "))?;
    (!name.is_empty()).then(|| finish(sum, name, digits * 4))?
}

#[derive(Default)]
struct Tally {
    lines: u64,
    malformed: u64,
    unreadable: u64,
    mismatched: u64,
    matched: u64,
}

/// Checks every list that was named.
pub fn run(given: &Given, algorithm: Algorithm) -> Outcome {
    let mut out = Output::new();
    let mut good = true;
    for list in or_stdin(given.operands.clone()) {
        match check(&list, given, algorithm, &mut out) {
            Ok(passed) => good &= passed,
            Err(error) => {
                out.send();
                warn_file(&list, &error);
                good = false;
            }
        }
    }
    Ok(i32::from(!good))
}

fn check(list: &OsStr, given: &Given, algorithm: Algorithm, out: &mut Output) -> io::Result<bool> {
    let shown = if list == "-" { "'standard input'".to_owned() } else { quote::maybe(list) };
    let (quiet, silent, missing_ok) = (given.has('q'), given.has('s'), given.has('i'));
    let mut lines = Lines::of_file(open(list)?, b'\n');
    let mut tally = Tally::default();
    let mut number = 0u64;
    while let Some(line) = lines.next_content()? {
        number += 1;
        if line.first() == Some(&b'#') || line.is_empty() {
            continue;
        }
        let Some(expected) = parse(line, algorithm) else {
            tally.malformed += 1;
            if given.has('w') {
                out.send();
                warn(format!("{shown}: {number}: improperly formatted {} checksum line", algorithm.tag(512)));
            }
            continue;
        };
        tally.lines += 1;
        let name = os(expected.name.clone());
        let label = if expected.name.contains(&b'\n') {
            [b"\\", super::escape(&expected.name).as_slice()].concat()
        } else {
            expected.name.clone()
        };
        let say = |verdict: &str, out: &mut Output| {
            out.put(&label);
            out.text(format!(": {verdict}\n"));
        };
        match digest(&name, algorithm, expected.bits) {
            Ok(sum) if sum == expected.sum => {
                tally.matched += 1;
                if !quiet && !silent {
                    say("OK", out);
                }
            }
            Ok(_) => {
                tally.mismatched += 1;
                if !silent {
                    say("FAILED", out);
                }
            }
            Err(error) if missing_ok && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tally.unreadable += 1;
                out.send();
                warn_file(&name, &error);
                if !silent {
                    say("FAILED open or read", out);
                }
            }
        }
    }
    out.send();
    Ok(summary(&tally, &shown, given))
}

fn summary(tally: &Tally, shown: &str, given: &Given) -> bool {
    if tally.lines == 0 {
        warn(format!("{shown}: no properly formatted checksum lines found"));
        return false;
    }
    let plural = |count: u64, one: &str, many: &str| format!("WARNING: {count} {}", if count == 1 { one } else { many });
    if !given.has('s') {
        if tally.malformed > 0 {
            warn(plural(tally.malformed, "line is improperly formatted", "lines are improperly formatted"));
        }
        if tally.unreadable > 0 {
            warn(plural(tally.unreadable, "listed file could not be read", "listed files could not be read"));
        }
        if tally.mismatched > 0 {
            warn(plural(tally.mismatched, "computed checksum did NOT match", "computed checksums did NOT match"));
        }
        if given.has('i') && tally.matched == 0 {
            warn(format!("{shown}: no file was verified"));
        }
    }
    tally.mismatched == 0
        && tally.unreadable == 0
        && !(given.has('S') && tally.malformed > 0)
        && !(given.has('i') && tally.matched == 0)
}
