//! `stdbuf`: how a program buffers is its own business here; it is only started.

use crate::command::become_program;
use crate::options::{self, Needs, Spec};
use crate::program::{Args, Outcome, set_failure, usage};

/// Runs `stdbuf`.
pub fn stdbuf(args: Args) -> Outcome {
    set_failure(125);
    let spec = Spec {
        short: "+i:o:e:",
        long: &[("input", Needs, 'i'), ("output", Needs, 'o'), ("error", Needs, 'e')],
        help: "OPTION... COMMAND",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(usage("missing operand"));
    }
    if given.options.is_empty() {
        return Err(usage("you must specify a buffering mode option"));
    }
    Err(become_program(&given.operands, "failed to run command "))
}
