//! The coreutils of a sandbox: each a function from arguments to an exit status, linked into one multicall program.
//!
//! [`find`] knows them by name. Small and often started ones are written here, so that starting one costs little; large
//! and rare ones come from uutils. Each runs as its own process: a failed write may end it, and its name is global.
//! It knows nothing of shells.

mod absent;
mod archive;
mod basic;
mod date;
mod files;
mod identity;
mod options;
mod processes;
mod program;
mod quote;
mod size;
mod table;
mod text;
mod tool;
mod uutils;
mod version;

pub use absent::absent;
pub use table::{find, names};
