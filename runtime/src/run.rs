//! A run: a command that is asked for, admitted, executed and recorded, and what comes back of it.
//!
//! `command.rs` is what is asked for, `lifecycle.rs` the list of steps, `child.rs` a run beside its caller, `output.rs` the end.

mod child;
mod command;
mod lifecycle;
mod output;
#[cfg(test)]
mod probes;
mod program;
mod recording;
mod running;
mod surroundings;

pub use child::{Child, ChildOutput, ChildStdin};
pub use command::{Command, Stream};
pub use output::{ExitStatus, Output, RESTARTED, Shown};
pub(crate) use program::Program;
pub(crate) use recording::{KEY as RECORD, Recording};
pub use running::RunningFiles;
pub(crate) use surroundings::{Surroundings, Variables, set_variable, surroundings};
