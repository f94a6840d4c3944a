//! A long day in a short time: many sandboxes at once, a tenth of the commands hostile, in rounds; after the last one the
//! program holds as much memory, as many descriptors and as many threads as after those before.
//!
//! Ten seconds by default; `SANDLITE_SOAK_SECONDS=120 cargo test --release --test escape soak -- --nocapture` for the real one.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runtime::{Command, Host, Overrides, Preset, Sandbox, WallTime};

const SANDBOXES: usize = 16;

const ORDINARY: [&str; 8] = [
    "echo hello",
    "seq 200 | sort -rn | head -3",
    "for i in 1 2 3; do echo $i > /tmp/f$i; done; cat /tmp/f*; rm /tmp/f*",
    "grep -c a /etc/passwd; awk -F: '{ print $1 }' /etc/passwd",
    "x=$(echo in | tr a-z A-Z); [[ $x == IN ]] && (cd /tmp; pwd)",
    "printf '%s\\n' a b c | while read l; do echo \"<$l>\"; done",
    "python3 -c 'print(sum(range(1000)))'",
    "mkdir -p d/e && echo x > d/e/f && mv d/e/f d/g && rm -r d",
];

const HOSTILE: [&str; 8] = [
    "yes",
    ":(){ :|:& :; }; :",
    "x=x; while :; do x=$x$x; done",
    "sleep 1000 & sleep 1000",
    "head -c 100000000 /dev/zero > /tmp/big; rm -f /tmp/big",
    "f() { f; }; f",
    "python3 -c 'x = []\nwhile 1: x.append(bytearray(10**6))'",
    "kill -9 -1; exec 9<>/dev/null; cat /dev/urandom > /dev/full; rm -f /tmp/*",
];

/// The resources that this program holds now.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_kib: u64,
    descriptors: usize,
    threads: u64,
}

fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let number = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
    Held { resident_kib: number("VmRSS:"), descriptors, threads: number("Threads:") }
}

const ROUNDS: u32 = 4;

/// The common counters of the workers of a round.
#[derive(Default)]
struct Round {
    over: AtomicBool,
    runs: AtomicU64,
    hostile: AtomicU64,
}

impl Round {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Opens one sandbox after the other and runs fifty commands in each, until the round is over.
    fn work(&self, host: &Host, worker: usize) {
        let directory = tempfile::tempdir().unwrap();
        let mut turn = worker;
        while !self.is_over() {
            // Half of them in files.
            let mut builder = Sandbox::builder().host(host).preset(Preset::Strict);
            let path = directory.path().join(format!("{turn}.db"));
            if worker.is_multiple_of(2) {
                builder = builder.database(&path);
            }
            let sandbox = builder.open().unwrap();
            for _ in 0..50 {
                if self.is_over() {
                    break;
                }
                turn += 1;
                self.command(&sandbox, turn);
            }
            assert_eq!(sandbox.check().unwrap(), []);
            drop(sandbox);
            let _ = fs::remove_file(&path);
        }
    }

    fn command(&self, sandbox: &Sandbox, turn: usize) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        if turn.is_multiple_of(10) {
            self.hostile.fetch_add(1, Ordering::Relaxed);
            let script = HOSTILE[turn / 10 % HOSTILE.len()];
            let limits = Overrides { wall: Some(WallTime(Duration::from_millis(300))), ..Overrides::default() };
            sandbox.run(Command::bash(script).limits(limits)).unwrap();
        } else {
            let script = ORDINARY[turn % ORDINARY.len()];
            let output = sandbox.bash(script).unwrap();
            // A busy machine may be slow; nothing else may happen to a good command.
            assert!(output.status.success() || output.status.limit().is_some(), "{script}: {output:?}");
        }
    }
}

/// Runs sixteen workers for this long; returns the memory that the program holds after all of them have ended.
fn round(host: &Host, time: Duration) -> (Held, u64, u64) {
    let (round, started) = (Round::default(), Instant::now());
    std::thread::scope(|scope| {
        for worker in 0..SANDBOXES {
            let round = &round;
            scope.spawn(move || round.work(host, worker));
        }
        while started.elapsed() < time {
            std::thread::park_timeout(time.saturating_sub(started.elapsed()));
        }
        round.over.store(true, Ordering::Relaxed);
    });
    (held(), round.runs.into_inner(), round.hostile.into_inner())
}

/// The variable that is set if the test below started this program, to measure it.
const ALONE: &str = "SANDLITE_SOAK_ALONE";

// T-REL-06: the resources held between two rounds, when nothing runs, do not grow.
//
// In a separate program, where no other test counts, and with an allocator that returns freed memory: glibc's own habit is to
// keep up to 64 MB for each of its arenas, which looks like a leak until all of them are full, after minutes.
#[test]
fn sixteen_sandboxes_leave_nothing_behind() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "soak::rounds", "--nocapture"])
        .env(ALONE, "1")
        .env("MALLOC_ARENA_MAX", "2")
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .env("MALLOC_TRIM_THRESHOLD_", "131072")
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success() && said.contains("round 4"), "{said}");
}

/// The measuring itself: nothing unless it was asked for by the test above.
#[test]
fn rounds() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let seconds = std::env::var("SANDLITE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let host = Host::builder().build().unwrap();
    // Everything that is made once is made before it counts.
    let first = Sandbox::builder().host(&host).open().unwrap();
    first.python("print(1)").unwrap();
    first.bash("seq 9 | cat | sort > /dev/null").unwrap();

    let mut all = Vec::new();
    for number in 1..=ROUNDS {
        let (held, runs, hostile) = round(&host, Duration::from_secs(seconds) / ROUNDS);
        println!("round {number}: {runs} commands ({hostile} hostile), then {held:?}");
        assert!(runs >= SANDBOXES as u64, "{runs}");
        all.push(held);
    }
    let (middle, end) = (all[all.len() / 2 - 1], all[all.len() - 1]);
    assert!(end.resident_kib < middle.resident_kib * 5 / 4 + 128_000, "{all:?}");
    assert!(end.descriptors <= middle.descriptors + 16 && end.descriptors < 64, "{all:?}");
    assert!(end.threads < 64 + SANDBOXES as u64 * 4, "{all:?}");
    // The number of threads depends on timing; idle ones end.
    let (idle, deadline) = (SANDBOXES as u64, Instant::now() + Duration::from_secs(60));
    while held().threads > idle {
        assert!(Instant::now() < deadline, "{all:?}, then {:?}", held());
        std::thread::park_timeout(Duration::from_millis(100));
    }
}
