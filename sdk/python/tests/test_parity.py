"""One table, three skins: the names, schemas and results of MCP, of this package and of ``--json`` are the same."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import sandlite
from sandlite import Sandbox, anthropic

#: `cargo xtask test` names it; by hand it is the one that was built last.
PROGRAM = os.environ.get("SANDLITE_BIN", str(Path(__file__).parents[3] / "target/release/sandlite"))

#: What differs from run to run.
VOLATILE = {"time", "duration_ms", "started_ms", "time_ms", "modified", "wall_us", "fuel", "memory_peak"}

#: What MCP adds: actions on more than one sandbox, and the argument that names one.
SEVERAL = {"export_snapshot", "import_snapshot", "fork", "list_sandboxes", "drop_sandbox"}

#: Each action with its arguments, and the words of the command line for the same.
STEPS = [
    ("write_file", {"path": "/d/a.txt", "content": "one\ntwo\n"}, None),
    ("write_file", {"path": "/d/in/b.py", "content": "one = 1\n", "expected_version": "none"}, None),
    ("write_file", {"path": "/d/a.txt", "content": "", "expected_version": "none"}, None),
    ("edit_file", {"path": "/d/a.txt", "edits": [{"old": "two", "new": "2"}]}, None),
    ("read_file", {"path": "/d/a.txt", "offset": 2}, None),
    ("list_files", {"path": "/d", "depth": 2}, None),
    ("list_files", {"path": "/d", "hidden": True}, ["fs", "ls", "/d"]),
    ("glob", {"pattern": "**/*.py", "path": "/d"}, None),
    ("grep", {"pattern": "one", "path": "/d", "mode": "count"}, None),
    ("grep", {"pattern": "o(", "path": "/d"}, None),
    ("move_file", {"from": "/d/a.txt", "to": "/d/c.txt"}, None),
    ("delete_file", {"path": "/d", "recursive": True}, None),
    ("kv_set", {"key": "k", "value": {"a": [1, None]}}, ["kv", "set", "k", '{"a": [1, null]}']),
    ("kv_get", {"key": "k"}, ["kv", "get", "k"]),
    ("kv_keys", {"prefix": "k"}, ["kv", "keys", "k"]),
    ("kv_delete", {"key": "k"}, None),
    ("bash", {"command": "echo out; echo err >&2; exit 3"}, ["bash", "-c", "echo out; echo err >&2; exit 3"]),
    ("bash", {"command": "echo $X; pwd", "env": {"X": "x"}, "cwd": "/tmp"}, ["bash", "--env", "X=x", "--cwd", "/tmp", "-c", "echo $X; pwd"]),
    ("bash", {"command": "pwd", "timeout_ms": 0}, None),
    ("python", {"code": "6 * 7", "echo": True}, None),
    ("python", {"code": "print(6 * 7)"}, ["python", "-c", "print(6 * 7)"]),
    ("history", {"limit": 30}, None),
    ("history", {"run": 1}, None),
    ("checkpoint", {"name": "here", "message": "now"}, None),
    ("log", {"limit": 5}, None),
    ("diff", {"from": "HEAD~2"}, None),
    ("show", {"run": "HEAD"}, None),
    ("show", {"run": "1"}, None),
    ("write_file", {"path": "/b.txt", "content": "one\ntwo\n"}, None),
    ("blame", {"path": "/b.txt"}, None),
    ("bisect", {"good": "here", "command": "! test -e /b.txt"}, None),
    ("bash", {"command": "echo $RANDOM > /random; date; cat /random", "record": True, "seed": 7}, None),
    ("replay", {}, None),
    ("changes", {"since": "here"}, ["changes", "here"]),
    ("undo", {"dry_run": True}, None),
    ("undo", {}, None),
    ("restore", {"version": "here"}, None),
    # Actions for programs come last: MCP does not have them, and its history no rows of them.
    ("write_file", {"path": "/d/in/b.py", "content": "one = 1\n"}, None),
    ("copy_files", {"from": "/d", "to": "/e", "recursive": True}, ["fs", "cp", "-r", "/d", "/e"]),
    ("find_files", {"path": "/d", "name": "*.py"}, ["fs", "find", "/d", "--name", "*.py"]),
    ("find_files", {"path": "/d", "kind": "directory"}, ["fs", "find", "/d", "--kind", "dir"]),
    ("make_directory", {"path": "/d/new"}, None),
    ("append_file", {"path": "/d/in/b.py", "content": "dHdvCg==", "encoding": "base64"}, None),
    ("write_files", {"files": [{"path": "/d/w", "content": "w"}]}, None),
    ("file_info", {"path": "/d/w", "follow": False}, ["fs", "stat", "/d/w"]),
    ("disk_usage", {"path": "/d"}, ["fs", "du", "/d"]),
    ("tree", {"path": "/d"}, ["fs", "tree", "/d"]),
    ("apply", {"directory": "/nowhere"}, None),
    ("record", {"name": "note", "about": "a note", "content": "{}"}, None),
    ("update", {"path": "/d"}, None),
    ("checkpoints", {}, None),
    ("events", {"after": 1, "path": "/d"}, None),
    ("acknowledge_events", {"consumer": "index", "version": 2}, None),
    ("prune_versions", {"keep_versions": 2}, None),
    ("compact", {}, None),
]


def steady(value):
    """A result without what differs from run to run."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in VOLATILE}
    return [steady(item) for item in value] if isinstance(value, list) else value


class Mcp:
    """A client of ``sandlite mcp``."""

    def __init__(self, directory, *options):
        self._child = subprocess.Popen([PROGRAM, *options, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory, text=True)
        self._last = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "parity", "version": "1"}}
        self.request("initialize", client)

    def request(self, method, params):
        self._last += 1
        asked = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        print(json.dumps(asked), file=self._child.stdin, flush=True)
        answer = json.loads(self._child.stdout.readline())
        assert answer["id"] == self._last, answer
        return answer["result"]

    def close(self):
        self._child.stdin.close()
        assert self._child.wait() == 0


@pytest.fixture
def mcp(tmp_path):
    client = Mcp(tmp_path)
    yield client
    client.close()


def test_names_words_and_schemas_are_the_same(mcp):
    tools = {tool["name"]: tool for tool in mcp.request("tools/list", {})["tools"]}
    offered = {action["name"]: action for action in sandlite.actions() if action["audience"] == "models"}
    assert set(tools) - SEVERAL == set(offered)
    with Sandbox() as box:
        assert [tool["name"] for tool in anthropic.SandboxTools(box).tools] == list(offered)
    for name, action in offered.items():
        tool = tools[name]
        assert tool["inputSchema"]["properties"].pop("sandbox")["type"] == "string"
        assert (tool["inputSchema"], tool["outputSchema"]) == (action["input_schema"], action["output_schema"]), name
        assert (tool["title"], tool["description"]) == (action["title"], action["description"]), name
        hints = tool["annotations"]
        assert (hints["readOnlyHint"], hints["destructiveHint"]) == (action["effect"] == "reads", action["effect"] == "changes")


def test_results_are_the_same(mcp, tmp_path):
    assert {name for name, _, _ in STEPS} == {action["name"] for action in sandlite.actions()}
    schemas = {action["name"]: action["output_schema"] for action in sandlite.actions()}
    models = {action["name"] for action in sandlite.actions() if action["audience"] == "models"}
    database = tmp_path / "parity.db"
    with Sandbox() as box:
        for name, arguments, words in STEPS:
            answer = box.call_action(name, arguments)
            if answer.data is not None:
                assert set(schemas[name]["required"]) <= set(answer.data) <= set(schemas[name]["properties"]), name
            if name in models:
                result = mcp.request("tools/call", {"name": name, "arguments": arguments})
                seen = [result["content"][0]["text"], result.get("structuredContent"), result["isError"]]
                assert steady(seen) == steady([answer.text, answer.data, answer.is_error]), (name, arguments)
            if words is None:
                with Sandbox(database) as twin:
                    twin.call_action(name, arguments)
                continue
            done = subprocess.run([PROGRAM, "--db", str(database), "--json", *words], capture_output=True, text=True)
            printed = json.loads(done.stdout)
            # Verbs that only look leave no row, so runs have other numbers there.
            for each in (printed, answer.data):
                each.pop("run", None)
            assert steady(printed) == steady(answer.data), (name, words)


#: Files of the fixed world, rows, and links between them.
FILES = ("/etc/passwd", "/etc/hosts", "/proc/version", "/work/notes", "/work/link", "/work/users")


def test_every_interface_reads_the_same_files(tmp_path):
    database = str(tmp_path / "ways.db")

    def program(*words):
        return subprocess.run([PROGRAM, "--db", database, *words], capture_output=True, text=True, check=True).stdout

    with Sandbox(database) as box:
        box.bash("mkdir /work; cd /work; echo rows > notes; ln -s notes link; ln -s /etc/passwd users; mkfifo pipe")
        client = Mcp(tmp_path, "--db", database)
        for path in FILES:
            expected = box.bash(f"cat {path}").stdout
            assert expected, path
            window = box.call_action("read_file", {"path": path}).data
            resource = client.request("resources/read", {"uri": f"sandlite://{path}"})["contents"][0]
            assert resource["text"] == box.read_file(path) == program("fs", "cat", path) == expected, path
            size = len(expected.encode())
            assert window["size"] == box.call_action("file_info", {"path": path}).data["size"] == size, path
        for path in ("/", "/etc", "/work"):
            expected = sorted(box.bash(f"ls -A1 {path}").stdout.split())
            listed = box.call_action("list_files", {"path": path, "hidden": True}).data
            for data in (listed, json.loads(program("--json", "fs", "ls", path))):
                assert sorted(entry["path"].rpartition("/")[2] for entry in data["entries"]) == expected, path
        client.close()
