"""Policies, views, functions that are asked before a commit, and events."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandlite import AsyncSandbox, Sandbox, SandliteError
from sandlite.errors import BusyError, FileNotFoundError, InvalidError, PermissionError, RefusedError, StaleFileError

RULES = [
    {"path": "/secret", "access": "hidden"},
    {"path": "/log", "access": "append"},
    {"path": "/docs", "access": "read"},
    {"path": "/pay", "label": "finance"},
]
FILES = {"/secret/key": "k3y", "/log/l": "one\n", "/docs/d": "text", "/pay/p": "1,2", "/free": "f"}


def test_a_policy_binds_commands_and_methods() -> None:
    with Sandbox(files=FILES, policy=RULES) as box:
        assert not box.exists("/secret") and box.owner().read_file("/secret/key") == "k3y"
        with pytest.raises(FileNotFoundError):
            box.read_file("/secret/key")
        with pytest.raises(PermissionError):
            box.write_file("/docs/d", "x")
        with pytest.raises(PermissionError):
            box.write_file("/log/l", "x")
        box.append("/log/l", "two\n")
        assert box.bash("cat /secret/key; echo x > /log/l; echo three >> /log/l; cat /log/l").stdout == "one\ntwo\nthree\n"
        assert box.python("import os; print(sorted(set(os.listdir('/')) & {'secret', 'docs'}))").stdout == "['docs']\n"
        with pytest.raises(InvalidError):
            box.with_policy([]).owner()


def test_a_policy_is_a_file_a_mapping_or_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('denied_commands = ["rm"]\n[[rule]]\npath = "/secret"\naccess = "hidden"\n')
    for policy in (file, str(file), {"rules": RULES[:1], "denied_commands": ["rm"]}):
        with Sandbox(files=FILES, policy=policy) as box:
            assert box.bash("ls -d /secret; rm /free").exit_code == 127
    with pytest.raises(InvalidError, match="unknown field `acces`"):
        Sandbox(policy=[{"path": "/a", "acces": "read"}])
    with pytest.raises(InvalidError, match="expected an absolute path"):
        Sandbox(policy=[{"path": "a", "access": "read"}])


def test_a_policy_is_stored(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    with Sandbox(db, files=FILES) as box:
        assert box.policy is None
        box.set_policy(RULES)
        assert not box.exists("/secret")
    with Sandbox(db, policy=[{"path": "/secret", "access": "write"}]) as box:
        assert not box.exists("/secret") and box.policy is not None and len(box.policy["rule"]) == 4
        with pytest.raises(InvalidError):
            box.view("ann").set_policy(None)
        with pytest.raises(InvalidError, match="cannot read the policy: this view does not include the whole sandbox"):
            _ = box.view("ann").policy
        box.set_policy(None)
        assert box.exists("/secret/key")


def test_views_have_labels_runs_and_sessions_of_their_own() -> None:
    with Sandbox(files=FILES, policy=RULES) as box:
        ann, bob = box.view("ann", ["finance"]), box.view("bob")
        assert ann.read_file("/pay/p") == "1,2" and not bob.exists("/pay")
        ann.bash("echo ann")
        assert [run.command for run in ann.history() if run.name == "bash"] == ["echo ann"]
        assert [run for run in bob.history() if run.name == "bash"] == []
        ann.session("s").bash("x=1")
        assert bob.session("s").bash("echo [$x]").stdout == "[]\n"
        with pytest.raises(InvalidError):
            box.view("a/b")
        with pytest.raises(InvalidError, match="does not include the whole sandbox"):
            bob.info()
        with pytest.raises(InvalidError, match="does not include the whole sandbox"):
            bob.on_commit("/", lambda commit: None)
        with pytest.raises(InvalidError, match="does not include the whole sandbox"):
            bob.log(digest=True)


def test_a_hook_refuses_with_a_message() -> None:
    with Sandbox() as box:
        asked = []

        @box.on_commit("/src")
        def check(commit):  # type: ignore[no-untyped-def]
            asked.append((commit.command, [(change.kind, change.path) for change in commit.changes]))
            if b"bad" in commit.contents.get("/src/a", b""):
                raise ValueError("no bad words")
            return None

        box.write_file("/src/a", "good")
        assert asked[0][1] == [("created", "/src"), ("created", "/src/a")]
        result = box.bash("echo bad > /src/a; echo 1 > /other")
        assert result.exit_code == 1 and result.stderr == "sandlite: changes rejected by a hook: no bad words\n"
        assert box.read_file("/src/a") == "good" and not box.exists("/other")
        with pytest.raises(RefusedError, match="no bad words"):
            box.write_file("/src/a", "bad")
        box.write_file("/other", "bad")
        assert len(asked) == 3


def test_a_hook_cannot_change_the_sandbox_that_waits_for_it() -> None:
    with Sandbox(files={"/a": "1"}) as box:
        seen = []

        def meddle(commit):  # type: ignore[no-untyped-def]
            seen.append(box.read_file("/a"))
            try:
                box.write_file("/b", "x")
            except BusyError:
                seen.append("busy")
            return True

        box.on_commit("/", meddle)
        box.write_file("/a", "2")
        assert seen == ["1", "busy"] and box.read_file("/a") == "2" and not box.exists("/b")
        box.on_commit("/", lambda commit: False)
        with pytest.raises(RefusedError, match="refused"):
            box.write_file("/a", "3")


def test_ctrl_c_in_a_hook_is_not_a_rejection() -> None:
    async def work() -> None:
        async with AsyncSandbox() as box:
            box.on_commit("/a", stop)
            for change in (lambda: box.write_file("/a", "1"), lambda: box.bash("echo 1 > /a")):
                with pytest.raises(KeyboardInterrupt):
                    await change()
            assert not await box.exists("/a")

    def stop(commit):  # type: ignore[no-untyped-def]
        raise KeyboardInterrupt

    with Sandbox() as box:
        box.on_commit("/a", stop)
        for change in (
            lambda: box.write_file("/a", "1"),
            lambda: box.mkdir("/a"),
            lambda: box.bash("echo 1 > /a"),
            lambda: box.session("s").python("open('/a', 'w')"),
            lambda: list(box.stream("echo 1 > /a")),
            lambda: box.start("echo 1 > /a").wait(),
        ):
            with pytest.raises(KeyboardInterrupt):
                change()
        assert not box.exists("/a")
        process = box.start("echo 1 > /a")
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                process.wait()
        # What a hook rejects later is not affected.
        box.on_commit("/b", lambda commit: "closed")
        with pytest.raises(RefusedError, match="closed"):
            box.write_file("/b", "1")
        box.on_commit("/c", lambda commit: sys.exit(3))
        with pytest.raises(SystemExit):
            box.write_file("/c", "1")
    asyncio.run(work())


def test_a_consumer_that_continues_receives_each_event_once() -> None:
    with Sandbox() as box:
        list(box.events("index"))
        box.write_file("/a", "1")
        box.bash("mv /a /b; mkdir /d")
        events = list(box.events("index"))
        assert [(event.kind, event.path) for event in events] == [("created", "/a"), ("renamed", "/b"), ("created", "/d")]
        assert events[0].hash == events[1].hash and events[1].from_path == "/a"
        assert list(box.events("index")) == []
        # One that stops in the middle of a version gets that version again.
        box.bash("touch /x /y")
        assert next(iter(box.events("index"))).path == "/x"
        assert [event.path for event in box.events("index")] == ["/x", "/y"]
        assert [event.path for event in box.events(path="/d")] == ["/d"]


CONSUMER = """
import sys, time
from sandlite import Sandbox
with Sandbox(sys.argv[1]) as box:
    for event in box.events("index", path="/f"):
        print(event.path, flush=True)
        if event.path == "/f/3":
            time.sleep(60)
"""


def test_events_survive_the_death_of_their_consumer(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    with Sandbox(db) as box:
        for number in range(6):
            box.write_file(f"/f/{number}", "x")
    consumer = subprocess.Popen([sys.executable, "-c", CONSUMER, str(db)], stdout=subprocess.PIPE, text=True)
    assert consumer.stdout is not None
    seen = []
    for line in consumer.stdout:
        seen.append(line.strip())
        if line.strip() == "/f/3":
            os.kill(consumer.pid, signal.SIGKILL)
            break
    consumer.wait()
    with Sandbox(db) as box:
        again = [event.path for event in box.events("index", path="/f")]
    assert seen == ["/f", "/f/0", "/f/1", "/f/2", "/f/3"]
    assert again == ["/f/3", "/f/4", "/f/5"], "at least once, and in order"


def test_every_change_takes_an_expected_version() -> None:
    with Sandbox(files={"/f": "1", "/other": "2"}) as box:
        old = box.read_window("/f").version
        box.write_file("/f", "changed")
        for change in (
            lambda version: box.append("/f", "x", expected_version=version),
            lambda version: box.copy("/other", "/f", expected_version=version),
            lambda version: box.move("/f", "/g", expected_version=version),
            lambda version: box.remove("/f", expected_version=version),
            lambda version: box.write_files({"/new": "x", "/f": "y"}, expected_versions={"/f": version}),
        ):
            with pytest.raises(StaleFileError):
                change(old)
        assert box.read_file("/f") == "changed" and not box.exists("/new")
        box.write_files({"/f": "changed", "/new": b"\xff"}, expected_versions={"/f": box.read_window("/f").version, "/new": "none"})
        assert box.read_bytes("/new") == b"\xff"
        with pytest.raises(ValueError, match="'/other'"):
            box.write_files({"/f": "x"}, expected_versions={"/other": "none"})
        box.append("/f", "!", expected_version=box.read_window("/f").version)
        box.remove("/f", expected_version=box.read_window("/f").version)


def test_the_same_for_asyncio() -> None:
    async def work() -> None:
        async with AsyncSandbox(files=FILES, policy=RULES) as box:
            assert not await box.exists("/secret") and await box.owner().exists("/secret")
            assert await box.view("ann", ["finance"]).exists("/pay") and not await box.view("bob").exists("/pay")

            @box.on_commit("/src")
            async def closed(commit):  # type: ignore[no-untyped-def]
                await asyncio.sleep(0)
                return "closed"

            assert "closed" in (await box.bash("mkdir /src")).stderr
            with pytest.raises(RefusedError):
                await box.write_file("/src/a", "x")
            _ = [event async for event in box.events("c")]
            await box.write_file("/new", "x")
            assert [event.path async for event in box.events("c")] == ["/new"]

            async def follow() -> str:
                async for event in box.events("c", follow=True):
                    return event.path
                return ""

            waiting = asyncio.ensure_future(follow())
            await box.write_file("/later", "x")
            assert await asyncio.wait_for(waiting, 30) == "/later"
            with pytest.raises(SandliteError):
                await box.append("/new", "y", expected_version="none")
            await box.set_policy(None)

    asyncio.run(work())
