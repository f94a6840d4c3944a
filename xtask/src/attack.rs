//! `cargo xtask attack`: extended versions of the attacks in the tests.

mod kills;

use crate::Outcome;
use crate::run::{cargo, run};

/// Each attack: its name, its description, and the function that runs it with the remaining arguments.
type Attack = (&'static str, &'static str, fn(&[String]) -> Outcome);

const ATTACKS: &[Attack] = &[
    ("files", "open hostile databases with every verb of the command line", files),
    ("kills", "kill every verb at random moments, 10 000 times (or as often as given)", kills::run),
];

/// Runs one of the attacks.
pub(crate) fn attack(args: &[String]) -> Outcome {
    let (name, rest) = args.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
    if let Some((_, _, run)) = ATTACKS.iter().find(|(known, _, _)| *known == name) {
        return run(rest);
    }
    let lines: Vec<String> = ATTACKS.iter().map(|(name, what, _)| format!("  {name:<11} {what}")).collect();
    Err(format!("Usage: cargo xtask attack <attack>\n\n{}", lines.join("\n")).into())
}

// The test of the same name, with all its cases.
fn files(_: &[String]) -> Outcome {
    let args = ["test", "--workspace", "--release", "--test", "escape", "hostile_files", "--", "--nocapture"];
    run(cargo().args(args).env("SANDLITE_ATTACK", "all"), "install Rust with rustup")
}
