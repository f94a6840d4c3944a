//! The cost of a command: warm, in a new sandbox, with a program, with a subshell, with a pipeline.
//!
//! `cargo bench --bench commands`. Ratios to other systems are measured by `cargo xtask bench`, side by side in one run.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use runtime::{Host, Preset, Sandbox};

fn host() -> Host {
    Host::builder().build().expect("the engine starts")
}

fn sandbox(host: &Host) -> Sandbox {
    Sandbox::builder().host(host).preset(Preset::Permissive).open().expect("a sandbox in memory opens")
}

fn run(sandbox: &Sandbox, script: &str) {
    let output = sandbox.bash(script).expect("the command runs");
    assert!(output.status.success(), "{script}: {output:?}");
    black_box(output);
}

fn commands(criterion: &mut Criterion) {
    let host = host();
    let mut group = criterion.benchmark_group("command");
    for (name, script) in [
        ("echo", "echo hello"),
        ("program", "/bin/true; :"),
        ("subshell", "(:)"),
        ("substitution", "x=$(echo hello)"),
        ("pipeline", "echo hello | tr a-z A-Z"),
        ("write-file", "echo hello > file"),
    ] {
        let sandbox = sandbox(&host);
        group.bench_function(name, |bencher| bencher.iter(|| run(&sandbox, script)));
    }
    group.bench_function("echo-in-a-new-sandbox", |bencher| {
        bencher.iter_batched(|| (), |()| run(&sandbox(&host), "echo hello"), BatchSize::PerIteration);
    });
    group.finish();
}

fn throughput(criterion: &mut Criterion) {
    const BYTES: u64 = 256 << 20;
    let host = host();
    let sandbox = sandbox(&host);
    let mut group = criterion.benchmark_group("throughput");
    group.throughput(Throughput::Bytes(BYTES)).sample_size(10);
    group.bench_function("cat-cat-wc", |bencher| {
        bencher.iter(|| run(&sandbox, &format!("head -c {BYTES} /dev/zero | cat | cat | wc -c")));
    });
    group.finish();
}

criterion_group!(benches, commands, throughput);
criterion_main!(benches);
