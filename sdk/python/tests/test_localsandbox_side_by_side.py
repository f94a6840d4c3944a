"""Programs that LocalSandbox itself and the drop-in must run alike.

Each program has the answer of LocalSandbox 0.3.2 beside it. Where that package, its Deno and its npm packages are installed
(``pip install localsandbox deno``), its own answer is compared too."""

import importlib
import importlib.util
import json
import shutil
from typing import Any, Literal, Optional, Union

import pytest


def caught(act):
    """The class and the public attributes of what a call raises."""
    try:
        act()
    except Exception as error:
        known = ("exit_code", "stdout", "stderr", "path", "limit_type", "limit_value")
        return [type(error).__name__, str(error), {name: getattr(error, name) for name in known if hasattr(error, name)}]
    return "nothing was raised"


def rows(sandbox):
    return [[row.name, row.parameters, row.result] for row in reversed(sandbox.history())]


def redirections_create_directories(kit):
    with kit.LocalSandbox() as sandbox:
        sandbox.bash("echo x > /home/user/log.txt; echo y >> /a/b/c; touch /t/u/v; echo z | tee /e/f > /dev/null")
        return [sandbox.read_file(path) for path in ("/home/user/log.txt", "/a/b/c", "/t/u/v", "/e/f")]


def copies_do_not_create_directories(kit):
    with kit.LocalSandbox(files={"/data/a": "1"}) as sandbox:
        failed = [caught(lambda: sandbox.bash(command))[0] for command in ("cp a b/c/d", "mkdir p/q", "mv a r/s")]
        return [failed, sandbox.list_files("/data")]


def python_does_not_create_directories(kit):
    with kit.LocalSandbox() as sandbox:
        return sandbox.execute_python("open('/data/n/m', 'w')").error.strip().splitlines()[-1].split(":")[0]


def keys_leave_no_rows(kit):
    with kit.LocalSandbox() as sandbox:
        sandbox.kv.set("k", "v")
        seen = [sandbox.kv.get("k"), sandbox.kv.keys(), sandbox.kv.delete("k"), sandbox.kv.get("k")]
        return [seen, rows(sandbox)]


def seeding_is_one_row(kit):
    with kit.LocalSandbox(files={"/data/t": "1", "b/raw": b"\xff", "/c": "2"}) as sandbox:
        sandbox.exists("/data/t")
        return [rows(sandbox)[0], sandbox.list_files("/data")]


def helpers_leave_a_row_each(kit):
    with kit.LocalSandbox() as sandbox:
        sandbox.write_file("/data/d/f", "abc")
        sandbox.write_file_bytes("/data/g", b"\xff\x00")
        sandbox.read_file("/data/d/f")
        sandbox.read_file_bytes("/data/g")
        sandbox.list_files("/data")
        sandbox.exists("/data/d/f")
        sandbox.delete_file("/data/d/f")
        return rows(sandbox)


def failed_helpers_leave_a_row_each(kit):
    with kit.LocalSandbox() as sandbox:
        caught(lambda: sandbox.read_file("/data/none"))
        caught(lambda: sandbox.read_file_bytes("none"))
        caught(lambda: sandbox.list_files("/none"))
        caught(lambda: sandbox.delete_file("/data/none"))
        return rows(sandbox)


def helpers_raise_the_path_as_given(kit):
    with kit.LocalSandbox() as sandbox:
        calls = (sandbox.read_file, sandbox.read_file_bytes, sandbox.list_files, sandbox.delete_file)
        return [caught(lambda: call(path)) for call in calls for path in ("/data/none", "none")]


def an_unused_sandbox_has_an_empty_snapshot(kit):
    with kit.LocalSandbox() as sandbox:
        unused = len(sandbox.export_snapshot())
        sandbox.bash("true")
        return [unused, len(sandbox.export_snapshot()) > 0]


def files_and_a_snapshot_are_refused(kit):
    return [caught(lambda: kit.LocalSandbox(files=files, snapshot=b"x"))[:2] for files in ({}, {"/a": "b"})]


def limits_of_the_shell(kit):
    with kit.LocalSandbox(preset=kit.ExecutionPreset.STRICT) as sandbox:
        found = []
        for command in (
            "for i in {1..200}; do x=$i; done",
            "i=0; while true; do i=$((i+1)); done",
            "until false; do :; done",
            "exit 126",
            "echo 'maximum command count (7)' >&2; exit 126",
            "echo 'too many iterations (9)' >&2; exit 1",
        ):
            name, text, values = caught(lambda: sandbox.bash(command))
            found.append([name, values.get("limit_type"), values.get("limit_value"), values.get("exit_code")])
        return found


def failures_of_commands(kit):
    with kit.LocalSandbox() as sandbox:
        found = []
        for command in ("cat /nope", "cat /data/nope", "cd /nope", "nosuchcommand", "exit 3", "false", "echo o; echo e >&2; exit 4"):
            name, text, values = caught(lambda: sandbox.bash(command))
            found.append([name, values.get("exit_code"), values.get("path"), values.get("stdout")])
        return found


def commands_leave_a_row_each(kit):
    with kit.LocalSandbox() as sandbox:
        sandbox.bash("echo hi")
        caught(lambda: sandbox.bash("exit 3"))
        sandbox.execute_python("x = 1")
        sandbox.execute_python("raise ValueError")
        return [
            [name, {key: value for key, value in parameters.items() if key != "sessionId"}, result]
            for name, parameters, result in rows(sandbox)
        ]


def another_tool_set_starts_python_anew(kit):
    def one(x: int) -> int:
        """One."""
        return x + 1

    def two(x: int) -> int:
        """Two."""
        return x + 2

    read = "print('kept' if 'kept' in globals() else 'gone')"
    with kit.LocalSandbox() as sandbox:
        found = []
        sandbox.execute_python("kept = 1")
        found.append(sandbox.execute_python(read).stdout)
        found.append(sandbox.execute_python(read, toolset=[one]).stdout)
        sandbox.execute_python("kept = 1", toolset=[one])
        found.append(sandbox.execute_python(read, toolset=[one]).stdout)
        found.append(sandbox.execute_python(read, toolset=[two]).stdout)
        found.append(sandbox.execute_python(read).stdout)
        return found


def tools_are_given_what_the_code_gives(kit):
    seen = []

    def handler(payload):
        seen.append(payload)
        return {"n": len(payload)}

    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
    toolset = kit.PythonToolset([kit.ToolDefinition("count", "Counts.", schema)], {"count": handler})
    code = "from host_tools import call\nfor given in ({'x': 1}, {'x': 'one'}, {}, {'y': 2}): print(call('count', given))"
    with kit.LocalSandbox() as sandbox:
        result = sandbox.execute_python(code, toolset=toolset)
        return [result.stdout, result.exit_code, seen]


def tools_made_of_functions_check_their_arguments(kit):
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    code = """
from host_tools import call
for given in ({"a": 1}, {"a": "x"}, {}, {"a": 1, "c": 2}):
    try:
        print(call("add", given))
    except Exception as error:
        print(type(error).__name__)
"""
    with kit.LocalSandbox() as sandbox:
        return sandbox.execute_python(code, toolset=[add]).stdout


def calls_of_tools_leave_a_row_each(kit):
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    code = "from host_tools import call\nprint(call('add', {'a': 1}))\ntry: call('none', {})\nexcept Exception as e: print(e)"
    with kit.LocalSandbox() as sandbox:
        said = sandbox.execute_python(code, toolset=[add])
        return [
            said.stdout,
            [
                [name, {key: value for key, value in parameters.items() if key != "sessionId"}, result]
                for name, parameters, result in rows(sandbox)
            ],
        ]


COMPLAINTS = [
    "[validation_error] $[h].x must be of type 'integer', got 'string'",
    "[validation_error] $[h].x is required",
    "[validation_error] $[h].z is not allowed",
    "[validation_error] $[h].l[1] must be of type 'string', got 'integer'",
    "[validation_error] $[h].e must be one of ['a', 1]",
    "[validation_error] $[h].n must be of type ['number', 'null'], got 'string'",
    "[validation_error] $[h].x must be of type 'integer', got 'boolean'",
    "[validation_error] Tool 'h' payload must be an object",
    {"got": {"x": 1}},
    {"got": {"anything": [1]}},
    "[validation_error] boom",
    "[validation_error] $[out] must be of type 'integer', got 'string'",
    "[validation_error] $[others].a must be of type 'string', got 'integer'",
]


def what_tools_complain_about(kit):
    def bad(payload):
        raise ValueError("boom")

    def same(payload):
        return {"got": payload}

    # Keywords that LocalSandbox ignores are accepted, known ones such as `minimum` and others.
    schema = {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "minimum": 5},
            "l": {"type": "array", "items": {"type": "string"}},
            "e": {"enum": ["a", 1]},
            "n": {"type": ["number", "null"]},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    define = kit.ToolDefinition
    others = {"type": "object", "additionalProperties": {"type": "string"}}
    toolset = kit.PythonToolset(
        [
            define("h", "", schema),
            define("free", "", {"minimun": 1}),
            define("bad", "", {}),
            define("out", "", {}, {"type": "integer"}),
            define("others", "", others),
        ],
        {"h": same, "free": same, "bad": bad, "out": lambda payload: "text", "others": same},
    )
    code = """
import json
from host_tools import call
said = []
for name, given in (
    ("h", {"x": "1"}), ("h", {}), ("h", {"x": 6, "z": 1}), ("h", {"x": 6, "l": ["a", 2]}), ("h", {"x": 6, "e": "b"}),
    ("h", {"x": 6, "n": "s"}), ("h", {"x": True}), ("h", [1]), ("h", {"x": 1}), ("free", {"anything": [1]}), ("bad", {}), ("out", {}),
    ("others", {"a": 1}),
):
    try:
        said.append(call(name, given))
    except RuntimeError as error:
        said.append(str(error))
print(json.dumps(said))
"""
    with kit.LocalSandbox() as sandbox:
        return json.loads(sandbox.execute_python(code, toolset=toolset).stdout)


def lengths_are_counted_as_javascript_does(kit):
    with kit.LocalSandbox() as sandbox:
        sandbox.write_file("/data/u", "h\u00e4\u00df\U0001f600")
        return rows(sandbox)[0][1]


def the_directory_of_a_sandbox(kit):
    with kit.LocalSandbox(files={"/data/w/f": "1"}, cwd="/data/w") as sandbox:
        return [sandbox.bash("pwd; cat f; cd /; pwd").stdout, sandbox.execute_python("import os; print(os.getcwd())").stdout]


def python_keeps_its_globals(kit):
    with kit.LocalSandbox() as sandbox:
        sandbox.execute_python("x = 20")
        results = [sandbox.execute_python(code) for code in ("print(x + 1)", "import sys; sys.exit(3)", "print(x)")]
        return [[result.stdout, result.exit_code] for result in results]


def values_of_keys(kit):
    with kit.LocalSandbox() as sandbox:
        for key, value in (("a%b", "1"), ("a_b", "2"), ("b", "3")):
            sandbox.kv.set(key, value)
        return [sandbox.kv.keys(), sandbox.kv.keys("a"), sandbox.kv.keys("a%"), sandbox.kv.get("none")]


def lists_of_directories(kit):
    with kit.LocalSandbox(files={"/data/b": "", "/data/a": "", "/data/d/x": ""}) as sandbox:
        return [sandbox.list_files("/data"), sandbox.list_files("/"), sandbox.list_files("/data/d")]


def writing_to_a_directory(kit):
    with kit.LocalSandbox(files={"/data/d/x": ""}) as sandbox:
        return caught(lambda: sandbox.write_file("/data/d", "x"))[0]


def files_are_listed_by_programs_too(kit):
    with kit.LocalSandbox(files={"/data/b": "", "/data/a": ""}) as sandbox:
        listed = [sandbox.bash(command).stdout for command in ("ls", "ls /data", "echo *", "rm *; ls")]
        return [*listed, sandbox.execute_python("import os; print(os.listdir('/data'))").stdout]


def a_directory_that_does_not_exist(kit):
    with kit.LocalSandbox(cwd="/data/work") as sandbox:
        found = [sandbox.bash("pwd; echo hi > f; cat f").stdout, sandbox.list_files("/data/work")]
        code = "import os; print(os.getcwd())"
        return found + [sandbox.execute_python(code, cwd=cwd).stdout for cwd in (None, "/work", "work", "/nope", "/data/nope", "/")]


def texts_of_limits(kit):
    with kit.LocalSandbox() as sandbox:
        found = []
        for text in (
            "bash: maximum command count (7) exceeded, increase executionLimits.maxCommandCount",
            "bash: too many commands executed (>8), increase executionLimits.maxCommandCount",
            "bash: for loop: too many iterations (9), increase executionLimits.maxLoopIterations",
            "increase executionLimits.other",
        ):
            name, said, values = caught(lambda: sandbox.bash(f"echo '{text}' >&2; exit 1"))
            found.append([name, said == f"{text}\n", values.get("limit_type"), values.get("limit_value")])
        return [*found, caught(lambda: sandbox.bash("f() { f; }; f"))[0]]


def missing_files_of_programs(kit):
    commands = """find nope; jq . nope; tac nope; sed -n p nope; awk 1 nope; stat nope; head nope; tail nope; grep x nope; wc nope; sort nope
        ls nope; cat nope; cat < nope; source nope; bash nope; diff nope nope; ./nope; env nope; exec nope; nope; rm nope; mkdir nope/x"""
    with kit.LocalSandbox() as sandbox:
        raised = {}
        for command in commands.replace("\n", ";").split(";"):
            name, _, values = caught(lambda: sandbox.bash(command))
            raised.setdefault((name, values.get("path")), []).append(command.split()[0])
        cases = ("x: /p: no such file or directory", "thing: Not Found", "x: /p: permission denied")
        return raised, [caught(lambda: sandbox.bash(f"echo '{text}' >&2; exit 1"))[:2] for text in cases]


def errors_of_python(kit):
    with kit.LocalSandbox() as sandbox:
        code = "import sys; print('said', file=sys.stderr)\nraise ValueError('no')"
        result = sandbox.execute_python(code)
        return [result.stderr.startswith("said\n"), result.error.splitlines()[0], result.error.splitlines()[-1]]


def characters_of_code(kit):
    with kit.LocalSandbox() as sandbox:
        said = sandbox.execute_python("print('h\u00e4\U0001f600', len('\U0001f600'))")
        return [said.stdout, said.error, rows(sandbox)[0][1]["codeLength"]]


def python_may_await(kit):
    with kit.LocalSandbox() as sandbox:
        code = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5\nkept = await f()"
        return [sandbox.execute_python(code).exit_code, sandbox.execute_python("print(kept)").stdout]


def previews_of_calls(kit):
    def echo(text: str) -> str:
        """Echo."""
        return text

    code = "from host_tools import call\ncall('echo', {'text': 'x' * 300})\ncall('echo', {'text': '\u00e4\U0001f600'})"
    with kit.LocalSandbox() as sandbox:
        sandbox.execute_python(code, toolset=[echo])
        run, *calls = rows(sandbox)
        same = all(parameters["sessionId"] == run[1]["sessionId"] for _, parameters, _ in calls)
        return [same, [[parameters["requestPreview"], result["responsePreview"]] for _, parameters, result in calls]]


def what_tools_raise(kit):
    def raising(error):
        def handler(payload):
            raise error

        return handler

    handlers = {type(error).__name__: raising(error) for error in (TypeError("t"), KeyError("k"), ValueError("v"), OSError("o"))}
    toolset = kit.PythonToolset([kit.ToolDefinition(name, "", {}) for name in handlers], handlers)
    code = f"""
from host_tools import call
for name in ({list(handlers)!r} + [1]):
    try:
        call(name, {{}})
    except RuntimeError as error:
        print(error)
"""
    with kit.LocalSandbox() as sandbox:
        return sandbox.execute_python(code, toolset=toolset).stdout


def searching_tools(kit):
    def web_search(query: str, limit: int = 5) -> dict[str, list[str]]:
        """Search the web for information."""
        return {}

    def readFile(path: str) -> str:
        """Reads a file from disk."""
        return ""

    def get_weather(city: str) -> dict[str, str]:
        """Current weather of a city."""
        return {}

    code = """
import json
from host_tools import search
queries = ["web", "search the web", "web_search", "readfile read", "nothing here", "", "query path city"]
print(json.dumps([[[hit["name"], hit["score"]] for hit in search(query)] for query in queries]))
print(json.dumps(search("city", detail="full", limit=1)))
"""
    with kit.LocalSandbox() as sandbox:
        said = sandbox.execute_python(code, toolset=[web_search, readFile, get_weather])
        return [json.loads(line) for line in said.stdout.splitlines()]


def kinds_of_toolsets(kit):
    def f(x: int) -> int:
        return x

    with kit.LocalSandbox() as sandbox:
        return [caught(lambda: sandbox.execute_python("", toolset=given))[:2] for given in ("abc", {f}, 5, [1], [f, f])]


def definitions_of_functions(kit):
    def nothing(): ...

    def plain(x: int, y: float = 1.5, z: bool = True, s: str = "d") -> None: ...

    def choices(x: Optional[int] = None, y: Union[int, str] = 3, z: Literal["a", "b"] = "a", k: Literal["one"] = "one"): ...

    def lists(x: list[str], y: dict[str, int], z: list, w: dict, t: tuple[int, str], u: set[int], v: tuple[int, ...]): ...

    def others(x: Any, y: bytes) -> list[dict[str, int]]: ...

    class Owner:
        def method(self, x: int) -> int:
            """Does it.

            In detail."""
            return x

    functions = (nothing, plain, choices, lists, others, Owner().method, Owner.method)
    made = [kit.function_to_tool_definition(function) for function in functions]
    return [[one.name, one.description, one.input_schema, one.output_schema] for one in made]


def a_write_that_fails_leaves_no_row(kit):
    with kit.LocalSandbox(files={"/data/d/x": ""}) as sandbox:
        caught(lambda: sandbox.write_file("/data/d", "x"))
        caught(lambda: sandbox.read_file("/data/d"))
        return [row[0] for row in rows(sandbox)], caught(lambda: sandbox.list_files("/data/d/x"))[2]["stderr"]


def the_snapshot_of_an_unused_sandbox(kit):
    with kit.LocalSandbox() as sandbox:
        empty = sandbox.export_snapshot()
    with kit.LocalSandbox(snapshot=empty) as again:
        return again.bash("echo ok").stdout


def a_destroyed_sandbox(kit):
    sandbox = kit.LocalSandbox()
    sandbox.destroy()
    return [caught(lambda: sandbox.bash("true"))[:2], caught(lambda: sandbox.kv.get("x"))[:2]]


MISSING = {"exit_code": 1, "stdout": ""}


def _missing(path, call):
    place = path if path.startswith("/") else f"/{path}"
    stderr = f"ENOENT: no such file or directory, {call} '{place.removeprefix('/data')}'"
    return ["FileNotFoundError", f"File not found: {path}", {**MISSING, "stderr": stderr, "path": path}]


def _arguments(properties, *required):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


LIMIT = ["ExecutionLimitError", "loop_iterations", 100, None]
UNKNOWN = ["ExecutionLimitError", "unknown", 0, None]
READY = {"cwd": "/data", "preloadPackages": ""}

#: The results of LocalSandbox 0.3.2.
PROGRAMS = {
    redirections_create_directories: ["x\n", "y\n", "", "z\n"],
    copies_do_not_create_directories: [["FileNotFoundError", "CommandError", "FileNotFoundError"], ["a"]],
    python_does_not_create_directories: "FileNotFoundError",
    keys_leave_no_rows: [["v", ["k"], None, None], []],
    seeding_is_one_row: [
        ["seed", {"paths": ["/data/t", "b/raw", "/c"], "count": 3}, {"success": True}],
        ["b", "c", "t"],
    ],
    helpers_leave_a_row_each: [
        ["write_file", {"path": "/data/d/f", "contentLength": 3}, {"success": True}],
        ["write_file", {"path": "/data/g", "contentLength": 2, "binary": True}, {"success": True}],
        ["read_file", {"path": "/data/d/f"}, {"success": True}],
        ["read_file", {"path": "/data/g", "binary": True}, {"success": True}],
        ["list_files", {"path": "/data"}, {"success": True, "count": 2}],
        ["exists", {"path": "/data/d/f"}, {"exists": True}],
        ["delete_file", {"path": "/data/d/f"}, {"success": True}],
    ],
    failed_helpers_leave_a_row_each: [
        ["read_file", {"path": "/data/none"}, {"success": False}],
        ["read_file", {"path": "none"}, {"success": False}],
        ["list_files", {"path": "/none"}, {"success": False}],
        ["delete_file", {"path": "/data/none"}, {"success": False}],
    ],
    helpers_raise_the_path_as_given: [
        _missing(path, call) for call in ("open", "open", "scandir", "unlink") for path in ("/data/none", "none")
    ],
    an_unused_sandbox_has_an_empty_snapshot: [0, True],
    files_and_a_snapshot_are_refused: [["ValueError", "Cannot provide both 'files' and 'snapshot'"]] * 2,
    limits_of_the_shell: [LIMIT, LIMIT, LIMIT, UNKNOWN, UNKNOWN, ["CommandError", None, None, 1]],
    failures_of_commands: [
        ["FileNotFoundError", 1, "/nope", ""],
        ["FileNotFoundError", 1, "/data/nope", ""],
        ["FileNotFoundError", 1, "/nope", ""],
        ["CommandError", 127, None, ""],
        ["CommandError", 3, None, ""],
        ["CommandError", 1, None, ""],
        ["CommandError", 4, None, "o\n"],
    ],
    commands_leave_a_row_each: [
        ["bash", {"command": "echo hi", "cwd": "/data"}, {"exitCode": 0}],
        ["bash", {"command": "exit 3", "cwd": "/data"}, {"exitCode": 3}],
        ["python", {"codeLength": 5, **READY, "toolCallCount": 0}, {"exitCode": 0}],
        ["python", {"codeLength": 16, **READY, "toolCallCount": 0}, {"exitCode": 1}],
    ],
    another_tool_set_starts_python_anew: ["kept\n", "gone\n", "kept\n", "gone\n", "gone\n"],
    tools_are_given_what_the_code_gives: ["{'n': 1}\n", 1, [{"x": 1}]],
    tools_made_of_functions_check_their_arguments: "3\nRuntimeError\nRuntimeError\nRuntimeError\n",
    calls_of_tools_leave_a_row_each: [
        "3\n[permission_error] Tool 'none' is not declared\n",
        [
            ["python", {"codeLength": 110, **READY, "toolCallCount": 2}, {"exitCode": 0}],
            ["python_tool_call", {"toolName": "add", "requestPreview": '{"a":1}'}, {"success": True, "responsePreview": "3"}],
            ["python_tool_call", {"toolName": "none", "requestPreview": "{}"}, {"success": False, "errorType": "permission_error"}],
        ],
    ],
    what_tools_complain_about: COMPLAINTS,
    the_directory_of_a_sandbox: ["/data/w\n1/\n", "/data/w\n"],
    python_keeps_its_globals: [["21\n", 0], ["", 1], ["20\n", 0]],
    values_of_keys: [["a%b", "a_b", "b"], ["a%b", "a_b"], ["a%b"], None],
    lists_of_directories: [["a", "b", "d"], ["a", "b", "d"], ["x"]],
    lengths_are_counted_as_javascript_does: {"path": "/data/u", "contentLength": 5},
    writing_to_a_directory: "SubprocessCrashed",
    files_are_listed_by_programs_too: ["a\nb\n", "a\nb\n", "a b\n", "", "[]\n"],
    a_directory_that_does_not_exist: [
        "/data/work\nhi\n",
        ["f"],
        *["/data/work\n"] * 3,
        *["/data\n"] * 3,
    ],
    texts_of_limits: [
        ["ExecutionLimitError", True, "command_count", 7],
        ["ExecutionLimitError", True, "command_count", 8],
        ["ExecutionLimitError", True, "loop_iterations", 9],
        ["ExecutionLimitError", True, "unknown", 0],
        "ExecutionLimitError",
    ],
    missing_files_of_programs: (
        {
            ("FileNotFoundError", "nope"): (
                "find jq tac sed awk stat head tail grep wc sort ls cat cat source bash diff".split()
            ),
            ("CommandError", None): "./nope env exec nope rm mkdir".split(),
        },
        [
            ["FileNotFoundError", "File not found: /p"],
            ["FileNotFoundError", "File not found: thing"],
            ["PermissionError", "Permission denied: /p"],
        ],
    ),
    errors_of_python: [True, "Traceback (most recent call last):", "ValueError: no"],
    characters_of_code: ["h\u00e4\U0001f600 1\n", None, 24],
    python_may_await: [0, "5\n"],
    previews_of_calls: [
        True,
        [
            ['{"text":"' + "x" * 191 + "...", "x" * 200 + "..."],
            ['{"text":"\u00e4\U0001f600"}', "\u00e4\U0001f600"],
        ],
    ],
    what_tools_raise: (
        "[internal_error] t\n[internal_error] 'k'\n[validation_error] v\n[internal_error] o\n"
        "host_tools.call expects a string tool name\n"
    ),
    searching_tools: [
        [
            [["web_search", 1.4712]],
            [["web_search", 4.4137]],
            [["web_search", 3.4329]],
            [["readFile", 3.4329]],
            [],
            [],
            [["get_weather", 1.9569], ["readFile", 0.5124], ["web_search", 0.4264]],
        ],
        [
            {
                "name": "get_weather",
                "description": "Current weather of a city.",
                "score": 1.9569,
                "input_schema": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                    "additionalProperties": False,
                },
                "output_schema": {"type": "object", "additionalProperties": {"type": "string"}},
                "timeout_ms": 30000,
            }
        ],
    ],
    kinds_of_toolsets: [
        *[["TypeError", "toolset must be a PythonToolset or a sequence of callables"]] * 3,
        ["TypeError", "toolset sequences must contain only callables"],
        ["ValueError", "Duplicate tool definition: f"],
    ],
    definitions_of_functions: [
        ["nothing", "", _arguments({}), None],
        [
            "plain",
            "",
            _arguments(
                {
                    "x": {"type": "integer"},
                    "y": {"type": "number", "default": 1.5},
                    "z": {"type": "boolean", "default": True},
                    "s": {"type": "string", "default": "d"},
                },
                "x",
            ),
            {"type": "null"},
        ],
        [
            "choices",
            "",
            _arguments(
                {
                    "x": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                    "y": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 3},
                    "z": {"type": "string", "enum": ["a", "b"], "default": "a"},
                    "k": {"type": "string", "const": "one", "default": "one"},
                }
            ),
            None,
        ],
        [
            "lists",
            "",
            _arguments(
                {
                    "x": {"type": "array", "items": {"type": "string"}},
                    "y": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "z": {"type": "array", "items": {}},
                    "w": {"type": "object", "additionalProperties": True},
                    "t": {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}]},
                    "u": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
                    "v": {"type": "array", "items": {"type": "integer"}},
                },
                *"xyzwtuv",
            ),
            None,
        ],
        [
            "others",
            "",
            _arguments({"x": {}, "y": {"type": "string", "format": "binary"}}, "x", "y"),
            {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}},
        ],
        *[["method", "Does it.", _arguments({"x": {"type": "integer"}}, "x"), {"type": "integer"}]] * 2,
    ],
    a_write_that_fails_leaves_no_row: (["seed", "read_file"], "ENOTDIR: not a directory, scandir '/d/x'"),
    the_snapshot_of_an_unused_sandbox: "ok\n",
    a_destroyed_sandbox: [["RuntimeError", "LocalSandbox instance has been destroyed"]] * 2,
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_drop_in_answers_as_localsandbox_did(program):
    assert program(importlib.import_module("sandlite.localsandbox")) == PROGRAMS[program]


def _is_there():
    if importlib.util.find_spec("localsandbox") is None or shutil.which("deno") is None:
        return False
    try:
        with importlib.import_module("localsandbox").LocalSandbox() as sandbox:
            return sandbox.bash("echo 1").stdout == "1\n"
    except Exception:
        return False


@pytest.fixture(scope="module")
def localsandbox():
    if not _is_there():
        pytest.skip("LocalSandbox is not installed, or its Deno and npm packages are not")
    return importlib.import_module("localsandbox")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_localsandbox_itself_answers_so(program, localsandbox):
    assert program(localsandbox) == PROGRAMS[program]
