//! Checks that cannot run here. Each reports why, and `cargo xtask test` counts them.
//!
//! Included by path, so that the tests of every crate share it.

use std::io::Write as _;

/// The variable that names the file in which `cargo xtask test` collects skipped checks.
const FILE: &str = "SANDLITE_SKIPPED";

/// Reports that the running test cannot do its check.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let check = format!("{}::{}", env!("CARGO_CRATE_NAME"), thread.name().unwrap_or("main"));
    // Past the harness, which keeps what a passing test prints to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED {check}: {reason}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(format!("{check}: {reason}\n").as_bytes())).expect("the list of skipped checks");
}
