//! Host tools: what the embedding program offers can be called, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use runtime::{Builder, Command, LimitName, Overrides, Sandbox, Tool};
use serde_json::{Value, json};

use super::{check_error, host, texts};

const ADD: &str = r#"{"type": "object", "required": ["a", "b"], "additionalProperties": false,
    "properties": {"b": {"type": "integer", "description": "the first"}, "a": {"type": "integer"}, "mode": {"enum": ["plain", "loud"]}}}"#;

fn builder() -> Builder {
    let add = Tool::new("add", "Adds two numbers.\nExactly.", ADD, |args: Value| {
        let sum = args["b"].as_i64().unwrap_or(0) * 10 + args["a"].as_i64().unwrap_or(0);
        Ok(if args["mode"] == "loud" { format!("{sum}!").into() } else { sum.into() })
    });
    let refuse = Tool::new("refuse-all", "Never works.", json!({}), |_| Err("not today".to_owned()));
    let panic = Tool::new("panic", "Breaks.", json!({}), |_| panic!("a secret of the host"));
    let echo = Tool::new("echo", "Returns its arguments.", json!({}), Ok);
    Sandbox::builder().host(host()).tool(add).tool(refuse).tool(panic).tool(echo)
}

fn sandbox() -> Sandbox {
    builder().open().unwrap()
}

#[track_caller]
fn check(code: &str, stdout: &str) {
    let output = sandbox().python(format!("from sandlite import tools, ToolError\n{code}")).unwrap();
    assert_eq!((texts(&output), output.status.code()), ((stdout.to_owned(), String::new()), 0), "{code}");
}

#[track_caller]
fn check_bash(script: &str, stdout: &str, stderr: &str, code: u8) {
    let output = sandbox().bash(script).unwrap();
    assert_eq!((texts(&output), output.status.code()), ((stdout.to_owned(), stderr.to_owned()), code), "{script}");
}

#[test]
fn python_calls_by_name_and_by_place() {
    check("print(tools.add(a=1, b=2), tools.add(2, 1), tools.add(2, a=1), tools.call('add', {'a': 1, 'b': 2}))", "21 21 21 21\n");
    check("print(repr(tools.add(1, 1, 'loud')))", "'11!'\n");
    check("x = {'list': [1, 2.5, None, True, 'é\\n'], 'o': {}}; print(tools.echo(**x) == x)", "True\n");
    check("import sandlite.tools as t; from sandlite.tools import add; print(t.add(1, 2), add(1, 2))", "12 12\n");
}

#[test]
fn python_lists_the_tools() {
    check(
        "print([tool['name'] for tool in tools.list()], dir(tools))",
        "['add', 'refuse-all', 'panic', 'echo'] ['ToolError', 'add', 'call', 'echo', 'list', 'panic', 'refuse-all']\n",
    );
    check("import inspect; print(tools.add.__name__, inspect.signature(tools.add))", "add (b, a, mode=None)\n");
    check(
        "print(tools.add.__doc__)",
        "Adds two numbers.\nExactly.\n\n    b: integer - the first\n    a: integer\n    mode: optional\n",
    );
    check(
        "help(tools.add)",
        "Help on function add in module sandlite.tools:\n\nadd(b, a, mode=None)\n    Adds two numbers.\n    Exactly.\n\n        b: integer - the first\n        a: integer\n        mode: optional\n\n",
    );
}

#[test]
fn errors_are_exceptions_without_details_of_the_host() {
    let catch = |call: &str| format!("try: {call}\nexcept ToolError as error: print(error.kind, error.tool, '|', error)");
    check(&catch("tools.add(a=1)"), "invalid add | add: `b` is missing\n");
    check(&catch("tools.add('x', 1)"), "invalid add | add: `b` must be of type integer, not string\n");
    check(&catch("tools.add(1, 2, mode='x')"), "invalid add | add: `mode` must be one of \"plain\", \"loud\"\n");
    check(&catch("tools.add(a=1, b=2, c=3)"), "invalid add | add: `c` is not allowed\n");
    check(&catch("tools.refuse_all()"), "failed refuse-all | refuse-all: not today\n");
    check(&catch("tools.panic()"), "failed panic | panic: the tool panicked\n");
    check(&catch("tools.call('nothing')"), "unknown nothing | nothing: unknown tool `nothing`: the host offers others\n");
    let output = sandbox().python("from sandlite import tools\ntools.refuse_all()").unwrap();
    let expected = "Traceback (most recent call last):\n  File \"<string>\", line 2, in <module>\n    tools.refuse_all()\n    ~~~~~~~~~~~~~~~~^^\nsandlite.ToolError: refuse-all: not today\n";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 1));
}

// T-BRG-01
#[test]
fn without_registered_tools_none_can_be_called() {
    check_error("from sandlite import tools; tools.add(1)", "AttributeError: there is no tool 'add': the host offers none");
    check_error(
        "from sandlite import tools; tools.call('add')",
        "sandlite.ToolError: add: unknown tool `add`: the host offers none",
    );
    super::check("from sandlite import tools; print(tools.list())", "[]\n");
    let output = super::sandbox().bash("tool --list; tool add '{}'").unwrap();
    assert_eq!((texts(&output).1.as_str(), output.status.code()), ("tool: add: unknown tool `add`: the host offers none\n", 2));
}

#[test]
fn bash_calls_with_json() {
    check_bash(r#"tool add '{"a": 1, "b": 2}'"#, "21\n", "", 0);
    check_bash(r#"echo '{"a": 1, "b": 2}' | tool add | tr 1 x"#, "2x\n", "", 0);
    check_bash("tool echo", "{}\n", "", 0);
    check_bash(
        "tool -l",
        "add\tAdds two numbers.\nrefuse-all\tNever works.\npanic\tBreaks.\necho\tReturns its arguments.\n",
        "",
        0,
    );
    check_bash("tool --list --json | jq -r '.[0].name'", "add\n", "", 0);
    check_bash("tool refuse-all", "", "tool: refuse-all: not today\n", 1);
    check_bash("tool add '{}'", "", "tool: add: `a` is missing\n", 2);
    check_bash("tool add '{'", "", "tool: add: the arguments are not JSON: EOF while parsing an object at line 1 column 1\n", 2);
}

#[test]
fn a_tool_is_a_command_with_options() {
    check_bash("add --a 1 --b 2", "21\n", "", 0);
    check_bash("add --b=2 --a=1 --mode loud", "21!\n", "", 0);
    check_bash("add 1 2", "21\n", "", 0);
    check_bash(r#"add '{"a": 1, "b": 2}'"#, "21\n", "", 0);
    check_bash("refuse-all", "", "tool: refuse-all: not today\n", 1);
    check_bash("add --a 1", "", "tool: add: `b` is missing\n", 2);
    check_bash("add --a one --b 2", "", "tool: add: `a` must be of type integer, not string\n", 2);
    check_bash("add --c 1", "", "tool: add: unknown option `--c`: run `add --help` to list the options\n", 2);
    check_bash("command -v add; type -t add; /bin/add 1 2; env add 3 4", "/usr/bin/add\nfile\n21\n43\n", "", 0);
}

#[test]
fn a_command_that_is_a_tool_works_in_pipelines_and_under_other_programs() {
    check_bash("seq 3 | xargs -n1 add 1 | paste -sd,", "11,21,31\n", "", 0);
    check_bash("for i in 1 2; do add $i 0; done | sort -r | head -1", "2\n", "", 0);
    check_bash("x=$(add 1 2 --mode loud); echo $x", "21!\n", "", 0);
    check("import subprocess; print(subprocess.check_output(['add', '1', '2'], text=True))", "21\n\n");
}

#[test]
fn a_tool_explains_its_options() {
    let help = "Usage: add --a INTEGER --b INTEGER [--mode VALUE]\n\nAdds two numbers.\nExactly.\n\nOptions:\n  \
                --a INTEGER   [required]\n  --b INTEGER   the first [required]\n  --mode VALUE  (one of plain, loud)\n  \
                --help        Print this text\n";
    check_bash("add --help", help, "", 0);
    check_bash("add -h | grep -c required", "2\n", "", 0);
}

#[test]
fn a_program_of_the_sandbox_is_found_before_a_tool_of_its_name() {
    check_bash("/bin/echo --x 1; tool echo '{\"x\": 1}'", "--x 1\n{\"x\":1}\n", "", 0);
}

#[test]
fn commands_are_the_tools_of_the_sandbox_that_runs_them() {
    let one = Tool::new("one", "", "{}", |_| Ok(1.into()));
    let sandbox = sandbox();
    let with = sandbox.with_tools(vec![one]).unwrap();
    assert_eq!(texts(&with.bash("one; add 1 2; echo $?").unwrap()).0, "1\n127\n");
    assert_eq!(texts(&sandbox.bash("one; echo $?; add 1 2").unwrap()).0, "127\n21\n");
}

#[test]
fn a_tool_sees_the_run_that_calls_it_and_its_files() {
    let look = Tool::with_context("inspect-run", "", "{}", |_, context| {
        let text = context.files().read("/tmp/new").map_err(|error| error.to_string())?;
        let missing = context.files().exists("/tmp/none").map_err(|error| error.to_string())?;
        Ok(json!({ "run": context.run(), "text": String::from_utf8_lossy(&text), "missing": missing, "over": context.is_over() }))
    });
    let sandbox = Sandbox::builder().host(host()).tool(look).open().unwrap();
    let output = sandbox.bash("echo unstored > /tmp/new; inspect-run").unwrap();
    let expected = json!({ "run": output.run, "text": "unstored\n", "missing": false, "over": false });
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), expected);
}

#[test]
fn calls_are_history_with_their_parent() {
    let sandbox = sandbox();
    let output = sandbox.bash("tool add '{\"a\": 1, \"b\": 2}'; tool refuse-all").unwrap();
    let history = sandbox.history(10).unwrap();
    let seen: Vec<_> = history.iter().map(|run| (run.name.as_str(), run.parent, run.status, run.command.as_str())).collect();
    let run = output.run;
    assert_eq!(
        seen,
        [
            ("tool", Some(run), "error", "tool refuse-all {}"),
            ("tool", Some(run), "success", "tool add {\"a\": 1, \"b\": 2}"),
            ("bash", None, "success", "tool add '{\"a\": 1, \"b\": 2}'; tool refuse-all"),
        ]
    );
}

#[test]
fn calls_stay_in_the_history_when_files_are_rolled_back() {
    let sandbox = sandbox();
    let code = "from sandlite import tools\nopen('f', 'w').write(str(tools.echo(x=1)))\nraise SystemExit(3)";
    sandbox.run(Command::python(code).rollback_on_failure()).unwrap();
    assert_eq!(sandbox.bash("ls").unwrap().stdout, b"");
    let names: Vec<_> = sandbox.history(10).unwrap().into_iter().map(|run| run.name).collect();
    assert_eq!(names, ["bash", "tool", "python"]);
}

// All of them, under the numbers that they had: also those of a call of the library that was read before.
#[test]
fn a_run_that_is_taken_back_keeps_every_call_and_its_number() {
    let sandbox = sandbox();
    sandbox.fs().exists("/nothing").unwrap();
    let code =
        "from sandlite import tools\nfor n in range(1200):\n    tools.echo(x=n)\nopen('f', 'w').write('x')\nraise SystemExit(3)";
    let run = sandbox.run(Command::python(code).rollback_on_failure()).unwrap().run;
    assert_eq!(sandbox.bash("ls").unwrap().stdout, b"");
    let history = sandbox.history(2000).unwrap();
    let calls: Vec<_> = history.iter().filter(|row| row.parent == Some(run)).map(|row| (row.id, row.command.clone())).collect();
    let expected = (0..1200).rev().map(|n| (run + 1 + n, format!("tool echo {{\"x\": {n}}}")));
    assert_eq!(calls, expected.collect::<Vec<_>>());
    assert!(history.iter().any(|row| row.name == "exists" && row.id < run));
}

#[test]
fn the_deadline_does_not_wait_for_a_tool() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let slow = Tool::new("slow", "Takes its time.", "{}", move |_| {
        let _ = blocked.lock().map(|blocked| blocked.recv());
        Ok(Value::Null)
    });
    let sandbox = Sandbox::builder().host(host()).tool(slow).open().unwrap();
    let wall = Overrides { wall: Some("300 ms".parse().unwrap()), ..Overrides::default() };
    let command = Command::python("from sandlite import tools\nprint('before')\ntools.slow()").limits(wall);
    let output = sandbox.run(command).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    assert_eq!(output.stdout, b"before\n");
    let last = sandbox.history(1).unwrap().remove(0);
    assert_eq!((last.name.as_str(), last.status), ("tool", "interrupted"));
    drop(release);
}

#[test]
fn calls_are_counted() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let tick = Tool::new("tick", "", "{}", move |_| Ok(counted.fetch_add(1, Ordering::SeqCst).into()));
    let sandbox = Sandbox::builder().host(host()).tool(tick).open().unwrap();
    let commands = Overrides { commands: Some(20), ..Overrides::default() };
    let output = sandbox.run(Command::python("from sandlite import tools\nwhile True: tools.tick()").limits(commands)).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Commands));
    assert_eq!(count.load(Ordering::SeqCst), 20);
}

#[test]
fn results_are_bounded_as_output_is() {
    let large = Tool::new("large", "", "{}", |_| Ok("x".repeat(2 << 20).into()));
    let sandbox = Sandbox::builder().host(host()).tool(large).open().unwrap();
    let output = Overrides { output: Some("1 MB".parse().unwrap()), ..Overrides::default() };
    let code = "from sandlite import tools, ToolError\ntry: tools.large()\nexcept ToolError as error: print(error)";
    let limited = sandbox.run(Command::python(code).limits(output)).unwrap();
    assert_eq!(texts(&limited).0, "large: its result has 2097154 bytes; the preset allows 1048576\n");
    assert_eq!(sandbox.python("from sandlite import tools; print(len(tools.large()))").unwrap().stdout, b"2097152\n");
}

#[test]
fn an_invalid_tool_is_rejected_when_the_sandbox_is_opened() {
    let error = builder().tool(Tool::new("x y", "", "{}", Ok)).open().err().unwrap();
    assert!(error.to_string().starts_with("invalid tool name `x y`"), "{error}");
    let error = builder().tool(Tool::new("x", "", "{\"type\": \"array\"}", Ok)).open().err().unwrap();
    assert!(error.to_string().starts_with("invalid schema of tool `x`"), "{error}");
}

#[test]
fn python_calls_are_not_split_into_words() {
    check(
        "try: tools.call('add', ['1', '2'])\nexcept ToolError as e: print(e.kind, e)",
        "invalid add: the arguments are not a JSON object\n",
    );
}
