//! Guests that run out of memory or are given absurd numbers: they report it and fail, and neither panic nor lie.

use runtime::{ByteSize, Command, ExitStatus, LimitName, Output, Overrides, Preset, Sandbox};

use super::sandbox;

/// The messages of a panic, an abort and a trap on standard error.
const BROKEN: [&str; 4] = ["panicked at", "Aborted", "unreachable", "Segmentation fault"];

fn with_memory(script: &str, megabytes: u64) -> Output {
    let limits = Overrides { memory: Some(ByteSize(megabytes << 20)), ..Overrides::default() };
    sandbox(Preset::Normal).run(Command::bash(script).limits(limits)).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_broken(output: &Output) -> bool {
    BROKEN.iter().any(|text| stderr(output).contains(text)) || matches!(output.status, ExitStatus::Signaled(_))
}

// T-DOS-03: each in its own words, with its own status, and the limit by name.
#[test]
fn t_dos_03_a_tool_without_memory_reports_it_and_fails() {
    let input = "yes '{}' | head -c 100000000";
    for (tool, status) in [
        ("jq -s length", 2),
        ("sort", 2),
        ("envsubst", 1),
        ("tr -d '\\n' | rg -c x", 2),
        ("tr -d '\\n' | grep -c x", 2),
        ("tr -d '\\n' | awk '{ n++ } END { print n }'", 2),
        ("tr -d '\\n' | sed -n p", 4),
        ("tr -d '\\n' | cut -c1", 1),
        ("tac", 1),
        ("diff - /dev/null", 2),
        ("shuf", 1),
        ("column", 1),
        ("tail -n 100000000", 1),
    ] {
        let output = with_memory(&format!("{input} | {tool}; exit ${{PIPESTATUS[-1]}}"), 48);
        let name = tool.rsplit("| ").next().unwrap_or(tool).split(' ').next().unwrap_or(tool);
        let said = stderr(&output);
        assert_eq!(output.status, ExitStatus::Exited(status), "{tool}: {said}");
        assert!(said.contains(&format!("{name}: memory exhausted\n")), "{tool}: {said}");
        assert!(said.contains("sandlite: limit `memory` reached: 48 MB allowed"), "{tool}: {said}");
        assert!(output.stdout.is_empty(), "{tool}: {:?}", String::from_utf8_lossy(&output.stdout));
    }
}

// T-DOS-03: the shell, and Python as CPython has it.
#[test]
fn t_dos_03_a_shell_without_memory_reports_it_and_fails() {
    let output = with_memory("x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done; echo not reached", 48);
    assert_eq!((&output.status, output.stdout.as_slice()), (&ExitStatus::Exited(2), &b""[..]));
    assert!(stderr(&output).contains("bash: xmalloc: cannot allocate "), "{}", stderr(&output));
    assert!(stderr(&output).contains("sandlite: limit `memory` reached: 48 MB allowed"), "{}", stderr(&output));

    let output = with_memory("x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo \"${#x}\"", 48);
    assert_eq!((output.status.success(), output.stdout.as_slice()), (false, &b""[..]), "{}", stderr(&output));

    let output = with_memory("python3 -c 'x = bytearray(10**9)'; echo $?", 128);
    assert_eq!(output.stdout, b"1\n");
    assert!(stderr(&output).contains("MemoryError"), "{}", stderr(&output));
    assert!(stderr(&output).contains("sandlite: limit `memory` reached: 128 MB allowed"), "{}", stderr(&output));
}

// T-DOS-03: an earlier refusal of memory is not blamed for later failures.
#[test]
fn t_dos_03_memory_that_was_not_needed_is_not_blamed() {
    let script = "python3 -c '
try:
    bytearray(10**9)
except MemoryError:
    print(\"went on\")'
echo $?";
    let output = with_memory(script, 128);
    assert_eq!((output.stdout.as_slice(), stderr(&output).as_str()), (&b"went on\n0\n"[..], ""));
}

// T-DOS-09: a stack overflow names its limit, and ends only the program that overflowed.
#[test]
fn t_dos_09_a_stack_overflow_names_the_limit() {
    for script in [
        "awk 'function f(n) { return f(n + 1) + 1 } BEGIN { f(0) }'",
        "printf '%0.s(' {1..200000} | bc",
        "jq -n 'def f: 1 + f; f'",
    ] {
        let output = sandbox(Preset::Normal).run(Command::bash(format!("{script}; echo $?"))).unwrap();
        let said = stderr(&output);
        let failed = !output.stdout.ends_with(b"\n0\n") && output.stdout != b"0\n";
        assert!(failed, "{script}: {:?} {said}", String::from_utf8_lossy(&output.stdout));
        let told = !said.contains("Segmentation fault") || said.contains("sandlite: stack overflow: 4 MB allowed");
        assert!(told && !said.is_empty(), "{script}: {said}");
    }
}

// T-DOS-10: inside the sandbox sizes have 32 bits, which the same tests outside do not show.
#[test]
fn t_dos_10_absurd_numbers_are_rejected_or_accepted() {
    let table = include_str!("../../guests/utilities/tests/absurd/numbers.txt");
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let sandbox = sandbox(Preset::Normal);
    let limits = || Overrides { memory: Some(ByteSize(128 << 20)), compute: Some(400_000_000), ..Overrides::default() };
    let setup = "rm -rf /tmp/x; mkdir -p /tmp/x/d; cd /tmp/x; printf '1 b\\n2 c aaa\\n3 a\\n' > f; printf '1 b\\n2 x\\n' > g; printf '[1,{\"a\":2}]' > j.json";
    let mut wrong = Vec::new();
    for line in lines {
        for number in ["-1", "70000", "2147483648", "4294967296", "99999999999999999999"] {
            let script = line.replace('N', number);
            let command = Command::bash(format!("{setup}; {{ {script}\n}} < f | head -c 100000 > /dev/null")).limits(limits());
            let output = sandbox.run(command).unwrap();
            let memory = output.status.limit().is_some_and(|reached| reached.limit == LimitName::Memory);
            if is_broken(&output) || memory {
                wrong.push(format!("$ {script}\n  {:?} {}", output.status, stderr(&output)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

// T-DOS-10: the cases that once panicked.
#[test]
fn t_dos_10_numbers_that_once_were_too_large() {
    for (script, status, stdout) in [
        ("printf '%.99999f' 1 | wc -c", 0, "100001\n"),
        ("awk 'BEGIN { printf \"%.99999f\", 1 }' | wc -c", 0, "100001\n"),
        ("echo a | nl -w 2147483647 | head -c 5 | od -An -c", 0, "                    \n"),
        ("seq 3 | csplit -n 99999999 - 2 2>&1 | tail -c 19", 0, "File name too long\n"),
        ("jq -n '\"abc\" * 1e9 | length'", 5, ""),
        ("bc <<< '2^2000000 % 1000007'", 0, "899982\n"),
    ] {
        let output = sandbox(Preset::Normal).run(Command::bash(script)).unwrap();
        let found = (output.status.clone(), String::from_utf8_lossy(&output.stdout).into_owned());
        assert_eq!(found, (ExitStatus::Exited(status), stdout.to_owned()), "{script}: {}", stderr(&output));
        assert!(!is_broken(&output), "{script}: {}", stderr(&output));
    }
    // As many files as there may be, and then no more.
    let limits = Overrides { inodes: Some(200), ..Overrides::default() };
    let sandbox = Sandbox::builder().host(super::host()).preset(Preset::Normal).limits(limits).open().unwrap();
    let output = sandbox.bash("seq 3 > f; split -n 1000000000 f").unwrap();
    assert!(!output.status.success() && !is_broken(&output), "{output:?}");
}
