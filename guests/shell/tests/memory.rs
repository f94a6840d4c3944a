//! T-DOS-03: a shell without memory reports it. It never prints wrong output silently, and never panics.

#![cfg(unix)]

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const SCRIPTS: &[&str] = &[
    "echo one two",
    "x=abc; echo ${x^^} ${x/b/B} ${#x}",
    "a=(1 2 3); a+=(4); echo ${a[@]} ${#a[@]}",
    "declare -A m=([x]=1 [y]=2); echo ${m[x]} ${m[y]}",
    "for i in {1..20}; do s+=$i; done; echo $s",
    "printf '%5d|%-5s|%05.1f\\n' 1 a 2.5",
    "f() { local n=$1; ((n > 0)) && f $((n - 1)); echo $n; }; f 5",
    "case abc in a*) echo matched ;; esac; [[ abc =~ b(.) ]] && echo ${BASH_REMATCH[1]}",
    "x=$(echo inner; echo more); echo \"[$x]\"",
    "echo a b c | while read -r x y; do echo $y; done",
    "(echo child; exit 3); echo $?",
    "read -r x <<< 'here string'; echo $x; cat << END\n$x\nEND",
    "trap 'echo bye' EXIT; set -- a b; shift; echo $1",
    "mapfile -t lines < <(echo 1; echo 2); echo ${#lines[@]}",
    "eval 'echo $((6 * 7))'; echo $(( 2 ** 10 ))",
    "shopt -s extglob; x=aaab; echo ${x##+(a)}; printf '%q\\n' \"a b\"",
];

/// Moments at which memory is refused, and the step between the later ones.
const FIRST: u64 = 40;
const LATER: std::ops::Range<u64> = 40..3000;
const STEP: usize = 67;

fn run(script: &str, refuse_after: Option<u64>) -> (Option<i32>, Vec<u8>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite-shell"));
    command
        .arg0("bash")
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    if let Some(moment) = refuse_after {
        command.env("SANDLITE_REFUSE_MEMORY", moment.to_string());
    }
    let output = command.output().expect("the shell runs");
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn t_dos_03_refused_memory_is_never_silent() {
    for script in SCRIPTS {
        let (status, stdout, _) = run(script, None);
        for moment in (0..FIRST).chain(LATER.step_by(STEP)) {
            let (found, printed, stderr) = run(script, Some(moment));
            assert!(!stderr.contains("panicked at") && found.is_some_and(|code| code < 128), "{script} after {moment}: {stderr}");
            let told = stderr.contains("bash: xmalloc: cannot allocate") || stderr.contains("memory exhausted");
            assert!(told || (found, &printed) == (status, &stdout), "{script} after {moment}: {found:?} {stderr}");
        }
    }
}
