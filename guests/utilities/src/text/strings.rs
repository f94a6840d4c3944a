//! `strings`: runs of printable characters in any file.

use std::ffi::OsString;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;

use crate::io::{self, Out, show};

const LONG: &[Long] = &[
    ("all", Value::No, 'a'),
    ("bytes", Value::Needs, 'n'),
    ("print-file-name", Value::No, 'f'),
    ("radix", Value::Needs, 't'),
    ("encoding", Value::Needs, 'e'),
];

/// Runs `strings`.
pub fn strings(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "adfn:t:oe:ws:0123456789", long: LONG };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("strings: {message}");
            return 1;
        }
    };
    let (mut least, mut radix, mut names, mut whitespace, mut digits) = (4usize, None, false, false, String::new());
    let mut files = Vec::new();
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('n', value) => match value.as_deref().and_then(number::size) {
                Some(count) if count > 0 => least = count,
                _ => {
                    warn!("strings: invalid integer argument {}", show(&value.unwrap_or_default()));
                    return 1;
                }
            },
            Item::Opt('t', value) => radix = value.and_then(|value| value.first().copied()),
            Item::Opt('o', _) => radix = Some(b'o'),
            Item::Opt('f', _) => names = true,
            Item::Opt('w', _) => whitespace = true,
            Item::Opt(digit @ '0'..='9', _) => digits.push(digit),
            Item::Opt(..) => {}
        }
    }
    if let Ok(count) = digits.parse() {
        least = count;
    }
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    let mut out = Out::new("strings", 1);
    let mut status = 0;
    for file in files {
        let content = match io::read_all(&file) {
            Ok(content) => content,
            Err(error) => {
                out.flush();
                let text = sys::message(&error);
                if text == "No such file or directory" {
                    warn!("strings: '{}': No such file", show(&file));
                } else {
                    warn!("strings: {}: {text}", show(&file));
                }
                status = 1;
                continue;
            }
        };
        let printable = |byte: u8| (0x20..0x7f).contains(&byte) || byte == b'\t' || whitespace && byte.is_ascii_whitespace();
        let mut at = 0;
        while at < content.len() {
            let length = content[at..].iter().take_while(|&&byte| printable(byte)).count();
            if length >= least {
                if names {
                    out.put(&[if file == b"-" { b"{standard input}" } else { file.as_slice() }, b": "].concat());
                }
                let offset = match radix {
                    Some(b'd') => format!("{at:7} "),
                    Some(b'o') => format!("{at:7o} "),
                    Some(b'x') => format!("{at:7x} "),
                    _ => String::new(),
                };
                out.put(offset.as_bytes());
                out.put(&content[at..at + length]);
                out.byte(b'\n');
            }
            at += length.max(1);
        }
    }
    out.flush();
    status
}
