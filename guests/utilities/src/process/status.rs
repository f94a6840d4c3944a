//! `true` and `false`: a status, and nothing else.

use crate::program::{Args, Outcome};

/// `true`.
pub fn r#true(_: Args) -> Outcome {
    Ok(0)
}

/// `false`.
pub fn r#false(_: Args) -> Outcome {
    Ok(1)
}
