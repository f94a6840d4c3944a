//! One file, two processes: the second one waits for its turn.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn sandlite(directory: &std::path::Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    command.args(["--db", "shared.db"]).args(args).current_dir(directory).stdin(Stdio::null());
    command
}

// A process that has the file open for a second.
fn holder(directory: &std::path::Path) -> Child {
    let running = sandlite(directory, &["bash", "-c", "sleep 1; echo first > /tmp/first"]).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !directory.join("shared.db-running").exists() {
        assert!(Instant::now() < until, "it never opened the file");
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_second_process_waits_for_its_turn_and_not_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = holder(directory.path());
    let impatient = sandlite(directory.path(), &["--wait", "1ms", "bash", "-c", "echo x"]).output().unwrap();
    assert!(!impatient.status.success() && said(&impatient).contains("is in use by"), "{}", said(&impatient));
    let second = sandlite(directory.path(), &["bash", "-c", "cat /tmp/first"]).output().unwrap();
    assert_eq!(said(&second), "first\n");
    assert!(first.wait().unwrap().success());
}
