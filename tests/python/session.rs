//! A session keeps what Python has in memory between calls, and nothing else.

use std::time::Duration;

use runtime::{Command, LimitName, Overrides, PythonSession, Sandbox};

use super::{host, sandbox, strict, texts};

fn echo(session: &mut PythonSession, code: &str) -> Vec<u8> {
    session.run(Command::python(code).echo()).unwrap().stdout
}

#[test]
fn globals_imports_and_the_directory_are_kept() {
    let mut session = sandbox().python_session().unwrap();
    session.python("import os, math\nx = 20\ndef double(n): return n * 2\nos.chdir('/tmp')").unwrap();
    let output = session.python("print(double(x), math.floor(2.5), os.getcwd())").unwrap();
    assert_eq!(texts(&output), ("40 2 /tmp\n".to_owned(), String::new()));
}

#[test]
fn the_value_of_a_last_expression_is_printed_on_request() {
    let mut session = sandbox().python_session().unwrap();
    assert_eq!(echo(&mut session, "a = [1]\na + [2]"), b"[1, 2]\n");
    assert_eq!(echo(&mut session, "None"), b"");
    assert_eq!(echo(&mut session, "a = 5"), b"");
    assert_eq!(session.python("a + 1").unwrap().stdout, b"");
    let once = sandbox().run(Command::python("import atexit; atexit.register(print, 'bye')\n6 * 7").echo()).unwrap();
    assert_eq!(texts(&once), ("42\nbye\n".to_owned(), String::new()));
}

#[test]
fn an_exception_does_not_end_a_session() {
    let mut session = sandbox().python_session().unwrap();
    let output = session.python("x = 1\nraise ValueError('no')").unwrap();
    let expected = "Traceback (most recent call last):\n  File \"<session-1>\", line 2, in <module>\n    raise ValueError('no')\nValueError: no\n";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 1));
    assert_eq!(session.python("import sys; sys.exit(4)").unwrap().status.code(), 4);
    assert_eq!(echo(&mut session, "x"), b"1\n");
}

#[test]
fn each_call_is_a_command_with_files_input_and_history() {
    let sandbox = sandbox();
    let mut session = sandbox.python_session().unwrap();
    sandbox.fs().write("/home/user/f", "one").unwrap();
    assert_eq!(echo(&mut session, "open('f').read()"), b"'one'\n");
    sandbox.fs().write("/home/user/f", "two").unwrap();
    session.python("s = open('f').read(); open('g', 'w').write(s)").unwrap();
    assert_eq!(sandbox.fs().read("/home/user/g").unwrap(), b"two");
    for input in ["eins", "zwei"] {
        let output = session.run(Command::python("input()").echo().stdin(input)).unwrap();
        assert_eq!(texts(&output).0, format!("'{input}'\n"));
    }
    assert_eq!(sandbox.history(20).unwrap().iter().filter(|run| run.name == "python").count(), 4);
    assert_eq!(echo(&mut session, "import subprocess; subprocess.run(['echo', 'hi']).returncode"), b"hi\n0\n");
}

#[test]
fn a_limit_ends_the_interpreter_and_the_next_call_starts_another() {
    let mut session = strict().python_session().unwrap();
    session.python("x = 1").unwrap();
    let wall = Overrides { wall: Some("200 ms".parse().unwrap()), ..Overrides::default() };
    let output = session.run(Command::python("while True: pass").limits(wall)).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    assert!(!session.is_live());
    assert_eq!(echo(&mut session, "'x' in globals()"), b"False\n");
    assert!(session.is_live());
}

#[test]
fn each_call_has_a_separate_budget_and_memory_counts_across_calls() {
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
    assert_eq!(echo(&mut second, "import json; 'x' in globals(), hasattr(json, 'canary')"), b"(False, False)\n");
}

fn python_in(sandbox: &Sandbox, name: &str, code: &str) -> String {
    texts(&sandbox.python_in(name, Command::python(code).echo()).unwrap()).0
}

#[test]
fn a_sandbox_keeps_interpreters_by_name() {
    let sandbox = sandbox();
    assert!(!sandbox.is_python_live("a"));
    python_in(&sandbox, "a", "x = 1");
    python_in(&sandbox, "b", "x = 2");
    assert_eq!(python_in(&sandbox.clone(), "a", "x") + &python_in(&sandbox, "b", "x"), "1\n2\n");
    assert!(sandbox.is_python_live("a") && sandbox.end_python("a") && !sandbox.end_python("a"));
    assert_eq!(python_in(&sandbox, "a", "'x' in globals()"), "False\n");
}

#[test]
fn a_fork_starts_without_interpreters() {
    let sandbox = sandbox();
    python_in(&sandbox, "a", "x = 1");
    let fork = sandbox.fork().unwrap();
    assert!(!fork.is_python_live("a"));
    assert_eq!(python_in(&fork, "a", "'x' in globals()"), "False\n");
    assert_eq!(python_in(&sandbox, "a", "x"), "1\n");
}

#[test]
fn of_too_many_interpreters_the_least_recently_used_ends() {
    let sandbox = sandbox();
    for n in 0..20 {
        python_in(&sandbox, &n.to_string(), "x = 1");
        python_in(&sandbox, "0", "x");
    }
    let live: Vec<u32> = (0..20).filter(|n| sandbox.is_python_live(&n.to_string())).collect();
    assert!(live.len() <= 16 && live.starts_with(&[0]) && live.ends_with(&[17, 18, 19]), "{live:?}");
    let output = sandbox.python_in("1", Command::python("'x' in globals()").echo()).unwrap();
    assert_eq!((texts(&output).0.as_str(), output.restarted), ("False\n", true));
}

#[test]
fn t_dos_03_idle_interpreters_together_use_as_much_memory_as_one_command() {
    let sandbox = strict();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        python_in(&sandbox, name, "x = bytearray(100 << 20)");
    }
    let live: Vec<&str> = names.into_iter().filter(|name| sandbox.is_python_live(name)).collect();
    assert!(live.len() <= 2 && live.ends_with(&["f"]), "{live:?}");
    let output = sandbox.python_in("a", Command::python("'x' in globals()").echo()).unwrap();
    assert_eq!((texts(&output).0.as_str(), output.restarted), ("False\n", true));
}

#[test]
fn an_idle_interpreter_is_ended() {
    let sandbox = Sandbox::builder().host(host()).python_idle(Duration::from_millis(20)).open().unwrap();
    python_in(&sandbox, "a", "x = 1");
    while sandbox.is_python_live("a") {
        std::thread::yield_now();
    }
    assert_eq!(python_in(&sandbox, "a", "'x' in globals()"), "False\n");
}

#[test]
fn a_session_has_a_python_beside_its_shell() {
    let sandbox = sandbox();
    let session = sandbox.session("s").unwrap();
    session.bash("echo from bash > f").unwrap();
    assert!(!session.python("text = open('f').read()").unwrap().restarted);
    let output = session.python("print(text, end='')").unwrap();
    assert_eq!((texts(&output).0.as_str(), output.restarted), ("from bash\n", false));
    assert_eq!(session.run(Command::python("text[:4]").echo()).unwrap().stdout, b"'from'\n");
    assert_eq!(sandbox.sessions().unwrap(), ["s"]);
    assert!(session.run(Command::python_with(["script.py"])).is_err());
    assert!(session.remove().unwrap() && !session.remove().unwrap());
    assert_eq!(session.python("print('text' in globals())").unwrap().stdout, b"False\n");
}

#[test]
fn a_session_reports_a_restarted_python() {
    let directory = tempfile::tempdir().unwrap();
    let (file, snapshot) = (directory.path().join("a.db"), directory.path().join("b.db"));
    let first = Sandbox::builder().host(host()).database(&file).open().unwrap();
    first.session("s").unwrap().python("x = 1").unwrap();
    first.export(&snapshot).unwrap();
    drop(first);
    for builder in [Sandbox::builder().database(&file), Sandbox::builder().import(&snapshot)] {
        let session = builder.host(host()).open().unwrap().session("s").unwrap();
        let output = session.python("print('x' in globals())").unwrap();
        assert_eq!((texts(&output).0.as_str(), output.restarted), ("False\n", true));
        assert!(!session.python("1").unwrap().restarted);
        assert!(!session.bash("true").unwrap().restarted);
    }
}
