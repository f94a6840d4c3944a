//! The clients in Python, Go and JavaScript: one list of tests, `tests/clients/list.json`, through each of them against a real server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::http::Server;
use super::skipped::skip;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns whether a program of this machine runs, and reports the test as skipped if not.
pub(super) fn has(program: &str, version: &str) -> bool {
    let found = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        skip(&format!("`{program}` is not installed"));
    }
    is_there
}

/// An example skill as a zip file in a directory.
pub(super) fn packed(skill: &str, directory: &Path) -> PathBuf {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    command.args(["skill", "package"]).arg(root().join("examples/skills").join(skill)).current_dir(directory);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory.join(format!("{skill}-1.0.0.zip"))
}

// Runs the whole list; every test of it has to be reported, so that a driver that stops early does not count.
fn check(driver: &mut Command, after: &[&str]) {
    let list = root().join("tests/clients/list.json");
    let tests: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&list).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    driver
        .arg(&list)
        .arg(format!("http://{}", server.address))
        .arg(&server.key)
        .arg(packed("multi-file-output", directory.path()));
    let output = driver.args(after).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let passed: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("passed ")).collect();
    assert_eq!(passed, tests.iter().map(|test| test["test"].as_str().unwrap()).collect::<Vec<_>>(), "{out}\n{err}");
}

#[test]
fn the_python_client_passes_the_list() {
    if has("python3", "--version") {
        check(Command::new("python3").arg(root().join("tests/clients/client.py")), &[]);
    }
}

#[test]
fn the_python_client_for_asyncio_passes_the_list() {
    if has("python3", "--version") {
        check(Command::new("python3").arg(root().join("tests/clients/client.py")), &["async"]);
    }
}

#[test]
fn the_javascript_client_passes_the_list() {
    if has("node", "--version") {
        check(Command::new("node").arg(root().join("tests/clients/client.mjs")), &[]);
    }
}

#[test]
fn the_go_client_passes_the_list() {
    if has("go", "version") {
        let mut go = Command::new("go");
        // No network in tests: the module and its client need nothing else.
        go.current_dir(root().join("tests/clients/go")).env("GOFLAGS", "-mod=mod").env("GOPROXY", "off");
        check(go.args(["run", "."]), &[]);
    }
}
