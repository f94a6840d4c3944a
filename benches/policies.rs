//! The cost of policies, views, sources and callbacks, compared with the same work without them in the same run.
//!
//! `cargo bench --bench policies`, or with words to choose: `cargo bench --bench policies -- base callback`. The bars: 50 rules and a
//! view cost at most 1.05 times on creating and reading 10 000 files, and an empty policy nothing; a file behind a callback is read in
//! less than 0.2 ms; a base costs at most 1.1 times of own rows in reads; 1 000 sandboxes on one base of 100 MB take less than 400 MB
//! together; a sandbox on a base of 100 000 files opens in less than 5 ms.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use runtime::{Builder, Host, Overrides, Policy, Preset, Provider, Sandbox, WallTime};

/// Files of a comparison.
const FILES: usize = 10_000;

/// Rounds of a comparison: both sides take turns, and the median of the ratios counts.
const ROUNDS: usize = 11;

/// Creates and reads the files in one command.
const WORK: &str = "
import os
os.makedirs('/work/a', exist_ok=True)
for i in range(10000):
    with open(f'/work/a/f{i}', 'w') as f: f.write('some content of a file\\n')
for i in range(10000):
    with open(f'/work/a/f{i}') as f: f.read()
";

/// A name, and the measured work.
type Part = (&'static str, fn(&Host));

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let host = Host::builder().build().expect("the engine starts");
    let parts: [Part; 6] = [
        ("rules in commands", rules_in_commands),
        ("rules in the library", rules_in_the_library),
        ("callback", callback),
        ("base reads", base_reads),
        ("base opens", base_opens),
        ("base memory", base_memory),
    ];
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            part(&host);
        }
    }
}

fn builder(host: &Host) -> Builder {
    Sandbox::builder().host(host).preset(Preset::Permissive)
}

/// Fifty rules, none of which is about the files of the comparison, as in a project with many exceptions.
fn fifty() -> Policy {
    let mut text = String::new();
    for number in 0..48 {
        let access = ["read", "append", "hidden"][number % 3];
        write!(text, "[[rule]]\npath = \"/project/part{number}/**\"\naccess = \"{access}\"\n").expect("a string takes text");
    }
    text += "[[rule]]\npath = \"/**/.env\"\naccess = \"hidden\"\n[[rule]]\npath = \"/secret\"\naccess = \"read\"\nlabel = \"secret\"\n";
    Policy::parse(&text).expect("these are rules")
}

/// Runs both sides in turns; prints the best of each and the median of the ratios.
fn compare(name: &str, bar: f64, mut plain: impl FnMut() -> Duration, mut other: impl FnMut() -> Duration) {
    let (mut ratios, mut best) = (Vec::new(), [Duration::MAX; 2]);
    for round in 0..ROUNDS {
        // Each goes first in every second round.
        let (one, two) = if round % 2 == 0 {
            (plain(), other())
        } else {
            let two = other();
            (plain(), two)
        };
        best = [best[0].min(one), best[1].min(two)];
        ratios.push(two.as_secs_f64() / one.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    let (median, least) = (ratios[ROUNDS / 2], best[1].as_secs_f64() / best[0].as_secs_f64());
    println!("{name:<44} {:>8.1?} {:>8.1?}  median {median:.3}  of the best {least:.3}  bar {bar}", best[0], best[1]);
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn in_command(sandbox: &Sandbox) -> Duration {
    let limits = Overrides { wall: Some(WallTime(Duration::from_secs(300))), ..Overrides::default() };
    timed(|| {
        let output = sandbox.run(runtime::Command::python(WORK).limits(limits)).expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    })
}

fn rules_in_commands(host: &Host) {
    let plain = || builder(host).open().expect("it opens");
    let bound = || plain().with_policy(fifty()).and_then(|sandbox| sandbox.view("agent", ["secret"])).expect("it is bound");
    let empty = || plain().with_policy(Policy::default()).expect("it is bound");
    compare("10 000 files in a command: 50 rules, a view", 1.05, || in_command(&plain()), || in_command(&bound()));
    compare("10 000 files in a command: no rules", 1.0, || in_command(&plain()), || in_command(&empty()));
}

fn in_library(sandbox: &Sandbox) -> Duration {
    timed(|| {
        for number in 0..FILES {
            sandbox.fs().write(&format!("/work/a/f{number}"), "some content of a file\n").expect("it is written");
        }
        for number in 0..FILES {
            black_box(sandbox.fs().read(&format!("/work/a/f{number}")).expect("it is read"));
        }
    })
}

fn rules_in_the_library(host: &Host) {
    let plain = || builder(host).open().expect("it opens");
    let bound = || plain().with_policy(fifty()).and_then(|sandbox| sandbox.view("agent", ["secret"])).expect("it is bound");
    compare("10 000 files in the library: 50 rules, a view", 1.05, || in_library(&plain()), || in_library(&bound()));
}

fn callback(host: &Host) {
    let provider = Provider::file(|_| Ok(b"generated\n".to_vec()));
    let sandbox = builder(host).dynamic("/now", provider).open().expect("it opens");
    let mut times: Vec<_> = (0..2_000).map(|_| timed(|| sandbox.fs().read("/now").expect("it is read"))).collect();
    times.sort();
    println!("{:<44} median {:.1?}  99 % {:.1?}  bar 200µs", "reading a file behind a callback", times[1_000], times[1_980]);
}

/// A database with many files.
fn base(host: &Host, path: &Path, files: usize, bytes: usize) {
    let sandbox = builder(host).database(path).open().expect("it opens");
    let script = format!(
        "import os\nfor i in range({files}):\n    if i % 100 == 0: os.makedirs(f'/work/d{{i//100}}')\n    \
         with open(f'/work/d{{i//100}}/f{{i}}', 'wb') as f: f.write(os.urandom({bytes}))\n"
    );
    let limits = Overrides { wall: Some(WallTime(Duration::from_secs(300))), ..Overrides::default() };
    let output = sandbox.run(runtime::Command::python(&*script).limits(limits)).expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn read_all(sandbox: &Sandbox) -> Duration {
    let script = "import os\nfor d, _, names in os.walk('/work'):\n    for n in names:\n        with open(f'{d}/{n}', 'rb') as f: f.read()\n";
    timed(|| {
        let output = sandbox.python(script).expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    })
}

fn base_reads(host: &Host) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let (shared, own) = (directory.path().join("base.db"), directory.path().join("own.db"));
    base(host, &shared, FILES, 1_000);
    std::fs::copy(&shared, &own).expect("it is copied");
    let plain = builder(host).database(&own).open().expect("it opens");
    let over = builder(host).database(directory.path().join("over.db")).base(&shared).open().expect("it opens");
    compare("10 000 files: own rows, a base", 1.1, || read_all(&plain), || read_all(&over));
}

fn base_opens(host: &Host) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let shared = directory.path().join("base.db");
    base(host, &shared, 100_000, 10);
    let open = |number: usize| {
        timed(|| builder(host).database(directory.path().join(format!("{number}.db"))).base(&shared).open().expect("it opens"))
    };
    let show = |name: &str, bar: &str, mut times: Vec<Duration>| {
        let first = times[0];
        times.sort();
        println!("{name:<44} first {first:.1?}  median {:.1?}  worst {:.1?}{bar}", times[25], times[49]);
    };
    show("creating on a base of 100 000 files", "", (0..50).map(open).collect());
    show("opening on a base of 100 000 files", "  bar 5ms", (0..50).map(open).collect());
    let in_memory = |_| timed(|| builder(host).base(&shared).open().expect("it opens"));
    show("  in memory", "  bar 5ms", (0..50).map(in_memory).collect());
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("the kernel counts it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number") * 1_024
}

fn base_memory(host: &Host) {
    let directory = tempfile::tempdir().expect("there is a place for files");
    let shared = directory.path().join("base.db");
    base(host, &shared, 1_000, 100_000);
    let before = resident();
    let sandboxes: Vec<_> = (0..1_000).map(|_| builder(host).base(&shared).open().expect("it opens")).collect();
    let opened = resident().saturating_sub(before);
    for (number, sandbox) in sandboxes.iter().enumerate() {
        black_box(sandbox.fs().read(&format!("/work/d0/f{}", number % 100)).expect("it is read"));
        sandbox.fs().write("/work/own", "a file of its own\n").expect("it is written");
    }
    let used = resident().saturating_sub(before);
    sandboxes.iter().for_each(Sandbox::release_memory);
    let idle = resident().saturating_sub(before);
    let [opened, used, idle] = [opened, used, idle].map(|bytes| bytes >> 20);
    println!("{:<44} opened {opened} MB, used {used} MB, idle {idle} MB  bar 400 MB", "1 000 sandboxes on a base of 100 MB");
}
