//! The programs of a sandbox: each a function from arguments to an exit status, linked into one multicall program.
//!
//! A program is a file, or a file and a folder, below `text`, `files`, `archive`, `math` or `process`; what several of them
//! need stands beside those folders. [`find`] knows them by name. Small and often started ones are written here, so that
//! starting one costs little; some large and rare ones come from uutils. Each runs as its own process: a failed write may
//! end it, and its name is global. It knows nothing of shells.

#[macro_use]
mod io;

mod about;
mod absent;
mod accounts;
mod archive;
mod command;
mod date;
mod files;
mod lines;
mod math;
mod options;
mod process;
mod program;
mod quote;
mod size;
mod table;
mod text;
mod utf8;
mod uutils;
mod version;

pub use about::about;
pub use absent::absent;
pub use table::{find, names};
