//! How long after its deadline a command is gone: median and worst, whether it computes, sleeps, waits on a pipe or sits in the
//! database.
//!
//! `cargo bench --bench kill`. The promise (SECURITY.md): 10 ms at the median, 50 ms at worst.

use std::time::{Duration, Instant};

use runtime::{Command, Host, LimitName, Overrides, Preset, Sandbox, WallTime};

/// Runs of each kind.
const ROUNDS: usize = 200;

/// What a command is doing when its time is over.
const KINDS: [(&str, &str); 6] = [
    ("computing in a guest", "awk 'BEGIN { while (1) i++ }'"),
    ("calling the host", "yes > /dev/null"),
    ("sleeping", "sleep 1000"),
    ("waiting on a pipe", "sleep 1000 | cat"),
    ("writing files", "yes > /tmp/big"),
    ("in the database", "find / / / / / / / / / / / / / / / / / / / / / / / / / / > /dev/null"),
];

fn main() {
    let host = Host::builder().build().expect("the engine starts");
    println!("{:<24} {:>10} {:>10} {:>10}", "after the deadline", "median", "99 %", "worst");
    for (name, script) in KINDS {
        let sandbox = Sandbox::builder().host(&host).preset(Preset::Permissive).open().expect("a sandbox opens");
        let fill = "cd /tmp; for i in {1..2000}; do : > f$i; done";
        sandbox.bash(fill).expect("the files are made");
        let deadline = Duration::from_millis(60);
        let mut late: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let limits = Overrides { wall: Some(WallTime(deadline)), ..Overrides::default() };
                let command = Command::bash(script).limits(limits).rollback_on_failure();
                let started = Instant::now();
                let output = sandbox.run(command).expect("the command runs");
                let took = started.elapsed();
                let reached = output.status.limit().map(|reached| reached.limit);
                assert_eq!(reached, Some(LimitName::Wall), "{name}: {:?}", output.status);
                took.saturating_sub(deadline)
            })
            .collect();
        late.sort_unstable();
        let at = |part: usize| late[(late.len() * part / 100).min(late.len() - 1)];
        println!("{name:<24} {:>10.1?} {:>10.1?} {:>10.1?}", at(50), at(99), late[late.len() - 1]);
    }
}
