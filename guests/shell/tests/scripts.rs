//! Whole scripts, run by the shell on this machine: one promise each.
//!
//! The long list of recorded cases is in `tests/bash`; here are those that a change of the interpreter breaks first.

use std::process::{Command, Output};

fn run(script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sandlite-shell"))
        .args(["-c", script, "bash"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .expect("the shell starts")
}

fn check(script: &str, stdout: &str, stderr: &str, status: i32) {
    let output = run(script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "stdout of {script}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), stderr, "stderr of {script}");
    assert_eq!(output.status.code(), Some(status), "status of {script}");
}

#[test]
fn pipelines_join_builtins_functions_and_programs() {
    check("f() { while read x; do echo \"<$x>\"; done; }; printf 'a\\nb\\n' | f | tr a-z A-Z", "<A>\n<B>\n", "", 0);
}

#[test]
fn a_subshell_changes_nothing_outside() {
    check("x=1; (x=2; cd /); y=$(x=3; echo $x); echo $x $y", "1 3\n", "", 0);
}

#[test]
fn a_missing_command_is_127() {
    check("nosuch", "", "bash: line 1: nosuch: command not found\n", 127);
}

#[test]
fn an_unset_parameter_ends_the_shell_under_set_u() {
    check("set -u; echo $x; echo no", "", "bash: line 1: x: unbound variable\n", 127);
}

#[test]
fn errexit_spares_conditions() {
    check("set -e; false || echo a; if false; then :; fi; ! true; echo b; false; echo no", "a\nb\n", "", 1);
}

#[test]
fn the_exit_trap_sees_the_status() {
    check("trap 'echo $?' EXIT; exit 3", "3\n", "", 3);
}

#[test]
fn output_of_builtins_and_programs_keeps_its_order() {
    check("echo a; /bin/echo b; echo c; echo d >&2; echo e", "a\nb\nc\ne\n", "d\n", 0);
}

#[test]
fn runaway_recursion_is_stopped() {
    let output = run("f() { f; }; f");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("maximum function nesting level exceeded"));
}

#[test]
fn bytes_that_are_not_text_pass_through() {
    let output = run("x=$(printf 'a\\377b'); printf '%s' \"$x\"");
    assert_eq!(output.stdout, b"a\xffb");
}
