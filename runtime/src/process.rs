//! Processes of a command.
//!
//! A [`Job`] is all processes of one command, with its [`Meter`](crate::limits::Meter) and its view of the files; none of it
//! survives the command (T-DOS-05). A process is a pid, descriptors, a thread and a wasm instance.

mod capture;
pub(crate) mod descriptor;
mod fault;
mod fork;
mod job;
mod kept;
mod kept_state;
mod open;
pub(crate) mod pipe;
mod preopen;
mod proc_files;
mod program;
mod python;
mod reaping;
mod report;
mod run;
mod state;
mod table;
mod turns;
pub(crate) mod wait;

pub(crate) use capture::{Capture, CaptureReader, CaptureWriter};
pub(crate) use fault::{Ended, Fault};
pub(crate) use fork::fork;
pub(crate) use job::{Job, MemoryCharge, Outside};
pub(crate) use kept::{Idle, Kept, start_for_memory, start_kept};
pub(crate) use kept_state::KeptState;
pub(crate) use open::{Opening, open, open_found};
pub(crate) use preopen::{Roots, directories};
pub(crate) use program::{exec, find as find_program};
pub(crate) use reaping::Reaping;
pub(crate) use run::{start, start_first};
pub(crate) use state::{Start, State, settle_fuel};
pub(crate) use table::{FIRST, Pid, Process, WaitFor};
pub(crate) use turns::Turns;
