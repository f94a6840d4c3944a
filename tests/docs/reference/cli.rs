//! The command line, from `--help` of every verb, and the exit codes.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use runtime::{LimitReached, Preset};

use super::documented;
use crate::page::root;

/// Returns the help of a verb.
pub fn help(words: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    let output = command.args(words).arg("--help").env("COLUMNS", "100").env_remove("TERM").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the verbs that a help text lists.
pub fn verbs(help: &str) -> Vec<String> {
    let below = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = below.lines().take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    lines.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help").map(str::to_owned).collect()
}

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# Command line\n\nGenerated from `sandlite --help` by `cargo xtask docs`.\n\n\
         Every verb accepts the global options, which are listed once, below `sandlite`.\n",
    );
    add(&mut page, &[]);
    page
}

fn add(page: &mut String, words: &[String]) {
    let text = help(words);
    let title = std::iter::once("sandlite").chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let shown = if words.is_empty() { text.as_str() } else { text.split("\nGlobal options:").next().unwrap() };
    let level = "#".repeat((words.len() + 2).min(3));
    let shown: Vec<&str> = shown.trim_end().lines().map(str::trim_end).collect();
    write!(page, "\n{level} `{title}`\n\n```text\n{}\n```\n", shown.join("\n")).unwrap();
    for verb in verbs(&text) {
        add(page, &words.iter().cloned().chain([verb]).collect::<Vec<_>>());
    }
}

/// The page of exit codes.
pub fn exit_codes() -> String {
    let source = fs::read_to_string(root().join("cli/exit.rs")).unwrap();
    let numbers = source.split("impl From<Code> for u8").nth(1).unwrap();
    let mut page = String::from(
        "# Exit codes\n\nGenerated from `cli/exit.rs` and `runtime/src/limits` by `cargo xtask docs`.\n\n\
         ## `sandlite`\n\n| code | meaning |\n|---|---|\n",
    );
    for (variant, meaning) in documented("cli/exit.rs", "enum Code") {
        let line = numbers.lines().find(|line| line.trim_start().starts_with(&format!("Code::{variant}"))).unwrap();
        let value = line.split("=> ").nth(1).unwrap().trim_end_matches(',');
        let code = match value {
            "code" => "any".to_owned(),
            "signal.saturating_add(128)" => "128 + signal".to_owned(),
            number => number.to_owned(),
        };
        writeln!(page, "| {code} | {meaning} |").unwrap();
    }
    page += "| 2 | Invalid arguments: an unknown verb, option or value. |\n\n\
             As in any shell, bash itself exits with 127 for a program that does not exist and with 126 for one that cannot be started.\n\n\
             ## Commands that reach a limit\n\n| limit | code | hint |\n|---|---:|---|\n";
    for (limit, value) in Preset::Normal.limits().entries() {
        let reached = LimitReached { limit, value, used: String::new(), rolled_back: false };
        writeln!(page, "| `{limit}` | {} | {} |", reached.exit_code(), reached.hint()).unwrap();
    }
    page
}
