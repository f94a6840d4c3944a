//! One file, several processes: their commands take turns.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

fn sandlite(directory: &std::path::Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    command.args(["--db", "shared.db"]).args(args).current_dir(directory).stdin(Stdio::null());
    command
}

// A process whose command runs until its input ends.
fn holder(directory: &std::path::Path) -> Child {
    let script = "echo begun; read line; echo first > /tmp/first";
    let mut running = sandlite(directory, &["bash", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(running.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    running
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_second_process_waits_for_its_turn_until_its_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = holder(directory.path());
    let impatient = sandlite(directory.path(), &["--wait", "1ms", "bash", "-c", "echo x"]).output().unwrap();
    let expected = format!("is in use by process {}", first.id());
    assert!(!impatient.status.success() && said(&impatient).contains(&expected), "{}", said(&impatient));
    let reading = sandlite(directory.path(), &["fs", "ls", "/home"]).output().unwrap();
    assert_eq!(said(&reading), "user\n", "reading waits for nobody");
    let mut second = sandlite(directory.path(), &["bash", "-c", "cat /tmp/first"]);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    first.stdin.take().unwrap().write_all(b"on\n").unwrap();
    assert_eq!(said(&second.wait_with_output().unwrap()), "first\n");
    assert!(first.wait().unwrap().success());
}

#[test]
fn a_watcher_that_ends_after_the_last_writer_leaves_one_file() {
    use rustix::process::{Pid, Signal, kill_process};
    let directory = tempfile::tempdir().unwrap();
    assert!(sandlite(directory.path(), &["bash", "-c", "echo earlier > /tmp/earlier"]).status().unwrap().success());
    let mut writer = holder(directory.path());
    let mut watcher = sandlite(directory.path(), &["watch", "--from", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(watcher.stdout.take().unwrap()).lines();
    assert!(events.any(|event| event.unwrap().contains("/tmp/earlier")));
    writer.stdin.take().unwrap().write_all(b"on\n").unwrap();
    assert!(writer.wait().unwrap().success());
    assert!(events.any(|event| event.unwrap().contains("/tmp/first")));
    kill_process(Pid::from_child(&watcher), Signal::TERM).unwrap();
    assert_eq!(watcher.wait().unwrap().code(), Some(128 + 15));
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["shared.db"]);
}

#[test]
fn a_watcher_ends_when_its_output_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let write = || sandlite(directory.path(), &["bash", "-c", "date > /tmp/now"]).status().unwrap().success();
    assert!(write());
    let mut watcher = sandlite(directory.path(), &["watch", "--from", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watcher.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let began = std::time::Instant::now();
    while watcher.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "it still watches");
        assert!(write());
    }
}
