//! What the shell and the programs share: strings of any bytes, and the locale.
//!
//! Knows nothing of any single program.

pub mod bytes;
pub mod locale;
