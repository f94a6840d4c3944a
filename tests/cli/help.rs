//! `--help` of every verb, the completions and the manual pages: made from the same words, and complete.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

fn sandlite(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sandlite"))
        .args(args)
        .env("COLUMNS", COLUMNS.to_string())
        .env_remove("TERM")
        .output()
        .unwrap();
    assert!(output.status.success(), "sandlite {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The names below `Commands:` of a help text.
fn verbs(help: &str) -> Vec<String> {
    let below = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = below.lines().take_while(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every verb with its help, the verbs below it too.
fn every_help() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut left = vec![Vec::<String>::new()];
    while let Some(words) = left.pop() {
        let args: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = sandlite(&args);
        left.extend(verbs(&help).into_iter().map(|verb| words.iter().cloned().chain([verb]).collect()));
        all.insert(words.join(" "), help);
    }
    all
}

#[test]
fn the_help_of_every_verb_is_written_down() {
    let mut seen = String::new();
    for (verb, help) in every_help() {
        writeln!(seen, "$ sandlite {} --help", verb).unwrap();
        writeln!(seen, "{}\n", help.trim_end()).unwrap();
    }
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/help.txt"));
    if std::env::var_os("SANDLITE_BLESS").is_some() {
        fs::write(path, &seen).unwrap();
    }
    let known = fs::read_to_string(path).unwrap();
    for (line, (known, seen)) in (1..).zip(known.lines().zip(seen.lines())) {
        assert_eq!(known, seen, "help.txt:{line} (SANDLITE_BLESS=1 accepts)");
    }
    assert_eq!(known.lines().count(), seen.lines().count());
}

/// The width at which the help is printed here.
const COLUMNS: usize = 100;

/// Lines of a help text that a person would have broken elsewhere: examples that do not fit, and paragraphs with breaks of their own.
fn ragged(help: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in help.split("\n\n") {
        let lines: Vec<&str> = block.trim_start_matches('\n').lines().collect();
        if lines.first() == Some(&"Examples:") {
            found.extend(lines.iter().skip(1).filter(|line| !line.starts_with("  sandlite ")).map(|line| (*line).to_owned()));
        } else if lines.iter().all(|line| !line.starts_with(' ') && !line.contains("Usage:")) {
            let pairs = lines.iter().zip(lines.iter().skip(1));
            let early = pairs.filter(|(line, next)| {
                let word = next.split(' ').next().unwrap_or_default();
                !line.ends_with('.') && line.chars().count() + 1 + word.chars().count() <= COLUMNS
            });
            found.extend(early.map(|(line, _)| (*line).to_owned()));
        }
    }
    found
}

#[test]
fn the_help_has_no_ragged_lines() {
    let (mut found, mut examples) = (Vec::new(), 0);
    for (verb, help) in every_help() {
        examples += help.matches("\nExamples:\n").count();
        found.extend(ragged(&help).into_iter().map(|line| format!("{verb}: {line}")));
    }
    assert!(examples > 20, "only {examples} verbs have examples");
    assert!(found.is_empty(), "lines that are broken in the wrong place:\n{}", found.join("\n"));
}

#[test]
fn ragged_lines_are_found() {
    assert_eq!(ragged("Examples:\n  sandlite a    does\n  something\n\nFits.\n"), ["  something"]);
    assert_eq!(ragged("A short line,\nthen another.\n"), ["A short line,"]);
    assert!(ragged("A sentence.\nAnother one.\n\nOptions:\n  -h  Print help\n").is_empty());
}

/// The string literals of a source file outside its comments and tests, approximately: enough to find the messages for users.
fn literals(text: &str) -> Vec<String> {
    let code: String = text
        .split("#[cfg(test)]")
        .next()
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    code.replace("\\\"", "'").split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn sources(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn flags_and_verbs_in_messages_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for place in ["cli", "runtime/src", "sqlite-fs/src", "server/src", "presets/src"] {
        sources(&root.join(place), &mut files);
    }
    let help = every_help();
    let flags: std::collections::BTreeSet<&str> =
        help.values().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '-')).collect();
    let (mut unknown, mut known) = (Vec::new(), 0);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // Between backticks is what a user can type.
        for typed in literals(&text).iter().flat_map(|literal| literal.split('`').skip(1).step_by(2)) {
            let words: Vec<&str> = typed.split_whitespace().collect();
            let missing = words.iter().filter(|word| word.starts_with("--") && !word.contains('{') && !flags.contains(*word));
            unknown.extend(missing.map(|flag| format!("{}: {flag}", file.display())));
            known += words.iter().filter(|word| word.starts_with("--")).count();
            if let ["sandlite", rest @ ..] = words.as_slice() {
                let verb = rest.iter().position(|word| *word == "--db").map_or(rest.first(), |at| rest.get(at + 2));
                let is_verb = verb.is_none_or(|verb| verb.contains(['{', '…']) || help.contains_key(*verb));
                unknown.extend((!is_verb).then(|| format!("{}: `{typed}`", file.display())));
            }
        }
    }
    assert!(unknown.is_empty(), "there is no such flag or verb:\n{}", unknown.join("\n"));
    assert!(known >= 8, "only {known} flags were found in the texts: are they still between backticks?");
}

#[test]
fn every_verb_is_in_the_completions_of_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = sandlite(&["completions", shell]);
        for verb in verbs(&sandlite(&["--help"])) {
            assert!(script.contains(&verb), "{verb} is missing for {shell}");
        }
    }
}

#[test]
fn a_reader_that_has_enough_is_not_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for command in [
        "sandlite completions bash | head -n 1",
        "sandlite licenses | head -n 1",
        "sandlite --db a.db fs cat /big | head -c 1",
        "sandlite --json --db a.db fs cat /big | head -c 1",
    ] {
        let script = format!(
            "set -o pipefail; sandlite --db a.db bash -c 'head -c 2000000 /dev/zero | tr \\\\0 x > /big'; {command} > first; echo $?; wc -l < first"
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(&directory).env("PATH", crate::transcript::path());
        let output = bash.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
        // What fits into a pipe is written before anybody has gone.
        let ended = output.stdout.starts_with(b"141\n") || !command.contains("/big") && output.stdout.starts_with(b"0\n");
        assert!(ended, "{command}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn the_machines_bash_completes_a_verb() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("completions");
    fs::write(&script, sandlite(&["completions", "bash"])).unwrap();
    let ask =
        r#"source "$0"; COMP_WORDS=(sandlite hist); COMP_CWORD=1; _sandlite sandlite hist sandlite; echo "${COMPREPLY[@]}""#;
    let output = Command::new("bash").args(["-c", ask]).arg(&script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "history\n");
}

#[test]
fn every_verb_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    sandlite(&["man", directory.path().to_str().unwrap()]);
    for verb in every_help().keys() {
        let name = format!("sandlite {verb}").trim().replace(' ', "-");
        let page = fs::read_to_string(directory.path().join(format!("{name}.1"))).unwrap_or_default();
        assert!(page.contains(".SH SYNOPSIS"), "{name}.1 is missing or empty");
    }
}
