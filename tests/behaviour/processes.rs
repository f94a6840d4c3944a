//! Processes, pipes and signals are real.

use runtime::Sandbox;

use super::{bash, check, host, sandbox};

// Outside a sandbox, a reader of the command's output waits for these as well.
#[test]
fn a_child_reads_the_shells_input_to_the_end() {
    check("seq 3 > >(tac)", "3\n2\n1\n");
    check("{ echo 1; sleep 0.05; echo 2; } > >(sleep 0.05; tac)", "2\n1\n");
    check("exec > >(sed 's/^/log: /') 2>&1; echo one; echo two >&2", "log: one\nlog: two\n");
    check("echo x | tee >(tr x y > f) > /dev/null; cat f", "y\n");
    // One that does not end is not waited for.
    check("exec 3> >(sleep 1000); echo done", "done\n");
}

#[test]
fn a_signal_to_oneself_arrives_at_once() {
    check("trap 'echo caught' URG; kill -URG $$; { echo child; } & wait", "caught\nchild\n");
}

#[test]
fn a_pipeline_runs_at_the_same_time_and_ends_with_its_reader() {
    check("yes | head -1", "y\n");
    check("yes | head -c 200000 | wc -c", "200000\n");
}

#[test]
fn every_member_of_a_pipeline_has_its_status() {
    check("true | false | (exit 3); echo ${PIPESTATUS[@]}", "0 1 3\n");
    check("set -o pipefail; false | true; echo $?", "1\n");
    check("yes | head -1 >/dev/null; echo ${PIPESTATUS[0]}", "141\n");
}

#[test]
fn a_subshell_is_a_copy() {
    check("x=1; (x=2; echo $x); echo $x", "2\n1\n");
    check("x=1; y=$(x=2; echo $x); echo $x $y", "1 2\n");
    check("f() { echo from $1; }; (f inner) | cat; f outer", "from inner\nfrom outer\n");
}

#[test]
fn background_jobs_are_waited_for() {
    check("(sleep 0.02; echo second) & echo first; wait; echo third", "first\nsecond\nthird\n");
    check("(exit 5) & wait $!; echo $?", "5\n");
}

#[test]
fn signals_reach_processes() {
    check("sleep 60 & kill $!; wait $!; echo $?", "143\n");
    check("trap 'echo caught' TERM; kill -TERM $$; echo on", "caught\non\n");
    check("timeout 0.05 sleep 60; echo $?", "124\n");
}

#[test]
fn a_script_file_runs_by_its_first_line() {
    check("printf '#!/bin/bash\\necho script $1\\n' > s; chmod +x s; ./s one", "script one\n");
    check("printf 'echo no shebang\\n' > s; chmod +x s; ./s", "no shebang\n");
    let output = bash("echo x > s; ./s");
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (126, "bash: line 1: ./s: Permission denied\n")
    );
}

#[test]
fn descriptor_three_is_the_scripts() {
    check("exec 3> f; echo three >&3; exec 3>&-; cat f; echo x > g; cat g", "three\nx\n");
}

#[test]
fn a_pipe_with_a_name_joins_two_commands() {
    let output = bash("mkfifo p; echo through > p & cat p; wait; test -p p && echo still there");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "through\nstill there\n");
}

#[test]
fn a_named_pipe_opened_for_reading_and_writing_does_not_wait() {
    let output = bash("mkfifo p; exec 7<>p; echo token >&7; read -u 7 word; echo $word");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "token\n");
}

#[test]
fn the_name_of_a_pipe_stays_and_its_bytes_do_not() {
    let sandbox = sandbox();
    sandbox.bash("mkfifo /p; exec 7<>/p; echo lost >&7").unwrap();
    let output = sandbox.bash("exec 7<>/p; read -t 0.01 -u 7 word; echo \"$? [$word]\"; stat -c %F /p").unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "142 []\nfifo\n");
    assert_eq!(sandbox.fs().symlink_metadata("/p").unwrap().file_type(), runtime::FileType::Fifo);
}

#[test]
fn a_wait_at_a_named_pipe_can_be_cancelled() {
    assert_eq!(bash("mkfifo p; timeout 0.1 cat p; echo $?").stdout, b"124\n");
}

// The file of a program names it, so that a copy is the same program in every sandbox.
#[test]
fn a_program_runs_through_links_and_copies() {
    let first = sandbox();
    let program = first.fs().read("/bin/tr").unwrap();
    assert_eq!(program, b"\x7fSANDLITE\0tr\n");
    let second = Sandbox::builder().host(host()).file("/work/upper", program).open().unwrap();
    let output = second.bash("chmod +x /work/upper; echo copied | /work/upper a-z A-Z; file -b /bin/tr /work/upper").unwrap();
    assert_eq!(
        (String::from_utf8_lossy(&output.stdout).as_ref(), String::from_utf8_lossy(&output.stderr).as_ref()),
        ("COPIED\nSandlite program, tr\nSandlite program, tr\n", "")
    );
    check("ln -s /bin/cat l; ./l /proc/self/cmdline | tr '\\0' ' '; ./l /proc/self/comm", "./l /proc/self/cmdline l\n");
    check("ln -s /bin/python3 p; ./p -c 'print(6 * 7)'", "42\n");
    check(
        r#"ln -s /bin/echo say; python3 -c 'import subprocess; subprocess.run(["./say", "hi"]); print(subprocess.getoutput("./say there"))'"#,
        "hi\nthere\n",
    );
}

#[test]
fn a_file_that_names_no_program_cannot_be_executed() {
    let output = bash(r"printf '\177SANDLITE\0nosuch\n' > x; chmod +x x; ./x; echo $?; env ./x; echo $?; ln /bin/ls y; echo $?");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "126\n126\n1\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("bash: line 1: ./x: cannot execute binary file: Exec format error\n"), "{stderr}");
}
