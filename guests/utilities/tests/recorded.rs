//! Every utility behaves as the real tools did when `tests/recorded` was written: output, messages and status.
//!
//! A record is four lines: the shell script, its status, its standard output, its standard error; `\n`, `\\` and
//! `\xNN` stand for themselves. The scripts run in bash with our utilities first on the path.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            match bytes[at + 1] {
                b'n' => out.push(b'\n'),
                b'x' => {
                    out.push(u8::from_str_radix(&text[at + 2..at + 4], 16).expect("two hexadecimal digits"));
                    at += 2;
                }
                other => out.push(other),
            }
            at += 2;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}

/// The example that holds all tools, which Cargo puts beside the tests. Without it the machine's own would be tried.
fn multicall() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let example = test.parent().and_then(Path::parent).expect("the target directory").join("examples/utilities-multicall");
    assert!(example.exists(), "`cargo build --release --workspace --examples` makes {}", example.display());
    example
}

fn links() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory for links");
    for name in utilities::names() {
        // The shell's own `time` and the pagers of the machine have nothing to do with the cases.
        std::os::unix::fs::symlink(multicall(), directory.path().join(name)).expect("a link");
    }
    directory
}

fn replay(file: &str) {
    let links = links();
    let path = format!("{}:{}", links.path().display(), std::env::var("PATH").unwrap_or_default());
    let records =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(file)).expect("the records");
    let lines: Vec<&str> = records.lines().collect();
    let mut failures = Vec::new();
    for record in lines.chunks_exact(4) {
        let directory = tempfile::tempdir().expect("a working directory");
        let script = String::from_utf8(unescape(record[0])).expect("a script in UTF-8");
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(directory.path())
            .env("PATH", &path)
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .output()
            .expect("bash");
        let expected = (record[1].parse::<i32>().ok(), unescape(record[2]), unescape(record[3]));
        let found = (output.status.code(), output.stdout, output.stderr);
        if found != expected {
            failures.push(format!(
                "{script}\n  expected {:?} {:?} {:?}\n  found    {:?} {:?} {:?}",
                expected.0,
                String::from_utf8_lossy(&expected.1),
                String::from_utf8_lossy(&expected.2),
                found.0,
                String::from_utf8_lossy(&found.1),
                String::from_utf8_lossy(&found.2)
            ));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases differ:\n{}", failures.len(), lines.len() / 4, failures.join("\n"));
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(#[test] fn $name() { replay(concat!(stringify!($name), ".txt")); })*
    };
}

replays! { grep sed awk find diff jq archives small bc zip }
