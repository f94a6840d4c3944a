//! `sync`: the host commits when the command ends.

use std::path::Path;

use crate::options::{self, No, Spec};
use crate::program::{self, Args, Outcome, fail};
use crate::quote;

/// Runs `sync`: the host commits when the command ends.
pub fn sync(args: Args) -> Outcome {
    let spec = Spec { short: "df", long: &[("data", No, 'd'), ("file-system", No, 'f')], help: "[OPTION] [FILE]..." };
    let given = options::parse(args, &spec)?;
    if given.has('d') && given.operands.is_empty() {
        return Err(program::usage("--data needs at least one argument"));
    }
    let mut status = 0;
    for file in &given.operands {
        if let Err(error) = sys::stat(Path::new(file), true) {
            status = fail(format!("error opening {}: {}", quote::always(file), sys::message(&error)));
        }
    }
    Ok(status)
}
