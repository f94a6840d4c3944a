//! Runs the lines of a file in the machine's bash with our utilities first on the path.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What numbers become when they are sizes: too small, at the edges of 16, 31, 32, 63 and 64 bits, beyond them all.
const NUMBERS: &[&str] = &[
    "-1",
    "0",
    "70000",
    "1e9",
    "1000000000",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999",
];

/// Statuses of a panic, an illegal instruction, an abort and a segmentation fault.
const BROKEN: [i32; 4] = [101, 132, 134, 139];

/// The message of a program that ran out of memory.
const EXHAUSTED: [&str; 3] = ["memory exhausted", "cannot allocate", "Cannot allocate memory"];

/// Moments at which memory is refused: each of the first, then at random.
const FIRST: u64 = 12;
const RANDOM: u64 = 12;
const LATEST: u64 = 600;

/// Where the utilities are, and what they are tried with.
pub struct Suite {
    /// A directory with a link for each utility.
    programs: tempfile::TempDir,
    cases: PathBuf,
}

/// The result of a script.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: Option<i32>,
    stdout: Vec<u8>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Suite {
    /// The utilities `names` of the example `multicall`, with the cases of the directory `cases`.
    pub fn new(multicall: &str, names: &[&str], cases: &str) -> Self {
        let own = std::env::current_exe().expect("a test knows where it is");
        let example = own.parent().and_then(Path::parent).expect("tests live in `deps`").join("examples").join(multicall);
        assert!(example.exists(), "`cargo build --release --workspace --examples` makes {}", example.display());
        let programs = tempfile::tempdir().expect("a temporary directory");
        for name in names {
            symlink(&example, programs.path().join(name)).expect("names can be linked");
        }
        Self { programs, cases: PathBuf::from(cases) }
    }

    /// The scripts of a file, one a line.
    fn scripts(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.cases.join(file)).expect("the case file is there");
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    }

    /// Every utility is in the file that tries refused memory.
    pub fn covers(&self, names: &[&str]) {
        let scripts = self.scripts("memory.txt").join("\n");
        let words: Vec<&str> = scripts.split([' ', '\n', '|', ';']).collect();
        let missing: Vec<_> = names.iter().filter(|name| !words.contains(name)).collect();
        assert!(missing.is_empty(), "not in memory.txt: {missing:?}");
    }

    /// No utility panics, whatever the numbers.
    pub fn numbers(&self) {
        let scripts = self.scripts("numbers.txt");
        let jobs: Vec<String> =
            scripts.iter().flat_map(|script| NUMBERS.iter().map(move |number| script.replace('N', number))).collect();
        let broken = in_parallel(&jobs, |script| {
            let (outcome, stderr) = self.run(script, None);
            is_broken(&outcome, &stderr).then(|| format!("$ {script}\n  {:?} {stderr}", outcome.status))
        });
        assert!(broken.is_empty(), "{} of {}:\n{}", broken.len(), jobs.len(), broken.join("\n"));
    }

    /// Without memory a utility reports it and fails, unless it did not need the refused memory.
    pub fn memory(&self) {
        let scripts = self.scripts("memory.txt");
        let wrong = in_parallel(&scripts, |script| {
            let (expected, _) = self.run(script, None);
            let mut random =
                script.bytes().fold(0x9e37_79b9, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
            let later = (0..RANDOM).map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                FIRST + (random >> 33) % LATEST
            });
            for moment in (0..FIRST).chain(later.collect::<Vec<_>>()) {
                let (outcome, stderr) = self.run(script, Some(moment));
                let told = EXHAUSTED.iter().any(|text| stderr.contains(text));
                let lied = outcome.status == expected.status && outcome != expected && !told;
                if is_broken(&outcome, &stderr) || lied || (outcome.status == Some(0) && outcome != expected) {
                    return Some(format!("$ {script}\n  after {moment}: {outcome:?}\n  expected {expected:?}\n  {stderr}"));
                }
            }
            None
        });
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
    }

    fn run(&self, script: &str, refuse_after: Option<u64>) -> (Outcome, String) {
        let directory = tempfile::tempdir().expect("a working directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("f"), "1 b\n2 c aaa\n3 a\n").expect("a file");
        std::fs::write(at("g"), "1 b\n2 x\n").expect("a file");
        std::fs::write(at("j.json"), "[1,{\"a\":2}]").expect("a file");
        std::fs::create_dir(at("d")).expect("a directory");
        // Memory, time and files of the machine are limited; output without end has a reader that leaves.
        let limited = format!(
            "ulimit -v 400000; ulimit -t 1; ulimit -f 100000; set -o pipefail; {{ {script}\n}} < f | head -c 1000000; exit ${{PIPESTATUS[0]}}"
        );
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "30", "/bin/bash", "-c", &limited]).current_dir(directory.path()).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.programs.path().display()));
        command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").stdin(Stdio::null());
        if let Some(moment) = refuse_after {
            command.env("SANDLITE_REFUSE_MEMORY", moment.to_string());
        }
        let output = command.output().expect("bash runs");
        let status = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
        let outcome = Outcome { status, stdout: output.stdout, files: files(directory.path()) };
        (outcome, String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn is_broken(outcome: &Outcome, stderr: &str) -> bool {
    stderr.contains("panicked at") || outcome.status.is_none_or(|status| BROKEN.contains(&status))
}

/// The regular files of a directory, small as they are.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() && entry.metadata().is_ok_and(|data| data.len() < 1 << 20) {
                let name = entry.path().strip_prefix(directory).map(Path::to_owned).unwrap_or_default();
                found.insert(name, std::fs::read(entry.path()).unwrap_or_default());
            }
        }
    }
    found
}

fn in_parallel(jobs: &[String], check: impl Fn(&str) -> Option<String> + Sync) -> Vec<String> {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(complaint) = check(job) {
                        wrong.lock().expect("nobody panics with the lock").push(complaint);
                    }
                }
            });
        }
    });
    wrong.into_inner().expect("nobody panics with the lock")
}
