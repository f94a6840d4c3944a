//! T-DOS: a guest takes no more than its limits, whatever it does, and the host keeps working.

use std::time::{Duration, Instant};

use runtime::{ByteSize, Command, Error, LimitName, Overrides, Preset, WallTime};

use super::{limit, sandbox, survive, survive_with, text};

fn wall(milliseconds: u64) -> Overrides {
    Overrides { wall: Some(WallTime(Duration::from_millis(milliseconds))), ..Overrides::default() }
}

#[test]
fn t_dos_01_endless_computing_ends() {
    let compute = Overrides { compute: Some(300_000_000), ..Overrides::default() };
    for script in ["yes > /dev/null", "awk 'BEGIN { while (1) i++ }'", "python3 -c 'while True: pass'"] {
        let output = survive_with(script, compute.clone());
        assert_eq!(limit(&output), Some(LimitName::Compute), "{script}: {output:?}");
        let reached = output.status.limit().unwrap();
        assert!(!reached.value.is_empty() && !reached.used.is_empty() && !reached.hint().is_empty(), "{script}");
    }
    // Not `yes`: writing to nowhere costs fuel by the byte, and a fast machine has spent it before the clock strikes.
    assert_eq!(limit(&survive_with("awk 'BEGIN { while (1) i++ }'", wall(100))), Some(LimitName::Wall));
}

#[test]
fn t_dos_02_endless_waiting_ends() {
    for script in [
        "sleep infinity",
        "sleep 1000 & wait",
        "mkfifo /tmp/p 2>/dev/null; cat <(sleep 1000)",
        "tail -f /dev/null",
        "python3 -c 'import time; time.sleep(10**6)'",
        "(sleep 1000) | cat",
        "coproc sleep 1000; read -u ${COPROC[0]}",
        "trap '' TERM INT; while :; do sleep 1000; done",
        "yes | sleep 1000",
    ] {
        let started = Instant::now();
        let output = survive_with(script, wall(150));
        assert_eq!(limit(&output), Some(LimitName::Wall), "{script}: {output:?}");
        assert!(started.elapsed() < Duration::from_secs(60), "{script} ends by its deadline, not by its own");
    }
}

#[test]
fn t_dos_03_memory_has_one_pot() {
    let tight = Overrides { memory: Some(ByteSize(64 << 20)), ..Overrides::default() };
    for script in [
        "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done",
        "head -c 500000000 /dev/zero | tail -c 400000000 | wc -c",
        "python3 -c 'x = bytearray(10**9)'",
        "python3 -c \"print('x' * 10**9)\"",
        "tr '\\0' x < /dev/zero | awk '{ print }'",
        "for i in 1 2 3 4 5 6 7 8; do sleep 1 | sleep 1 & done; wait",
        "sort /dev/zero",
        "echo {1..100000000} > /dev/null",
    ] {
        let output = survive_with(script, Overrides { wall: Some(WallTime(Duration::from_secs(4))), ..tight.clone() });
        assert!(output.usage.memory_peak <= 64 << 20, "{script}: {}", output.usage.memory_peak);
    }
}

#[test]
fn t_dos_04_a_process_storm_is_bounded() {
    for script in
        [":(){ :|:& :; }; :; wait", "f() { f & f & }; f; wait", "while :; do sleep 100 & done", "bash -c 'exec bash $0' $0"]
    {
        let output = survive_with(script, wall(3_000));
        assert!(output.usage.processes <= 500, "{script}: {}", output.usage.processes);
    }
    let output = survive("seq 600 | xargs -n1 -P4 true");
    assert_eq!(limit(&output), Some(LimitName::ProcessStarts), "{output:?}");
}

#[test]
fn t_dos_05_nothing_outlives_its_command() {
    let sandbox = sandbox(Preset::Strict);
    let left = "(trap '' HUP TERM; yes > /tmp/alive) & disown; nohup sleep 1000 2>/dev/null & echo done";
    assert_eq!(sandbox.bash(left).unwrap().stdout, b"done\n");
    let size = sandbox.fs().read("/tmp/alive").map_or(0, |content| content.len());
    assert_eq!(sandbox.bash("jobs; echo /proc/[0-9]*; ls /proc/self/fd").unwrap().stderr, b"");
    assert_eq!(sandbox.fs().read("/tmp/alive").map_or(0, |content| content.len()), size);
}

#[test]
fn t_dos_06_a_flood_of_output_ends() {
    for script in [
        "yes",
        "yes >&2",
        "cat /dev/urandom",
        "(yes & yes >&2 & wait)",
        "while :; do printf %1000s x; done",
        "python3 -c 'while 1: print(\"x\" * 1000)'",
    ] {
        let output = survive(script);
        let kept = output.stdout.len() + output.stderr.len();
        assert!(kept <= 1 << 20, "{script}: {kept}");
        assert!(limit(&output).is_some(), "{script}: {}", text(&output).len());
    }
}

#[test]
fn t_dos_07_the_disk_is_bounded() {
    let small =
        Overrides { disk: Some(ByteSize(1 << 20)), file: Some(ByteSize(600_000)), inodes: Some(100), ..Overrides::default() };
    let sandbox = runtime::Sandbox::builder().host(super::host()).preset(Preset::Strict).limits(small).open().unwrap();
    for script in [
        "yes > /tmp/big",
        "truncate -s 10T /tmp/sparse",
        "dd if=/dev/zero of=/tmp/seek bs=1 count=1 seek=10000000000",
        "while mkdir -p d && cd d; do :; done; exit 1",
        "for i in {1..99}; do : > /tmp/f$i; ln /tmp/f$i /tmp/h$i; done; for i in {1..99}; do : > /tmp/g$i; done",
        "printf %300s x | tr ' ' x | xargs touch",
        "python3 -c \"open('/tmp/x', 'wb').write(bytes(10**8))\"",
    ] {
        let output = sandbox.bash(script).unwrap();
        assert!(!output.status.success(), "{script}");
    }
    let info = sandbox.info().unwrap();
    assert!(info.disk_used <= 1 << 20 && info.inodes_used <= 100, "{info:?}");
    assert_eq!(sandbox.check().unwrap(), []);
    sandbox.bash("cd; rm -rf d /tmp/*").unwrap();
    assert_eq!(sandbox.bash("echo fits > /tmp/x; cat /tmp/x").unwrap().stdout, b"fits\n");
}

// A script writes and removes data repeatedly; the size of the log next to the database is watched while it runs.
#[test]
fn t_dos_07_files_written_and_removed_take_no_space() {
    for (script, overrides, ends) in [
        ("for i in {1..40}; do head -c 15M /dev/zero > f; rm f; done", Overrides::default(), None),
        ("for i in {1..40}; do head -c 15M /dev/zero > f; : > f; done", Overrides::default(), None),
        ("for i in {1..40}; do head -c 15M /dev/zero > g; mv g f; done", Overrides::default(), None),
        ("for i in {1..40}; do { rm f; head -c 15M /dev/zero >&9; } 9> f; done", Overrides::default(), None),
        (
            "while :; do python3 -c 'while 1: open(\"f\", \"wb\").write(bytes(15 << 20))'; done",
            wall(1_500),
            Some(LimitName::Wall),
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let sandbox = runtime::Sandbox::builder().host(super::host()).preset(Preset::Strict).database(&path).open().unwrap();
        let child = sandbox.spawn(Command::bash(script).limits(overrides)).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let (output, log) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut most = 0;
                while !done.load(std::sync::atomic::Ordering::Acquire) {
                    most = most.max(std::fs::metadata(directory.path().join("a.db-wal")).map_or(0, |log| log.len()));
                    std::thread::yield_now();
                }
                most
            });
            let output = child.wait().unwrap();
            done.store(true, std::sync::atomic::Ordering::Release);
            (output, watching.join().unwrap())
        });
        assert_eq!((limit(&output), text(&output).as_str()), (ends, ""), "{script}");
        assert!(log < 96 << 20, "{script}: {log} bytes of log");
        assert_eq!(sandbox.check().unwrap(), [], "{script}");
        drop(sandbox);
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size < 48 << 20, "{script}: {size} bytes");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "{script}: only the database is left");
    }
}

#[test]
fn t_dos_08_patterns_that_explode_end() {
    for script in [
        "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! =~ ^(a+)+$ ]]; true",
        "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} | wc -c",
        "x=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; [[ $x == *a*a*a*a*a*a*a*a*a*a*b ]]; true",
        "python3 -c \"import re; re.match(r'(a+)+$', 'a' * 60 + '!')\"",
        "echo $((2**63)) $((10**1000)); echo $((1/0))",
        "printf '%2000000000s' x | wc -c",
        "eval \"$(printf '$(%.0s' {1..2000})\"",
    ] {
        let started = Instant::now();
        survive_with(script, wall(1_000));
        assert!(started.elapsed() < Duration::from_secs(60), "{script}");
    }
}

// How each ends: the exit code, what it prints, and the memory it may take. 139 is a stack overflow of the guest. Under the normal
// preset: the strict one ends most of them by its limit `commands`, before they are deep.
#[test]
fn t_dos_09_deep_recursion_ends_only_the_guest() {
    const NESTING: &str = "maximum function nesting level exceeded (1000)";
    const STACK: &str = "sandlite: stack overflow: 4 MB allowed";
    const SYNTAX: &str = "unexpected EOF while looking for matching `)'";
    let deep = "(".repeat(50_000);
    let small = 64 << 20;
    for (script, code, message, memory) in [
        ("f() { f; }; f".to_owned(), 1, NESTING, small),
        ("f() { eval f; }; f".to_owned(), 139, STACK, small),
        // Each level is a process.
        ("f() { $(f); }; f".to_owned(), 254, "fork: Resource temporarily unavailable", Preset::Normal.limits().memory.0),
        (format!("echo $(({deep}1))"), 2, SYNTAX, small),
        (deep.clone(), 2, SYNTAX, small),
        ("echo 'source /tmp/s' > /tmp/s; source /tmp/s".to_owned(), 139, STACK, small),
        ("python3 -c \"eval('(' * 100000)\"".to_owned(), 1, "MemoryError: Parser stack overflowed", small),
        ("python3 -c \"import json; json.loads('[' * 1000000)\"".to_owned(), 1, "RecursionError: Stack overflow", small),
        ("awk 'function f() { f() } BEGIN { f() }'".to_owned(), 139, STACK, small),
    ] {
        let sandbox = sandbox(Preset::Normal);
        sandbox.fs().write("/sentinel", "here").unwrap();
        let output = sandbox.run(Command::bash(script.clone()).limits(wall(20_000))).unwrap();
        let (name, stderr) = (script.get(..40).unwrap_or(&script), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), code, "{name}: {stderr}");
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert!(output.usage.memory_peak <= memory, "{name}: {} bytes", output.usage.memory_peak);
        assert_eq!(sandbox.bash("cat /sentinel").unwrap().stdout, b"here", "{name}");
        assert_eq!(sandbox.check().unwrap(), [], "{name}");
    }
    for script in ["f() { f; }; f", "f() { eval f; }; f", "echo 'source /tmp/s' > /tmp/s; source /tmp/s"] {
        assert_eq!(limit(&survive_with(script, wall(4_000))), Some(LimitName::Commands), "{script}");
    }
}

// Nonsense that a script can pass to the host; wild pointers are in the probes.
#[test]
fn t_dos_10_nonsense_is_an_error_and_no_panic() {
    let output = survive(
        "cat $'\\xff\\xfe'; mkdir $'a\\nb'; : > $'\\x80'; kill -99 1; kill -9 -1 2>/dev/null; umask 99999; exec 999>&1; read -u 77
         ulimit -n -5; cd ''; printf %d 99999999999999999999; wait 12345; trap x 99; chmod 77777 /tmp; touch -d @99999999999999999 /tmp/t; echo end",
    );
    assert!(output.status.code() != 125, "{output:?}");
    let output = survive(
        "python3 -c 'import os\nfor f in range(-3, 300):\n  for call in (os.fstat, os.close, os.fsync, lambda f: os.read(f, 9), lambda f: os.lseek(f, -1, 9)):\n    try: call(f)\n    except (OSError, OverflowError, ValueError): pass'",
    );
    assert!(output.status.code() != 125, "{output:?}");
}

#[test]
fn t_dos_11_descriptors_run_out_in_the_guest() {
    let script = "import errno, os\nfds = []\ntry:\n  while True: fds.append(os.open('/dev/null', os.O_RDONLY))\nexcept OSError as e: print(e.errno == errno.EMFILE, len(fds) < 128)";
    let output = survive(&format!("python3 -c \"{script}\""));
    assert_eq!(text(&output), "True True\n");
    let script = "import errno, os\nn = 0\ntry:\n  while True: os.pipe(); n += 1\nexcept OSError as e: print(e.errno == errno.EMFILE, n < 128)";
    assert_eq!(text(&survive(&format!("python3 -c \"{script}\""))), "True True\n");
}

// Nothing is compiled for a guest: its own module is not a program.
#[test]
fn t_dos_13_guests_bring_no_code_of_their_own() {
    let output = survive("printf '\\0asm\\1\\0\\0\\0' > /tmp/m; chmod +x /tmp/m; /tmp/m; echo $?; wasmtime /tmp/m; echo $?");
    let seen = text(&output);
    assert!(seen.contains("126\n") && seen.contains("127\n"), "{seen}");
}

#[test]
fn t_dos_14_the_database_is_released_at_the_deadline() {
    let sandbox = sandbox(Preset::Normal);
    let many = "cd /tmp; python3 -c \"\nimport os\nfor d in range(100000):\n  os.mkdir(f'd{d}')\n  open(f'd{d}/f', 'w').write('x' * 1000)\"";
    let output = sandbox.run(Command::bash(many).limits(wall(300))).unwrap();
    assert_eq!(limit(&output), Some(LimitName::Wall));
    // Its changes are complete, and the next command gets its turn at once.
    assert_eq!(sandbox.check().unwrap(), []);
    assert_eq!(sandbox.bash("echo next").unwrap().stdout, b"next\n");
    // The writer's place is taken: waiting for it takes nothing of the next one's time, and one that is killed gives up.
    let running = sandbox.spawn(Command::bash("sleep 100")).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let (killed, waiting) = (Command::bash("echo killed"), Command::bash("echo waited").limits(wall(50)));
    let cancel = killed.cancel();
    std::thread::scope(|scope| {
        let killed = scope.spawn(|| sandbox.run(killed));
        let waiting = scope.spawn(|| sandbox.run(waiting));
        std::thread::sleep(Duration::from_millis(300));
        cancel.kill();
        let error = killed.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Database(_)), "{error}");
        assert!(!waiting.is_finished());
        running.kill();
        assert_eq!(waiting.join().unwrap().unwrap().stdout, b"waited\n");
    });
    running.wait().unwrap();
    assert_eq!(sandbox.bash("echo again").unwrap().stdout, b"again\n");
}

#[test]
fn t_dos_15_a_limit_cannot_be_switched_off() {
    let zero = |change: fn(&mut Overrides)| {
        let mut overrides = Overrides::default();
        change(&mut overrides);
        overrides
    };
    for (name, overrides) in [
        ("compute", zero(|o| o.compute = Some(0))),
        ("compute", zero(|o| o.compute = Some(u64::MAX))),
        ("wall", zero(|o| o.wall = Some(WallTime(Duration::ZERO)))),
        ("wall", zero(|o| o.wall = Some(WallTime(Duration::MAX)))),
        ("memory", zero(|o| o.memory = Some(ByteSize(0)))),
        ("memory", zero(|o| o.memory = Some(ByteSize(u64::MAX)))),
        ("output", zero(|o| o.output = Some(ByteSize(0)))),
        ("disk", zero(|o| o.disk = Some(ByteSize(0)))),
        ("inodes", zero(|o| o.inodes = Some(0))),
        ("processes", zero(|o| o.processes = Some(0))),
        ("processes", zero(|o| o.processes = Some(u32::MAX))),
        ("process_starts", zero(|o| o.process_starts = Some(0))),
        ("descriptors", zero(|o| o.descriptors = Some(0))),
        ("loop_iterations", zero(|o| o.loop_iterations = Some(0))),
        ("commands", zero(|o| o.commands = Some(0))),
        ("commands", zero(|o| o.commands = Some(u64::MAX))),
    ] {
        let refused = sandbox(Preset::Strict).run(Command::bash("true").limits(overrides.clone()));
        assert!(matches!(refused, Err(Error::Limit(_))), "{name}: {refused:?}");
        let opened = runtime::Sandbox::builder().host(super::host()).preset(Preset::Permissive).limits(overrides).open();
        assert!(opened.is_err(), "{name}");
    }
    for text in ["0", "-1", "NaN", "", "1e999 GB", "99999999999999999999 MB", "-5 s"] {
        assert!(text.parse::<ByteSize>().map_or(true, |size| size.0 == 0), "{text:?}");
        assert!(text.parse::<WallTime>().map_or(true, |time| time.0.is_zero()), "{text:?}");
    }
}
