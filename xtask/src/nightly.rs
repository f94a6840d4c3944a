//! `cargo xtask nightly`: the long forms of what `cargo xtask test` runs briefly or skips.

use crate::run::{cargo, run, step};
use crate::{Outcome, attack, check, cpython_tests, guests, openapi};

/// What the tests skip unless one of these is set.
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

/// Runs everything, one after another; the first failure ends it.
pub(crate) fn run_nightly() -> Outcome {
    guests::run(&["--python-sci".to_owned()])?;
    step("CPython's own tests");
    cpython_tests::cpython_tests(&[])?;
    step("hostile files and kills");
    attack::attack(&["files".to_owned()])?;
    attack::attack(&["kills".to_owned()])?;
    openapi::check(&[])?;
    step("every check, with what is usually skipped");
    let mut test = cargo();
    test.args(["xtask", "test"]).envs(WANTED);
    run(&mut test, check::RUSTUP)
}
