"""Files, values, history and the summary of a sandbox."""

import asyncio
import os

import pytest

from sandlite import AsyncSandbox, Sandbox, errors


@pytest.fixture
def box():
    with Sandbox() as made:
        yield made


def test_directories_and_metadata(box):
    box.mkdir("a/b")
    box.mkdir("a/b")
    box.write_file("a/f", "five!")
    box.bash("ln -s f a/l; chmod 600 a/f")
    assert (box.stat("a").kind, box.stat("a").is_dir) == ("directory", True)
    found = box.stat("a/l")
    assert (found.path, found.kind, found.size, found.mode, found.name) == ("/home/user/a/l", "file", 5, 0o600, "l")
    link = box.stat("a/l", follow_symlinks=False)
    assert (link.kind, link.target) == ("symlink", "f")
    assert [(entry.path, entry.kind) for entry in box.walk("a")] == [
        ("/home/user/a", "directory"),
        ("/home/user/a/b", "directory"),
        ("/home/user/a/f", "file"),
        ("/home/user/a/l", "symlink"),
    ]
    with pytest.raises(FileNotFoundError):
        box.stat("none")
    with pytest.raises(FileExistsError):
        box.mkdir("a/f")


def test_append_copy_move_and_remove(box):
    box.append("log/x", "one\n")
    box.append("log/x", b"two\n")
    assert box.copy("log/x", "y") == "/home/user/y"
    assert box.copy("log", "copy", recursive=True) == "/home/user/copy"
    with pytest.raises(IsADirectoryError):
        box.copy("log", "copy2")
    box.move("y", "moved/z")
    assert box.read_file("moved/z") == box.read_file("copy/x") == "one\ntwo\n"
    with pytest.raises(ValueError, match="exists"):
        box.move("moved/z", "copy/x")
    box.move("moved/z", "copy/x", overwrite=True)
    with pytest.raises(OSError):
        box.remove("copy")
    box.remove("copy", recursive=True)
    assert not box.exists("copy")
    for value in (5, True, None):
        with pytest.raises(TypeError):
            box.append("x", value)


def test_many_files_are_written_together_or_not_at_all(box):
    box.write_files({"a": "1", "/b/c": b"\x00"})
    assert box.history(1)[0].name == "write_files"
    assert (box.read_file("a"), box.read_bytes("/b/c")) == ("1", b"\x00")
    with pytest.raises(OSError):
        box.write_files({"new": "x", "a/below-a-file": "y"})
    assert not box.exists("new")
    with pytest.raises(TypeError):
        box.write_files({"new": 5})


def test_files_of_this_machine_go_in_and_out(box, tmp_path):
    (tmp_path / "in").write_bytes(b"x" * 300_000)
    assert box.upload(tmp_path / "in", "deep/in") == 300_000
    assert box.download("deep/in", tmp_path / "out") == 300_000
    assert (tmp_path / "out").read_bytes() == b"x" * 300_000
    box.write_file("deep/in", "new")
    with pytest.raises(FileExistsError):
        box.download("deep/in", tmp_path / "out")
    assert box.download("deep/in", str(tmp_path / "out"), overwrite=True) == 3
    assert (tmp_path / "out").read_text() == "new"
    with pytest.raises(FileNotFoundError):
        box.upload(tmp_path / "none", "x")
    with pytest.raises(FileNotFoundError):
        box.download("none", tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match="use upload_dir"):
        box.upload(tmp_path, "x")


def test_trees_of_this_machine_go_in_and_out(box, tmp_path):
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "f").write_text("f")
    os.symlink("sub/f", source / "l")
    copied = box.upload_dir(source, "project")
    assert (copied.files, copied.directories, copied.symlinks, copied.bytes, copied.skipped) == (1, 1, 1, 1, [])
    assert box.read_file("project/l") == "f"
    assert box.download_dir("project", tmp_path / "result").files == 1
    assert (tmp_path / "result" / "sub" / "f").read_text() == "f"
    with pytest.raises(errors.SandliteError):
        box.download_dir("project", tmp_path / "result")


def test_values_have_defaults_and_items(box):
    box.kv.set("a/1", [1])
    box.kv.set("a/2", None)
    assert box.kv.get("none", "default") == "default" and box.kv.get("a/2", "default") is None
    assert "a/1" in box.kv and "none" not in box.kv and box.kv.contains("a/2")
    assert box.kv.items("a/") == [("a/1", [1]), ("a/2", None)] and box.kv.items("b") == []


def test_the_history_has_the_output_that_is_asked_for(box):
    box.bash("printf 'out\\xff'; echo err >&2")
    bare, whole = box.history(1)[0], box.history(1, output=True)[0]
    assert (bare.stdout_bytes, bare.stderr) == (b"", "")
    assert (whole.stdout_bytes, whole.stdout, whole.stderr) == (b"out\xff", "out\ufffd", "err\n")


def test_a_sandbox_knows_itself(tmp_path):
    path = tmp_path / "agent.db"
    with Sandbox(path, preset="strict", files={"/f": "five!"}) as box:
        assert (box.path, box.preset, box.read_only, box.cwd) == (str(path), "strict", False, "/home/user")
        assert box.limits["wall"].endswith("s") and "memory" in box.limits
        info = box.info()
        assert (info.path, info.preset, info.files, info.used["disk"]) == (str(path), "strict", 1, 5)
        assert info.allowed["disk"] > 5 and info.database_bytes > 0
        assert repr(box) == f"<sandlite.Sandbox '{path}' preset=strict>"
        assert repr(box.session("work")) == f"<sandlite.Session 'work' of '{path}' preset=strict>"
    assert repr(box) == f"<sandlite.Sandbox '{path}' preset=strict closed>"
    with Sandbox() as box:
        assert box.path is None and repr(box) == "<sandlite.Sandbox in memory preset=normal>"


def test_a_read_only_sandbox_is_read_beside_the_one_that_writes(tmp_path):
    path = tmp_path / "agent.db"
    with pytest.raises(errors.SandliteError):
        Sandbox(path, read_only=True)
    with Sandbox(path) as writer, Sandbox(path, read_only=True) as first, Sandbox(path, read_only=True) as second:
        writer.write_file("/f", "one")
        assert first.read_only and first.read_file("/f") == second.read_file("/f") == "one"
        for attempt in (lambda: first.write_file("/f", "two"), lambda: first.bash("true"), lambda: first.kv.set("k", 1)):
            with pytest.raises(errors.SandliteError):
                attempt()
        writer.write_file("/f", "two")
        assert first.read_file("/f") == second.read_file("/f") == "two"


def test_the_same_for_asyncio(tmp_path):
    async def main():
        (tmp_path / "in").write_text("host")
        async with AsyncSandbox(tmp_path / "agent.db", preset="strict") as box:
            await box.mkdir("d")
            await box.write_files({"d/a": "a", "d/b": b"b"})
            await box.append("d/a", "!")
            assert (await box.stat("d/a")).size == 2
            assert await box.copy("d/a", "d/c") == "/home/user/d/c"
            await box.move("d/c", "d/e")
            await box.remove("d/e")
            assert [found.name for found in await box.walk("d")] == ["d", "a", "b"]
            assert await box.upload(tmp_path / "in", "in") == 4
            assert await box.download("in", tmp_path / "out") == 4
            assert (await box.download_dir("d", tmp_path / "tree")).files == 2
            assert (await box.upload_dir(tmp_path / "tree", "back")).files == 2
            await box.kv.set("k", 1)
            assert await box.kv.get("none", 2) == 2 and await box.kv.contains("k")
            assert await box.kv.items() == [("k", 1)]
            assert (await box.info()).keys == 1 and box.preset == "strict" and box.limits
            await box.bash("echo hi")
            assert (await box.history(1, output=True))[0].stdout == "hi\n"
            assert repr(box) == f"<sandlite.AsyncSandbox '{tmp_path / 'agent.db'}' preset=strict>"
        assert repr(AsyncSandbox()) == "<sandlite.AsyncSandbox not open>"
        async with AsyncSandbox(tmp_path / "agent.db", read_only=True) as box:
            assert box.read_only and await box.read_file("in") == "host"

    asyncio.run(main())
