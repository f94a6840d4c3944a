//! `printenv`: variables of the environment.

use crate::options::{self, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes};

/// Runs `printenv`.
pub fn printenv(args: Args) -> Outcome {
    program::set_failure(2);
    let spec = Spec { short: "+0", long: &[("null", No, '0')], help: "[OPTION]... [VARIABLE]..." };
    let given = options::parse(args, &spec)?;
    let end = if given.has('0') { 0 } else { b'\n' };
    let mut out = Output::new();
    if given.operands.is_empty() {
        for (name, value) in std::env::vars_os() {
            out.put(bytes(&name));
            out.byte(b'=');
            out.line(bytes(&value), end);
        }
        return Ok(0);
    }
    let mut status = 0;
    for name in &given.operands {
        match std::env::var_os(name).filter(|_| !bytes(name).contains(&b'=') && !name.is_empty()) {
            Some(value) => out.line(bytes(&value), end),
            None => status = 1,
        }
    }
    Ok(status)
}
