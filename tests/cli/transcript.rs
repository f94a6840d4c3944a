//! Transcripts: commands, and below each what it prints and how it exits.
//!
//! ```text
//! # A sentence about what follows.
//! $ sandlite bash -c 'echo out; echo err >&2; exit 3'
//! | out
//! ! err
//! ? 3
//! ```
//!
//! `|` is standard output, `!` standard error, `?` the exit code unless it is 0; `|~` a last line without its line end. A line
//! may say `…` for any text. Commands run one after the other in one fresh directory, through the machine's `bash`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::agree::line_agrees;

/// One command, with the lines before it and the lines below it.
#[derive(Default)]
struct Step {
    before: Vec<String>,
    command: String,
    expected: Vec<String>,
}

/// Replays a transcript, or rewrites it if `SANDLITE_BLESS` is set.
#[track_caller]
pub fn replay(name: &str) {
    let path = crate::directory().join(format!("{name}.txt"));
    let directory = tempfile::tempdir().unwrap();
    let mut blessed = String::new();
    let mut differences = String::new();
    for step in steps(&fs::read_to_string(&path).unwrap()) {
        for line in &step.before {
            writeln!(blessed, "{line}").unwrap();
        }
        if step.command.is_empty() {
            continue;
        }
        writeln!(blessed, "$ {}", step.command.replace('\n', "\n> ")).unwrap();
        let seen = printed(&run(&step.command, directory.path()), directory.path());
        let same = seen.len() == step.expected.len() && step.expected.iter().zip(&seen).all(|(a, b)| line_agrees(a, b));
        for (index, line) in seen.iter().enumerate() {
            let kept = step.expected.get(index).filter(|expected| line_agrees(expected, line));
            writeln!(blessed, "{}", kept.unwrap_or(line)).unwrap();
        }
        if !same {
            let (expected, seen) = (step.expected.join("\n"), seen.join("\n"));
            write!(differences, "$ {}\n--- written down\n{expected}\n--- now\n{seen}\n\n", step.command).unwrap();
        }
    }
    if std::env::var_os("SANDLITE_BLESS").is_some() {
        fs::write(&path, blessed).unwrap();
    } else {
        assert!(differences.is_empty(), "{name}.txt differs (SANDLITE_BLESS=1 accepts)\n{differences}");
    }
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps = vec![Step::default()];
    for line in text.lines() {
        let last = steps.last_mut().unwrap();
        if let Some(command) = line.strip_prefix("$ ") {
            if last.command.is_empty() {
                last.command = command.to_owned();
            } else {
                steps.push(Step { command: command.to_owned(), ..Step::default() });
            }
        } else if let Some(more) = line.strip_prefix("> ") {
            last.command.push('\n');
            last.command.push_str(more);
        } else if line.starts_with(['|', '!', '?']) {
            last.expected.push(line.to_owned());
        } else if last.command.is_empty() {
            last.before.push(line.to_owned());
        } else {
            steps.push(Step { before: vec![line.to_owned()], ..Step::default() });
        }
    }
    steps
}

fn run(command: &str, directory: &Path) -> Output {
    let mut bash = Command::new("bash");
    bash.args(["-c", command]).current_dir(directory).stdin(Stdio::null());
    for name in ["NO_COLOR", "CLICOLOR", "SANDLITE_DB"] {
        bash.env_remove(name);
    }
    bash.env("PATH", path()).env("TERM", "xterm").env("COLUMNS", "100").output().unwrap()
}

/// `PATH` with our own program first.
pub fn path() -> String {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_sandlite"));
    format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

fn printed(output: &Output, directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for (mark, bytes) in [('|', &output.stdout), ('!', &output.stderr)] {
        let text = String::from_utf8_lossy(bytes).replace(&directory.display().to_string(), "[DIR]");
        for line in text.split_inclusive('\n') {
            let whole = line.strip_suffix('\n');
            let open = if whole.is_some() { "" } else { "~" };
            // Invisible characters are escaped.
            let line: String = whole
                .unwrap_or(line)
                .chars()
                .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() })
                .collect();
            lines.push(format!("{mark}{open} {line}").trim_end().to_owned());
        }
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => lines.push(format!("? {code}")),
        None => lines.push("? signal".to_owned()),
    }
    lines
}
