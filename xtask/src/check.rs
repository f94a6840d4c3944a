//! `cargo xtask test`: every check that CI runs, cheapest first.

use std::process::Command;

use crate::run::{cargo, step};
use crate::{Outcome, guests, openapi, skillbox, skips, wheel};

/// `cargo xtask test`: stops at the first check that fails.
pub(crate) fn run() -> Outcome {
    skips::begin()?;
    guests::build()?;
    step("format");
    format()?;
    step("lints");
    lints()?;
    step("dependencies");
    dependencies()?;
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
    skips::end()?;
    step("everything passed");
    Ok(())
}

pub(crate) const RUSTUP: &str = "install Rust with rustup";

fn format() -> Outcome {
    run_cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Outcome {
    run_cargo(&["clippy", "--workspace", "--all-targets", "--release", "--quiet", "--", "-D", "warnings"])
}

// Licenses, duplicates and sources; advisories need the network and run where it is available.
fn dependencies() -> Outcome {
    let installed = Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    if !installed {
        return skips::skip("cargo-deny", "run `cargo install cargo-deny` to check licenses and duplicates too");
    }
    run_cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"])
}

// All of them, even after a failure: a run on another machine should report everything. Some run examples, which are built first.
fn tests() -> Outcome {
    run_cargo(&["build", "--workspace", "--release", "--quiet", "--examples"])?;
    run_cargo(&["test", "--workspace", "--release", "--quiet", "--no-fail-fast", "--lib", "--bins", "--tests"])
}

// The whole workspace, though few packages have examples: a subset has other features, and builds wasmtime again.
fn documentation() -> Outcome {
    run_cargo(&["test", "--workspace", "--release", "--quiet", "--doc"])
}

fn run_cargo(args: &[&str]) -> Outcome {
    crate::run::run(cargo().args(args).env(skips::VARIABLE, skips::file()), RUSTUP)
}
