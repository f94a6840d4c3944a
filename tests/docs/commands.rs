//! Every `console` and `sh` block is run, and a `console` block prints what it shows. A `toml` block that starts with `# NAME.toml` is
//! that file.
//!
//! The commands of a page run in one shell, in a fresh directory, so variables and files carry over from block to block. A server that
//! a page starts listens on a free port instead of 8080; the commands after it wait until it accepts connections.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::agree::line_agrees;
use crate::page::{Block, Page, pages};
use crate::skipped::skip;

/// Longest time for the commands of one page, in seconds.
const TIME: &str = "120";

/// One command of a block, and the lines that the page shows below it.
struct Shown {
    line: usize,
    command: String,
    output: Option<String>,
}

fn shown(block: &Block) -> Vec<Shown> {
    if block.language() == "sh" {
        return vec![Shown { line: block.line, command: block.text.clone(), output: None }];
    }
    if block.language() == "toml" {
        // A file with a name is created for the commands below it.
        let name = block.text.lines().next().and_then(|line| line.strip_prefix("# ")).filter(|name| name.ends_with(".toml"));
        let create = name.map(|name| format!("cat > {name} <<'END'\n{}END\n", block.text));
        return create.map(|command| Shown { line: block.line, command, output: None }).into_iter().collect();
    }
    let mut found: Vec<Shown> = Vec::new();
    for (line, text) in (block.line..).zip(block.text.lines()) {
        match (text.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push(Shown { line, command: command.to_owned(), output: Some(String::new()) }),
            (None, Some(Shown { command, output: Some(output), .. })) => {
                // A command continues in lines that start like bash's continuation prompt.
                if output.is_empty() && text.starts_with('>') {
                    command.push('\n');
                    command.push_str(text.strip_prefix("> ").unwrap_or_default());
                } else {
                    output.push_str(text);
                    output.push('\n');
                }
            }
            (None, _) => panic!("line {line} is not a command: {text}"),
        }
    }
    found
}

#[test]
fn every_command_prints_what_the_page_shows() {
    let pages = pages();
    let with_commands: Vec<&Page> = pages.iter().filter(|page| !commands(page, &mut Vec::new()).is_empty()).collect();
    assert!(with_commands.len() >= 10, "only {} pages have commands", with_commands.len());
    // The first use compiles Python, which takes longer than all pages: once, not in every page at the same time.
    let python = Command::new(env!("CARGO_BIN_EXE_sandlite")).args(["python", "-c", "pass"]).status().unwrap();
    assert!(python.success());
    let (mut failures, mut skipped) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let threads: Vec<_> = with_commands.iter().map(|page| scope.spawn(move || check(page))).collect();
        for (failed, missing) in threads.into_iter().map(|thread| thread.join().unwrap()) {
            failures.extend(failed);
            skipped.extend(missing);
        }
    });
    skipped.iter().for_each(|reason| skip(reason));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The commands of a page that can run here. Blocks whose programs are missing are returned in `skipped`.
fn commands(page: &Page, skipped: &mut Vec<String>) -> Vec<Shown> {
    let blocks = page.blocks();
    let run = blocks.iter().filter(|block| ["console", "sh", "toml"].contains(&block.language()) && !block.is("ignore"));
    let can_run = run.filter(|block| {
        let missing: Vec<&str> = block.needs.iter().map(String::as_str).filter(|program| !has(program)).collect();
        if !missing.is_empty() {
            skipped.push(format!("{}:{}: {} is not installed", page.name(), block.line, missing.join(", ")));
        }
        missing.is_empty()
    });
    // Builds of the repository are run by CI itself, not from inside it.
    can_run.flat_map(shown).filter(|shown| !shown.command.starts_with("cargo ")).collect()
}

fn has(program: &str) -> bool {
    let search = format!("command -v {program}");
    Command::new("bash").args(["-c", &search]).stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs the commands of a page: what differs, and the blocks that cannot run here.
fn check(page: &Page) -> (Vec<String>, Vec<String>) {
    let mut skipped = Vec::new();
    let commands = commands(page, &mut skipped);
    let (work, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut script = String::from("trap 'kill $(jobs -p) 2> /dev/null' EXIT\n");
    for (index, shown) in commands.iter().enumerate() {
        let at = |kind: &str| notes.path().join(format!("{index}.{kind}"));
        fs::write(at("sh"), shown.command.replace("8080", &port)).unwrap();
        let (file, output, status) = (at("sh"), at("out"), at("status"));
        // After the command, so that its own output is compared unchanged.
        let wait = if shown.command.contains("sandlite serve") && shown.command.trim_end().ends_with('&') {
            format!("until (exec 3<> /dev/tcp/127.0.0.1/{port}) 2> /dev/null; do sleep 0.05; done\n")
        } else {
            String::new()
        };
        script += &format!(". {} > {} 2>&1 < /dev/null; echo $? > {}\n", file.display(), output.display(), status.display());
        script += &wait;
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_sandlite"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("timeout");
    bash.args([TIME, "bash", "-c", &script]).current_dir(&work).env("PATH", path);
    bash.env("SANDLITE_LISTEN", format!("127.0.0.1:{port}"));
    bash.env("SANDLITE_SKILLS", work.path().join("catalog")).env_remove("SANDLITE_DB").env_remove("SANDLITE_KEY");
    bash.status().unwrap();
    let mut failures = Vec::new();
    for (index, Shown { line, command, output }) in commands.iter().enumerate() {
        let read = |kind: &str| fs::read_to_string(notes.path().join(format!("{index}.{kind}"))).unwrap_or_default();
        let (seen, status) = (read("out").replace(&port, "8080"), read("status"));
        let page = page.name();
        match output {
            _ if status.is_empty() => failures.push(format!("{page}:{line}: $ {command}\ndid not end in {TIME} s\n{seen}")),
            Some(output) if !agrees(output, &seen) => {
                failures.push(format!("{page}:{line}: $ {command}\n--- page\n{output}--- now\n{seen}"));
            }
            None if status != "0\n" => failures.push(format!("{page}:{line}: status {status}{command}--- now\n{seen}")),
            _ => {}
        }
    }
    (failures, skipped)
}

fn agrees(shown: &str, seen: &str) -> bool {
    shown.lines().count() == seen.lines().count() && shown.lines().zip(seen.lines()).all(|(shown, seen)| line_agrees(shown, seen))
}
