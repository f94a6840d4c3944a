//! Programs of the owner: modules and functions that a sandbox has in its PATH because it was asked for.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use runtime::{Builder, Command, Host, LimitName, Overrides, Sandbox, WallTime};

use super::host;

/// Copies standard input to standard output in capitals.
pub(super) const UPPER: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "_start") (local $i i32) (local $end i32) (local $letter i32)
        (loop $more
            (i32.store (i32.const 0) (i32.const 1024))
            (i32.store (i32.const 4) (i32.const 4096))
            (if (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)) (then (return)))
            (if (i32.eqz (i32.load (i32.const 8))) (then (return)))
            (local.set $i (i32.const 1024))
            (local.set $end (i32.add (i32.const 1024) (i32.load (i32.const 8))))
            (loop $letters
                (local.set $letter (i32.load8_u (local.get $i)))
                (if (i32.and (i32.ge_u (local.get $letter) (i32.const 97)) (i32.le_u (local.get $letter) (i32.const 122)))
                    (then (i32.store8 (local.get $i) (i32.sub (local.get $letter) (i32.const 32)))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $letters (i32.lt_u (local.get $i) (local.get $end))))
            (i32.store (i32.const 4) (i32.load (i32.const 8)))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))
            (br $more))))"#;

/// Prints the file that its argument names, as WASI's libc opens it: without leading slashes, below descriptor 3. Creates it if it is
/// not there. Exits with the errno.
pub(super) const SHOW: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (func (export "_start") (local $path i32) (local $end i32) (local $errno i32)
        (drop (call $args (i32.const 0) (i32.const 1024)))
        (local.set $path (i32.load (i32.const 4)))
        (loop $slashes
            (if (i32.eq (i32.load8_u (local.get $path)) (i32.const 47))
                (then (local.set $path (i32.add (local.get $path) (i32.const 1))) (br $slashes))))
        (local.set $end (local.get $path))
        (loop $letters
            (if (i32.load8_u (local.get $end))
                (then (local.set $end (i32.add (local.get $end) (i32.const 1))) (br $letters))))
        (local.set $errno (call $open (i32.const 3) (i32.const 1) (local.get $path) (i32.sub (local.get $end) (local.get $path))
            (i32.const 1) (i64.const 0x42) (i64.const 0) (i32.const 0) (i32.const 512)))
        (if (local.get $errno) (then (call $exit (local.get $errno))))
        (i32.store (i32.const 0) (i32.const 8192))
        (i32.store (i32.const 4) (i32.const 4096))
        (drop (call $read (i32.load (i32.const 512)) (i32.const 0) (i32.const 1) (i32.const 8)))
        (i32.store (i32.const 4) (i32.load (i32.const 8)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))))"#;

fn module(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

fn builder() -> Builder {
    Sandbox::builder().host(host())
}

fn with_upper() -> Sandbox {
    builder().program("upper", module(UPPER)).open().unwrap()
}

fn stdout(sandbox: &Sandbox, script: &str) -> String {
    let output = sandbox.bash(script).unwrap();
    assert!(output.stderr.is_empty(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_module_is_a_program_of_pipelines_xargs_and_subprocess() {
    let sandbox = with_upper();
    let check = |script: &str, expected: &str| assert_eq!(stdout(&sandbox, script), expected, "{script}");
    check("echo hello | upper | rev", "OLLEH\n");
    check("upper < /etc/hostname > /tmp/out; wc -l < /tmp/out", "1\n");
    check("printf 'a\\nb\\n' | xargs -n 1 sh -c 'echo $0 | upper'", "A\nB\n");
    check("x=$(echo sub | upper); echo $x; (echo shell | exec upper)", "SUB\nSHELL\n");
    check("upper <<< text; cat <(echo named | upper)", "TEXT\nNAMED\n");
    check(
        "python3 -c 'import subprocess; print(subprocess.run([\"upper\"], input=b\"py\", capture_output=True).stdout)'",
        "b'PY'\n",
    );
    check(
        "command -v upper; which upper; ls /usr/local/bin; test -x /usr/local/bin/upper && echo x",
        "/usr/local/bin/upper\n/usr/local/bin/upper\nupper\nx\n",
    );
    check("cp /usr/local/bin/upper /tmp/u; ln -s /usr/local/bin/upper /tmp/v; echo c | /tmp/u; echo d | /tmp/v", "C\nD\n");
    check("find /usr/local/bin -type f; rm -f /usr/local/bin/upper 2>/dev/null || echo kept", "/usr/local/bin/upper\nkept\n");
}

#[test]
fn no_program_is_installed_by_default() {
    let sandbox = builder().open().unwrap();
    assert_eq!(stdout(&sandbox, "ls -A /usr/local/bin; command -v upper || echo none"), "none\n");
    assert_eq!(sandbox.bash("upper").unwrap().status.code(), 127);
    let error = sandbox.run(Command::program("upper", [""; 0])).unwrap_err();
    assert_eq!(error.to_string(), "cannot start `upper`");
    let row = sandbox.history(1).unwrap().remove(0);
    assert_eq!((row.status, row.error.as_deref()), ("error", Some("cannot start `upper`")));
}

#[test]
fn a_path_of_a_module_begins_in_the_current_directory_if_its_first_name_exists() {
    let sandbox = builder()
        .program("show", module(SHOW))
        .file("/work/a", "work a\n")
        .file("/work/tmp/x", "work tmp\n")
        .file("/tmp/x", "tmp\n")
        .file("/only/root", "root\n")
        .file("/work/sub/b", "b\n")
        .open()
        .unwrap();
    let check = |script: &str, expected: &str| assert_eq!(stdout(&sandbox, script), expected, "{script}");
    check("cd /work; show a; show ./a; show sub/b; cd sub; show ../a", "work a\nwork a\nb\nwork a\n");
    check("cd /work; show /only/root; show tmp/x; cd sub; show /tmp/x", "root\nwork tmp\ntmp\n");
    check("cd /work/sub; show made; ls", "b\nmade\n");
    check("cd /work; ln -s /only/root abs; show abs", "root\n");
    check("cd /; show etc/hostname | upper 2>/dev/null || show work/a", "work a\n");
}

#[test]
fn a_program_is_under_the_limits_of_its_command() {
    let spin =
        builder().program("spin", module(r#"(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))"#));
    let sandbox = spin.open().unwrap();
    let limits = Overrides { wall: Some(WallTime(Duration::from_millis(200))), ..Overrides::default() };
    let output = sandbox.run(Command::bash("spin | cat").limits(limits)).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    let limits = Overrides { compute: Some(2_000_000), ..Overrides::default() };
    let output = sandbox.run(Command::program("spin", [""; 0]).limits(limits)).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Compute));
    let run = &sandbox.history(1).unwrap()[0];
    assert_eq!((run.name.as_str(), run.command.as_str()), ("program", "spin"));
}

#[test]
fn an_invalid_module_is_rejected_with_the_reason() {
    let check = |name: &str, wasm: Vec<u8>, expected: &str| {
        let error = builder().program(name, wasm).open().map(drop).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let text = r#"(module (import "env" "now" (func)) (import "wasi_unstable" "fd_write" (func))
        (import "wasi_snapshot_preview1" "sock_open" (func)) (memory (export "memory") 1) (func (export "_start")))"#;
    check(
        "p",
        module(text),
        "cannot use the program `p`: unknown imports `env.now`, `wasi_unstable.fd_write`, `wasi_snapshot_preview1.sock_open`: \
         only `wasi_snapshot_preview1` is provided",
    );
    let own = r#"(module (import "sandlite" "spawn" (func (param i32 i32 i32) (result i32))) (memory (export "memory") 1) (func (export "_start")))"#;
    check(
        "p",
        module(own),
        "cannot use the program `p`: unknown imports `sandlite.spawn`: only `wasi_snapshot_preview1` is provided",
    );
    let library = "(module (memory (export \"memory\") 1))";
    check("p", module(library), "cannot use the program `p`: missing export `_start`: it is a library, not a command");
    check(
        "p",
        b"\0asm\x0d\0\x01\0".to_vec(),
        "cannot use the program `p`: missing export `wasi:cli/run@0.2.0`: it is a library, not a command",
    );
    check("p", b"#!/bin/sh".to_vec(), "cannot use the program `p`: it is not a WebAssembly module");
    check("a/b", module(UPPER), "invalid program name `a/b`: expected 1–64 letters, digits, `_`, `-`, `.` or `+`");
    let twice = builder().program("p", module(UPPER)).program("p", module(UPPER)).open().map(drop).unwrap_err();
    assert_eq!(twice.to_string(), "duplicate program `p`");
}

// T-DOS-13.
#[test]
fn t_dos_13_a_guest_cannot_make_the_host_compile_its_own_module() {
    let sandbox = builder().file("/tmp/p.wasm", module(UPPER)).open().unwrap();
    sandbox.fs().write("/tmp/c.wasm", wat::parse_str("(component)").unwrap()).unwrap();
    for file in ["/tmp/p.wasm", "/tmp/c.wasm"] {
        let output = sandbox.bash(format!("chmod +x {file}; echo a | {file}")).unwrap();
        assert_eq!(output.status.code(), 126, "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(sandbox.bash("cp /tmp/p.wasm /usr/local/bin/p").unwrap().status.code() != 0);
}

#[test]
fn a_program_is_installed_once_and_given_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::builder().cache(directory.path().join("cache")).unpooled().build().unwrap();
    assert_eq!(host.programs(), []);
    let missing = Sandbox::builder().host(&host).installed_program("upper").open().map(drop).unwrap_err();
    assert_eq!(missing.to_string(), "cannot use the program `upper`: it is not installed");
    assert_eq!(missing.hint().unwrap(), "install it with `sandlite guests add FILE.wasm --as upper`");
    assert!(host.add_program("upper", b"nonsense").is_err() && host.programs().is_empty());
    host.add_program("upper", &module(UPPER)).unwrap();
    assert_eq!(host.programs().iter().map(|program| program.name.as_str()).collect::<Vec<_>>(), ["upper"]);
    let sandbox = Sandbox::builder().host(&host).installed_program("upper").open().unwrap();
    assert_eq!(sandbox.run(Command::program("upper", [""; 0]).stdin(*b"by name")).unwrap().stdout, b"BY NAME");
    assert!(host.remove_program("upper").unwrap() && !host.remove_program("upper").unwrap());
    assert!(host.remove_program("../upper").is_err());
}

#[test]
fn a_program_takes_part_in_deterministic_runs() {
    let run = || with_upper().run(Command::bash("for i in 1 2 3; do date +%s%N | upper; done | cat").deterministic(7)).unwrap();
    let (one, other) = (run(), run());
    assert_eq!((one.stdout, one.usage.fuel), (other.stdout, other.usage.fuel));
}

fn complaint(error: std::io::Error) -> String {
    error.to_string()
}

#[test]
fn a_function_is_a_command_with_streams_and_a_status() {
    let count = |call: &mut runtime::CommandCall| {
        let lines = BufReader::new(call.stdin()).lines().count();
        writeln!(call.stdout(), "{lines} lines for {:?} in {}", &call.args()[1..], call.cwd()).map_err(complaint)?;
        writeln!(call.stderr(), "counted as {}", call.variable("WHO").unwrap_or("nobody")).map_err(complaint)?;
        Ok(3)
    };
    let sandbox = builder().command("count", count).open().unwrap();
    let output = sandbox.bash("cd /tmp; printf 'a\\nb\\n' | WHO=me count -x 'y z' | cat; echo ${PIPESTATUS[1]}").unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 lines for [\"-x\", \"y z\"] in /tmp\n3\n");
    assert_eq!(output.stderr, b"counted as me\n");
    let check = |script: &str, expected: &str| {
        let output = sandbox.bash(script).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}");
    };
    check("cd /; echo 1 2 | xargs -n 1 count 2>/dev/null", "0 lines for [\"1\"] in /\n0 lines for [\"2\"] in /\n");
    check("command -v count; which count; ls /usr/local/bin", "/usr/local/bin/count\n/usr/local/bin/count\ncount\n");
    let code =
        "import subprocess; p = subprocess.run(['count', 'q'], input=b'1\\n2\\n3\\n', capture_output=True, cwd='/'); print(p)";
    let output = sandbox.python(code).unwrap();
    let expected = "CompletedProcess(args=['count', 'q'], returncode=3, stdout=b'3 lines for [\"q\"] in /\\n', stderr=b'counted as nobody\\n')\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn input_and_output_of_a_function_flow_as_they_come() {
    let echo = |call: &mut runtime::CommandCall| {
        let (mut stdin, mut stdout) = (call.stdin(), call.stdout());
        let mut piece = [0; 16];
        loop {
            match stdin.read(&mut piece).map_err(complaint)? {
                0 => return Ok(0),
                length => stdout.write_all(&piece[..length]).map_err(complaint)?,
            }
        }
    };
    let sandbox = builder().command("echoes", echo).open().unwrap();
    // Each line comes back before the next one is written.
    let script = "mkfifo /tmp/f; echoes < /tmp/f | while read line; do echo got $line; done & exec 9> /tmp/f; echo 1 >&9; sleep 0.05; echo 2 >&9; exec 9>&-; wait";
    assert_eq!(stdout(&sandbox, script), "got 1\ngot 2\n");
    assert_eq!(stdout(&sandbox, "yes | head -c 1000000 | echoes | wc -c"), "1000000\n");
    assert_eq!(stdout(&sandbox, "yes | echoes | head -n 2"), "y\ny\n");
}

#[test]
fn a_function_works_on_the_files_of_the_run_that_calls_it() {
    let stamp = |call: &mut runtime::CommandCall| {
        let path = call.path(&call.args()[1]);
        let text = call.files().read(&path).map_err(|error| error.to_string())?;
        call.files().write(&format!("{path}.stamped"), &text).map_err(|error| error.to_string())?;
        Ok(0)
    };
    let sandbox = builder().command("stamp", stamp).open().unwrap();
    assert_eq!(stdout(&sandbox, "cd /tmp; echo new > f; stamp f; cat f.stamped"), "new\n");
    assert_eq!(sandbox.fs().read("/tmp/f.stamped").unwrap(), b"new\n");
    let output = sandbox.run(Command::bash("cd /tmp; echo more > g; stamp g; false").rollback_on_failure()).unwrap();
    assert_eq!(output.status.code(), 1);
    assert!(!sandbox.fs().exists("/tmp/g.stamped").unwrap(), "what a function wrote is part of the run");
    let output = sandbox.bash("stamp /none").unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).starts_with("stamp: ")), (1, true));
}

#[test]
fn a_rolled_back_run_keeps_the_calls_of_functions_with_their_exit_codes() {
    let sandbox = builder().command("noted", |call| Ok(u8::try_from(call.args().len()).unwrap_or(0))).open().unwrap();
    let output = sandbox.run(Command::bash("noted a b; false").rollback_on_failure()).unwrap();
    let rows = sandbox.history(5).unwrap();
    let call = rows.iter().find(|run| run.name == "command").unwrap();
    assert_eq!((call.command.as_str(), call.parent, call.exit_code), ("noted a b", Some(output.run), Some(3)));
}

#[test]
fn each_call_of_a_function_is_counted_and_recorded() {
    let sandbox = builder().command("noted", |call| Ok(u8::try_from(call.args().len()).unwrap_or(0))).open().unwrap();
    let output = sandbox.bash("noted a b").unwrap();
    assert_eq!(output.status.code(), 3);
    let rows = sandbox.history(5).unwrap();
    let call = rows.iter().find(|run| run.name == "command").unwrap();
    assert_eq!(
        (call.command.as_str(), call.parent, call.status, call.exit_code),
        ("noted a b", Some(output.run), "success", Some(3))
    );
    assert_eq!(call.parameters.as_ref().unwrap()["argv"], serde_json::json!(["noted", "a", "b"]));
}

#[test]
fn a_function_does_not_outlive_its_command() {
    let (ended, end) = mpsc::channel();
    let slow = move |call: &mut runtime::CommandCall| {
        while !call.is_over() {
            std::thread::yield_now();
        }
        let written = call.stdout().write_all(b"late").is_err();
        let read = call.stdin().read(&mut [0; 8]).is_err();
        let file = call.files().write("/late", "late").is_err();
        ended.send([written, read, file]).unwrap();
        Ok(0)
    };
    let sandbox = builder().command("slow", slow).open().unwrap();
    let limits = Overrides { wall: Some(WallTime(Duration::from_millis(200))), ..Overrides::default() };
    let output = sandbox.run(Command::bash("slow; echo never").limits(limits)).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    assert_eq!(end.recv_timeout(Duration::from_secs(10)).unwrap(), [true; 3]);
    assert!(!sandbox.fs().exists("/late").unwrap());
    // A signal ends it as it ends any process.
    let output = sandbox.bash("slow & sleep 0.05; kill $!; wait $!; echo $?").unwrap();
    assert_eq!(output.stdout, b"143\n");
    assert_eq!(end.recv_timeout(Duration::from_secs(10)).unwrap(), [true; 3]);
}

#[test]
fn a_function_that_panics_is_a_command_that_fails() {
    let sandbox = builder().command("broken", |_| panic!("/home/secret")).open().unwrap();
    let output = sandbox.bash("broken").unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (1, &b"broken: the command panicked\n"[..]));
}
