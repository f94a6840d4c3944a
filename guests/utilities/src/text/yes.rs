//! `yes`: one line for ever.

use crate::options::{self, Spec};
use crate::program::{Args, BLOCK, Outcome, bytes, fail};

/// Runs `yes`.
pub fn yes(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "[STRING]..." })?;
    let mut line = given.operands.iter().map(|word| bytes(word)).collect::<Vec<_>>().join(&b' ');
    if given.operands.is_empty() {
        line.push(b'y');
    }
    line.push(b'\n');
    let block = line.repeat((BLOCK / line.len()).max(1));
    loop {
        if let Err(error) = sys::write_all(1, &block) {
            return Err(fail(format!("standard output: {}", sys::message(&error))));
        }
    }
}
