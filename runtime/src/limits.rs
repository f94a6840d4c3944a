//! The budget of a command: all its processes draw from the same [`Meter`].
//!
//! Charge before you take; a refused charge takes nothing. The first exhausted limit is recorded and reported to the caller.

mod meter;
mod pauses;
mod reached;

pub(crate) use meter::Meter;
pub use meter::Usage;
pub(crate) use pauses::{Pause, Pauses};
pub use reached::LimitReached;
