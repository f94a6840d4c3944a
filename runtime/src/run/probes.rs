//! Hostile programs: each probe of `guests/probes`, under tight limits.

mod foreign;
mod fuzz;
mod storing;
mod wasi;

use std::time::Duration;

use presets::{ByteSize, LimitName, Overrides, Preset, WallTime};

use super::{Command, ExitStatus, Output};
use crate::clock;
use crate::host::Host;
use crate::process::Start;
use crate::sandbox::Sandbox;

fn run(text: &str, overrides: Overrides) -> Output {
    let host = Host::builder().build().unwrap();
    run_on(&host, text, overrides)
}

fn run_on(host: &Host, text: &str, overrides: Overrides) -> Output {
    run_under(Preset::Strict, host, text, overrides)
}

fn run_under(preset: Preset, host: &Host, text: &str, overrides: Overrides) -> Output {
    run_in(&Sandbox::builder().host(host).preset(preset).open().unwrap(), host, text, overrides)
}

fn run_in(sandbox: &Sandbox, host: &Host, text: &str, overrides: Overrides) -> Output {
    let prepared = host.prepared_from_text(text);
    let command = Command::bash("a probe").limits(overrides);
    let output = sandbox
        .run_as(command, |_, request| {
            let (args, env, cwd) = (request.args.clone(), request.env.clone(), request.cwd.clone());
            Ok((prepared, Start { args, env, cwd }))
        })
        .unwrap();
    // G8: after every hostile case the sandbox still works.
    assert_eq!(sandbox.history(1).unwrap()[0].exit_code, Some(i32::from(output.status.code())));
    sandbox.fs().write("/after", "well").unwrap();
    output
}

fn limit(output: &Output) -> Option<LimitName> {
    output.status.limit().map(|reached| reached.limit)
}

fn wall(milliseconds: u64) -> Overrides {
    Overrides { wall: Some(WallTime(Duration::from_millis(milliseconds))), ..Overrides::default() }
}

#[test]
fn a_program_prints_and_exits() {
    let output = run(probes::HELLO, Overrides::default());
    assert_eq!((output.stdout.as_slice(), output.status), (&b"hello\n"[..], ExitStatus::Exited(7)));
}

// T-DOS-01, T-DOS-02: whether it computes, sleeps or waits on a pipe, the deadline ends it soon.
#[test]
fn t_dos_02_the_deadline_reaches_everybody() {
    for (name, text) in [("spin", probes::SPIN), ("sleep", probes::SLEEP), ("pipe", probes::BLOCKED_PIPE)] {
        let started = clock::now();
        let output = run(text, wall(100));
        assert_eq!(limit(&output), Some(LimitName::Wall), "{name}");
        assert!(started.elapsed() < Duration::from_secs(4), "{name} ended long before the preset's own limit");
    }
}

// T-DOS-01, T-DOS-12: compute runs out, in guest code and in host calls alike.
#[test]
fn t_dos_12_compute_runs_out_in_guest_code_and_in_host_calls_alike() {
    let host = Host::builder().build().unwrap();
    for (name, text) in [("spin", probes::SPIN), ("calls", probes::CALL_FLOOD)] {
        // On a busy machine a yielding call takes time, and the wall clock must not run out first.
        let tight = Overrides { compute: Some(2_000_000), ..Overrides::default() };
        let output = run_under(Preset::Permissive, &host, text, tight);
        assert_eq!(limit(&output), Some(LimitName::Compute), "{name}");
    }
}

// T-DOS-06.
#[test]
fn t_dos_06_output_stops_at_its_limit_and_what_fits_is_kept() {
    let output = run(probes::OUTPUT_FLOOD, Overrides { output: Some(ByteSize(10_000)), ..Overrides::default() });
    assert_eq!(limit(&output), Some(LimitName::Output));
    assert_eq!((output.stdout.len(), output.stdout_truncated), (10_000, true));
}

// T-DOS-03: the guest is refused memory and continues; the host holds no more than the limit.
#[test]
fn t_dos_03_memory_is_refused_at_its_limit() {
    let output = run(probes::GROW, Overrides { memory: Some(ByteSize(32 << 20)), ..Overrides::default() });
    assert_eq!(output.status, ExitStatus::Exited(0));
    assert!((16 << 20..=32 << 20).contains(&output.usage.memory_peak), "{}", output.usage.memory_peak);
}

// T-DOS-09.
#[test]
fn t_dos_09_endless_recursion_ends_only_the_guest() {
    assert_eq!(run(probes::RECURSE, Overrides::default()).status, ExitStatus::Signaled(11));
}

// T-DOS-10, T-DOS-03, T-DOS-11, T-DOS-04.
#[test]
fn t_dos_10_nonsense_is_refused_with_an_errno() {
    for (name, text) in [
        ("pointers", probes::BAD_POINTERS),
        ("lengths", probes::BAD_LENGTHS),
        ("descriptors", probes::DESCRIPTORS),
        ("fork", probes::BAD_FORK),
    ] {
        assert_eq!(run(text, Overrides::default()).status, ExitStatus::Exited(0), "{name}");
    }
}

// T-ISO-06: slots are reused, their content is not.
#[test]
fn t_iso_06_a_new_process_has_no_traces_of_an_earlier_one() {
    let host = Host::builder().build().unwrap();
    for round in 0..200 {
        assert_eq!(run_on(&host, probes::CANARY, Overrides::default()).status, ExitStatus::Exited(0), "round {round}");
    }
}

// T-ISO-01: memory outside a guest's own is inaccessible, and unneeded WebAssembly features are disabled.
#[test]
fn t_iso_01_memory_ends_where_it_ends_and_proposals_are_off() {
    let host = Host::builder().build().unwrap();
    for access in ["i32.load (i32.const 65536)", "i32.load offset=4294967295 (i32.const 0)", "i32.load (i32.const -1)"] {
        let text = format!("(module (memory (export \"memory\") 1) (func (export \"_start\") (drop ({access}))))");
        assert_eq!(run_on(&host, &text, Overrides::default()).status, ExitStatus::Signaled(11), "{access}");
    }
    for module in [
        "(module (memory i64 1))",
        "(module (memory 1) (memory 1))",
        "(module (memory 1 1 shared))",
        "(module (tag))",
        "(module (type (struct)))",
        "(module (func (drop (i32x4.relaxed_trunc_f32x4_s (v128.const i64x2 0 0)))))",
    ] {
        let bytes = wat::parse_str(module).unwrap();
        assert!(wasmtime::Module::new(host.engine(), bytes).is_err(), "{module} is not for guests");
    }
}

// G7: under every preset, the memory that a process needs is enough, and one byte less is not. The database is a file, because
// one in memory would count, too.
#[test]
fn memory_allows_exactly_its_value() {
    let text = "(module (import \"wasi_snapshot_preview1\" \"proc_exit\" (func $exit (param i32)))
        (memory (export \"memory\") 1)
        (func (export \"_start\") (call $exit (i32.eq (memory.grow (i32.const 63)) (i32.const -1)))))";
    let host = Host::builder().build().unwrap();
    for preset in [Preset::Strict, Preset::Normal, Preset::Permissive] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("memory.db");
        let sandbox = Sandbox::builder().host(&host).preset(preset).database(file).open().unwrap();
        let with = |memory: Option<u64>| {
            let memory = memory.map(ByteSize);
            run_in(&sandbox, &host, text, Overrides { memory, ..Overrides::default() })
        };
        let used = with(None).usage.memory_peak;
        assert!(used >= 64 << 16, "{preset:?}: {used}");
        let fits = [used - 1, used, used + 1].map(|memory| with(Some(memory)).status.success());
        assert_eq!(fits, [false, true, true], "{preset:?}: {used}");
    }
}

// G7: the fuel that a process needs is enough. The engine checks its counter at each loop iteration and call, so the edge is
// sharp up to the few instructions between two checks.
#[test]
fn compute_allows_its_value() {
    let text = "(module (memory (export \"memory\") 1) (func (export \"_start\") (local i32)
        (loop $again (br_if $again (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000))))))";
    let host = Host::builder().build().unwrap();
    let with = |compute| run_on(&host, text, Overrides { compute, ..Overrides::default() });
    let used = with(None).usage.fuel;
    assert_eq!(with(Some(used + 1)).status, ExitStatus::Exited(0));
    assert_eq!(with(Some(used)).status, ExitStatus::Exited(0));
    assert_eq!(limit(&with(Some(used - 20))), Some(LimitName::Compute));
}
