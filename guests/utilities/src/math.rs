//! Programs that calculate.

pub mod bc;
pub mod dc;
pub mod expr;
pub mod factor;
pub mod numfmt;
pub mod seq;
