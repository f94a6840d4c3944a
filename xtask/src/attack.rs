//! `cargo xtask attack`: the whole of what the tests try a part of.

use crate::Outcome;
use crate::run::{cargo, run};

const HELP: &str = "Usage: cargo xtask attack files    hostile databases, each with every verb of the command line";

/// Attacks what is named.
pub(crate) fn attack(args: &[String]) -> Outcome {
    match args {
        [what] if what == "files" => files(),
        _ => Err(HELP.into()),
    }
}

// The test of the same name, with all its cases.
fn files() -> Outcome {
    let args = ["test", "--workspace", "--release", "--test", "escape", "hostile_files", "--", "--nocapture"];
    run(cargo().args(args).env("SANDLITE_ATTACK", "all"), "install Rust with rustup")
}
