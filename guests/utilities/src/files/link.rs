//! `link` and `unlink`: the bare system calls.

use std::path::Path;

use crate::options::{self, Spec};
use crate::program::{self, Args, Outcome, fail, missing_operand};
use crate::quote;

/// Runs `link`.
pub fn link(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "FILE1 FILE2" })?;
    let [from, to] = given.operands.as_slice() else {
        return Err(match given.operands.get(2) {
            Some(extra) => program::extra_operand(extra),
            None => missing_operand(given.operands.last()),
        });
    };
    sys::link(Path::new(from), Path::new(to)).map_err(|error| {
        fail(format!("cannot create link {} to {}: {}", quote::always(to), quote::always(from), sys::message(&error)))
    })?;
    Ok(0)
}

/// Runs `unlink`.
pub fn unlink(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "FILE" })?;
    let [file] = given.operands.as_slice() else {
        return Err(match given.operands.get(1) {
            Some(extra) => program::extra_operand(extra),
            None => missing_operand(None),
        });
    };
    std::fs::remove_file(file)
        .map_err(|error| fail(format!("cannot unlink {}: {}", quote::always(file), sys::message(&error))))?;
    Ok(0)
}
