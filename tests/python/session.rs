//! A session keeps what Python has in memory between calls, and nothing else.

use runtime::{Command, LimitName, Overrides};

use super::{sandbox, strict, texts};

#[test]
fn globals_imports_and_the_directory_are_kept() {
    let mut session = sandbox().python_session().unwrap();
    session.python("import os, math\nx = 20\ndef double(n): return n * 2\nos.chdir('/tmp')").unwrap();
    let output = session.python("print(double(x), math.floor(2.5), os.getcwd())").unwrap();
    assert_eq!(texts(&output), ("40 2 /tmp\n".to_owned(), String::new()));
}

#[test]
fn the_value_of_a_last_expression_is_printed() {
    let mut session = sandbox().python_session().unwrap();
    assert_eq!(session.python("a = [1]\na + [2]").unwrap().stdout, b"[1, 2]\n");
    assert_eq!(session.python("None").unwrap().stdout, b"");
    assert_eq!(session.python("a = 5").unwrap().stdout, b"");
}

#[test]
fn an_exception_does_not_end_a_session() {
    let mut session = sandbox().python_session().unwrap();
    let output = session.python("x = 1\nraise ValueError('no')").unwrap();
    let expected = "Traceback (most recent call last):\n  File \"<session-1>\", line 2, in <module>\n    raise ValueError('no')\nValueError: no\n";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 1));
    assert_eq!(session.python("import sys; sys.exit(4)").unwrap().status.code(), 4);
    assert_eq!(session.python("x").unwrap().stdout, b"1\n");
}

#[test]
fn each_call_is_a_command_with_files_input_and_history() {
    let sandbox = sandbox();
    let mut session = sandbox.python_session().unwrap();
    sandbox.fs().write("/home/user/f", "one").unwrap();
    assert_eq!(session.python("open('f').read()").unwrap().stdout, b"'one'\n");
    sandbox.fs().write("/home/user/f", "two").unwrap();
    session.python("s = open('f').read(); open('g', 'w').write(s)").unwrap();
    assert_eq!(sandbox.fs().read("/home/user/g").unwrap(), b"two");
    for input in ["eins", "zwei"] {
        let output = session.run(Command::python("input()").stdin(input)).unwrap();
        assert_eq!(texts(&output).0, format!("'{input}'\n"));
    }
    assert_eq!(sandbox.history(20).unwrap().iter().filter(|run| run.name == "python").count(), 4);
    assert_eq!(session.python("import subprocess; subprocess.run(['echo', 'hi']).returncode").unwrap().stdout, b"hi\n0\n");
}

#[test]
fn a_limit_ends_the_interpreter_and_the_next_call_starts_another() {
    let mut session = strict().python_session().unwrap();
    session.python("x = 1").unwrap();
    let wall = Overrides { wall: Some("200 ms".parse().unwrap()), ..Overrides::default() };
    let output = session.run(Command::python("while True: pass").limits(wall)).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    assert!(!session.is_live());
    assert_eq!(session.python("'x' in globals()").unwrap().stdout, b"False\n");
    assert!(session.is_live());
}

#[test]
fn each_call_has_a_budget_of_its_own_and_memory_counts_in_all() {
    let mut session = strict().python_session().unwrap();
    let compute = Overrides { compute: Some(100_000_000), ..Overrides::default() };
    for _ in 0..5 {
        assert!(session.run(Command::python("for i in range(10 ** 5): pass").limits(compute.clone())).unwrap().status.success());
    }
    session.python("kept = bytearray(100 << 20)").unwrap();
    let memory = Overrides { memory: Some("64 MB".parse().unwrap()), ..Overrides::default() };
    let output = session.run(Command::python("1").limits(memory)).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Memory));
}

#[test]
fn sessions_do_not_see_each_other() {
    let sandbox = sandbox();
    let (mut first, mut second) = (sandbox.python_session().unwrap(), sandbox.python_session().unwrap());
    first.python("import json; json.canary = x = 1").unwrap();
    assert_eq!(second.python("import json; 'x' in globals(), hasattr(json, 'canary')").unwrap().stdout, b"(False, False)\n");
}
