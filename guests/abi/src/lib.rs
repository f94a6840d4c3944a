//! The host calls of a Sandlite guest beyond WASI preview1: processes, pipes, signals, full file metadata.
//!
//! Both sides use this crate. The host uses the layouts ([`spawn`], [`stat`], [`Signal`], [`WaitStatus`]); guests also use
//! `calls`, the safe face of the imports of module [`MODULE`]. Every import returns a WASI errno, 0 for success, and
//! writes its result through a pointer. It knows nothing of wasmtime, of shells or of files.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[cfg(target_arch = "wasm32")]
pub mod calls;
pub mod errno;
pub mod program;
mod signal;
pub mod spawn;
pub mod stat;
mod tool;
mod wait;

pub use errno::Errno;
pub use signal::{Disposition, Signal};
pub use tool::ToolFailure;
pub use wait::{WAIT_NO_HANG, WaitStatus, Waited};

/// The name of the import module on the wasm side.
pub const MODULE: &str = "sandlite";

/// The exported function the host calls in a forked child, with the pointer the parent gave to `fork`.
pub const FORK_ENTRY: &str = "sandlite_fork_entry";

/// The exported function that does what set-up can be done before there is a host: called once, when the guest is built. Every
/// process starts from the memory that it left.
pub const PREPARE: &str = "sandlite_prepare";

/// `/etc/hostname`: the name of the machine that guests see.
pub const ETC_HOSTNAME: &str = "sandlite\n";

/// The exported global that holds the top of the shadow stack; copied into a forked child. The stack must come first in
/// memory (`--stack-first`): fork takes what lies below it for dead.
pub const STACK_POINTER: &str = "__stack_pointer";

/// Events that only a guest can count and reports to the host: one `calls::count` each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counter {
    /// How often the loop that is running has gone round so far.
    Loops = 0,
    /// Simple commands executed by the shell (builtin, function or program) since the last call.
    Commands = 1,
}

impl Counter {
    /// Returns the counter with this number, if there is one.
    #[must_use]
    pub fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            0 => Some(Self::Loops),
            1 => Some(Self::Commands),
            _ => None,
        }
    }
}
