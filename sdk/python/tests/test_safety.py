"""What must not go wrong: forks, approvals, calls from inside tools, processes made by ``os.fork``."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading

import pytest

from sandlite import AsyncSandbox, BusyError, CommandError, LimitError, Sandbox, errors


@pytest.mark.parametrize("source", ["memory", "file"])
@pytest.mark.parametrize("target", ["memory", "file"])
def test_a_fork_works_in_every_direction(source, target, tmp_path):
    def place(name, where):
        return tmp_path / f"{name}.db" if where == "file" else None

    with Sandbox(place("source", source)) as box:
        box.write_file("/plan", "A")
        box.session("work").bash("cd /tmp")
        with box.fork(place("fork", target)) as fork:
            fork.bash("echo B > /plan", check=True)
            assert (box.read_file("/plan"), fork.read_file("/plan")) == ("A", "B\n")
            assert fork.session("work").directory() == "/tmp" and fork.path == (str(place("fork", target)) if target == "file" else None)
    if target == "file":
        with Sandbox(place("fork", target)) as again:
            assert again.read_file("/plan") == "B\n"

    async def main():
        async with AsyncSandbox(place("async-source", source), files={"/plan": "A"}) as box:
            async with await box.fork(place("async-fork", target)) as fork:
                await fork.write_file("/plan", "B")
                assert (await box.read_file("/plan"), await fork.read_file("/plan")) == ("A", "B")

    asyncio.run(main())


def test_an_existing_file_is_never_replaced_by_a_fork_or_a_snapshot(tmp_path):
    taken = tmp_path / "taken.db"
    taken.write_text("mine")
    with Sandbox() as box:
        for create in (box.fork, box.export_to):
            with pytest.raises(FileExistsError) as caught:
                create(taken)
            assert isinstance(caught.value, errors.FileExistsError) and caught.value.hint == "choose a new name"
    assert taken.read_text() == "mine"


def test_a_person_s_time_is_not_the_command_s():
    def act() -> str:
        return "done"

    late = threading.Event()

    def approve(call) -> bool:
        # Longer than the command has.
        late.wait(0.6)
        return True

    with Sandbox(tools=[act], approve=approve) as box:
        result = box.bash("tool act {}", timeout=0.4)
        assert (result.exit_code, result.stdout, result.limit) == (0, '"done"\n', None)


def test_an_async_person_s_time_is_not_the_command_s():
    async def main():
        async def act() -> str:
            return "done"

        async def approve(call) -> bool:
            await asyncio.sleep(0.6)
            return True

        async with AsyncSandbox(tools=[act], approve=approve) as box:
            result = await box.bash("tool act {}", timeout=0.4)
            assert (result.exit_code, result.stdout, result.limit) == (0, '"done"\n', None)

    asyncio.run(main())


def test_a_tool_s_own_time_is_the_command_s():
    asked, ended, finished = threading.Event(), threading.Event(), threading.Event()

    def act() -> str:
        asked.set()
        ended.wait(30)
        finished.set()
        return "late"

    with Sandbox(tools=[act], approve=lambda call: True) as box:
        result = box.bash("tool act {}", timeout=0.4)
        assert asked.is_set() and result.limit is not None and result.limit.name == "wall"
        ended.set()
        finished.wait(30)


def test_a_person_s_time_ends_too_and_nothing_runs_afterwards():
    called, ended, returned = [], threading.Event(), threading.Event()

    def act() -> int:
        called.append(1)
        return 1

    def approve(call) -> bool:
        ended.wait(30)
        returned.set()
        return True

    with Sandbox(tools=[act], approve=approve, approve_timeout=0.2) as box:
        result = box.bash("tool act {}")
        assert result.limit is not None and result.limit.used == "200 ms of waiting for approval", result
        ended.set()
        returned.wait(30)
        assert box.bash("echo next").stdout == "next\n"
    assert called == []
    with pytest.raises(ValueError):
        Sandbox(tools=[act], approve=approve, approve_timeout=0)


def test_a_killed_command_does_nothing_when_the_approval_comes():
    called, asked, ended, returned = [], threading.Event(), threading.Event(), threading.Event()

    def act() -> int:
        called.append(1)
        return 1

    def approve(call) -> bool:
        asked.set()
        ended.wait(30)
        returned.set()
        return True

    with Sandbox(tools=[act], approve=approve) as box:
        process = box.start("tool act {}")
        assert asked.wait(30)
        process.kill()
        assert process.wait().exit_code == 137
        ended.set()
        assert returned.wait(30)
        # The tool's thread is done with it before it can be used again.
        assert box.bash("echo next").stdout == "next\n"
    assert called == []


def test_a_missing_directory_is_an_error_and_nothing_runs():
    async def main(path):
        async with AsyncSandbox(path) as box:
            for call in (lambda: box.bash("touch /ran", cwd="/nope"), lambda: box.python("open('/ran', 'w')", cwd="/nope")):
                with pytest.raises(ValueError, match="invalid working directory `/nope`: no such file"):
                    await call()
            assert not await box.exists("/ran")

    with Sandbox() as box:
        session = box.session("s")
        ways = [
            lambda: box.bash("touch /ran", cwd="/nope"),
            lambda: box.bash("touch /ran", cwd="/etc/passwd"),
            lambda: box.python("open('/ran', 'w')", cwd="/nope"),
            lambda: session.bash("touch /ran", cwd="/nope"),
            lambda: box.start("touch /ran", cwd="/nope").wait(),
            lambda: list(box.stream("touch /ran", cwd="/nope")),
        ]
        for way in ways:
            with pytest.raises(ValueError, match="invalid working directory `/(nope|etc/passwd)`: "):
                way()
        assert not box.exists("/ran")
        answer = box.call_action("bash", {"command": "touch /ran", "cwd": "/nope"})
        assert answer.is_error and "invalid working directory `/nope`" in answer.text and not box.exists("/ran")
    asyncio.run(main(None))


def test_a_cancelled_command_does_nothing_when_the_approval_comes():
    async def main():
        called, asked, answer = [], asyncio.Event(), asyncio.Event()

        def act() -> int:
            called.append(1)
            return 1

        async def approve(call) -> bool:
            asked.set()
            await answer.wait()
            return True

        async with AsyncSandbox(tools=[act], approve=approve) as box:
            task = asyncio.ensure_future(box.bash("tool act {}"))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            answer.set()
            assert (await box.bash("echo next")).stdout == "next\n"
        assert called == []

    asyncio.run(main())


def test_a_tool_can_read_its_sandbox_but_not_change_it():
    seen = {}

    def look() -> str:
        for name, attempt in {
            "bash": lambda: box.bash("true"),
            "start": lambda: box.start("true"),
            "write": lambda: box.write_file("/f", "x"),
            "append": lambda: box.append("/f", "x"),
            "mkdir": lambda: box.mkdir("/d"),
            "kv": lambda: box.kv.set("k", 1),
            "session": lambda: box.session("s").end(),
        }.items():
            with pytest.raises(BusyError) as caught:
                attempt()
            seen[name] = caught.value.hint
        return box.read_file("/f")

    with Sandbox(tools=[look], files={"/f": "before"}) as box:
        result = box.bash("echo changed > /f; tool look {}")
        assert result.stdout == '"before"\n', result.stderr
        assert len(seen) == 7 and all("after the command" in hint for hint in seen.values())
        # Its fork is another sandbox, whose tools are its own.
        with box.fork() as fork:
            assert fork.bash("tool look {}").exit_code != 0
            assert box.bash("tool look {}").ok


def test_an_async_tool_can_read_its_sandbox_but_not_change_it():
    async def main():
        async def look() -> str:
            with pytest.raises(BusyError):
                await box.write_file("/f", "x")
            return await box.read_file("/f")

        async with AsyncSandbox(tools=[look], files={"/f": "before"}) as box:
            result = await box.bash("tool look {}")
            assert result.stdout == '"before"\n', result.stderr

    asyncio.run(main())


def test_two_readers_and_a_writer():
    """While a command runs, reading returns the state before it, and a change waits for its turn."""
    reached, go = threading.Event(), threading.Event()

    def wait() -> bool:
        reached.set()
        return go.wait(60)

    with Sandbox(tools=[wait], files={"/f": "before"}) as box:
        process = box.start("echo changed > /f; tool wait {}")
        assert reached.wait(60)
        assert box.read_file("/f") == "before" and box.glob("/f") == ["/f"]
        writer = threading.Thread(target=lambda: box.append("/f", "and more\n"))
        writer.start()
        assert box.read_file("/f") == "before"
        go.set()
        writer.join()
        assert process.wait().ok and box.read_file("/f") == "changed\nand more\n"


HOLDER = """
import sandlite, sys
with sandlite.Sandbox(sys.argv[1]) as box:
    print("open", flush=True)
    for line in sys.stdin:
        print(box.bash(line.strip()).stdout.strip(), flush=True)
"""


def test_two_processes_that_stay_open_share_a_file(tmp_path):
    path = tmp_path / "agent.db"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(command: str) -> str:
        holder.stdin.write(command + "\n")
        holder.stdin.flush()
        return holder.stdout.readline().strip()

    try:
        assert holder.stdout.readline() == "open\n"
        with Sandbox(path) as box:
            for turn in range(20):
                box.write_file("/ours", str(turn))
                assert ask("cat /ours; echo $(($(cat /ours) * 2)) > /theirs") == str(turn)
                assert box.read_file("/theirs").strip() == str(turn * 2)
            assert [row.id for row in box.history(limit=3)] == sorted((row.id for row in box.history(limit=3)), reverse=True)
            assert "outside" not in {version.made_by for version in box.log(limit=100)}
    finally:
        holder.communicate()
    assert [file.name for file in tmp_path.iterdir()] == ["agent.db"]


def test_a_command_of_another_process_is_waited_for_as_long_as_asked(tmp_path):
    path = tmp_path / "agent.db"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "open\n"
        with Sandbox(path, wait=0.05) as box, Sandbox(path, wait=30) as patient:
            holder.stdin.write("sleep 2; echo done | tee /done\n")
            holder.stdin.flush()
            with pytest.raises(BusyError) as caught:
                while True:
                    box.bash("true")
            assert str(holder.pid) in str(caught.value) and caught.value.hint
            assert box.glob("/done") == []
            assert patient.bash("cat /done").stdout == "done\n"
    finally:
        holder.communicate()


def child_of_fork(box):
    """What a forked process finds; 0 if all of it is refused at once."""
    for attempt in (lambda: box.bash("true"), lambda: box.read_file("/f"), lambda: Sandbox(), lambda: box.fork()):
        try:
            attempt()
            return 1
        except errors.SandliteError as error:
            if "spawn" not in str(error):
                return 2
    box.close()
    return 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_is_refused_at_once():
    with Sandbox(files={"/f": "x"}) as box:
        assert box.bash("echo warm").ok
        pid = os.fork()
        if pid == 0:
            status = 3
            try:
                status = child_of_fork(box)
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert box.bash("echo still here").stdout == "still here\n"


def in_process(_):
    with Sandbox() as box:
        return box.bash("echo $((6 * 7))").stdout


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_multiprocessing_works_with_spawn_and_reports_an_error_with_fork():
    with Sandbox() as box:
        assert box.bash("true").ok
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(in_process, [0]) == ["42\n"]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with pytest.raises(errors.SandliteError, match="spawn"):
            pool.map(in_process, [0])


def test_a_failed_command_names_itself():
    with Sandbox() as box:
        with pytest.raises(CommandError) as caught:
            box.bash("echo out; echo first >&2; echo last >&2; exit 3", check=True)
        error = caught.value
        assert (error.command, error.exit_code) == ("echo out; echo first >&2; echo last >&2; exit 3", 3)
        assert (error.stdout, error.stderr) == ("out\n", "first\nlast\n")
        assert str(error) == "`echo out; echo first >&2; echo last >&2; exit 3` failed with exit code 3\nfirst\nlast"
        with pytest.raises(CommandError, match="exit code 1"):
            box.python("raise SystemExit(1)").check()
        with pytest.raises(LimitError, match="was stopped") as caught:
            box.bash("while :; do :; done", timeout=0.2, check=True)
        assert caught.value.hint


def test_a_result_reads_like_one():
    with Sandbox() as box:
        good, bad = box.bash("echo out"), box.bash("printf out; echo err >&2; exit 3")
    assert good and good.ok and not bad and not bad.ok
    assert str(good) == "out" and str(bad) == "out\n[stderr]\nerr\n[exit code 3]"
    assert repr(good) == "Result(exit_code=0, stdout='out\\n', stderr='')"
    assert good.check() is good
