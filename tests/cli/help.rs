//! `--help` of every verb, the completions and the manual pages: made from the same words, and complete.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

fn sandlite(args: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sandlite")).args(args).env("COLUMNS", "100").env_remove("TERM").output().unwrap();
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
