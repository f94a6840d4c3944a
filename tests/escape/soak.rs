//! A long day in a short time: many sandboxes at once, a tenth of the commands hostile, and at the end the program has as much
//! memory, as many descriptors and as many threads as before.
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

/// What this program holds now.
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

#[test]
fn sixteen_sandboxes_leave_nothing_behind() {
    let seconds = std::env::var("SANDLITE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let total = Duration::from_secs(seconds);
    let host = Host::builder().build().unwrap();
    // Everything that is made once is made before it counts.
    let first = Sandbox::builder().host(&host).open().unwrap();
    first.python("print(1)").unwrap();
    first.bash("seq 9 | cat | sort > /dev/null").unwrap();

    let (over, runs, hostile) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let (middle, end) = std::thread::scope(|scope| {
        for worker in 0..SANDBOXES {
            let (host, over, runs, hostile) = (&host, &over, &runs, &hostile);
            scope.spawn(move || {
                let directory = tempfile::tempdir().unwrap();
                let mut turn = worker;
                while !over.load(Ordering::Relaxed) {
                    // Half of them in files; each lives for fifty commands.
                    let mut builder = Sandbox::builder().host(host).preset(Preset::Strict);
                    let path = directory.path().join(format!("{turn}.db"));
                    if worker % 2 == 0 {
                        builder = builder.database(&path);
                    }
                    let sandbox = builder.open().unwrap();
                    for _ in 0..50 {
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        turn += 1;
                        runs.fetch_add(1, Ordering::Relaxed);
                        if turn % 10 == 0 {
                            hostile.fetch_add(1, Ordering::Relaxed);
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
                    assert_eq!(sandbox.check().unwrap(), []);
                    drop(sandbox);
                    let _ = fs::remove_file(&path);
                }
            });
        }
        let at = |part: u32| {
            while started.elapsed() < total * part / 10 {
                std::thread::park_timeout(total * part / 10 - started.elapsed());
            }
            held()
        };
        let middle = at(5);
        let end = at(10);
        over.store(true, Ordering::Relaxed);
        (middle, end)
    });
    let after = held();
    let (runs, hostile) = (runs.load(Ordering::Relaxed), hostile.load(Ordering::Relaxed));
    println!("{runs} commands ({hostile} hostile) in {seconds} s\nhalf way {middle:?}\nat the end {end:?}\nafter all {after:?}");
    assert!(runs > 16, "{runs}");
    // While they run the numbers swing with what runs; twice the middle would be growth.
    assert!(end.resident_kib < middle.resident_kib * 3 / 2 + 100_000, "{middle:?} {end:?}");
    assert!(after.descriptors < 64, "{after:?}");
    assert!(after.threads < 64 + SANDBOXES as u64 * 4, "{after:?}");
}
