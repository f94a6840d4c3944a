//! Measures how long after its deadline a command has ended, for commands that compute, sleep, wait or write files.
//!
//! `cargo bench --bench kill -- [ROUNDS] [KIND …]`. Measured from the deadline to the moment when `Sandbox::run` returns, over
//! a database in a file, as the command line opens it and with every commit brought to the disk. The bars: 12 ms at 99 % for
//! what computes, sleeps or waits, 50 ms for what writes.

use std::time::{Duration, Instant};

use runtime::{Command, Host, LimitName, Overrides, Preset, Sandbox, WallTime};

/// Runs of each kind, where the command line does not say.
const ROUNDS: usize = 30;

/// The work of a command when its time is over, and its time limit in milliseconds.
const KINDS: [(&str, u64, &str); 16] = [
    ("computing", 60, "awk 'BEGIN { while (1) i++ }'"),
    ("calling the host", 60, "yes > /dev/null"),
    ("sleeping", 60, "sleep 1000"),
    ("waiting on a pipe", 60, "sleep 1000 | cat"),
    ("waiting for children", 60, "sleep 1000 & sleep 1000 & wait"),
    ("finding", 60, "while :; do find / > /dev/null; done"),
    ("writing", 300, "yes > /tmp/big"),
    ("writing much", 2_000, "head -c 2000000000 /dev/zero > /tmp/a; cat /tmp/a /tmp/a > /tmp/b"),
    ("writing and removing", 1_000, "while :; do head -c 15M /dev/zero > /tmp/f; rm /tmp/f; done"),
    ("writing and truncating", 1_000, "while :; do head -c 15M /dev/zero > /tmp/f; : > /tmp/f; done"),
    ("an open file without a name", 1_000, "exec 9> /tmp/f; rm /tmp/f; cat /dev/zero >&9"),
    ("seeking", 1_000, "for i in {1..9000}; do dd if=/dev/zero of=/tmp/s$i bs=1 count=1 seek=50M 2>/dev/null; done"),
    ("copying", 1_000, "head -c 20M /dev/zero > /tmp/f; for i in {1..9000}; do cp /tmp/f /tmp/c$i; done"),
    ("making directories", 1_000, "cd /tmp; seq 10000000 | sed s/^/d/ | xargs -n 1000 mkdir"),
    (
        "many files in Python",
        1_000,
        "cd /tmp; python3 -c \"import os\nfor i in range(10**7): os.mkdir(f'd{i}'); open(f'd{i}/f', 'w').write('x' * 1000)\"",
    ),
    ("a large heap", 1_500, "python3 -c \"x = bytearray(b'x') * 700_000_000\nwhile True: pass\""),
];

fn main() {
    let mut rounds = ROUNDS;
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        match argument.parse() {
            Ok(number) => rounds = number,
            Err(_) => wanted.push(argument),
        }
    }
    let host = Host::builder().build().expect("the engine starts");
    println!("{:<30} {:>10} {:>10} {:>10}  rolled back", "after the deadline", "median", "99 %", "worst");
    for power_safe in [false, true] {
        println!("{}", if power_safe { "power_safe:" } else { "as the command line:" });
        for (name, wall, script) in KINDS {
            if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
                measure(&host, rounds, power_safe, (name, Duration::from_millis(wall), script));
            }
        }
    }
}

fn measure(host: &Host, rounds: usize, power_safe: bool, (name, wall, script): (&str, Duration, &str)) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let mut rolled_back = 0;
    let mut late: Vec<Duration> = (0..rounds)
        .map(|round| {
            let mut builder = Sandbox::builder().host(host).preset(Preset::Permissive);
            if power_safe {
                builder = builder.power_safe();
            }
            let path = directory.path().join(format!("{round}.db"));
            let sandbox = builder.database(&path).open().expect("a sandbox opens");
            sandbox.bash("cd /tmp; for i in {1..200}; do : > f$i; done").expect("the files are made");
            let limits = Overrides { wall: Some(WallTime(wall)), ..Overrides::default() };
            let started = Instant::now();
            let output = sandbox.run(Command::bash(script).limits(limits)).expect("the command runs");
            let took = started.elapsed();
            let reached = output.status.limit();
            assert_eq!(reached.map(|reached| reached.limit), Some(LimitName::Wall), "{name}: {output:?}");
            rolled_back += usize::from(reached.is_some_and(|reached| reached.rolled_back));
            drop(sandbox);
            std::fs::remove_file(path).expect("the database is removed");
            took.saturating_sub(wall)
        })
        .collect();
    late.sort_unstable();
    let at = |part: usize| late[(late.len() * part).div_ceil(100).clamp(1, late.len()) - 1];
    println!("{name:<30} {:>10.1?} {:>10.1?} {:>10.1?}  {rolled_back}", at(50), at(99), at(100));
}
