//! A run: a command that is requested, admitted, executed and recorded, and its result.
//!
//! `command.rs` is the request, `lifecycle.rs` the list of steps, `child.rs` a run concurrent with its caller, `output.rs` the
//! result.

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
