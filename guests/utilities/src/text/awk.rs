//! `awk` (also as `gawk`, `mawk`, `nawk`): command line; the program is read by `parse` and run by `interp`.

mod ast;
mod builtins;
mod expr;
mod format;
mod interp;
mod lex;
mod parse;
mod record;
mod statements;
mod streams;
mod substitute;
mod value;

use std::ffi::OsString;
use std::sync::OnceLock;

use common::getopt::{self, Item, Long, Spec, Value};

use crate::io::{self, show};

const LONG: &[Long] = &[
    ("assign", Value::Needs, 'v'),
    ("field-separator", Value::Needs, 'F'),
    ("file", Value::Needs, 'f'),
    ("source", Value::Needs, 'e'),
    ("version", Value::No, 'V'),
    ("posix", Value::No, 'P'),
    ("traditional", Value::No, 'P'),
    ("re-interval", Value::No, 'P'),
    ("sandbox", Value::No, 'P'),
    ("characters-as-bytes", Value::No, 'P'),
];

const SPEC: Spec = Spec { short: "+F:v:f:e:W:PVbcrS", long: LONG };

const USAGE: &str = "usage: awk [-F value] [-v var=value] [--] 'program text' [file ...]\n       awk [-F value] [-v var=value] -f program-file [--] [file ...]";

static SOURCE: OnceLock<String> = OnceLock::new();

/// Returns what messages call the program: its file, if it is in one.
fn source_name() -> &'static str {
    SOURCE.get().map_or("cmd. line", String::as_str)
}

/// Runs `awk`.
pub fn awk(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let items = match SPEC.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("awk: {message}\n{USAGE}");
            return 2;
        }
    };
    let (mut source, mut given): (Vec<u8>, bool) = (Vec::new(), false);
    let mut assignments = Vec::new();
    let mut operands = vec![b"awk".to_vec()];
    for item in items {
        match item {
            Item::Operand(operand) => operands.push(operand),
            Item::Opt('F', value) => {
                let value = value.unwrap_or_default();
                assignments.push([b"FS=".to_vec(), value].concat());
            }
            Item::Opt('v', value) => {
                let value = value.unwrap_or_default();
                if !is_assignment(&value) {
                    warn!("awk: `{}' argument to `-v' not in `var=value' form", show(&value));
                    return 2;
                }
                assignments.push(value);
            }
            Item::Opt('e', value) => {
                source.extend_from_slice(&value.unwrap_or_default());
                source.push(b'\n');
                given = true;
            }
            Item::Opt('f', value) => {
                let name = value.unwrap_or_default();
                // Of several files the messages count all lines.
                if !given {
                    let _ = SOURCE.set(show(&name).into_owned());
                }
                match io::read_all(&name) {
                    Ok(text) => source.extend_from_slice(&text),
                    Err(error) => {
                        warn!("awk: fatal: cannot open source file `{}' for reading: {}", show(&name), sys::message(&error));
                        return 2;
                    }
                }
                source.push(b'\n');
                given = true;
            }
            Item::Opt('V', _) => {
                let mut out = io::Out::new("awk", 2);
                out.put(b"awk (Sandlite awk, POSIX and common GNU extensions)\n");
                out.flush();
                return 0;
            }
            Item::Opt(..) => {}
        }
    }
    if !given {
        if operands.len() < 2 {
            io::complain(USAGE.as_bytes());
            return 1;
        }
        source = operands.remove(1);
    }
    match parse::parse(source) {
        Ok(program) => interp::run(&program, &assignments, operands),
        Err(message) => {
            warn!("awk: {message}");
            if message.contains(" fatal: ") { 2 } else { 1 }
        }
    }
}

/// Returns whether an operand is `name=value`.
fn is_assignment(operand: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'=', operand) else { return false };
    let name = &operand[..at];
    name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
