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
