//! The one budget of a command: every process of it draws from the same [`Meter`].
//!
//! Charge before you take; a refused charge takes nothing. What ran out first is remembered and told to the caller.

mod meter;
mod pauses;
mod reached;

pub(crate) use meter::Meter;
pub use meter::Usage;
pub(crate) use pauses::{Pause, Pauses};
pub use reached::LimitReached;
