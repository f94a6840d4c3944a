//! What Python costs: a fresh interpreter, a call in a live one, a file, and computing, beside the machine's own `python3`.
//!
//! `cargo bench --bench python`. The native side is measured in the same run, so that ratios mean something.

use std::hint::black_box;
use std::process::Stdio;

use criterion::{Criterion, criterion_group, criterion_main};
use runtime::{Command, Host, Preset, Sandbox};

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

fn sandbox(host: &Host, preset: Preset) -> Sandbox {
    Sandbox::builder().host(host).preset(preset).open().expect("a sandbox in memory opens")
}

fn run(sandbox: &Sandbox, code: &str) {
    let output = sandbox.python(code).expect("the command runs");
    assert!(output.status.success(), "{code}: {output:?}");
    black_box(output);
}

// Nothing where the machine has no Python of its own.
fn native(code: &str) -> Option<()> {
    let mut command = std::process::Command::new("python3");
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
    group.finish();
}

fn compute(criterion: &mut Criterion) {
    let host = Host::builder().build().expect("the engine starts");
    let mut group = criterion.benchmark_group("python-compute");
    group.sample_size(10);
    for (name, code) in [("fib", FIB), ("nbody", NBODY), ("json", JSON), ("regex", REGEX)] {
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
criterion_main!(benches);
