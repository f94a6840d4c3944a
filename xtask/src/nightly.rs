//! `cargo xtask nightly`: the long forms of what `cargo xtask test` runs briefly or skips.

use std::process::Command;

use crate::run::{cargo, run, step};
use crate::{Outcome, attack, check, cpython_tests, dist, embed, guests, openapi, package, reproduce};

/// The variables that enable extended tests.
const WANTED: [(&str, &str); 7] = [
    ("SANDLITE_PYTHON_SCI", "1"),
    ("SANDLITE_MCP_CLIENTS", "1"),
    ("SANDLITE_MCP_SERVERS", "1"),
    ("SANDLITE_INTEROP", "1"),
    ("SANDLITE_SDK_FRAMEWORKS", "1"),
    ("SANDLITE_SOAK_SECONDS", "120"),
    // Kills of the server.
    ("SANDLITE_CYCLES", "100"),
];

/// A part: its name, its description and the work.
type Part = (&'static str, &'static str, fn() -> Outcome);

/// The parts, in order. Each can be run alone.
const PARTS: [Part; 10] = [
    ("scientific", "installing the scientific Python", || guests::run(&["--python-sci".to_owned()])),
    ("cpython", "CPython's own tests", || cpython_tests::cpython_tests(&[])),
    ("files", "hostile files", || attack::attack(&["files".to_owned()])),
    ("kills", "10 000 kills", || attack::attack(&["kills".to_owned()])),
    ("openapi", "requests made from the server's document", || openapi::check(&[])),
    ("package", "building every crate from its package", || package::run_package(&["--verify".to_owned()])),
    ("embed", "a project outside the repository", embed::run_embed),
    ("dist", "everything that is distributed", || dist::run_dist(&[])),
    ("reproduce", "the distribution once more, in another directory", reproduce::run_reproduce),
    ("test", "every check, with what is usually skipped", test),
];

/// Runs the named parts, or all of them, one after another; the first failure ends it.
pub(crate) fn run_nightly(names: &[String]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !PARTS.iter().any(|(part, ..)| part == name)) {
        let known: Vec<_> = PARTS.iter().map(|(part, ..)| *part).collect();
        return Err(format!("unknown part `{unknown}`: expected one of {}", known.join(", ")).into());
    }
    for (_, about, part) in PARTS.iter().filter(|(part, ..)| names.is_empty() || names.iter().any(|name| name == part)) {
        step(about);
        part()?;
    }
    Ok(())
}

fn test() -> Outcome {
    if !check::has_deny() {
        // By name, as a package; without it, the check is reported as skipped.
        let _ = run(Command::new("cargo").args(["install", "--quiet", "--locked", "cargo-deny"]), check::RUSTUP);
    }
    let mut test = cargo();
    test.args(["xtask", "test"]).envs(WANTED);
    run(&mut test, check::RUSTUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_part_is_an_error() {
        let error = run_nightly(&["kill".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("unknown part `kill`: expected one of scientific, cpython"), "{error}");
    }
}
