//! `subprocess` starts the sandbox's programs, with pipes, directories, environments, time-outs and statuses.

use super::{check, check_error, python, texts};

const PREAMBLE: &str = "import os, subprocess, sys\nfrom subprocess import PIPE, run\npy = [sys.executable, '-c']\n";

#[track_caller]
fn check_with(code: &str, stdout: &str) {
    check(&format!("{PREAMBLE}{code}"), stdout);
}

#[test]
fn a_child_runs_and_its_output_is_captured() {
    check_with(
        "r = run(py + ['import sys; print(1); print(2, file=sys.stderr); sys.exit(3)'], capture_output=True, text=True)\nprint(r.returncode, r.stdout, r.stderr)",
        "3 1\n 2\n\n",
    );
    check_with("print(subprocess.check_output(['echo', 'a', 'b c']))", "b'a b c\\n'\n");
}

#[test]
fn a_child_writes_where_its_parent_writes() {
    check_with("print('a'); run(['echo', 'b']); print('c')", "a\nb\nc\n");
}

#[test]
fn input_directory_and_environment_reach_the_child() {
    check_with("print(run(['tr', 'a-z', 'A-Z'], input='abc', capture_output=True, text=True).stdout)", "ABC\n");
    check_with("os.mkdir('d'); run(['pwd'], cwd='d'); os.chdir('d'); run(['pwd'])", "/home/user/d\n/home/user/d\n");
    check_with("run(py + ['import os; print(os.getcwd())'], cwd='/tmp')", "/tmp\n");
    check_with(
        "run(['bash', '-c', 'echo $X'], env={**os.environ, 'X': 'ü'})\nos.environ['Y'] = '5'; run('echo $Y', shell=True)",
        "ü\n5\n",
    );
}

#[test]
fn pipelines_are_built_by_hand() {
    check_with(
        "a = subprocess.Popen(['seq', '1', '100000'], stdout=PIPE)\nb = subprocess.Popen(['tail', '-n', '1'], stdin=a.stdout, stdout=PIPE)\n\
         a.stdout.close()\nprint(b.communicate(), a.wait(), b.returncode)",
        "(b'100000\\n', None) 0 0\n",
    );
}

#[test]
fn much_is_moved_both_ways() {
    check_with(
        "data = os.urandom(300_000)\nr = run(['cat'], input=data, capture_output=True)\nprint(r.stdout == data, r.stderr)",
        "True b''\n",
    );
}

#[test]
fn a_shell_is_a_call_away() {
    check_with("print(os.system('exit 3') >> 8, os.popen('echo hi; echo there').read().split())", "3 ['hi', 'there']\n");
    check_with("print(run('ls /usr/bin | grep -c ^python3$', shell=True, capture_output=True, text=True).stdout)", "1\n\n");
    check(
        "import shutil; print(shutil.which('bash'), shutil.which('python3'), shutil.which('nothing'))",
        "/usr/bin/bash /usr/bin/python3 None\n",
    );
}

#[test]
fn failures_are_reported() {
    check_with(
        "try: run(['nothing'])\nexcept FileNotFoundError as e: print(e.filename, e.strerror)",
        "nothing No such file or directory\n",
    );
    check_with("try: run(['echo'], cwd='/nowhere')\nexcept FileNotFoundError as e: print(e.filename)", "/nowhere\n");
    check_with("open('f', 'w').close()\ntry: run(['./f'])\nexcept PermissionError as e: print(e.filename)", "./f\n");
    check_error(
        "import subprocess; subprocess.check_call(['false'])",
        "subprocess.CalledProcessError: Command '['false']' returned non-zero exit status 1.",
    );
}

#[test]
fn a_slow_child_is_given_up() {
    check_with("try: run(['sleep', '60'], timeout=0.1)\nexcept subprocess.TimeoutExpired as e: print(e.timeout)", "0.1\n");
    check_with(
        "p = subprocess.Popen(['sleep', '60']); print(p.poll()); p.terminate(); print(p.wait())\n\
         p = subprocess.Popen(['sleep', '60']); p.kill(); print(p.wait(timeout=5))",
        "None\n-15\n-9\n",
    );
}

#[test]
fn descriptors_do_not_leak_into_children() {
    check_with(
        "f = open('x', 'w'); r, w = os.pipe(); run(py + ['import os; print(sorted(os.listdir(\"/dev/fd\"))[:4])'])",
        "['0', '1', '2', '4']\n",
    );
    check_with(
        "r, w = os.pipe(); p = subprocess.Popen(['bash', '-c', f'echo x >&{w}'], pass_fds=[w]); p.wait(); os.close(w); print(os.read(r, 9))",
        "b'x\\n'\n",
    );
}

#[test]
fn a_program_can_become_another() {
    let output = python("import os; print('a'); os.execvp('bash', ['bash', '-c', 'echo b; exit 4'])");
    assert_eq!((texts(&output).0.as_str(), output.status.code()), ("a\nb\n", 4));
}

#[test]
fn a_broken_pipe_is_an_exception() {
    check_with(
        "p = subprocess.Popen(['true'], stdin=PIPE); p.wait()\ntry:\n    p.stdin.write(b'x' * 10); p.stdin.flush()\nexcept BrokenPipeError as e: print('broken')\ntry: p.stdin.close()\nexcept BrokenPipeError: pass",
        "broken\n",
    );
}

#[test]
fn invalid_arguments_are_rejected_before_anything_ends() {
    let code = "import os, subprocess, sys\n\
        def refused(f, *args, **options):\n    try: f(*args, **options)\n    except ValueError as e: print(e)\n\
        refused(os.execv, sys.executable, [])\nrefused(os.execv, sys.executable, [''])\n\
        refused(os.execve, sys.executable, ['x'], {'A=B': 'c'})\nrefused(subprocess.run, ['true', 'a\\0b'])\n\
        refused(subprocess.run, ['true'], env={'A': 'b\\0'})\n";
    check(
        code,
        "execv: argv must not be empty\nexecv: argv first element cannot be empty\nillegal environment variable name\n\
         embedded null byte\nembedded null byte\n",
    );
}
