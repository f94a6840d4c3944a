"""Versions leave as commits of git and arrive from commits of git, from Python too."""

import asyncio
import subprocess

import pytest

from sandlite import AsyncSandbox, Sandbox, SandliteError


def git(directory, *arguments):
    run = subprocess.run(
        ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments], cwd=directory, check=True, capture_output=True, text=True
    )
    return run.stdout


def test_an_export_is_a_repository_that_git_reads(tmp_path):
    with Sandbox() as box:
        box.bash("mkdir /src; echo one > /src/note")
        box.checkpoint("start", "the first note")
        box.bash("echo two > /src/note; exit 4")
        done = box.git_export(tmp_path / "work", path="/src")
        assert (done.commits, done.tags, done.skipped) == (2, 1, [])
        assert git(tmp_path / "work", "log", "--format=%s") == "echo two > /src/note; exit 4\nmkdir /src; echo one > /src/note\n"
        assert git(tmp_path / "work", "status", "--porcelain") == ""
        assert git(tmp_path / "work", "show", "start:note") == "one\n"
        assert git(tmp_path / "work", "rev-parse", "HEAD").strip() == done.head
        assert box.git_export(tmp_path / "bare", path="/src", bare=True).head == done.head
        assert (tmp_path / "bare" / "HEAD").exists()
        with pytest.raises(ValueError, match="it already exists"):
            box.git_export(tmp_path / "work")


def test_commits_become_versions(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main", "project")
    project = tmp_path / "project"
    for number in range(3):
        (project / "note").write_text(str(number))
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", f"Note {number}")
    git(project, "tag", "done", "HEAD~1")

    async def main():
        async with AsyncSandbox() as box:
            done = await box.git_import(project, into="/p")
            assert (done.commits, done.versions, done.files, done.checkpoints) == (3, 3, 1, ["done"])
            assert await box.read_file("/p/note") == "2"
            assert await (await box.at("done")).read_file("/p/note") == "1"
            assert (await box.git_import(project, ref="main~2", into="/q", depth=1)).commits == 1
            with pytest.raises(ValueError, match="unknown git reference"):
                await box.git_import(project, ref="nobody", into="/r")
            with pytest.raises(ValueError, match="would be overwritten"):
                await box.git_import(project, into="/p")
            assert (await box.git_export(tmp_path / "back.bundle", path="/p")).commits == 3

    asyncio.run(main())


def test_an_invalid_repository_changes_nothing(tmp_path):
    (tmp_path / "cut.bundle").write_bytes(b"# v2 git bundle\n")
    with Sandbox() as box:
        for path in (tmp_path, tmp_path / "cut.bundle", tmp_path / "missing"):
            with pytest.raises((SandliteError, ValueError)):
                box.git_import(path)
        assert not any(version.command.startswith("git_import") for version in box.log())
