//! Random small scripts, run by the machine's bash 5.2 and by ours: what they write and how they end must be the same.
//!
//! Without such a bash on the machine there is nothing to compare with, and the test reports that it was skipped. `SANDLITE_RANDOM_CASES` and
//! `SANDLITE_RANDOM_SEED` choose how many scripts and which; a script that differs is made smaller before it is shown.

#[path = "random/grammar.rs"]
mod grammar;
#[path = "../../../tests/support/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use grammar::{Random, Script};

/// How many scripts an ordinary run tries.
const CASES: u64 = 150;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The machine's own bash, if it is of the version that ours follows.
fn real_bash() -> Option<PathBuf> {
    let path = PathBuf::from("/bin/bash");
    let output = Command::new(&path).args(["-c", "echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}"]).output().ok()?;
    (output.stdout == b"5.2\n").then_some(path)
}

fn run(shell: &Path, script: &str, directory: &Path) -> Output {
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory).expect("a directory for the script");
    for name in ["file1", "file2.txt", "Other"] {
        std::fs::write(directory.join(name), format!("{name}\nsecond line\n")).expect("a file for the script");
    }
    Command::new(shell)
        .args(["-c", script, "bash", "one", "two words", ""])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8"), ("HOME", "/home/user")])
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("the shell starts")
}

/// Messages without the numbers of their lines: inside of `$( … )`, bash counts those of its own rewriting.
fn without_lines(messages: &[u8]) -> String {
    let text = String::from_utf8_lossy(messages);
    let mut pieces = text.split(": line ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(": line ");
        out.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

struct Pair {
    real: PathBuf,
    ours: PathBuf,
    directory: PathBuf,
}

impl Pair {
    /// What the two shells make of a script, when that is not the same.
    fn difference(&self, script: &str) -> Option<String> {
        let real = run(&self.real, script, &self.directory);
        let ours = run(&self.ours, script, &self.directory);
        let seen = |output: &Output| (output.status.code(), output.stdout.clone(), without_lines(&output.stderr));
        if seen(&real) == seen(&ours) {
            return None;
        }
        let show = |output: &Output| {
            let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            format!("status {:?}\n{out}stderr: {err}", output.status.code())
        };
        Some(format!("--- bash: {}\n--- ours: {}", show(&real), show(&ours)))
    }

    /// A script that still differs although no statement of it can be left out.
    fn shrunk(&self, mut script: Script) -> Script {
        loop {
            let smaller = script.smaller().into_iter().find(|candidate| self.difference(&candidate.text()).is_some());
            match smaller {
                Some(candidate) => script = candidate,
                None => return script,
            }
        }
    }
}

#[test]
fn random_scripts_do_what_bash_does() {
    let Some(real) = real_bash() else {
        return skipped::skip("`/bin/bash` is not bash 5.2, with which ours is compared");
    };
    let directory = std::env::temp_dir().join(format!("sandlite-random-{}", std::process::id()));
    let pair = Pair { real, ours: env!("CARGO_BIN_EXE_sandlite-shell").into(), directory };
    let first = number("SANDLITE_RANDOM_SEED", 1);
    let mut differing = Vec::new();
    for seed in first..first + number("SANDLITE_RANDOM_CASES", CASES) {
        let script = grammar::script(&mut Random::new(seed));
        if pair.difference(&script.text()).is_some() {
            let text = pair.shrunk(script).text();
            let shown = pair.difference(&text).unwrap_or_default();
            differing.push(format!("=== seed {seed}\n{text}\n{shown}\n"));
        }
    }
    let _ = std::fs::remove_dir_all(&pair.directory);
    assert!(differing.is_empty(), "{} scripts differ:\n{}", differing.len(), differing.join("\n"));
}
