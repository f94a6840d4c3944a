"""Review and apply, questions about the past, record and replay: plain and async."""

import asyncio

import pytest

from sandlite import AsyncSandbox, Mount, Sandbox, errors


@pytest.fixture
def project(tmp_path):
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "text").write_text("helo\n")
    (directory / "gone").write_text("x\n")
    return directory


def test_changes_are_reviewed_and_applied(project):
    with Sandbox(mounts=[Mount(project, "/p", "overlay")]) as box:
        box.bash("cd /p; sed -i s/helo/hello/ text; rm gone; echo new > new", check=True)
        changes = box.changes()
        assert [(file.path, file.kind) for file in changes.files] == [
            ("/p/gone", "deleted"),
            ("/p/new", "added"),
            ("/p/text", "modified"),
        ]
        assert "-helo\n+hello\n" in changes.patch
        planned = box.apply(project, dry_run=True)
        assert not planned.is_applied and (project / "text").read_text() == "helo\n"
        applied = box.apply(project)
        assert applied and applied.files == planned.files
        assert ((project / "text").read_text(), (project / "gone").exists()) == ("hello\n", False)
        box.bash("echo more >> /p/text")
        (project / "text").write_text("mine\n")
        with pytest.raises(errors.ConflictError, match="text"):
            box.apply(project)
        assert (project / "text").read_text() == "mine\n"
        assert [one.path for one in box.apply(project, dry_run=True).conflicts] == ["text"]
        with pytest.raises(errors.FileNotFoundError):
            box.apply(project / "nowhere")
        with pytest.raises(errors.InvalidError):
            box.changes("nobody")


def test_show_and_blame_name_the_run():
    with Sandbox() as box:
        box.bash("printf 'a\\nb\\n' > /list")
        box.checkpoint("good")
        run = box.bash("sed -i s/b/B/ /list; echo out; exit 3").run
        shown = box.show(run)
        assert shown.run is not None and shown.changes is not None
        assert (shown.run.exit_code, shown.run.stdout) == (3, "out\n")
        assert "+B" in shown.changes.patch
        assert [(line.text, line.version.run) for line in box.blame("/list")] == [("a", 1), ("B", run)]
        found = box.bisect("grep -q b /list", "good")
        assert (found.first_bad.run, found.suspects) == (run, [])
        with pytest.raises(errors.InvalidError, match="unknown run"):
            box.show(99)


def test_recorded_runs_are_the_same_again():
    with Sandbox() as box:
        with pytest.raises(errors.InvalidError, match="there are no recorded runs"):
            box.replay()
        box.bash("echo $RANDOM > /number; date +%N; cat", stdin=b"in\xff", record=True)
        box.write_file("/given", "as it is")
        box.python("import random; print(random.random(), open('/given').read())", record=True)
        replayed = box.replay()
        assert replayed and (replayed.runs, replayed.given) == (2, 1)
        assert box.replay("HEAD").runs == 1


def test_async_has_the_same(project):
    async def main():
        async with AsyncSandbox(mounts=[Mount(project, "/p", "overlay")]) as box:
            await box.bash("echo hello > /p/text")
            assert (await box.changes()).total == 1
            assert (await box.show()).version is not None
            assert [line.version.command for line in await box.blame("/p/text")] == ["echo hello > /p/text"]
            assert (await box.bisect("! grep -q hello /p/text", "HEAD~1")).first_bad.command == "echo hello > /p/text"
            assert await box.apply(project)
            assert (project / "text").read_text() == "hello\n"
        async with AsyncSandbox() as box:
            await box.bash("echo $RANDOM", record=True)
            assert (await box.replay()).difference is None

    asyncio.run(main())


def test_a_past_version_is_read_only():
    with Sandbox(files={"/f": "x"}) as box:
        box.write_file("/f", "y")
        with box.at("HEAD~1") as past:
            assert past.read_only and "read-only" in repr(past) and not box.read_only
            assert not past.fork().read_only


def test_a_fork_continues_from_a_version(tmp_path):
    with Sandbox() as box:
        box.write_file("/plan", "A")
        box.write_file("/plan", "B")
        for path in (None, tmp_path / "fork.db"):
            with box.fork(path, at="HEAD~1") as fork:
                assert fork.read_file("/plan") == "A"
                fork.write_file("/plan", "C")
        assert box.read_file("/plan") == "B"
        with pytest.raises(errors.InvalidError):
            box.fork(tmp_path / "none.db", at="missing")
        assert not (tmp_path / "none.db").exists()

    async def plain():
        async with AsyncSandbox() as box:
            await box.write_file("/plan", "A")
            await box.write_file("/plan", "B")
            async with await box.fork(at="HEAD~1") as fork:
                return await fork.read_file("/plan")

    assert asyncio.run(plain()) == "A"
