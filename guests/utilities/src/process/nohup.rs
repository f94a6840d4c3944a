//! `nohup`: a program that outlives its terminal.

use sys::OpenFlags;

use crate::command::become_program;
use crate::options::{self, Spec};
use crate::program::{Args, Descriptor, Outcome, fail, set_failure, usage, warn};

/// Runs `nohup`.
pub fn nohup(args: Args) -> Outcome {
    set_failure(125);
    let given = options::parse(args, &Spec { short: "+", long: &[], help: "COMMAND [ARG]..." })?;
    if given.operands.is_empty() {
        return Err(usage("missing operand"));
    }
    if sys::is_terminal(0)
        && let Ok(null) = Descriptor::read_only("/dev/null")
    {
        let _ = sys::dup2(null.fd(), 0);
    }
    if sys::is_terminal(1) {
        let flags = OpenFlags { write: true, create: true, append: true, ..OpenFlags::default() };
        match Descriptor::open("nohup.out", flags, 0o600) {
            Ok(file) => {
                let _ = sys::dup2(file.fd(), 1);
                warn("ignoring input and appending output to 'nohup.out'");
            }
            Err(error) => return Err(fail(format!("failed to open 'nohup.out': {}", sys::message(&error)))),
        }
    }
    if sys::is_terminal(2) {
        let _ = sys::dup2(1, 2);
    }
    let _ = sys::signal_action(sys::Signal::HUP, sys::Disposition::Ignore);
    Err(become_program(&given.operands, "failed to run command "))
}
