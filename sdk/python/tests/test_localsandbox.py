"""The drop-in for LocalSandbox: its README's examples, its exceptions, its history."""

import asyncio
import builtins
import dataclasses
import lzma
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandlite import Sandbox, localsandbox
from sandlite.localsandbox import (
    _bash_result,
    CommandError,
    ExecutionLimitError,
    ExecutionPreset,
    FileNotFoundError,
    LocalSandbox,
    LocalSandboxError,
    PermissionError,
    PythonToolset,
    SubprocessCrashed,
    TimeoutError,
    ToolDefinition,
    function_to_tool_definition,
)


@pytest.fixture
def sandbox():
    with LocalSandbox() as made:
        yield made


def test_the_readme_s_quick_start():
    with LocalSandbox() as sandbox:
        assert sandbox.bash('echo "Hello, World!"').stdout == "Hello, World!\n"
    with LocalSandbox(files={"/data/app/main.py": 'print("hello")'}) as sandbox:
        result = sandbox.execute_python('exec(open("main.py").read())', cwd="/data/app")
        assert (result.stdout, result.exit_code, result.error) == ("hello\n", 0, None)
    with LocalSandbox() as sandbox:
        sandbox.write_file("/data/config.json", '{"key": "value"}')
        assert sandbox.read_file("/data/config.json") == '{"key": "value"}'
        assert sandbox.exists("/data/config.json")
        assert sandbox.list_files("/data") == ["config.json"]
    with LocalSandbox() as sandbox:
        sandbox.kv.set("user_id", "12345")
        assert sandbox.kv.get("user_id") == "12345" and sandbox.kv.keys() == ["user_id"]
        sandbox.kv.delete("user_id")
        sandbox.kv.delete("user_id")
        assert sandbox.kv.get("user_id") is None


def test_the_readme_s_tools(sandbox):
    def web_search(query: str) -> dict[str, list[str]]:
        """Search the web for information."""
        return {"results": ["result1", query]}

    result = sandbox.execute_python(
        """
from host_tools import call, search

print(search("web")[0]["name"])
response = call("web_search", {"query": "hello"})
print(response["results"])
""",
        toolset=[web_search],
    )
    assert result.stdout == "web_search\n['result1', 'hello']\n", result
    row = next(entry for entry in sandbox.history() if entry.name == "python_tool_call")
    assert row.parameters["toolName"] == "web_search" and row.result["success"]


def test_the_readme_s_history_and_snapshot(sandbox):
    sandbox.bash('echo "hello"')
    sandbox.bash("ls -la")
    said = [f"{entry.parameters['command']}: {entry.result['exitCode']}" for entry in sandbox.history()]
    assert said == ["ls -la: 0", 'echo "hello": 0']
    sandbox.write_file("/data/kept", "yes")
    with LocalSandbox(snapshot=sandbox.export_snapshot()) as again:
        assert again.read_file("/data/kept") == "yes" and len(again.history()) >= 3


def test_the_readme_s_async_example():
    async def main():
        sandbox = LocalSandbox()
        try:
            assert (await sandbox.abash('echo "async!"')).stdout == "async!\n"
            await sandbox.awrite_file("/data/tmp/test.txt", "content")
            assert await sandbox.aread_file("/data/tmp/test.txt") == "content"
            await sandbox.kv.aset("key", "value")
            assert await sandbox.kv.aget("key") == "value"
            assert (await sandbox.aexecute_python("print(1 + 1)")).stdout == "2\n"
        finally:
            await sandbox.adestroy()

    asyncio.run(main())


def test_every_method_exists_twice():
    import inspect

    from sandlite.localsandbox import KVStore

    for kind in (LocalSandbox, KVStore):
        plain = [name for name, member in vars(kind).items() if inspect.isfunction(member) and not name.startswith("_")]
        twins = [name for name in plain if inspect.iscoroutinefunction(getattr(kind, name))]
        assert sorted(twins) == sorted(f"a{name}" for name in plain if name not in twins)


def test_data_is_another_name_of_the_root(sandbox):
    sandbox.write_file("/x", "1")
    assert sandbox.read_file("/data/x") == "1" and sandbox.read_file("x") == "1"
    assert sandbox.bash("pwd; cat /data/x /x; echo 2 > y; cat /y; find /data -name 'x'").stdout == "/data\n112\n/data/x\n"
    assert sandbox.bash("ls", cwd="/data").stdout.split() == ["x", "y"]
    assert sandbox.execute_python("import os; print(os.getcwd(), sorted(os.listdir('/data')))").stdout == (
        "/data ['x', 'y']\n"
    )
    sandbox.bash("mkdir -p /data/bin && echo mine > /data/bin/x")
    assert sandbox.read_file("/data/bin/x") == "mine\n"
    with LocalSandbox(files={"/data/a/b": "ab"}, cwd="/data/a") as other:
        assert other.bash("cat b").stdout == "ab"


def test_a_failing_command_raises_the_same_error_as_before(sandbox):
    for command in ("cat /data/nope", "ls /data/nope", "cd /data/nope"):
        with pytest.raises(FileNotFoundError) as caught:
            sandbox.bash(command)
        assert caught.value.path == "/data/nope" and caught.value.exit_code != 0
        assert isinstance(caught.value, builtins.FileNotFoundError) and isinstance(caught.value, CommandError)
    for command, code in (("unknown-program", 127), ("grep x /dev/null", 1), ("exit 3", 3), ("rm /data/nope", 1)):
        with pytest.raises(CommandError) as caught:
            sandbox.bash(command)
        assert caught.value.exit_code == code and type(caught.value) is CommandError
    with pytest.raises(CommandError) as caught:
        sandbox.bash("echo out; echo err >&2; exit 4")
    assert (caught.value.stdout, caught.value.stderr) == ("out\n", "err\n")
    assert str(caught.value) == "Command failed with exit code 4: err"
    denied = PermissionError("Permission denied: /x", 1, "", "", "/x")
    assert isinstance(denied, builtins.PermissionError) and denied.path == "/x"


def test_limits_are_exceptions_with_their_values():
    with LocalSandbox(preset=ExecutionPreset.STRICT) as sandbox:
        sandbox.bash("for i in $(seq 100); do :; done")
        with pytest.raises(ExecutionLimitError) as caught:
            sandbox.bash("i=0; while true; do i=$((i+1)); done")
        assert (caught.value.limit_type, caught.value.limit_value) == ("loop_iterations", 100)
        assert "too many iterations (100)" in str(caught.value)


def test_a_command_that_takes_too_long_is_a_timeout():
    with Sandbox() as box:
        stopped = box.bash("sleep 1000", timeout=0.1)
    with pytest.raises(TimeoutError) as caught:
        _bash_result(stopped)
    assert caught.value.timeout_ms == 30_000 and isinstance(caught.value, builtins.TimeoutError)


@pytest.mark.parametrize(
    "text",
    ["a", ": ", ":", ": '", "cannot open ", "cannot move '", "cannot x '", "too many iterations (1)", "can't read x ", "x:\t", "bash: line 1: x"],
)
def test_hostile_messages_take_no_time(text):
    with Sandbox() as box:
        failed = box.bash("exit 127")
    printed = dataclasses.replace(failed, stderr_bytes=(text * (900_000 // len(text))).encode())
    started = time.process_time()
    with pytest.raises(CommandError):
        _bash_result(printed)
    # Some of them took hours.
    assert time.process_time() - started < 10


def test_every_preset_has_localsandbox_s_timeouts(monkeypatch):
    with LocalSandbox(preset=ExecutionPreset.STRICT) as sandbox:
        assert dict(sandbox._box().limits)["wall"] == "60 s"
        monkeypatch.setattr(localsandbox, "_BASH_TIMEOUT_MS", 200)
        with pytest.raises(TimeoutError) as caught:
            sandbox.bash("sleep 1000")
        assert caught.value.timeout_ms == 200


def test_threads_share_one_sandbox_and_take_turns_in_python():
    def tools(number):
        def add(a: int) -> int:
            return a + number

        return [add] if number % 2 else None

    def work(number):
        barrier.wait()
        sandbox.write_file(f"/data/{number}", str(number))
        code = f"from host_tools import call\nprint(call('add', {{'a': 1}}) if {number % 2} else {number + 1})"
        return sandbox.bash(f"cat {number}").stdout, sandbox.execute_python(code, toolset=tools(number)).stdout

    numbers, barrier = range(8), threading.Barrier(8)
    with LocalSandbox() as sandbox, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, numbers)) == [(str(number), f"{number + 1}\n") for number in numbers]
        assert sandbox.list_files("/data") == [str(number) for number in numbers]


def test_tasks_take_turns_in_python():
    def one() -> int:
        return 1

    async def main():
        async with LocalSandbox(files={"/data/a": "1"}) as sandbox:
            code = "from host_tools import search\nprint(len(search('one')))"
            said = await asyncio.gather(*(sandbox.aexecute_python(code, toolset=toolset) for toolset in ([one], None) * 3))
            assert [result.stdout for result in said] == ["1\n", "0\n"] * 3, said
            assert await sandbox.alist_files("/data") == ["a"]

    asyncio.run(main())


def test_a_tool_that_uses_its_own_sandbox_fails_at_once(sandbox):
    attempts = [
        lambda: sandbox.bash("true"),
        lambda: sandbox.write_file("/data/f", "x"),
        lambda: sandbox.execute_python("1"),
        lambda: asyncio.run(sandbox.aexecute_python("1")),
    ]

    def again() -> str:
        for attempt in attempts:
            with pytest.raises(SubprocessCrashed, match="cannot change the sandbox inside a tool"):
                attempt()
        return sandbox.read_file("/data/f")

    sandbox.write_file("/data/f", "before")
    code = "from host_tools import call\nprint(call('again', {}))"
    result = sandbox.execute_python(code, toolset=[again])
    assert (result.stdout, result.error) == ("before\n", None)

    async def main():
        async def nested() -> str:
            with pytest.raises(SubprocessCrashed, match="cannot change the sandbox inside a tool"):
                await sandbox.aexecute_python("1")
            return await sandbox.aread_file("/data/f")

        return await sandbox.aexecute_python(code.replace("again", "nested"), toolset=[nested])

    assert asyncio.run(main()).stdout == "before\n"


def test_python_remembers_and_never_raises(sandbox):
    sandbox.execute_python("import os\nx = 20\nos.mkdir('sub')\nos.chdir('sub')")
    assert sandbox.execute_python("print(x + 1, os.getcwd())").stdout == "21 /data\n"
    failed = sandbox.execute_python("print('before')\nraise ValueError('no')")
    assert failed.exit_code == 1 and failed.stdout == "before\n" and "ValueError: no" in failed.error
    assert 'File "<exec>", line 2' in failed.stderr and "_localsandbox" not in failed.stderr
    assert sandbox.execute_python("import sys; sys.exit(0)").exit_code == 0
    assert sandbox.execute_python("print(x)").stdout == "20\n"
    assert sandbox.execute_python("def f(:").exit_code == 1
    lengths = [entry.parameters["codeLength"] for entry in sandbox.history() if entry.name == "python"]
    assert lengths[:2] == [len("def f(:"), len("print(x)")] and len(lengths) == 6


def test_files_are_found_or_not(sandbox):
    for act in (sandbox.read_file, sandbox.read_file_bytes, sandbox.delete_file, sandbox.list_files):
        with pytest.raises(FileNotFoundError) as caught:
            act("/data/none")
        assert caught.value.path == "/data/none"
    sandbox.write_file_bytes("/data/d/raw", b"\xff\x00")
    assert sandbox.read_file_bytes("/data/d/raw") == b"\xff\x00" and sandbox.read_file("/data/d/raw") == "\ufffd\x00"
    with pytest.raises(FileNotFoundError):
        sandbox.read_file("/data/d")
    with pytest.raises(FileNotFoundError):
        sandbox.delete_file("/data/d")
    with pytest.raises(SubprocessCrashed):
        sandbox.write_file("/data/d", "a directory")
    for wrong in (5, "text", [1]):
        with pytest.raises(TypeError):
            sandbox.write_file_bytes("/data/d/raw", wrong)
    sandbox.write_file_bytes("/data/d/raw", memoryview(b"\x00"))
    assert sandbox.read_file_bytes("/data/d/raw") == b"\x00"
    sandbox.delete_file("/data/d/raw")
    assert sandbox.list_files("/data/d") == [] and not sandbox.exists("/data/d/raw")


def test_history_has_localsandbox_s_names_and_milliseconds(tmp_path):
    text, raw = tmp_path / "t", tmp_path / "r"
    text.write_text("text")
    raw.write_bytes(b"\xff")
    with LocalSandbox(files={"/data/t": text, "/data/r": raw, "/data/s": "s"}) as sandbox:
        sandbox.read_file("/data/t")
        assert sandbox.read_file_bytes("/data/r") == b"\xff"
        sandbox.exists("/data/none")
        seed = sandbox.history()[-1]
        assert seed.name == "seed" and seed.parameters == {"paths": ["/data/t", "/data/r", "/data/s"], "count": 3}
        read = sandbox.history()[2]
        assert (read.name, read.parameters, read.result) == ("read_file", {"path": "/data/t"}, {"success": True})
        assert sandbox.history()[0].result == {"exists": False}
        assert read.started_at > 1_600_000_000_000 and read.completed_at >= read.started_at
        assert len(sandbox.history(limit=1)) == 1


def test_the_constructor_and_the_end():
    with pytest.raises(ValueError, match="Cannot provide both 'files' and 'snapshot'"):
        LocalSandbox(files={}, snapshot=b"")
    sandbox = LocalSandbox()
    sandbox.destroy()
    sandbox.destroy()
    with pytest.raises(RuntimeError, match="LocalSandbox instance has been destroyed"):
        sandbox.bash("true")
    with pytest.raises(SubprocessCrashed):
        LocalSandbox(snapshot=b"no database").bash("true")
    assert issubclass(TimeoutError, LocalSandboxError) and Path


def test_toolsets_are_checked(sandbox):
    def lookup(name: str, deep: bool = False) -> str:
        """Looks a name up.

        In detail."""
        return name * (2 if deep else 1)

    definition = function_to_tool_definition(lookup)
    assert (definition.name, definition.description) == ("lookup", "Looks a name up.")
    assert definition.input_schema["required"] == ["name"] and definition.output_schema == {"type": "string"}
    slow = ToolDefinition("slow", "", {"type": "object"}, timeout_ms=20)
    waiting = asyncio.Event

    async def never(payload):
        await waiting().wait()

    toolset = PythonToolset([slow], {"slow": never})
    said = sandbox.execute_python(
        "from host_tools import call\nfor name in ('slow', 'other'):\n  try: call(name, {})\n  except RuntimeError as e: print(e)",
        toolset=toolset,
    )
    assert "timed out after 20 ms" in said.stdout and "Tool 'other' is not declared" in said.stdout, said
    with pytest.raises(ValueError, match="Missing handlers"):
        sandbox.execute_python("", toolset=PythonToolset([slow], {}))
    with pytest.raises(TypeError):
        sandbox.execute_python("", toolset=[1])


def test_a_snapshot_of_localsandbox_0_3_2_loads():
    packed = Path(__file__).parent / "data/localsandbox-0.3.2.db.xz"
    with LocalSandbox(snapshot=lzma.decompress(packed.read_bytes())) as sandbox:
        assert sandbox.read_file("/data/a/b.txt") == "from localsandbox"
        assert sandbox.read_file_bytes("/data/raw") == b"\x00\xff"
        assert sandbox.kv.get("k") == "v"
        assert sandbox.bash("cat n; readlink link; cat link; ls -d empty").stdout == (
            "42\n/data/a/b.txt\nfrom localsandboxempty\n"
        )
        names = [(entry.name, (entry.result or {}).get("exitCode")) for entry in sandbox.history()]
        assert ("bash", 0) in names[1:] and names[-1][0] == "seed"


@pytest.mark.skipif("SANDLITE_LOCALSANDBOX" not in os.environ, reason="needs LocalSandbox 0.3.2 with its Deno and npm packages")
def test_localsandbox_itself_loads_our_snapshots(tmp_path):
    script = """
import sys
from localsandbox import LocalSandbox
with LocalSandbox(snapshot=open(sys.argv[1], "rb").read()) as sandbox:
    print(sandbox.bash("cat /data/d/f; echo new > /data/d/g; cat /data/d/g").stdout, end="")
    print(sandbox.execute_python("print(open('/data/d/f').read())").stdout, end="")
    print(sandbox.kv.get("k"), [entry.name for entry in sandbox.history()][-2:])
"""
    with Sandbox(files={"/d/f": "from sandlite\n"}) as box:
        box.bash("ln -s f /d/link; python3 -c 'print(1)'")
        box.kv.set("k", "v")
        (tmp_path / "s.db").write_bytes(box.export_snapshot(compat="localsandbox"))
    interpreter = os.environ["SANDLITE_LOCALSANDBOX"]
    done = subprocess.run([interpreter, "-c", script, str(tmp_path / "s.db")], capture_output=True, text=True)
    assert done.stdout == "from sandlite\nnew\nfrom sandlite\n\nv ['bash', 'seed']\n", done


def test_python_of_threads_and_of_tasks_takes_turns(sandbox, monkeypatch):
    whole, inside, most = LocalSandbox._execute, [], []

    def counted(self, *arguments):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        try:
            return (yield from whole(self, *arguments))
        finally:
            inside.pop()

    monkeypatch.setattr(LocalSandbox, "_execute", counted)

    def one(x: int) -> int:
        return x + 1

    def two(x: int) -> int:
        return x + 2

    async def main():
        loop = asyncio.get_running_loop()
        code = "from host_tools import call; print(call('{}', {{'x': 1}}))"
        calls = []
        for _ in range(3):
            calls.append(loop.run_in_executor(None, lambda: sandbox.execute_python(code.format("one"), toolset=[one])))
            calls.append(sandbox.aexecute_python(code.format("two"), toolset=[two]))
        results = await asyncio.gather(*calls)
        assert [result.stdout for result in results] == ["2\n", "3\n"] * 3, results
        # A call that would wait for a task of its own thread.
        waiting = asyncio.ensure_future(sandbox.aexecute_python("import time; time.sleep(0.2)"))
        await asyncio.sleep(0.1)
        with pytest.raises(SubprocessCrashed, match="await the asynchronous method"):
            sandbox.execute_python("1")
        # A cancelled one gives its turn back.
        late = asyncio.ensure_future(sandbox.aexecute_python("1"))
        await asyncio.sleep(0)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert (await waiting).exit_code == 0
        assert (await sandbox.aexecute_python("print(1)")).stdout == "1\n"

    asyncio.run(main())
    assert max(most) == 1 and not inside


def test_code_with_lone_surrogates_is_a_result_with_an_error(sandbox):
    code = "print('\ud800')"
    result = sandbox.execute_python(code)
    assert (result.exit_code, result.stdout) == (1, "") and "UnicodeEncodeError" in result.error
    assert sandbox.history(1)[0].parameters["codeLength"] == 10
    assert asyncio.run(sandbox.aexecute_python(code)).exit_code == 1
    assert sandbox.execute_python("print(len('\\ud800'))").stdout == "1\n"
    assert sandbox.bash("echo 'a\ud800b\U0001f600'").stdout == "a\ufffdb\U0001f600\n"
