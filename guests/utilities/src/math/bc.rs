//! `bc`: the calculator language; `parse` reads it, `run` executes it, `number` calculates.

mod math;
pub(crate) mod number;
mod parse;
mod run;

use std::ffi::OsString;

use common::getopt::{self, Item, Long, Spec, Value};

use crate::io::{self, Out, show};

const LONG: &[Long] = &[
    ("mathlib", Value::No, 'l'),
    ("quiet", Value::No, 'q'),
    ("standard", Value::No, 's'),
    ("warn", Value::No, 'w'),
    ("interactive", Value::No, 'i'),
    ("version", Value::No, 'v'),
    ("help", Value::No, 'h'),
];

/// Runs `bc`.
pub fn bc(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "hilqsvw", long: LONG };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("bc: {message}\nusage: bc [options] [file ...]");
            return 1;
        }
    };
    let mut out = Out::new("bc", 1);
    let mut files = Vec::new();
    let mut library = false;
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('l', _) => library = true,
            Item::Opt('v', _) => {
                out.put(b"bc 1.07.1\n");
                out.flush();
                return 0;
            }
            Item::Opt('h', _) => {
                out.put(b"usage: bc [options] [file ...]\n");
                out.flush();
                return 0;
            }
            Item::Opt(..) => {}
        }
    }
    let mut machine = run::Machine::new(out, library);
    for file in files {
        match io::read_all(&file) {
            Ok(text) => {
                if let Some(status) = machine.program(&text, &show(&file)) {
                    machine.out.flush();
                    return status;
                }
            }
            Err(_) => {
                machine.out.flush();
                warn!("File {} is unavailable.", show(&file));
                return 1;
            }
        }
    }
    let status = machine.interact().unwrap_or(0);
    machine.out.flush();
    status
}
