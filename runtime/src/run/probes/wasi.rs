//! Hostile preview1 modules, each under the three presets: the expected errno, trap or limit, and an unchanged sandbox afterwards
//! (W01 and on of the threat model).

use std::time::Duration;

use presets::{ByteSize, LimitName, Overrides, Preset, WallTime};

use super::super::{Command, ExitStatus, Output};
use super::limit;
use crate::host::Host;
use crate::process::Start;
use crate::sandbox::Sandbox;

const SENTINEL: &str = "what was there before";

/// The expected outcome of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    /// It exits; 0 if every call returned the expected result.
    Exit(u8),
    /// A trap, as a signal.
    Signal(u8),
    /// A stack-overflow trap, which reports the limit.
    Stack,
    /// A limit of the command.
    Limit(LimitName),
}

/// The modules that do not simply exit with 0.
const CLASSES: &[(&str, Class)] = &[
    ("w13-poll-for-ever", Class::Limit(LimitName::Wall)),
    ("w14-poll-until-the-end-of-time", Class::Limit(LimitName::Wall)),
    ("w23-exit-codes", Class::Exit(254)),
    ("w24-raise", Class::Signal(9)),
    ("w27-indirect-recursion", Class::Stack),
    ("w28-calls-through-nothing", Class::Signal(11)),
    ("w29-calls-of-another-type", Class::Signal(11)),
    ("w30-arithmetic-traps", Class::Signal(11)),
    ("w31-bulk-copies-cost", Class::Limit(LimitName::Compute)),
    ("w32-bulk-copies-out-of-bounds", Class::Signal(11)),
    ("w51-yield-flood", Class::Limit(LimitName::Compute)),
    ("w60-endless-loop", Class::Limit(LimitName::Compute)),
];

fn class_of(name: &str) -> Class {
    CLASSES.iter().find(|(known, _)| *known == name).map_or(Class::Exit(0), |(_, class)| *class)
}

// The limits that a module must reach are lowered, so that it reaches them soon.
fn limits_for(name: &str) -> Overrides {
    let mut limits = Overrides::default();
    match (name, class_of(name)) {
        (_, Class::Limit(LimitName::Wall)) => limits.wall = Some(WallTime(Duration::from_millis(100))),
        (_, Class::Limit(LimitName::Compute)) => limits.compute = Some(2_000_000),
        ("w25-memory-to-the-edge" | "w26-tables", _) => limits.memory = Some(ByteSize(64 << 20)),
        _ => {}
    }
    limits
}

// Disk limits belong to the sandbox, not to a command.
fn disk_for(name: &str) -> Overrides {
    match name {
        "w55-many-files" => Overrides { inodes: Some(100), ..Overrides::default() },
        "w56-a-full-disk" => Overrides { disk: Some(ByteSize(8 << 20)), ..Overrides::default() },
        _ => Overrides::default(),
    }
}

fn sandbox(host: &Host, preset: Preset) -> Sandbox {
    sandbox_with(host, preset, Overrides::default())
}

fn sandbox_with(host: &Host, preset: Preset, limits: Overrides) -> Sandbox {
    let sandbox = Sandbox::builder().host(host).preset(preset).limits(limits).open().unwrap();
    sandbox.fs().write("/home/sentinel", SENTINEL).unwrap();
    sandbox
}

fn run(host: &Host, sandbox: &Sandbox, text: &str, limits: Overrides) -> Output {
    let prepared = host.prepared_from_text(text);
    let command = Command::bash("a hostile module").limits(limits);
    let start =
        |request: &abi::spawn::Request| Start { args: request.args.clone(), env: request.env.clone(), cwd: request.cwd.clone() };
    sandbox.run_as(command, |_, request| Ok((prepared, start(request)))).unwrap()
}

// G8: an earlier file is intact and the next command works.
fn is_intact(host: &Host, sandbox: &Sandbox) -> bool {
    let hello = run(host, sandbox, probes::HELLO, Overrides::default());
    sandbox.fs().read("/home/sentinel").unwrap() == SENTINEL.as_bytes()
        && (hello.stdout.as_slice(), hello.status) == (&b"hello\n"[..], ExitStatus::Exited(7))
}

fn matches(output: &Output, class: Class) -> bool {
    match class {
        Class::Exit(code) => output.status == ExitStatus::Exited(code),
        Class::Signal(signal) => output.status == ExitStatus::Signaled(signal),
        Class::Stack => {
            output.status == ExitStatus::Signaled(11)
                && String::from_utf8_lossy(&output.stderr).contains("sandlite: stack overflow: 4 MB allowed")
        }
        Class::Limit(name) => limit(output) == Some(name),
    }
}

// T-ISO-01, T-ISO-02, T-ISO-05, T-DOS-01, T-DOS-02, T-DOS-03, T-DOS-07, T-DOS-09, T-DOS-10, T-DOS-11, T-DOS-12.
#[test]
fn t_dos_10_hostile_modules_end_as_expected_under_every_preset() {
    let host = Host::builder().build().unwrap();
    let mut wrong = Vec::new();
    for preset in [Preset::Strict, Preset::Normal, Preset::Permissive] {
        for (name, text) in probes::WASI {
            let sandbox = sandbox_with(&host, preset, disk_for(name));
            let output = run(&host, &sandbox, text, limits_for(name));
            if !matches(&output, class_of(name)) {
                wrong.push(format!("{name} under {preset:?}: {:?}, not {:?}", output.status, class_of(name)));
            }
            if !is_intact(&host, &sandbox) {
                wrong.push(format!("{name} under {preset:?}: the sandbox is not as it was"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// The effects of a start function count like those of the entry.
#[test]
fn t_dos_01_a_start_function_is_under_the_same_limits() {
    let host = Host::builder().build().unwrap();
    let import = r#"(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))"#;
    for (body, class) in [
        ("(loop $again (br $again))", Class::Limit(LimitName::Compute)),
        ("unreachable", Class::Signal(6)),
        ("(drop (i32.load (i32.const -1)))", Class::Signal(11)),
        ("(call $exit (i32.const 7))", Class::Exit(7)),
        ("(drop (memory.grow (i32.const 65535)))", Class::Exit(0)),
    ] {
        let text = format!(
            r#"(module {import} (memory (export "memory") 1) (func $begin {body}) (start $begin) (func (export "_start")))"#
        );
        let sandbox = sandbox(&host, Preset::Strict);
        let limits = Overrides { compute: Some(2_000_000), ..Overrides::default() };
        let output = run(&host, &sandbox, &text, limits);
        assert!(matches(&output, class), "{body}: {:?}", output.status);
        assert!(is_intact(&host, &sandbox), "{body}");
    }
}

// Modules whose requirements the host cannot meet, or with false declarations.
#[test]
fn t_iso_01_modules_that_do_not_fit_end_alone() {
    let host = Host::builder().build().unwrap();
    for (text, class) in [
        // More memory than the preset, from the start.
        (r#"(module (memory (export "memory") 65536) (func (export "_start")))"#, Class::Limit(LimitName::Memory)),
        // Data beyond the memory.
        (r#"(module (memory (export "memory") 1) (data (i32.const 65535) "ab") (func (export "_start")))"#, Class::Signal(11)),
        // Elements beyond the table.
        (
            r#"(module (memory (export "memory") 1) (table 1 funcref) (func $f) (elem (i32.const 1) $f) (func (export "_start")))"#,
            Class::Signal(11),
        ),
        // No memory, but calls that need it.
        (
            r#"(module (import "wasi_snapshot_preview1" "args_sizes_get" (func $f (param i32 i32) (result i32)))
               (func (export "_start") (drop (call $f (i32.const 0) (i32.const 0)))))"#,
            Class::Signal(9),
        ),
        // Its memory under another name.
        (
            r#"(module (import "wasi_snapshot_preview1" "args_sizes_get" (func $f (param i32 i32) (result i32)))
               (memory (export "other") 1) (func (export "_start") (drop (call $f (i32.const 0) (i32.const 0)))))"#,
            Class::Signal(9),
        ),
        // No entry, and one of another type.
        (r#"(module (memory (export "memory") 1))"#, Class::Signal(11)),
        (r#"(module (memory (export "memory") 1) (func (export "_start") (param i32)))"#, Class::Signal(11)),
    ] {
        let sandbox = sandbox(&host, Preset::Strict);
        let output = run(&host, &sandbox, text, Overrides::default());
        assert!(matches(&output, class), "{text}: {:?}", output.status);
        assert!(is_intact(&host, &sandbox), "{text}");
    }
}

// T-DOS-03: without preallocated slots, only the memory limit bounds a table.
#[test]
fn t_dos_03_tables_are_memory() {
    let host = Host::builder().unpooled().build().unwrap();
    let sandbox = sandbox(&host, Preset::Strict);
    let text = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1) (table $table 1 funcref)
        (func (export "_start")
          (loop $more (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 10000)) (i32.const -1))))
          (call $exit (i32.gt_u (table.size $table) (i32.const 2100000)))))"#;
    let output = run(&host, &sandbox, text, Overrides { memory: Some(ByteSize(16 << 20)), ..Overrides::default() });
    assert_eq!(output.status, ExitStatus::Exited(0));
    assert!(output.usage.memory_peak > 8 << 20, "{}", output.usage.memory_peak);
}

// T-ISO-05, T-ISO-01: functions that are not offered cannot be linked.
#[test]
fn t_iso_01_unknown_imports_are_refused() {
    let host = Host::builder().build().unwrap();
    let linker = crate::wasi::linker(host.engine()).unwrap();
    for import in [
        r#"(import "env" "system" (func (param i32) (result i32)))"#,
        r#"(import "wasi_snapshot_preview1" "sock_open" (func (param i32) (result i32)))"#,
        r#"(import "wasi_snapshot_preview1" "fd_write" (func (param i64) (result i32)))"#,
        r#"(import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#,
        r#"(import "wasi_snapshot_preview1" "memory" (memory 1))"#,
        r#"(import "sandlite" "open_host" (func (param i32 i32) (result i32)))"#,
    ] {
        let bytes = wat::parse_str(format!("(module {import})")).unwrap();
        let module = wasmtime::Module::new(host.engine(), bytes).unwrap();
        assert!(linker.instantiate_pre(&module).is_err(), "{import}");
    }
}
