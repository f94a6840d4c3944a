//! In the shell, Python is a program like any other.

use super::{sandbox, texts};

#[track_caller]
fn check_bash(script: &str, stdout: &str) {
    let output = sandbox().bash(script).unwrap();
    assert_eq!(texts(&output), (stdout.to_owned(), String::new()), "{script}");
}

#[test]
fn python_works_in_pipelines() {
    check_bash("seq 3 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))' | tr 6 x", "x\n");
    check_bash("python3 -c 'for i in range(100000): print(i)' 2>/dev/null | head -n 2; echo ${PIPESTATUS[1]}", "0\n1\n0\n");
    check_bash("python3 - a b <<'E'\nimport sys\nprint(sys.argv)\nE\n", "['-', 'a', 'b']\n");
}

#[test]
fn files_variables_and_statuses_are_shared() {
    check_bash(
        "echo hi > f; X=5 python3 -c 'import os; open(\"g\", \"w\").write(open(\"f\").read() + os.environ[\"X\"])'; cat g",
        "hi\n5",
    );
    check_bash("mkdir d; cd d; python3 -c 'import os; print(os.getcwd()); raise SystemExit(7)'; echo $?", "/home/user/d\n7\n");
    check_bash("umask 077; python3 -c 'open(\"f\", \"w\")'; stat -c %a f", "600\n");
    check_bash(
        "x=$(python3 -c 'print(6 * 7)'); echo $x; python --version; type -p python3.14",
        "42\nPython 3.14.8\n/usr/bin/python3.14\n",
    );
}

#[test]
fn a_script_with_a_hash_bang_runs_from_the_shell() {
    check_bash(
        "printf '#!/usr/bin/env python3\\nimport sys\\nprint(sys.argv[1:])\\n' > t; chmod +x t; ./t a 'b c'",
        "['a', 'b c']\n",
    );
}
