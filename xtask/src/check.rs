//! `cargo xtask test`: every check that CI runs, cheapest first.

use std::process::Command;

use crate::run::{cargo, cargo_home, root, step};
use crate::{Outcome, guests, openapi, package, skillbox, skips, wheel};

/// `cargo xtask test`: stops at the first check that fails.
pub(crate) fn run() -> Outcome {
    skips::begin()?;
    let guests = guests::start()?;
    step("format");
    format()?;
    step("lints");
    let checked = lints();
    guests.finish().and(checked)?;
    step("minimum Rust version");
    minimum_version()?;
    step("dependencies");
    dependencies()?;
    advisories()?;
    package::run_package(&[])?;
    step("tests");
    tests()?;
    step("documentation");
    documentation()?;
    step("the server's document");
    openapi::check_briefly()?;
    step("Skillbox's own programs");
    skillbox::run_if_there()?;
    step("Python package");
    wheel::test()?;
    let skipped = skips::end()?;
    step(&format!("everything passed, {skipped} checks SKIPPED"));
    Ok(())
}

pub(crate) const RUSTUP: &str = "install Rust with rustup";

fn format() -> Outcome {
    run_cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Outcome {
    run_cargo(&["clippy", "--workspace", "--all-targets", "--release", "--quiet", "--", "-D", "warnings"])
}

// The promised version is tested: the tests run with the version in Cargo.toml.
fn minimum_version() -> Outcome {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml"))?;
    let promised = promised(&manifest).ok_or("Cargo.toml has no `rust-version`")?;
    let used = crate::run::output(Command::new("rustc").arg("-V"), RUSTUP)?;
    let used = used.split_whitespace().nth(1).unwrap_or_default();
    if is_of(used, promised) {
        return Ok(());
    }
    skips::skip("minimum Rust version", &format!("this is Rust {used}; run the tests with Rust {promised} to check the promise"))
}

fn promised(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
}

fn is_of(used: &str, promised: &str) -> bool {
    used.strip_prefix(promised).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns whether cargo-deny is installed.
pub(crate) fn has_deny() -> bool {
    Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success())
}

// Licenses, duplicates and sources, of the guests too.
fn dependencies() -> Outcome {
    if !has_deny() {
        return skips::skip("cargo-deny", "run `cargo install cargo-deny` to check licenses, duplicates and sources");
    }
    run_cargo(&["deny", "--offline", "--workspace", "check", "bans", "licenses", "sources"])
}

// Known vulnerabilities, if their database was fetched.
fn advisories() -> Outcome {
    if !has_deny() {
        return skips::skip("advisories", "run `cargo install cargo-deny` to check for known vulnerabilities");
    }
    if !cargo_home()?.join("advisory-dbs").is_dir() {
        return skips::skip("advisories", "no database of advisories here: fetch it with `cargo deny fetch`");
    }
    run_cargo(&["deny", "--offline", "--workspace", "check", "advisories"])
}

// All of them, even after a failure: a run on another machine should report everything. Some run examples, which are built first.
fn tests() -> Outcome {
    run_cargo(&["build", "--workspace", "--release", "--quiet", "--examples"])?;
    run_cargo(&["test", "--workspace", "--release", "--quiet", "--no-fail-fast", "--lib", "--bins", "--tests"])
}

// The whole workspace, though few packages have examples: a subset has other features, and builds wasmtime again.
fn documentation() -> Outcome {
    run_cargo(&["test", "--workspace", "--release", "--quiet", "--doc"])?;
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--release", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    crate::run::run(&mut doc, RUSTUP)
}

fn run_cargo(args: &[&str]) -> Outcome {
    crate::run::run(cargo().args(args).env(skips::VARIABLE, skips::file()), RUSTUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_in_use_is_compared_with_the_promised_one() {
        assert_eq!(promised("[workspace.package]\nrust-version = \"1.95\"\n"), Some("1.95"));
        assert_eq!(promised("rust-version.workspace = true\n"), None);
        assert!(is_of("1.95.0", "1.95") && is_of("1.95.0", "1.95.0"));
        assert!(!is_of("1.96.0", "1.95") && !is_of("1.950.0", "1.95"));
    }
}
