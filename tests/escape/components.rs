//! Hostile components: whatever one does, the host neither crashes nor hangs nor grows, and the sandbox still works.

use std::time::{Duration, Instant};

use runtime::{Command, ExitStatus, LimitName, Overrides, Preset, Sandbox, WallTime};

use super::components_support::{component, componentised};
use super::{host, limit};

fn limits() -> Overrides {
    Overrides { wall: Some(WallTime(Duration::from_secs(2))), compute: Some(200_000_000), ..Overrides::default() }
}

/// Runs a hostile component; afterwards the sandbox works.
#[track_caller]
fn run(wasm: Vec<u8>) -> runtime::Output {
    let sandbox = Sandbox::builder().host(host()).preset(Preset::Strict).program("probe", wasm).open().unwrap();
    let output = sandbox.run(Command::program("probe", [""; 0]).limits(limits())).unwrap();
    assert_ne!(output.status, ExitStatus::Signaled(6), "the host panicked, or the probe is wrong");
    sandbox.fs().write("/after", "well").unwrap();
    assert_eq!(sandbox.bash("cat /after").unwrap().stdout, b"well");
    assert_eq!(sandbox.check().unwrap(), []);
    output
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

// T-DOS-10.
#[test]
fn t_dos_10_hostile_modules_are_harmless_as_components_too() {
    let mut tried = 0;
    for (name, text) in probes::WASI {
        // Some have what the adapter cannot turn into a component.
        let Ok(wasm) = std::panic::catch_unwind(|| componentised(text)) else { continue };
        tried += 1;
        let sandbox = Sandbox::builder().host(host()).preset(Preset::Strict).program("probe", wasm).open().unwrap();
        let brief =
            Overrides { wall: Some(WallTime(Duration::from_millis(500))), compute: Some(50_000_000), ..Overrides::default() };
        let output = sandbox.run(Command::program("probe", [""; 0]).limits(brief)).unwrap();
        assert_eq!(sandbox.history(1).unwrap()[0].exit_code, Some(i32::from(output.status.code())), "{name}");
        sandbox.fs().write("/after", "well").unwrap();
        assert_eq!(sandbox.check().unwrap(), [], "{name}");
    }
    assert!(tried > 40, "only {tried} could be turned into components");
}

// T-DOS-03.
#[test]
fn t_dos_03_leaked_handles_end_the_component_and_not_the_host() {
    let before = resident();
    let leaks = [
        // Streams, pollables, handles of its own type.
        "(loop $more (drop (call $out)) (br $more)) (unreachable)",
        "(loop $more (drop (call $after (i64.const 1))) (br $more)) (unreachable)",
        "(loop $more (drop (call $new (i32.const 1))) (br $more)) (unreachable)",
    ];
    for leak in leaks {
        let status = run(component(leak)).status;
        assert!(matches!(status, ExitStatus::Signaled(9 | 11)), "{leak}: {status:?}");
    }
    assert!(resident().saturating_sub(before) < 200 << 20);
    // A handle that is dropped is not leaked.
    let drops = "(loop $more (call $drop (call $after (i64.const 1)))
        (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $more (i32.lt_u (local.get $i) (i32.const 50000)))) (i32.const 0)";
    assert_eq!(run(component(drops)).status, ExitStatus::Exited(0));
}

// T-DOS-03.
#[test]
fn t_dos_03_huge_lists_are_refused() {
    let before = resident();
    for body in [
        // A list that is not in the memory, a list of a hundred thousand borrows of nothing, and 2^60 random bytes.
        "(call $write (call $out) (i32.const 16) (i32.const -1) (i32.const 32)) (i32.const 0)",
        "(call $poll (i32.const 0) (i32.const 100000) (i32.const 32)) (i32.const 0)",
        "(call $poll (i32.const 0) (i32.const -1) (i32.const 32)) (i32.const 0)",
        "(call $poll (i32.const 0) (i32.const 0) (i32.const 32)) (i32.const 0)",
        "(call $random (i64.const 0x1000000000000000) (i32.const 32)) (i32.const 0)",
        // The same pollable, more often than a call may name one.
        "(local.set $j (call $after (i64.const 1)))
         (loop $more (i32.store (i32.add (i32.const 4096) (i32.mul (local.get $i) (i32.const 4))) (local.get $j))
            (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $more (i32.lt_u (local.get $i) (i32.const 4000))))
         (call $poll (i32.const 4096) (i32.const 4000) (i32.const 32)) (i32.const 0)",
    ] {
        let status = run(component(body)).status;
        assert!(matches!(status, ExitStatus::Signaled(9 | 11)), "{body}: {status:?}");
    }
    assert!(resident().saturating_sub(before) < 200 << 20);
}

// T-DOS-02.
#[test]
fn t_dos_02_a_component_that_waits_ends_at_the_deadline() {
    let poll =
        "(loop $fill (i32.store (i32.add (i32.const 4096) (i32.mul (local.get $i) (i32.const 4))) (call $after (i64.const -1)))
            (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $fill (i32.lt_u (local.get $i) (i32.const 1000))))
         (call $poll (i32.const 4096) (i32.const 1000) (i32.const 32)) (i32.const 0)";
    for body in [poll, "(call $block (call $after (i64.const -1))) (i32.const 0)"] {
        let started = Instant::now();
        let output = run(component(body));
        assert_eq!(limit(&output), Some(LimitName::Wall), "{body}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}

// T-DOS-06, T-DOS-12.
#[test]
fn t_dos_06_output_and_calls_of_a_component_are_counted() {
    let flood = "(local.set $j (call $out)) (loop $more (call $write (local.get $j) (i32.const 0) (i32.const 4096) (i32.const 8192)) (br $more)) (unreachable)";
    assert_eq!(limit(&run(component(flood))), Some(LimitName::Output));
    let calls = "(loop $more (call $drop (call $after (i64.const 1))) (br $more)) (unreachable)";
    let reached = limit(&run(component(calls)));
    assert!(matches!(reached, Some(LimitName::Compute | LimitName::Wall)), "{reached:?}");
}

// T-ISO-05.
#[test]
fn t_iso_05_a_socket_is_refused() {
    // `err(access-denied)`: the case, and its number.
    let socket = "(call $socket (i32.const 0) (i32.const 16))
        (i32.eqz (i32.and (i32.eq (i32.load8_u (i32.const 16)) (i32.const 1)) (i32.eq (i32.load8_u (i32.const 20)) (i32.const 1))))";
    assert_eq!(run(component(socket)).status, ExitStatus::Exited(0));
}

// T-DOS-03.
#[test]
fn t_dos_03_a_component_with_absurd_types_is_refused_quickly() {
    let mut types = "(type $t0 (tuple u64 u64))".to_owned();
    for number in 1..90 {
        types += &format!("(type $t{number} (tuple $t{} $t{}))", number - 1, number - 1);
    }
    let absurd = [
        format!("(component {types})"),
        format!("(component (core module {}))", "(memory 65536)".repeat(40)),
        format!("(component (type (record {})))", (0..200_000).map(|n| format!("(field \"f{n}\" u8)")).collect::<String>()),
    ];
    for text in absurd {
        let started = Instant::now();
        let wasm = wat::parse_str(&text).unwrap();
        assert!(Sandbox::builder().host(host()).program("bad", wasm).open().is_err());
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}

// T-DOS-03.
#[test]
fn t_dos_03_a_component_has_a_bounded_number_of_modules() {
    let nested = |depth: usize| format!("{}{}", "(component ".repeat(depth), ")".repeat(depth));
    for text in [nested(18), format!("(component {})", "(core module)".repeat(256))] {
        let error = Sandbox::builder().host(host()).program("bad", wat::parse_str(text).unwrap()).open().err().unwrap();
        let reason = "it has more than 256 modules, or they are nested more than 16 levels deep";
        assert_eq!(error.to_string(), format!("cannot use the program `bad`: {reason}"));
    }
    // One function of nine megabytes, in a module in a component.
    let long = format!("(component (core module (func {})))", "(drop (i32.const 1))".repeat(3 << 20));
    let error = Sandbox::builder().host(host()).program("bad", wat::parse_str(long).unwrap()).open().err().unwrap();
    assert!(error.to_string().contains("one of its functions has"), "{error}");
}

// T-DOS-03.
#[test]
fn t_dos_03_the_modules_of_a_component_share_one_memory_budget() {
    let module = |pages: u32| format!("(core module $m (memory {pages})) {}", "(core instance (instantiate $m))".repeat(30));
    let text = |pages| {
        format!(
            "(component {} (core module $main (func (export \"run\") (result i32) i32.const 0)) (core instance $i (instantiate $main))
             (func $run (result (result)) (canon lift (core func $i \"run\"))) (instance $c (export \"run\" (func $run)))
             (export \"wasi:cli/run@0.2.0\" (instance $c)))",
            module(pages)
        )
    };
    assert_eq!(run(wat::parse_str(text(1)).unwrap()).status, ExitStatus::Exited(0));
    // Thirty gigabytes.
    let output = run(wat::parse_str(text(16_384)).unwrap());
    assert_eq!(limit(&output), Some(LimitName::Memory));
}
