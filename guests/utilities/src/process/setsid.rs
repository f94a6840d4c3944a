//! `setsid`: a new process group is as far as a sandbox's sessions go.

use crate::command::become_program;
use crate::options::{self, No, Spec};
use crate::program::{Args, Outcome, usage};

/// Runs `setsid`.
pub fn setsid(args: Args) -> Outcome {
    let spec = Spec {
        short: "+cfw",
        long: &[("ctty", No, 'c'), ("fork", No, 'f'), ("wait", No, 'w')],
        help: "[options] <program> [arguments ...]",
    };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(usage("no command specified"));
    }
    let _ = sys::set_group(0, 0);
    Err(become_program(&given.operands, "failed to execute "))
}
