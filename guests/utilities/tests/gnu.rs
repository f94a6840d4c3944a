//! Every line of `cases/*.txt` is run twice by the machine's bash, in two fresh copies of the same directory: with GNU's
//! utilities and with ours. Output, complaints and status must be the same.
//!
//! A line that begins with `!` is known to differ and only has to end by itself; `cases/setup.sh` makes the directory.
//! The wording is that of GNU coreutils 9.1: where the machine has another version there is nothing to compare with.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const VERSION: &str = "(GNU coreutils) 9.1";
const SYSTEM: &str = "/usr/bin:/bin";

fn cases_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// A directory that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("utilities-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The example that holds all utilities; Cargo puts it next to this test. Without it the machine's own would be tried.
fn multicall() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows where it is");
    let profile = own.parent().and_then(Path::parent).expect("tests live in `deps`");
    let example = profile.join("examples/utilities-multicall");
    assert!(example.exists(), "`cargo build --release --workspace --examples` makes {}", example.display());
    example
}

/// A directory with one name per utility.
fn our_programs(at: &Path) {
    let multicall = multicall();
    for name in utilities::names().iter().filter(|name| utilities::absent(name).is_none()) {
        symlink(&multicall, at.join(name)).expect("names can be linked");
    }
}

/// Lines of a file; one whose quotes are still open continues in the next.
fn cases(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(cases_directory().join(file)).expect("the case file is there");
    let mut cases = Vec::new();
    let mut case = String::new();
    for line in text.lines() {
        if !case.is_empty() {
            case.push('\n');
        }
        case.push_str(line);
        if quotes_are_closed(&case) {
            let done = std::mem::take(&mut case);
            if !done.is_empty() && !done.starts_with('#') {
                cases.push(done);
            }
        }
    }
    cases
}

fn quotes_are_closed(text: &str) -> bool {
    let mut open = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, open) {
            ('\\', None | Some('"')) => {
                chars.next();
            }
            ('\'' | '"', None) => open = Some(c),
            (c, Some(mark)) if c == mark => open = None,
            _ => {}
        }
    }
    open.is_none()
}

fn bash(directory: &Path, path: &str) -> Command {
    let mut command = Command::new("/bin/bash");
    command.current_dir(directory).env_clear().stdin(Stdio::null());
    command.env("LC_ALL", "C").env("TZ", "UTC").env("HOME", "/root").env("TMPDIR", "/tmp").env("PATH", path);
    command
}

type Outcome = (String, String, Option<i32>);

fn run(case: &str, path: &str) -> Outcome {
    let scratch = Scratch::new();
    let directory = scratch.0.join("w");
    std::fs::create_dir(&directory).expect("a fresh directory");
    let setup = bash(&directory, SYSTEM).arg(cases_directory().join("setup.sh")).output().expect("bash runs");
    assert!(setup.status.success(), "setup: {}", String::from_utf8_lossy(&setup.stderr));
    let output = bash(&directory, path).arg("-c").arg(case).output().expect("bash runs");
    let here = scratch.0.to_string_lossy().into_owned();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&here, "HERE");
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[path = "../../../tests/support/skipped.rs"]
mod skipped;

fn has_gnu() -> bool {
    Command::new("/usr/bin/ls")
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION))
}

fn check(file: &str) {
    if !has_gnu() {
        skipped::skip(&format!("the machine's utilities are not {VERSION}"));
        return;
    }
    let programs = Scratch::new();
    our_programs(&programs.0);
    let ours = format!("{}:{SYSTEM}", programs.0.display());
    let mut different = Vec::new();
    for case in cases(file) {
        if let Some(known) = case.strip_prefix('!') {
            let (.., status) = run(known, &ours);
            assert!(status.is_some_and(|status| status < 128), "{known}");
            continue;
        }
        let (gnu, own) = (run(&case, SYSTEM), run(&case, &ours));
        if gnu != own {
            different.push(format!("$ {case}\n  gnu: {gnu:?}\n  own: {own:?}"));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

#[test]
fn text_utilities_are_gnus() {
    check("text.txt");
}

#[test]
fn file_utilities_are_gnus() {
    check("files.txt");
}

#[test]
fn the_other_utilities_are_gnus() {
    check("misc.txt");
}
