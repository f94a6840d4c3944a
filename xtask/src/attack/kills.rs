//! `tests/kills`, with many more rounds.

use crate::run::{cargo, run as execute, step};

/// Default number of kills.
const KILLS: &str = "10000";

pub(super) fn run(args: &[String]) -> crate::Outcome {
    let kills = args.first().map_or(KILLS, String::as_str);
    step(&format!("killing every verb at random moments, {kills} times"));
    let mut test = cargo();
    test.args(["test", "--release", "--workspace", "--test", "kills", "--", "--nocapture"]).env("SANDLITE_KILLS", kills);
    execute(&mut test, "it is part of Rust")
}
