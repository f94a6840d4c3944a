//! Components for WASI 0.2 are programs of the sandbox like modules: same files, same streams, same limits.

use std::time::Duration;

use runtime::{Builder, Command, Host, LimitName, Overrides, Policy, Sandbox, WallTime};

use super::components_support::{component, componentised};
use super::host;
use super::programs::{SHOW, UPPER};

/// Writes `hi` and a line end to standard output, with literal calls of the interfaces.
const HI: &str = r#"
    (i32.store (i32.const 16) (i32.const 0x0a6968))
    (call $write (call $out) (i32.const 16) (i32.const 3) (i32.const 32))
    (i32.load8_u (i32.const 32))"#;

fn builder() -> Builder {
    Sandbox::builder().host(host())
}

fn stdout(sandbox: &Sandbox, script: &str) -> String {
    let output = sandbox.bash(script).unwrap();
    assert!(output.stderr.is_empty(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_component_is_a_program_of_pipelines_xargs_and_subprocess() {
    let sandbox = builder().program("upper", componentised(UPPER)).program("hi", component(HI)).open().unwrap();
    let check = |script: &str, expected: &str| assert_eq!(stdout(&sandbox, script), expected, "{script}");
    check("hi; hi | upper", "hi\nHI\n");
    check("echo hello | upper | rev", "OLLEH\n");
    check("upper < /etc/hostname > /tmp/out; wc -l < /tmp/out", "1\n");
    check("printf 'a\\nb\\n' | xargs -n 1 sh -c 'echo $0 | upper'", "A\nB\n");
    check("(echo shell | exec upper); cat <(echo named | upper)", "SHELL\nNAMED\n");
    check("seq 100000 | upper | tail -n 1; yes | upper | head -n 2", "100000\nY\nY\n");
    check(
        "python3 -c 'import subprocess; print(subprocess.run([\"upper\"], input=b\"py\", capture_output=True).stdout)'",
        "b'PY'\n",
    );
}

#[test]
fn a_component_has_arguments_environment_status_and_the_files_of_its_run() {
    let exits = r#"(module
        (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start")
            (drop (call $args (i32.const 0) (i32.const 4)))
            (drop (call $environ (i32.const 8) (i32.const 12)))
            (call $exit (i32.eq (i32.add (i32.mul (i32.load (i32.const 0)) (i32.const 10)) (i32.load (i32.const 8))) (i32.const 32)))))"#;
    let sandbox = builder()
        .program("counts", componentised(exits))
        .program("show", componentised(SHOW))
        .program("fails", component("(i32.const 1)"))
        .program("traps", component("(unreachable)"))
        .file("/work/a", "work a\n")
        .file("/only/root", "root\n")
        .open()
        .unwrap();
    // Three arguments and two variables.
    let command = Command::program("counts", ["x", "y"]).only_own_env().env("A", "1").env("B", "2");
    assert_eq!(sandbox.run(command).unwrap().status.code(), 1);
    assert_eq!(sandbox.run(Command::program("counts", ["x"]).only_own_env()).unwrap().status.code(), 0);
    assert_eq!(sandbox.bash("fails; echo $?; traps; echo $?").unwrap().stdout, b"1\n134\n");
    assert_eq!(
        stdout(&sandbox, "cd /work; show a; show /work/a; show /only/root; cd /; show work/a"),
        "work a\nwork a\nroot\nwork a\n"
    );
    // Created by the component, and part of the run: a run that is rolled back leaves nothing.
    assert_eq!(stdout(&sandbox, "cd /work; show new; ls"), "a\nnew\n");
    sandbox.on_commit("/work/vetoed", |_| Err("not this one".to_owned())).unwrap();
    let refused = sandbox.bash("cd /work; show vetoed; show also").unwrap();
    assert!(!refused.status.success());
    assert!(!sandbox.fs().exists("/work/vetoed").unwrap() && !sandbox.fs().exists("/work/also").unwrap());
}

#[test]
fn policies_and_views_bind_components() {
    let owner = builder()
        .program("show", componentised(SHOW))
        .file("/work/open", "open\n")
        .file("/work/secret", "secret\n")
        .file("/work/fixed", "fixed\n")
        .file("/work/log", "first\n")
        .open()
        .unwrap();
    let policy = Policy::parse(
        "[[rule]]\npath = \"/work/secret\"\naccess = \"hidden\"\n[[rule]]\npath = \"/work/fixed\"\naccess = \"read\"\n\
         [[rule]]\npath = \"/work/log\"\naccess = \"append\"\n",
    );
    let bound = owner.with_policy(policy.unwrap()).unwrap();
    let status = |path: &str| bound.run(Command::program("show", [path])).unwrap();
    assert_eq!(status("/work/open").stdout, b"open\n");
    // It opens for writing, and a component can only report that it failed.
    for path in ["/work/fixed", "/work/secret"] {
        let output = status(path);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (1, &b""[..]), "{path}");
    }
    // A file that only grows can be opened for writing; what it has is read.
    assert_eq!(status("/work/log").stdout, b"first\n");
    assert_eq!(owner.fs().read("/work/secret").unwrap(), b"secret\n");
}

#[test]
fn a_component_stays_below_the_directories_it_was_given() {
    let sandbox = builder().program("show", componentised(SHOW)).file("/work/a", "a\n").file("/secret", "s\n").open().unwrap();
    sandbox.fs().symlink("/secret", "/work/link").unwrap();
    let run = |path: &str| {
        let command = Command::program("show", [path]).directories([("work", "/work")]);
        sandbox.run(command).unwrap()
    };
    assert_eq!(run("a").stdout, b"a\n");
    for path in ["../secret", "link", "x/../../secret"] {
        let output = run(path);
        assert!(output.stdout.is_empty() && output.status.code() != 0, "{path}: {output:?}");
    }
}

#[test]
fn a_component_is_under_the_limits_and_can_be_cancelled() {
    let sandbox = builder()
        .program("spins", component("(loop $more (br $more)) (unreachable)"))
        .program("sleeps", component("(call $block (call $after (i64.const -1))) (i32.const 0)"))
        .program("reads", component("(call $read (call $in) (i64.const 1) (i32.const 16)) (i32.load8_u (i32.const 16))"))
        .open()
        .unwrap();
    let brief = || Overrides { wall: Some(WallTime(Duration::from_millis(300))), ..Overrides::default() };
    for name in ["spins", "sleeps"] {
        let output = sandbox.run(Command::program(name, [""; 0]).limits(brief())).unwrap();
        assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall), "{name}");
    }
    let command = Command::program("spins", [""; 0]).limits(Overrides { compute: Some(1_000_000), ..Overrides::default() });
    assert_eq!(sandbox.run(command).unwrap().status.limit().map(|reached| reached.limit), Some(LimitName::Compute));
    assert_eq!(sandbox.bash("timeout 0.2 sleeps; echo $?; sleep 1 | timeout 0.2 reads; echo $?").unwrap().stdout, b"124\n124\n");
    let running = sandbox.spawn(Command::program("sleeps", [""; 0])).unwrap();
    running.kill();
    assert!(!running.wait().unwrap().status.success());
}

#[test]
fn a_run_with_components_is_the_same_each_time() {
    let random = "(call $random (i64.const 4) (i32.const 16)) (call $write (call $out) (i32.load (i32.const 16)) (i32.const 4) (i32.const 32)) (i32.const 0)";
    let open = || builder().program("random", component(random)).open().unwrap();
    let run = || open().run(Command::bash("random | od -An -tx1").deterministic(7)).unwrap().stdout;
    assert_eq!(run(), run());
    assert_ne!(run(), open().run(Command::bash("random | od -An -tx1").deterministic(8)).unwrap().stdout);
}

#[test]
fn components_that_are_not_commands_are_rejected_with_the_reason() {
    let check = |text: &str, expected: &str| {
        let error = builder().program("bad", wat::parse_str(text).unwrap()).open().err().unwrap();
        assert_eq!(error.to_string(), format!("cannot use the program `bad`: {expected}"));
    };
    check("(component)", "missing export `wasi:cli/run@0.2.0`: it is a library, not a command");
    check(
        "(component (import \"wasi:http/types@0.2.0\" (instance)) (import \"f\" (func)))",
        "unknown imports `wasi:http/types@0.2.0`, `f`: only `wasi:cli/command@0.2` is provided",
    );
}

#[test]
fn a_compiled_component_is_cached_and_a_damaged_one_is_compiled_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let wasm = component(HI);
    let run = || {
        let (told, heard) = std::sync::mpsc::channel();
        let tell = move |text: &str| {
            let _ = told.send(text.contains("program hi"));
        };
        let host = Host::builder().cache(&cache).unpooled().progress(tell).build().unwrap();
        let sandbox = Sandbox::builder().host(&host).program("hi", wasm.clone()).open().unwrap();
        assert_eq!(sandbox.run(Command::program("hi", [""; 0])).unwrap().stdout, b"hi\n");
        heard.try_iter().filter(|is_program| *is_program).count()
    };
    assert_eq!((run(), run()), (1, 0));
    let file = std::fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.path());
    let file = file
        .filter(|path| path.to_string_lossy().contains("program-"))
        .find(|path| path.extension().is_some_and(|e| e == "cwasm"));
    let file = file.unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!((run(), run()), (1, 0));
}
