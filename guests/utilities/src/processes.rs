//! Utilities that start or signal other programs.

pub mod env;
pub mod getopt;
pub mod kill;
pub mod launch;
pub mod timeout;
