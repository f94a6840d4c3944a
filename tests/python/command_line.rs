//! `python3` accepts CPython's arguments, and has its exit statuses and messages.

use runtime::Command;

use super::{check, python, python3, sandbox, texts};

#[test]
fn code_runs_and_prints() {
    check("print(1)", "1\n");
    check("import sys; print(sys.version_info[:2], sys.executable)", "(3, 14) /usr/bin/python3\n");
}

#[test]
fn an_exception_is_printed_with_its_line_and_exits_with_1() {
    let output = python("def f():\n    return 1 / 0\nf()");
    let expected = "Traceback (most recent call last):
  File \"<string>\", line 3, in <module>
    f()
    ~^^
  File \"<string>\", line 2, in f
    return 1 / 0
           ~~^~~
ZeroDivisionError: division by zero
";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 1));
}

#[test]
fn a_syntax_error_is_printed_without_a_traceback() {
    let output = python("print(");
    let expected = "  File \"<string>\", line 1\n    print(\n         ^\nSyntaxError: '(' was never closed\n";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 1));
}

#[test]
fn exit_statuses_are_the_programs_own() {
    for (code, status) in
        [("import sys; sys.exit(3)", 3), ("raise SystemExit", 0), ("exit(256 + 7)", 7), ("import os; os._exit(9)", 9)]
    {
        assert_eq!(python(code).status.code(), status, "{code}");
    }
    let output = python("import sys; sys.exit('went wrong')");
    assert_eq!((texts(&output).1.as_str(), output.status.code()), ("went wrong\n", 1));
}

#[test]
fn arguments_reach_the_program() {
    let output = python3(&["-c", "import sys; print(sys.argv)", "a", "-b", "ü"]);
    assert_eq!(texts(&output).0, "['-c', 'a', '-b', 'ü']\n");
    let sandbox = sandbox();
    sandbox.fs().write("/home/user/tool.py", "import sys; print(sys.argv, __name__, __file__)").unwrap();
    let output = sandbox.run(Command::python_with(["tool.py", "x"])).unwrap();
    assert_eq!(texts(&output).0, "['tool.py', 'x'] __main__ tool.py\n");
}

#[test]
fn a_module_runs_by_its_name_and_finds_its_neighbours() {
    let sandbox = sandbox();
    sandbox.fs().create_dir_all("/home/user/pack").unwrap();
    sandbox.fs().write("/home/user/pack/__init__.py", "").unwrap();
    sandbox.fs().write("/home/user/pack/__main__.py", "from . import other; import sys; print(other.X, sys.argv)").unwrap();
    sandbox.fs().write("/home/user/pack/other.py", "X = 5").unwrap();
    let output = sandbox.run(Command::python_with(["-m", "pack", "y"])).unwrap();
    assert_eq!(texts(&output).0, "5 ['/home/user/pack/__main__.py', 'y']\n");
    let output = sandbox.run(Command::python_with(["-m", "nothing"])).unwrap();
    assert_eq!((texts(&output).1.as_str(), output.status.code()), ("/usr/bin/python3: No module named nothing\n", 1));
}

#[test]
fn a_program_is_read_from_standard_input() {
    let output = sandbox().run(Command::python_with(["-", "x"]).stdin(*b"import sys\nprint(sys.argv)")).unwrap();
    assert_eq!(texts(&output).0, "['-', 'x']\n");
}

#[test]
fn standard_input_is_read() {
    let output =
        sandbox().run(Command::python("import sys; print(input(), sys.stdin.read())").stdin("eins\nzwei\ndrei")).unwrap();
    assert_eq!(texts(&output).0, "eins zwei\ndrei\n");
}

#[test]
fn bytes_that_are_not_text_pass_through() {
    let command = Command::python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])").stdin([0xff, 0, 0x80]);
    assert_eq!(sandbox().run(command).unwrap().stdout, [0x80, 0, 0xff]);
}

#[test]
fn a_missing_file_exits_with_2() {
    let output = python3(&["nowhere.py"]);
    let expected = "python3: can't open file '/home/user/nowhere.py': [Errno 2] No such file or directory\n";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 2));
}

#[test]
fn options_are_understood() {
    assert_eq!(texts(&python3(&["--version"])).0, "Python 3.14.8\n");
    assert_eq!(python3(&["-Z"]).status.code(), 2);
    assert_eq!(texts(&python3(&["-uBsc", "print(2)"])).0, "2\n");
    assert!(texts(&python3(&["-W", "error", "-c", "import warnings; warnings.warn('x')"])).1.ends_with("UserWarning: x\n"));
}

#[test]
fn environment_and_directory_are_the_commands_own() {
    let command = Command::python("import os; print(os.environ['COLOUR'], os.getcwd(), os.getenv('USER'))")
        .env("COLOUR", "blue")
        .cwd("/tmp");
    assert_eq!(texts(&sandbox().run(command).unwrap()).0, "blue /tmp user\n");
}

#[test]
fn a_script_with_a_hash_bang_is_a_program() {
    let sandbox = sandbox();
    sandbox.fs().write("/home/user/tool", "#!/usr/bin/env python3\nimport sys; print(sys.argv[1:])").unwrap();
    let output =
        sandbox.python("import os, subprocess; os.chmod('tool', 0o755); subprocess.run(['./tool', 'x'], check=True)").unwrap();
    assert_eq!(texts(&output), ("['x']\n".to_owned(), String::new()));
}

#[test]
fn runs_are_recorded_as_python() {
    let sandbox = sandbox();
    sandbox.python("print(7)").unwrap();
    let run = sandbox.history(1).unwrap().remove(0);
    assert_eq!((run.name.as_str(), run.exit_code), ("python", Some(0)));
}

// `json.tool` closes its output itself.
#[test]
fn a_closed_output_is_not_a_failure() {
    let output = sandbox().bash("echo '{\"a\": 1}' | python3 -m json.tool --compact; echo ${PIPESTATUS[1]}").unwrap();
    assert_eq!(texts(&output), ("{\"a\":1}\n0\n".to_owned(), String::new()));
    check("import sys; print(1); sys.stdout.close()", "1\n");
    check("import sys; print(1); sys.stdout = None", "1\n");
}

#[test]
fn code_may_be_indented() {
    check("\n    x = 1\n    if x:\n        print('dedented')\n", "dedented\n");
}
