//! The time of the sandbox's tools for large inputs, compared with the machine's own in the same run.
//!
//! `cargo bench --bench tools`, or with words to choose: `cargo bench --bench tools -- sort grep`. Prints the best of three of each and
//! their ratio; the goal is 4.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runtime::{Host, Preset, Sandbox};

/// Rows of the table, bytes of the text: the sizes for which the goal is stated.
const ROWS: u64 = 1_000_000;
const BYTES: usize = 100_000_000;

/// Every tool reads a file and its output goes through a pipe, because GNU's grep stops early if its output is discarded.
const CASES: &[(&str, &str)] = &[
    ("sort", "sort rows | cat"),
    ("sort -n", "sort -n rows | cat"),
    ("grep -c", "grep -c abc text | cat"),
    ("grep -ci", "grep -ci ABC text | cat"),
    ("grep -cE", "grep -cE 'abc|xyz|qrst' text | cat"),
    ("wc", "wc text | cat"),
    ("awk sum", "awk '{s+=$1} END{print s}' rows | cat"),
    ("awk count", "awk '{c[$2]++} END{for(k in c) n++; print n}' rows | cat"),
    ("tr", "tr a-z A-Z < text | cat"),
    ("cut", "cut -d' ' -f2 text | cat"),
    ("sed", "sed s/abc/xyz/g text | cat"),
    ("uniq", "uniq -c rows | cat"),
    ("tail", "tail -n 100000 text | cat"),
    ("cat", "cat text | cat"),
    ("while", "i=0; s=0; while (( i < 10000 )); do (( s += i, i++ )); done; echo $s"),
];

/// Numbers that look random and are the same in every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn data() -> (String, String) {
    let mut noise = Noise(1);
    let words: Vec<String> =
        (0..5_000).map(|_| (0..3 + noise.below(7)).map(|_| char::from(b'a' + noise.below(26) as u8)).collect()).collect();
    let mut word = move || (noise.below(1_000_000_000), words[noise.below(5_000) as usize].clone());
    let mut rows = String::new();
    for _ in 0..ROWS {
        let (number, name) = word();
        writeln!(rows, "{number} {name} {}", word().1).expect("a string takes text");
    }
    let mut text = String::with_capacity(BYTES + 100);
    while text.len() < BYTES {
        let line: Vec<String> = (0..10).map(|_| word().1).collect();
        text.push_str(&line.join(" "));
        text.push('\n');
    }
    (rows, text)
}

fn best(mut run: impl FnMut()) -> Duration {
    let measured = (0..3).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    measured.min().unwrap_or_default()
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let (rows, text) = data();
    let directory = tempfile::tempdir().expect("a directory for the data");
    fs::write(directory.path().join("rows"), &rows).expect("the rows are written");
    fs::write(directory.path().join("text"), &text).expect("the text is written");
    let host = Host::builder().build().expect("the engine starts");
    let sandbox = Sandbox::builder()
        .host(&host)
        .preset(Preset::Permissive)
        .cwd("/data")
        .file("/data/rows", rows.into_bytes())
        .file("/data/text", text.into_bytes())
        .open()
        .expect("a sandbox in memory opens");
    println!("{:<12} {:>10} {:>10} {:>7}", "tool", "native", "sandbox", "ratio");
    for (name, script) in CASES {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let script = format!("export LC_ALL=C.UTF-8; {script} > /dev/null");
        let native = best(|| {
            let null = File::open("/dev/null").expect("/dev/null is there");
            let mut command = Command::new("bash");
            let status = command.args(["-c", &script]).current_dir(directory.path()).stdin(Stdio::from(null)).status();
            assert!(status.expect("the machine has bash").success(), "{script}");
        });
        let ours = best(|| {
            let output = sandbox.bash(&script).expect("the command runs");
            assert!(output.status.success(), "{script}: {output:?}");
            black_box(output);
        });
        let ratio = ours.as_secs_f64() / native.as_secs_f64();
        println!("{name:<12} {:>8} ms {:>8} ms {ratio:>7.2}", native.as_millis(), ours.as_millis());
    }
}
