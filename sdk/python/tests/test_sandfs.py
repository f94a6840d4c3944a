"""sandfs's names over a sandbox: the programs of its README, and what must hold beyond them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from sandlite.sandfs import (
    MemoryStorageAdapter,
    NodePolicy,
    ProvidedNode,
    PythonExecutor,
    SandboxShell,
    SearchQuery,
    VirtualFileSystem,
    VisibilityView,
)
from sandlite.sandfs.exceptions import InvalidOperation, NodeExists, NodeNotFound, ProviderError
from sandlite.sandfs.hooks import WriteEvent
from sandlite.sandfs.integrations import InboxRecorder
from sandlite.sandfs.nodes import VirtualDirectory


def test_files_and_the_shell_of_the_readme() -> None:
    vfs = VirtualFileSystem()
    vfs.write_file("/notes/todo.txt", "- build VFS\n- add rg support\n")
    shell = SandboxShell(vfs)
    assert shell.exec("ls /notes").stdout == "todo.txt"
    assert shell.exec("rg 'VFS' /notes").stdout == "/notes/todo.txt:- build VFS"
    assert shell.exec("rg nothing /notes").exit_code == 0
    assert shell.exec("cd /notes\npwd").stdout == "/notes"
    assert shell.exec("cat missing\npwd").exit_code == 1
    assert shell.exec("ls /").stdout == "notes/"
    assert vfs.tree("/") == "/\n└── notes/\n    └── todo.txt"
    with pytest.raises(NodeNotFound):
        vfs.read_file("/missing")
    with pytest.raises(NodeExists):
        vfs.mkdir("/notes")


def test_providers() -> None:
    vfs = VirtualFileSystem()
    calls = []

    def logs(context):  # type: ignore[no-untyped-def]
        calls.append(str(context.path))
        return {"latest.log": ProvidedNode.file(content_provider=lambda inner: f"at {inner.path}")}

    vfs.mount_directory("/workspace/logs", logs)
    assert calls == []
    shell = SandboxShell(vfs)
    assert shell.exec("cat /workspace/logs/latest.log").stdout == "at /workspace/logs/latest.log"
    assert shell.exec("bash -c 'cat /workspace/logs/latest.log | wc -c'").stdout == "29\n"
    assert calls == ["/workspace/logs"]

    def broken(context):  # type: ignore[no-untyped-def]
        raise ValueError("no database")

    vfs.mount_file("/broken", broken)
    with pytest.raises(ProviderError, match="no database"):
        vfs.read_file("/broken")


def test_policies_count_in_the_shell_in_bash_and_in_python() -> None:
    vfs = VirtualFileSystem()
    for name in ("public", "alice", "bob", "log"):
        vfs.write_file(f"/blue/{name}", f"{name}\n")
    vfs.set_policy("/blue/alice", NodePolicy(classification="private", principals={"alice"}))
    vfs.set_policy("/blue/bob", NodePolicy(visibility="private", principals={"bob"}))
    vfs.set_policy("/blue/log", NodePolicy(append_only=True))
    vfs.set_policy("/blue/public", NodePolicy(writable=False))
    shell = SandboxShell(vfs, view=VisibilityView(classifications={"public"}, principals={"bob"}))
    assert shell.exec("ls /blue").stdout == "bob  log  public"
    assert "hidden" in shell.exec("cat /blue/alice").stderr
    assert shell.exec("bash -c 'ls /blue; cat /blue/alice'").stdout == "bob\nlog\npublic\n"
    assert shell.exec("""python -c "print([entry.name for entry in vfs.ls('/blue')])" """).stdout == "['bob', 'log', 'public']\n"
    assert shell.exec("find / -name alice").stdout == ""
    shell.exec("bash -c 'echo x > /blue/log; echo more >> /blue/log; echo x > /blue/public; rm -f /blue/log'")
    assert (vfs.read_file("/blue/log"), vfs.read_file("/blue/public")) == ("log\nmore\n", "public\n")
    for change in (lambda: vfs.write_file("/blue/log", "x"), lambda: vfs.remove("/blue/public")):
        with pytest.raises(InvalidOperation):
            change()
    # Policies are per node, and a node that names principals is hidden from everybody else.
    assert not VisibilityView().allows(NodePolicy(principals={"alice"}))


def test_policies_are_those_of_single_nodes() -> None:
    vfs = VirtualFileSystem()
    vfs.write_file("/blue/diary/today", "sunny\n")
    vfs.set_policy("/blue/diary", NodePolicy(classification="private"))
    view = VisibilityView(classifications={"public"})
    shell = SandboxShell(vfs, view=view)
    assert "hidden" in shell.exec("ls /blue/diary").stderr and shell.exec("ls /blue").stdout == ""
    assert shell.exec("cat /blue/diary/today").stdout == "sunny\n"
    # A command of the sandbox cannot enter a directory that does not exist for it.
    assert shell.exec("bash -c 'cat /blue/diary/today'").exit_code == 1
    assert view == VisibilityView({"public"}) and len({view, VisibilityView({"public"})}) == 1


def test_nodes_and_messages() -> None:
    vfs = VirtualFileSystem()
    vfs.write_file("/a/b/c", "1")
    vfs.mkdir("/empty")
    node = vfs.get_node("/a/b/c")
    node.metadata = {"kind": "note"}
    assert node.parent is not None and (node.parent.path(), vfs.ls("/a/b")[0].metadata) == (PurePosixPath("/a/b"), {"kind": "note"})
    assert isinstance(vfs.root, VirtualDirectory) and list(vfs.root.children) == ["a", "empty"]
    assert vfs.root.get_child("a").path() == PurePosixPath("/a") and vfs.root.parent is None
    shell = SandboxShell(vfs)
    for line, expected in (
        ("cat /a/x/y", "Child x not found in /a"),
        ("cat /nothing", "Child nothing not found in /"),
        ("cat /a/b/c/d", "/a/b/c is not a directory"),
        ("ls /a/b/c", "/a/b/c is not a directory"),
        ("grep -i", "Missing pattern"),
    ):
        assert shell.exec(line).stderr == expected
    assert shell.exec("ls /a /empty").stdout == "/a:\nb/\n/empty:"
    # Any bytes that a command writes are text here.
    shell.exec("bash -c \"printf 'a\\\\377b' > /raw\"")
    assert vfs.read_file("/raw") == "ab"


def test_searches_list_files_in_the_order_of_their_creation() -> None:
    vfs = VirtualFileSystem()
    for path in ("/n/z", "/n/sub/b", "/n/a"):
        vfs.write_file(path, "TODO\n")
    shell = SandboxShell(vfs)
    shell.exec("bash -c 'echo TODO > /n/m'")
    snapshot = vfs.snapshot()
    vfs.remove("/n/z")
    vfs.write_file("/n/z", "TODO\n")
    assert shell.exec("rg TODO /n").stdout.split() == [f"/n/{name}:TODO" for name in ("sub/b", "a", "m", "z")]
    vfs.restore(snapshot)
    assert shell.exec("rg TODO /n").stdout.split() == [f"/n/{name}:TODO" for name in ("z", "sub/b", "a", "m")]
    assert shell.exec("ls /n").stdout == "sub/  a  m  z"
    for line, content in (("write /o --text", "--text"), ("write /o --text --append x", "--append x")):
        shell.exec(line)
        assert vfs.read_file("/o") == content
    assert shell.exec("host -p /nothing ls").exit_code == 127


def test_moves_keep_what_belongs_to_a_node_and_replace_nothing() -> None:
    vfs = VirtualFileSystem()
    vfs.write_file("/a/d/f", "1")
    vfs.write_file("/a/d/f", "2")
    vfs.write_file("/b/other", "x")
    vfs.get_node("/a/d/f").metadata = {"kind": "note"}
    vfs.set_policy("/a/d/f", NodePolicy(classification="private"))
    vfs.mount_file("/a/d/now", lambda context: f"at {context.path}")
    vfs.cd("/a/d")
    vfs.move("/a/d", "/b")
    assert (vfs.exists("/a/d"), vfs.pwd(), vfs.read_file("f"), vfs.read_file("now")) == (False, "/b/d", "2", "at /b/d/now")
    assert (vfs.get_version("/b/d/f"), vfs.get_node("/b/d/f").metadata) == (2, {"kind": "note"})
    assert vfs.get_policy("/b/d/f").classification == "private"
    vfs.move("/b/d/f", "/b/d")
    vfs.move("/b/d/f", "/b/d/g")
    assert [entry.name for entry in vfs.ls("/b/d")] == ["g", "now"]
    vfs.write_file("/b/d/other", "y")
    vfs.set_policy("/b/d/g", NodePolicy(writable=False))
    for source, target, error, message in (
        ("/", "/b", InvalidOperation, "Cannot move root directory"),
        ("/b", "/b/d", InvalidOperation, "Cannot move a directory inside itself"),
        ("/b", "/b", InvalidOperation, "Cannot move a directory inside itself"),
        ("/b/other", "/b/d/g", InvalidOperation, "Destination /b/d/g already exists"),
        ("/b/other", "/b/d", NodeExists, "Node other already exists in /b/d"),
        ("/b/d/g", "/free", InvalidOperation, "/b/d/g is read-only"),
        ("/b/other", "/none/x", NodeNotFound, "Child none not found in /"),
        ("/missing", "/b", NodeNotFound, "Child missing not found in /"),
    ):
        with pytest.raises(error, match=f"^{message}$"):
            vfs.move(source, target)
    assert vfs.read_file("/b/other") == "x"


def test_copies_have_their_own_content_and_no_writes() -> None:
    vfs = VirtualFileSystem()
    vfs.write_file("/src/f", "one")
    vfs.set_policy("/src/f", NodePolicy(classification="private"))
    vfs.mount_file("/src/now", lambda context: "provided")
    vfs.write_file("/g", "old")
    vfs.copy("/src/f", "/g")
    assert (vfs.read_file("/g"), vfs.get_version("/g"), vfs.get_policy("/g").classification) == ("one", 0, "private")
    vfs.write_file("/g", "two")
    vfs.copy("/g", "/g")
    assert (vfs.read_file("/src/f"), vfs.read_file("/g")) == ("one", "two")
    vfs.copy("/src", "/copy", recursive=True)
    vfs.copy("/src", "/copy", recursive=True)
    assert [entry.name for entry in vfs.ls("/copy")] == ["src", "f", "now"]
    assert vfs.box.read_file("/copy/src/now") == "provided" and vfs.read_file("/copy/f") == "one"
    vfs.get_policy("/copy/f").classification = "public"
    assert vfs.get_policy("/src/f").classification == "private"
    vfs.set_policy("/src/now", NodePolicy(readable=False))
    vfs.set_policy("/g", NodePolicy(append_only=True))
    for source, target, recursive, error, message in (
        ("/src", "/x", False, InvalidOperation, "Source is a directory; pass recursive=True"),
        ("/src", "/src/deep", True, InvalidOperation, "Cannot copy a directory inside itself"),
        ("/src", "/copy", True, NodeExists, "Node src already exists in /copy"),
        ("/src/now", "/x", False, InvalidOperation, "/src/now is not readable"),
        ("/src/f", "/g", False, InvalidOperation, "/g is append-only"),
    ):
        with pytest.raises(error, match=f"^{message}$"):
            vfs.copy(source, target, recursive=recursive)


def test_globs_and_searches() -> None:
    vfs = VirtualFileSystem()
    for path, text in (("/n/a.py", "def Run():\n  pass\n"), ("/n/b.txt", "run\nRUN\n"), ("/n/d/c.py", "run.\n"), ("/x.py", "")):
        vfs.write_file(path, text)
    vfs.set_policy("/n/d/c.py", NodePolicy(classification="private"))
    public = VisibilityView(classifications={"public"})
    assert vfs.glob("*.py") == ["/x.py"] and vfs.glob("*", cwd="/n") == ["/n/d", "/n/a.py", "/n/b.txt"]
    # In a pattern with a slash, `*` matches any number of directories.
    assert vfs.glob("/n/*.py") == vfs.glob("n/*.py") == ["/n/a.py", "/n/d/c.py"]
    assert vfs.glob("d/*", cwd="/n") == ["/n/d/c.py"] and vfs.glob("/n/*.py", view=public) == ["/n/a.py"]
    assert vfs.glob("") == vfs.glob("/none/*") == []

    def lines(*arguments, **options):  # type: ignore[no-untyped-def]
        return [(str(found.path), found.line_no, found.line_text) for found in vfs.search(*arguments, **options)]

    assert lines("run") == [("/n/b.txt", 1, "run"), ("/n/d/c.py", 1, "run.")]
    assert lines("run.") == lines("^run\\.$", regex=True) == [("/n/d/c.py", 1, "run.")]
    assert lines(SearchQuery("RUN", ignore_case=True, path_prefix=PurePosixPath("/n/b.txt"))) == [
        ("/n/b.txt", 1, "run"),
        ("/n/b.txt", 2, "RUN"),
    ]
    assert lines("run", "/n/d", view=public) == lines("run", "/none") == []
    vfs.set_policy("/n/b.txt", NodePolicy(readable=False))
    assert lines("run", ignore_case=True, view=public) == [("/n/a.py", 1, "def Run():")]


def test_a_loader_keeps_existing_files() -> None:
    vfs = VirtualFileSystem()
    vfs.write_file("/t/README", "mine")
    vfs.mkdir("/t/src")
    node = ProvidedNode.file(content="theirs")
    vfs.mount_directory("/t", lambda _: {"README": node, "src": ProvidedNode.directory(children={"x": node}), "new": node})
    assert (vfs.read_file("/t/README"), vfs.read_file("/t/new"), vfs.exists("/t/src/x")) == ("mine", "theirs", False)


def test_hooks_and_versions_count_what_commands_write() -> None:
    vfs = VirtualFileSystem()
    events: "list[WriteEvent]" = []
    inbox = InboxRecorder()
    vfs.register_write_hook("/blue/work", events.append)
    inbox.attach(vfs, "/blue/work")
    vfs.write_file("/blue/work/note.md", "draft")
    vfs.write_file("/blue/work/note.md", "final", expected_version=1)
    vfs.write_file("/elsewhere", "x")
    SandboxShell(vfs).exec("bash -c 'echo more >> /blue/work/note.md'")
    assert [(event.version, event.content) for event in events] == [(1, "draft"), (2, "final"), (3, "finalmore\n")]
    with pytest.raises(InvalidOperation):
        vfs.write_file("/blue/work/note.md", "late", expected_version=2)
    SandboxShell(vfs).exec("bash -c 'rm /blue/work/note.md'")
    assert [event["event"] for event in inbox.events] == ["create", "update", "update", "delete"]


def test_stores_snapshots_and_exports(tmp_path: Path) -> None:
    adapter = MemoryStorageAdapter(initial={"a.txt": "seed"})
    vfs = VirtualFileSystem()
    vfs.mount_storage("/data", adapter)
    vfs.write_file("/data/a.txt", "update")
    assert adapter.read("a.txt").content == "update"
    snapshot = vfs.snapshot()
    vfs.write_file("/data/b.txt", "new")
    vfs.remove("/data/a.txt")
    assert set(adapter.list()) == {"b.txt"}
    vfs.restore(snapshot)
    assert vfs.read_file("/data/a.txt") == "update" and not vfs.exists("/data/b.txt")
    vfs.export_to_path(tmp_path / "out", source="/data")
    assert (tmp_path / "out" / "a.txt").read_text() == "update"
    with vfs.materialize("/data") as root:
        assert (root / "a.txt").is_file()
    assert not root.exists()


def test_the_shell_of_an_agent_and_python() -> None:
    vfs = VirtualFileSystem()
    vfs.write_file("/big.txt", "0123456789")
    shell = SandboxShell(vfs, allowed_commands={"ls", "cat"}, max_output_bytes=5)
    assert shell.exec("cat /big.txt").stderr == "Output limit (5 bytes) exceeded"
    for line in ("host ls", "bash -c ls", "id", "python -c 1"):
        assert shell.exec(line).exit_code == 1 and "disabled" in shell.exec(line).stderr
    assert SandboxShell(vfs, host_fallback=False).exec("id").exit_code == 127
    executor = PythonExecutor(vfs, globals_template={"factor": 6})
    result = executor.run("answer = factor * 7\nvfs.write_file('/out/a', str(answer))\nprint('hi')")
    assert (result.stdout, result.globals["answer"], vfs.read_file("/out/a")) == ("hi\n", 42, "42")
    with pytest.raises(InvalidOperation, match="NameError"):
        executor.run("print(answer)")
    for code, error, text in (("1 / 0", ZeroDivisionError, "division by zero"), ("x =", SyntaxError, "invalid syntax")):
        with pytest.raises(error, match=text):
            executor.run(code)
    given = PythonExecutor(vfs, builtins={"none": None, "largest": max})
    assert given.run("print(none, largest(items))", extra_globals={"items": [1, 3]}).stdout == "None 3\n"
    with pytest.raises(InvalidOperation, match="cannot use 'call' in the sandbox"):
        given.run("call()", extra_globals={"call": lambda: 1})
    assert executor.run("x = 1").globals == {"vfs": vfs, "fs": vfs, "factor": 6, "x": 1}
    # It runs in the sandbox, not in this process.
    assert executor.run("import os\nprint(os.path.exists('/root'), os.uname().machine)").stdout == "False wasm32\n"
