//! The official clients, when `SANDLITE_MCP_CLIENTS=1`: they are fetched from their registries, by name, into a temporary directory.

use std::path::Path;
use std::process::{Command, Output};

use super::http::Server;
use super::skipped::skip;

const UNWANTED: &str = "set SANDLITE_MCP_CLIENTS=1 to fetch the clients and try them";

fn wanted() -> bool {
    std::env::var_os("SANDLITE_MCP_CLIENTS").is_some_and(|value| value == "1")
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    output
}

fn npm(directory: &Path, packages: &[&str]) {
    run(Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(directory)
        .args(packages)
        .current_dir(directory));
}

#[test]
fn the_official_python_client_works() {
    if !wanted() {
        skip(UNWANTED);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let python = directory.path().join("venv/bin/python");
    run(Command::new("python3").args(["-m", "venv"]).arg(directory.path().join("venv")));
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "mcp"]));
    let server = Server::start(&[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/clients/client.py");
    let mut client = Command::new(&python);
    client.arg(script).arg(env!("CARGO_BIN_EXE_sandlite")).args([server.url(), server.key.clone()]);
    let output = run(client.current_dir(directory.path()));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
fn the_official_inspector_works() {
    if !wanted() {
        skip(UNWANTED);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    npm(directory.path(), &["@modelcontextprotocol/inspector", "node@22"]);
    let inspect = |arguments: &[&str]| {
        let mut command = Command::new(directory.path().join("node_modules/.bin/node"));
        command.arg("node_modules/.bin/mcp-inspector").args(["--cli", env!("CARGO_BIN_EXE_sandlite"), "mcp"]);
        let output = run(command.args(arguments).current_dir(directory.path()));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!(inspect(&["--method", "tools/list"])["tools"].as_array().unwrap().len(), 30);
    let ran = inspect(&["--method", "tools/call", "--tool-name", "bash", "--tool-arg", "command=echo inspected"]);
    assert_eq!(ran["structuredContent"]["stdout"], "inspected\n");
    assert_eq!(inspect(&["--method", "prompts/list"])["prompts"][0]["name"], "sandbox");
    assert!(inspect(&["--method", "resources/list"])["resources"].is_array());
}

/// The suite's scenarios that need no special tools. It cannot send a key, so a proxy adds it.
#[test]
fn the_official_conformance_suite_passes() {
    if !wanted() {
        skip(UNWANTED);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    npm(directory.path(), &["@modelcontextprotocol/conformance", "node@22"]);
    let node = directory.path().join("node_modules/.bin/node");
    let server = Server::start(&["--allow-origin", "http://localhost:1"]);
    let proxy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/clients/proxy.mjs");
    for scenario in [
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ] {
        let mut suite = Command::new(&node);
        suite.arg(&proxy).args([server.url(), server.key.clone()]).arg(&node);
        suite.args(["node_modules/.bin/conformance", "server", "--url", "PROXY", "--scenario", scenario]);
        run(suite.current_dir(directory.path()));
    }
}
