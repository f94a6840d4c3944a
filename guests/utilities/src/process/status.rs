//! `true` and `false`: a status, and nothing else.

use crate::program::{Args, Outcome};

/// Runs `true`.
pub fn r#true(_: Args) -> Outcome {
    Ok(0)
}

/// Runs `false`.
pub fn r#false(_: Args) -> Outcome {
    Ok(1)
}
