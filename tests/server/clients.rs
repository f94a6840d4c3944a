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

#[test]
fn the_command_line_uses_a_sandbox_of_a_server() {
    let (server, directory) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
        command.args(["--server", &format!("http://{}", server.address)]).args(words);
        let output = command.env("SANDLITE_KEY", &server.key).env_remove("SANDLITE_DB").current_dir(&directory).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let check = |words: &[&str], code: i32, out: &str| {
        let (found, stdout, stderr) = run(words);
        assert_eq!((found, stdout.as_str()), (code, out), "{words:?}: {stderr}");
    };
    check(&["bash", "-c", "echo hi > note.txt; echo said; exit 3"], 3, "said\n");
    assert_eq!(run(&["bash", "-c", "echo wrong >&2"]).2, "wrong\n");
    check(&["bash", "-c", "echo $0 $1", "zero", "it's"], 0, "zero it's\n");
    check(&["python", "-c", "print(6 * 7)"], 0, "42\n");
    check(&["fs", "cat", "note.txt"], 0, "hi\n");
    check(&["fs", "cat", "missing"], 1, "");
    check(&["--sandbox", "other", "fs", "cat", "note.txt"], 1, "");
    check(&["kv", "set", "plan", "{\"a\": 1}"], 0, "");
    check(&["kv", "get", "plan"], 0, "{\"a\":1}\n");
    check(&["kv", "get", "nothing"], 1, "");
    std::fs::create_dir_all(directory.path().join("tree/deep")).unwrap();
    std::fs::write(directory.path().join("tree/deep/file"), [0, 255]).unwrap();
    check(&["fs", "put", "tree", "/tree"], 0, "");
    check(&["fs", "find", "/tree", "--kind", "file"], 0, "/tree/deep/file\n");
    check(&["fs", "get", "/tree", "back"], 0, "");
    assert_eq!(std::fs::read(directory.path().join("back/deep/file")).unwrap(), [0, 255]);
    assert!(run(&["checkpoint", "good"]).1.starts_with("checkpoint good names version "));
    check(&["fs", "rm", "-r", "/tree"], 0, "");
    check(&["diff", "good", "--name-only"], 1, "D /tree\nD /tree/deep\nD /tree/deep/file\n");
    check(&["restore", "good"], 0, "A /tree\nA /tree/deep\nA /tree/deep/file\n");
    check(&["fs", "du", "/tree"], 0, "2 bytes, 1 files, 2 directories\n");
    let skill = root().join("examples/skills/word-counter");
    check(&["skill", "push", skill.to_str().unwrap()], 0, "pushed word-counter@1.0.0\n");
    let (code, output, _) = run(&["skill", "run", "word-counter", "--input", r#"{"text": "a b a"}"#]);
    assert!(code == 0 && output.contains(r#""total_words":3"#), "{output}");
    check(&["export", "copy.db"], 125, "");
    check(&["bash", "--mount", ".:/src", "-c", "ls"], 125, "");
}
