//! The commands of the README and of the pages on skills and on the server do what is shown: every `console` block of a page is run, in
//! order, in one fresh directory. A server that a page starts listens on a free port instead of 8080, and is ended with the test.

#[path = "cli/agree.rs"]
mod agree;

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agree::line_agrees;

/// One command of a block, and the lines that the README shows below it.
struct Shown {
    line: usize,
    command: String,
    output: String,
}

fn shown(text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut inside = false;
    for (line, text) in (1..).zip(text.lines()) {
        match text {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (text.strip_prefix("$ "), found.last_mut()) {
                // A command continues in lines that start like bash's continuation prompt.
                (None, Some(last)) if last.output.is_empty() && text.starts_with('>') => {
                    last.command.push('\n');
                    last.command.push_str(text.strip_prefix("> ").unwrap_or_default());
                }
                (Some(command), _) => found.push(Shown { line, command: command.to_owned(), output: String::new() }),
                (None, Some(last)) => last.output.push_str(&format!("{text}\n")),
                (None, None) => {}
            },
        }
    }
    found
}

#[test]
fn every_command_prints_what_the_readme_shows() {
    check("README.md");
}

#[test]
fn every_command_prints_what_the_page_on_skills_shows() {
    check("docs/skills.md");
}

#[test]
fn every_command_prints_what_the_page_on_the_server_shows() {
    check("docs/server.md");
}

/// The address of the servers that pages start.
const SHOWN: [&str; 2] = ["127.0.0.1:8080", "localhost:8080"];

/// A process that a page leaves running.
struct Left(String);

impl Drop for Left {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.trim()).status();
    }
}

fn wait_for(address: SocketAddr) {
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing listens on {address}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[track_caller]
fn check(page: &str) {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_sandlite"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let commands = shown(&readme);
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
    let mut left = Vec::new();
    let mut run = 0;
    for Shown { line, command, output } in &commands {
        // What builds the repository is run by CI itself, not from inside it.
        if command.starts_with("cargo") {
            continue;
        }
        run += 1;
        let is_left = command.ends_with('&');
        let mut script = SHOWN.iter().fold(command.clone(), |command, shown| command.replace(shown, &address.to_string()));
        if is_left {
            script.push_str("\necho $! > left");
        }
        let mut result = Command::new("bash");
        let result = result.args(["-c", &script]).current_dir(&directory).env("PATH", &path);
        let result = result.env("SANDLITE_LISTEN", address.to_string());
        let result = result.env("SANDLITE_SKILLS", directory.path().join("catalog")).output().unwrap();
        if is_left {
            left.push(Left(fs::read_to_string(directory.path().join("left")).unwrap()));
            wait_for(address);
        }
        let seen = format!("{}{}", String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
        assert!(agrees(output, &seen), "{page}:{line}: $ {command}\n--- page\n{output}--- now\n{seen}");
    }
    assert!(run >= 5, "{page} shows only {run} commands");
}

fn agrees(shown: &str, seen: &str) -> bool {
    shown.lines().count() == seen.lines().count() && shown.lines().zip(seen.lines()).all(|(shown, seen)| line_agrees(shown, seen))
}
