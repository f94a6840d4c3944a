"""Databases, past versions and functions as files of a sandbox."""

import asyncio
import errno
import gc
import threading
import time
import weakref

import pytest

from sandlite import AsyncSandbox, BusyError, NodeContext, ProvidedNode, Sandbox, SandliteError


def test_a_function_is_a_file_for_every_program():
    calls = []

    def rows(context: NodeContext) -> str:
        calls.append((context.path, context.run))
        return "".join(f"row {n}\n" for n in range(1000))

    with Sandbox() as box:
        box.mount_file("/srv/rows", rows)
        assert box.bash("wc -l < /srv/rows; head -c 5 /srv/rows; tail -n 1 /srv/rows").stdout == "1000\nrow 0row 999\n"
        assert box.bash("cp /srv/rows /tmp/c; tar cf /tmp/t.tar /srv/rows 2>/dev/null; tar tvf /tmp/t.tar | grep -c 7890").stdout == "1\n"
        assert box.python("print(len(open('/srv/rows').read()))").stdout == "7890\n"
        assert len(box.read_file("/srv/rows")) == 7890
        assert box.grep("row 999", "/srv/rows")
        assert {path for path, _ in calls} == {"/srv/rows"}
        assert calls[0][1] == 2 and calls[-1][1] is None
        with pytest.raises(SandliteError):
            box.write_file("/srv/rows", "x")
        assert box.unmount("/srv/rows") and not box.unmount("/srv/rows")
        assert box.read_file("/srv/rows") == ""


def test_searches_warn_of_what_they_cannot_read():
    def broken():
        raise ValueError("no connection")

    async def asynchronous():
        async with AsyncSandbox() as box:
            await box.mount_directory("/srv/broken", broken)
            with pytest.warns(UserWarning, match="/srv/broken"):
                assert await box.glob("/srv/**/*.txt") == []

    with Sandbox(files={"/srv/fine/a.txt": "x\n"}) as box:
        box.mount_directory("/srv/broken", broken)
        with pytest.warns(UserWarning, match="/srv/broken"):
            assert box.glob("/srv/**/*.txt") == ["/srv/fine/a.txt"]
        with pytest.warns(UserWarning, match="/srv/broken"):
            assert [match.path for match in box.grep("x", "/srv")] == ["/srv/fine/a.txt"]
        with pytest.warns(UserWarning, match="/srv/broken"):
            assert "/srv/fine/a.txt" in [entry.path for entry in box.list_files("/srv", depth=3)]
    asyncio.run(asynchronous())


def test_a_directory_of_functions():
    with Sandbox() as box:
        box.mount_directory("/api", lambda: {"a.json": "{}", "raw": b"\xff", "in": {"later": lambda context: context.path}})
        assert box.bash("find /api | sort; cat /api/a.json /api/in/later").stdout == (
            "/api\n/api/a.json\n/api/in\n/api/in/later\n/api/raw\n{}/api/in/later"
        )
        assert box.read_bytes("/api/raw") == b"\xff"
        box.mount_directory("/over", lambda: ProvidedNode.directory({"n": ProvidedNode.file("1\n")}), overlay=True)
        assert box.bash("echo 2 >> /over/n; cat /over/n").stdout == "1\n2\n"
        assert box.bash("cat /over/n").stdout == "1\n2\n"


def test_exceptions_are_io_errors_with_their_message():
    def broken(context):
        raise ValueError("no such user")

    with Sandbox() as box:
        box.mount_file("/bad", broken)
        result = box.bash("cat /bad")
        assert result.exit_code == 1 and "ValueError: no such user" in result.stderr
        assert "ValueError: no such user" in box.history(output=True)[0].stderr
        with pytest.raises(OSError, match="no such user") as caught:
            box.read_file("/bad")
        assert caught.value.errno == errno.EIO
        box.mount_directory("/names", lambda: {"../x": "1"})
        assert "invalid name `../x`" in box.bash("ls /names").stderr
        box.mount_file("/wrong", lambda: 3)
        assert "expected str or bytes, not int" in box.bash("cat /wrong").stderr
        endless = {}
        endless["again"] = endless
        box.mount_directory("/endless", lambda: endless)
        assert "RecursionError" in box.bash("ls /endless").stderr


def test_a_function_sees_the_running_command_and_cannot_change_the_sandbox():
    with Sandbox(files={"/plain": "plain"}) as box:
        seen = []

        def look(context):
            seen.append((context.view.read_file("/plain"), context.view.exists("/tmp/new"), context.cancel()))
            with pytest.raises((BusyError, SandliteError)):
                box.write_file("/x", "1")
            with pytest.raises((BusyError, SandliteError)):
                box.bash("true")
            with pytest.raises(OSError):
                box.read_file(context.path)
            return "done"

        box.mount_file("/look", look)
        began = time.monotonic()
        assert box.bash("echo > /tmp/new; cat /look").stdout == "done"
        assert box.read_file("/look") == "done"
        assert seen[0] == ("plain", True, False) and time.monotonic() - began < 5


def test_a_slow_function_ends_with_its_command():
    over = threading.Event()

    def slow(context):
        while not context.cancel():
            time.sleep(0.01)
        over.set()
        return ""

    with Sandbox() as box:
        box.mount_file("/slow", slow)
        began = time.monotonic()
        assert box.bash("cat /slow", timeout=0.3, check=False).limit is not None
        assert time.monotonic() - began < 5 and over.wait(5)


def test_async_functions_run_in_the_loop():
    async def main():
        async with AsyncSandbox() as box:
            loop = asyncio.get_running_loop()

            async def content(context):
                await asyncio.sleep(0.01)
                assert asyncio.get_running_loop() is loop
                return f"{context.run}\n"

            await box.mount_file("/n", content)
            await box.mount_directory("/d", lambda: {"lazy": content})
            assert (await box.bash("cat /n /d/lazy")).stdout == "3\n3\n"
            assert await box.read_file("/n") == "None\n"
            assert await box.unmount("/n")

    asyncio.run(main())


def test_mounts_that_are_made_at_once_are_all_there():
    async def main():
        async with AsyncSandbox() as box:
            paths = [f"/m{number}" for number in range(8)]
            await asyncio.gather(*(box.mount_file(path, lambda: "x") for path in paths))
            assert (await box.bash("cat /m?")).stdout == "x" * 8
            assert all(await asyncio.gather(*(box.unmount(path) for path in paths)))
            assert (await box.bash("cat /m?")).stdout == ""

    asyncio.run(main())


def test_a_mounted_function_does_not_keep_the_sandbox():
    box = Sandbox()
    box.mount_file("/n", lambda context: context.view.read_file("/etc/hostname"))
    gone = weakref.ref(box)
    del box
    gc.collect()
    assert gone() is None


def test_bases_and_past_versions(tmp_path):
    base = str(tmp_path / "base.db")
    with Sandbox(base, files={"/work/a": "1", "/work/b": "1"}) as box:
        box.checkpoint("first")
    with Sandbox(tmp_path / "own.db", base=base) as one, Sandbox(base=base) as two:
        one.write_file("/work/a", "mine")
        assert (one.read_file("/work/a"), two.read_file("/work/a")) == ("mine", "1")
        with Sandbox(base) as box:
            box.write_file("/work/a", "theirs")
            box.write_file("/work/b", "2")
        with pytest.raises(SandliteError, match="changed on both sides: `/work/a`"):
            one.update()
        assert one.read_file("/work/b") == "1"
        done = one.update(keep="ours")
        assert (done.changes, done.conflicts) == (1, ["/work/a"])
        assert (one.read_file("/work/a"), one.read_file("/work/b")) == ("mine", "2")
        assert two.update().conflicts == [] and two.read_file("/work/a") == "theirs"
    with Sandbox(mounts=[f"db:{base}@first:/then", f"db:{base}:/now:overlay"]) as box:
        assert box.bash("cat /then/work/a /now/work/b; rm /now/work/b; ls /now/work").stdout == "12a\n"
    with Sandbox(base, mounts=["at:first:/then"]) as box:
        assert box.read_file("/then/work/a") == "1"
    with pytest.raises(SandliteError, match="invalid mount"):
        Sandbox(mounts=["nothing"])
