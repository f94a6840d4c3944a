//! The promises of Sandlite to its users, one file per promise.

mod actions;
mod apply;
mod borders;
mod closing;
mod commands;
mod components;
#[path = "../support/components.rs"]
mod components_support;
mod determinism;
mod errors;
mod events;
mod files;
mod git;
mod git_mounts;
mod hidden;
mod history;
mod inquiry;
mod kv;
mod limits;
mod mounts;
mod policy;
mod processes;
mod programs;
mod replay;
mod restores;
mod sessions;
mod skill_examples;
mod skill_sessions;
mod skills;
mod skills_in_sandboxes;
mod snapshot;
mod sources;
mod versions;
mod versions_at_random;
mod ways;
mod whole;

use std::sync::OnceLock;

use runtime::{Command, Host, Output, Preset, Sandbox};

/// One engine for all tests of this program.
fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host::builder().build().unwrap())
}

/// A sandbox in memory.
fn sandbox() -> Sandbox {
    Sandbox::builder().host(host()).open().unwrap()
}

/// A sandbox in memory under the strict preset.
fn strict() -> Sandbox {
    Sandbox::builder().host(host()).preset(Preset::Strict).open().unwrap()
}

/// Runs a script in a fresh sandbox.
fn bash(script: &str) -> Output {
    sandbox().bash(script).unwrap()
}

/// Runs a script in a fresh sandbox and compares what it prints.
#[track_caller]
fn check(script: &str, stdout: &str) {
    let output = bash(script);
    let seen = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(seen, (stdout.to_owned(), String::new()), "{script}");
}

/// Runs a command with some standard input.
fn bash_with(script: &str, stdin: &str) -> Output {
    sandbox().run(Command::bash(script).stdin(stdin)).unwrap()
}
