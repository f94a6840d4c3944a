//! The promises about Python, one file per promise.

mod command_line;
mod cpython;
mod files;
mod isolation;
mod library;
mod limits;
mod packages;
mod scientific;
mod session;
mod shell;
#[path = "../support/skipped.rs"]
mod skipped;
mod subprocess;
mod threads;
mod tools;

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

/// Runs code in a fresh sandbox.
fn python(code: &str) -> Output {
    sandbox().python(code).unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Runs code in a fresh sandbox and compares what it prints; it must succeed and complain of nothing.
#[track_caller]
fn check(code: &str, stdout: &str) {
    let output = python(code);
    assert_eq!((texts(&output), output.status.code()), ((stdout.to_owned(), String::new()), 0), "{code}");
}

/// Runs code that fails and compares the last line of its complaint.
#[track_caller]
fn check_error(code: &str, last_line: &str) {
    let output = python(code);
    let (_, stderr) = texts(&output);
    assert_eq!((stderr.lines().last().unwrap_or_default(), output.status.code()), (last_line, 1), "{code}");
}

/// Runs `python3` with these arguments in a fresh sandbox.
fn python3(args: &[&str]) -> Output {
    sandbox().run(Command::python_with(args.iter().copied())).unwrap()
}
