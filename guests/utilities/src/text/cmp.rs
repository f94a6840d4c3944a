//! `cmp`: the first byte at which two files differ, or all of them.

use std::ffi::OsString;
use std::io::Read as _;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;

use crate::io::{self, Input, Out, show};

const LONG: &[Long] = &[
    ("bytes", Value::Needs, 'n'),
    ("ignore-initial", Value::Needs, 'i'),
    ("print-bytes", Value::No, 'b'),
    ("quiet", Value::No, 's'),
    ("silent", Value::No, 's'),
    ("verbose", Value::No, 'l'),
];

const SPEC: Spec = Spec { short: "bci:ln:sv", long: LONG };

fn usage(message: &str) -> i32 {
    warn!("cmp: {message}\ncmp: Try 'cmp --help' for more information.");
    2
}

/// Runs `cmp`.
pub fn cmp(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let items = match SPEC.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => return usage(&message),
    };
    let (mut bytes, mut verbose, mut silent, mut limit) = (false, false, false, usize::MAX);
    let mut skip = [0usize, 0];
    let mut files = Vec::new();
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('b', _) => bytes = true,
            Item::Opt('l', _) => verbose = true,
            Item::Opt('s', _) => silent = true,
            Item::Opt('n', value) => match value.as_deref().and_then(number::size) {
                Some(count) => limit = count,
                None => return usage(&format!("invalid --bytes value '{}'", show(&value.unwrap_or_default()))),
            },
            Item::Opt('i', value) => {
                let text = show(&value.unwrap_or_default()).into_owned();
                let (first, second) = text.split_once(':').unwrap_or((&text, &text));
                skip = match (number::size(first.as_bytes()), number::size(second.as_bytes())) {
                    (Some(first), Some(second)) => [first, second],
                    _ => return usage(&format!("invalid --ignore-initial value '{text}'")),
                };
            }
            Item::Opt(..) => {}
        }
    }
    if files.is_empty() {
        return usage("missing operand after 'cmp'");
    }
    if files.len() == 1 {
        files.push(b"-".to_vec());
    }
    for (index, value) in files.iter().skip(2).take(2).enumerate() {
        let Some(count) = number::size(value) else {
            return usage(&format!("invalid --ignore-initial value '{}'", show(value)));
        };
        skip[index] = count;
    }
    let mut contents = Vec::new();
    for (index, name) in files.iter().take(2).enumerate() {
        let mut content = Vec::new();
        let read = Input::open(name).and_then(|mut input| input.read_to_end(&mut content));
        if let Err(error) = read {
            if !silent {
                warn!("cmp: {}: {}", show(name), sys::message(&error));
            }
            return 2;
        }
        contents.push(content.get(skip[index]..).unwrap_or_default().to_vec());
    }
    let mut out = Out::new("cmp", 2);
    let status = compare(&mut out, &files, &contents, bytes, verbose, silent, limit);
    out.flush();
    status
}

fn compare(
    out: &mut Out,
    files: &[Vec<u8>],
    contents: &[Vec<u8>],
    bytes: bool,
    verbose: bool,
    silent: bool,
    limit: usize,
) -> i32 {
    let (a, b) = (&contents[0][..contents[0].len().min(limit)], &contents[1][..contents[1].len().min(limit)]);
    let common = a.len().min(b.len());
    let mut status = 0;
    // Only regular files have a known length.
    let regular = |name: &Vec<u8>| sys::stat(&io::path(name), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFREG);
    let width = if files.iter().take(2).all(regular) { common.max(1).to_string().len() } else { 19 };
    for at in 0..common {
        if a[at] == b[at] {
            continue;
        }
        status = 1;
        if silent {
            return 1;
        }
        if !verbose {
            let line = 1 + memchr::memchr_iter(b'\n', &a[..at]).count();
            let (x, y) = (show(&files[0]), show(&files[1]));
            let detail = if bytes {
                format!(" is {:3o} {} {:3o} {}", a[at], visible(a[at]), b[at], visible(b[at]))
            } else {
                String::new()
            };
            out.put(format!("{x} {y} differ: byte {}, line {line}{detail}\n", at + 1).as_bytes());
            return 1;
        }
        let line = if bytes {
            format!("{:width$} {:3o} {:<4} {:3o} {}\n", at + 1, a[at], visible(a[at]), b[at], visible(b[at]))
        } else {
            format!("{:width$} {:3o} {:3o}\n", at + 1, a[at], b[at])
        };
        out.put(line.as_bytes());
    }
    if a.len() != b.len() {
        if !silent {
            let (short, text) = if a.len() < b.len() { (&files[0], a) } else { (&files[1], b) };
            out.flush();
            if text.is_empty() {
                warn!("cmp: EOF on {} which is empty", show(short));
            } else {
                let lines = memchr::memchr_iter(b'\n', text).count();
                let place = if text.ends_with(b"\n") { format!("line {lines}") } else { format!("in line {}", lines + 1) };
                if verbose {
                    warn!("cmp: EOF on {} after byte {}", show(short), text.len());
                } else {
                    warn!("cmp: EOF on {} after byte {}, {place}", show(short), text.len());
                }
            }
        }
        return 1;
    }
    status
}

fn visible(byte: u8) -> String {
    let low = byte & 0x7f;
    let text = match low {
        0..32 => format!("^{}", char::from(low + 64)),
        127 => "^?".to_string(),
        _ => char::from(low).to_string(),
    };
    if byte >= 128 { format!("M-{text}") } else { text }
}
