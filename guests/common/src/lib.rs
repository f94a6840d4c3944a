//! Code shared by the shell and the programs: strings of any bytes, the locale, options, numbers, dates and `printf`.
//!
//! Knows nothing of any single program.

pub mod bytes;
pub mod escape;
pub mod float;
pub mod getopt;
pub mod locale;
pub mod number;
pub mod printf;
pub mod strftime;
