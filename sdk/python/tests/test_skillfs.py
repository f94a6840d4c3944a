"""Programs for SkillFS 0.1 with other imports: its quick start, its runners, bundles that the real git reads, and MCP servers."""

import asyncio
import doctest
import importlib
import os
import subprocess
import sys
import tarfile

import pytest

import sandlite.skillfs
from sandlite.runner import ScriptedProvider, call
from sandlite.skillfs.repositories import GitRepo
from sandlite.skillfs.runners import AnthropicProvider, MainRunner, ModelProvider, SearchRunner
from sandlite.skillfs.runners.tools import TOOL_REGISTRY, create_load_skill_tool, get_schemas
from sandlite.skillfs.sandboxes import E2BSandbox, EditResult, GrepMatch, SandboxConfig, WriteResult
from sandlite.skillfs.storage import LocalBundleStore
from sandlite.skillfs.workspaces import Workspace

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_server.py")


def git(directory, *words):
    done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def sandbox():
    made = E2BSandbox.create()
    yield made
    made.close()


def loaded(store, sandbox, **more):
    workspace = Workspace(workspace_id="mine", sandbox=sandbox, store=store, **more)
    asyncio.run(workspace.load())
    return workspace


def test_the_examples_of_the_documentation_are_true():
    names = ["", ".sandboxes", ".storage", ".repositories", ".workspaces", ".runners.types", ".runners.providers"]
    for name in names:
        failed, tried = doctest.testmod(importlib.import_module(f"sandlite.skillfs{name}"))
        assert not failed, name
        assert tried or name == ".workspaces", name


# The quick start of SkillFS's README, with `sandlite.` before its imports and another directory.
QUICK_START = """
import asyncio
from sandlite.skillfs.workspaces import Workspace
from sandlite.skillfs.sandboxes import E2BSandbox, SandboxConfig
from sandlite.skillfs.storage import LocalBundleStore

async def main():
    sandbox = E2BSandbox.create(config=SandboxConfig(timeout=300))
    store = LocalBundleStore(directory=DIRECTORY)

    workspace = Workspace(
        workspace_id="my-workspace",
        sandbox=sandbox,
        store=store,
    )

    await workspace.load()  # Restore from previous session if exists

    # Use the sandbox directly
    sandbox.run_command("echo 'Hello, world!' > hello.txt")
    print(sandbox.run_command("cat hello.txt").logs, end="")

    workspace.save()  # Commit and upload git bundle
    sandbox.close()

asyncio.run(main())
"""


def test_the_quick_start_runs_and_git_clones_its_bundle(tmp_path, capsys):
    for _ in range(2):
        exec(compile(QUICK_START, "quick_start", "exec"), {"DIRECTORY": str(tmp_path)})
    assert capsys.readouterr().out == "Hello, world!\n" * 2
    git(tmp_path, "clone", "-q", "my-workspace.bundle", "clone")
    assert (tmp_path / "clone/hello.txt").read_text() == "Hello, world!\n"
    assert (tmp_path / "clone/src/skills/.gitkeep").exists()
    subjects = git(tmp_path / "clone", "log", "--format=%s").splitlines()
    assert len(subjects) == 1 and subjects[0].startswith("Auto-checkpoint for agent my-workspace at 20")


def test_a_workspace_is_continued_with_its_commits(tmp_path, sandbox):
    store = LocalBundleStore(tmp_path, prefix="prod")
    first = loaded(store, sandbox)
    assert first.is_loaded and not store.exists("mine")
    sandbox.run_command("mkdir -p data; seq 3 > data/numbers; chmod +x data/numbers")
    first.save("add numbers")
    with pytest.raises(RuntimeError, match="loaded already"):
        asyncio.run(first.load())
    before = git(tmp_path, "bundle", "list-heads", "prod/mine.bundle").split()[0]

    other = E2BSandbox.create()
    second = loaded(store, other)
    assert other.run_command("cat data/numbers; test -x data/numbers && echo runs").logs == "1\n2\n3\nruns\n"
    assert second.git_repo.status() == ""
    second.save()  # Nothing changed: the same commits.
    assert git(tmp_path, "bundle", "list-heads", "prod/mine.bundle").split()[0] == before
    other.write_file("more.txt", "more")
    other.edit_file("data/numbers", "2\n", "two\n")
    other.run_command("rm workspace/.gitkeep")
    assert sorted(second.git_repo.status().splitlines()) == [" D workspace/.gitkeep", " M data/numbers", "?? more.txt"]
    assert "+two" in second.git_repo.diff()
    second.save("change them")
    other.close()

    git(tmp_path, "clone", "-q", "prod/mine.bundle", "clone")
    assert git(tmp_path / "clone", "log", "--format=%s").splitlines() == ["change them", "add numbers"]
    assert before in git(tmp_path / "clone", "log", "--format=%H"), "a commit keeps its hash"
    git(tmp_path / "clone", "fsck", "--strict")
    third = E2BSandbox.create()
    third.write_file("in-the-way", "")
    with pytest.raises(RuntimeError, match="not empty"):
        loaded(store, third)
    third.close()


def test_a_bundle_of_the_real_git_is_loaded(tmp_path, sandbox):
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    (work / "note").write_text("by hand\n")
    git(work, "add", "-A")
    git(work, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "by hand")
    git(work, "bundle", "create", "-q", str(tmp_path / "mine.bundle"), "--all")
    workspace = loaded(LocalBundleStore(tmp_path), sandbox)
    assert sandbox.read_file_text("/home/user/repo/note") == "by hand\n"
    sandbox.write_file("note", "again\n")
    workspace.save("again")
    git(tmp_path, "clone", "-q", "mine.bundle", "clone")
    assert git(tmp_path / "clone", "log", "--format=%an %s").splitlines()[1] == "A by hand"


def test_a_store_is_a_directory(tmp_path):
    store = LocalBundleStore(tmp_path / "a", prefix="/dev/")
    assert store.key_for_agent("x") == "x.bundle" and not store.download_bundle("x", tmp_path / "y")
    (tmp_path / "b").write_bytes(b"1")
    store.upload_bundle("x", tmp_path / "b")
    assert (tmp_path / "a/dev/x.bundle").exists() and store.list_agents() == ["x"] and store.exists("x")
    assert store.download_bundle("x", tmp_path / "c/d") and (tmp_path / "c/d").read_bytes() == b"1"
    assert store.delete("x") and not store.delete("x")
    with pytest.raises(FileNotFoundError):
        store.upload_bundle("x", tmp_path / "missing")
    for name in ("../x", "a/../../x", ".x"):
        with pytest.raises(ValueError, match="invalid name"):
            store.exists(name)


def test_a_sandbox_has_the_methods_of_e2b_s(tmp_path, sandbox):
    assert sandbox.default_repo_root == "/home/user/repo" and sandbox.is_alive
    result = sandbox.run_command("echo out; echo err >&2; exit 3", cwd="/tmp")
    assert (result.logs, result.error, result.exit_code) == ("out\n", "err\n", 3)
    assert sandbox.run_command("true").error is None
    assert sandbox.run_code("x = 20; print('hi')").logs == "hi\n"
    assert sandbox.run_code("x + 1").results == [21]
    with pytest.raises(ValueError):
        sandbox.run_code("1", language="r")
    assert sandbox.write_file("src/a.py", "one\nTwo\n") == WriteResult("/home/user/repo/src/a.py", 8, True)
    assert not sandbox.write_file("/home/user/repo/src/a.py", b"one\nTwo\n").created
    with pytest.raises(FileExistsError):
        sandbox.write_file("src/a.py", "", overwrite=False)
    with pytest.raises(IsADirectoryError):
        sandbox.write_file("src", "")
    with pytest.raises(FileNotFoundError):
        sandbox.write_file("none/x", "", create_dirs=False)
    assert sandbox.run_command("pwd").logs == "/home/user/repo\n"
    assert sandbox.read_file_text("/home/user/repo/src/a.py", max_bytes=3) == "one"
    with pytest.raises(ValueError):
        sandbox.read_file_bytes("src/a.py")
    with pytest.raises(FileNotFoundError):
        sandbox.read_file_bytes("/none")
    assert sandbox.glob("**/*.py") == ["/home/user/repo/src/a.py"] == sandbox.glob("*.py", root="src")
    assert sandbox.glob("**/*.py", absolute=False) == ["src/a.py"]
    with pytest.raises(FileNotFoundError):
        sandbox.glob("*", root="none")
    assert sandbox.grep("t.o", ignore_case=True) == [GrepMatch("/home/user/repo/src/a.py", 2, "Two", 1)]
    assert sandbox.grep("T.o", regex=False) == [] and sandbox.grep("n", include="**/*.md") == []
    assert sandbox.edit_file("src/a.py", "Two", "2") == EditResult("/home/user/repo/src/a.py", 1, 8, 6)
    for options, said in (
        ({"old_string": "none", "new_string": ""}, "not found"),
        ({"old_string": "\n", "new_string": ""}, "2 times"),
        ({"old_string": "\n", "new_string": "", "expected_replacements": 1}, "found 2"),
        ({"old_string": "a", "new_string": "a"}, "different"),
    ):
        with pytest.raises(ValueError, match=said):
            sandbox.edit_file("src/a.py", **options)
    assert sandbox.edit_file("src/a.py", "none", "", allow_no_match=True).replacements_made == 0
    assert sandbox.edit_file("src/a.py", "\n", ";", replace_all=True).replacements_made == 2
    sandbox.download_file("/home/user/repo/src/a.py", tmp_path / "x/a.py")
    assert (tmp_path / "x/a.py").read_text() == "one;2;"
    sandbox.upload_file(tmp_path / "x/a.py", "/home/user/b.py")
    asyncio.run(sandbox.upload_directory(tmp_path / "x", "/home/user/up", exclude={"none"}))
    assert sandbox.list_files("/home/user/up") == ["a.py"]
    sandbox.close()
    assert not sandbox.is_alive
    with pytest.raises(RuntimeError, match="not active"):
        sandbox.run_command("true")


def test_a_command_has_the_time_of_its_configuration():
    made = E2BSandbox.create(config=SandboxConfig(timeout=1, envs={"A": "b"}))
    assert made.run_command("echo $A").logs == "b\n"
    result = made.run_command("sleep 60")
    assert result.exit_code == 124 and "wall" in (result.error or "")
    made.close()


def test_the_commit_tool_commits_and_stores(tmp_path, sandbox):
    store = LocalBundleStore(tmp_path)
    workspace = Workspace("mine", sandbox, store)
    with pytest.raises(RuntimeError, match="not loaded"):
        workspace.get_commit_tool()
    asyncio.run(workspace.load())
    schema, commit = workspace.get_commit_tool()
    assert schema["name"] == "git_commit" and schema["input_schema"]["required"] == []
    done = commit(message="begin")
    assert done["status"] == "committed" and done["bundle_saved"] and len(done["commit_hash"]) == 7
    assert "?? .gitignore\n" in done["files_changed"]
    assert git(tmp_path, "bundle", "list-heads", "mine.bundle").startswith(done["commit_hash"])
    assert commit()["status"] == "no_changes"
    for name, content, message in (("a.py", "1", "feat: add a.py"), ("a.py", "2", "chore: update a.py"), ("b.md", "", "docs: add b.md")):
        sandbox.write_file(name, content)
        assert commit()["commit_message"] == message
    sandbox.run_command("rm a.py")
    assert commit()["commit_message"] == "refactor: remove a.py"


# The example of SkillFS's README for runners, with a model that follows a script.
def test_an_example_with_runners(tmp_path, sandbox):
    store = LocalBundleStore(directory=tmp_path)
    provider = ModelProvider(
        ScriptedProvider(
            [
                [call("write_file", path="/home/user/repo/main.py", content="print(6 * 7)\n")],
                [call("glob", pattern="**/main.py"), call("run_command", command="python3 main.py"), call("read_file", path="/none")],
                [call("git_commit", message="feat: add main.py")],
                "Done: 42.",
            ]
        )
    )

    async def main():
        workspace = Workspace(workspace_id="my-workspace", sandbox=sandbox, store=store)
        await workspace.load()
        runner = MainRunner(
            name="assistant",
            description="General assistant",
            system_prompt="You are a helpful assistant.",
            sandbox=sandbox,
            provider=provider,
            tools=["glob", "grep", "read_file", "write_file", "run_command"],
        )
        runner.add_tool(workspace.get_commit_tool())
        result = await runner.run("Write a program")
        workspace.save()
        return result

    result = asyncio.run(main())
    assert result and result.message == "Done: 42." and result.metadata["turns_used"] == 4
    assert result.metadata["tools_called"] == ["write_file", "glob", "run_command", "read_file", "git_commit"]
    results = [block for message in result.messages for block in message["content"] if block["type"] == "tool_result"]
    assert '"stdout": "42\\n"' in results[2]["content"] and results[3]["is_error"] and '"status": "committed"' in results[4]["content"]
    git(tmp_path, "clone", "-q", "my-workspace.bundle", "clone")
    assert git(tmp_path / "clone", "log", "--format=%s") == "feat: add main.py\n"
    # Every turn is in the sandbox's history too.
    assert sandbox.box.history(name="agent_turn")


def published(tmp_path, name):
    """A file of SkillFS's own package on PyPI, with Sandlite's imports; the test is skipped without it."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "skillfs==0.1.0"]
    done = subprocess.run([*words, "--dest", str(tmp_path)], capture_output=True, text=True)
    archive = tmp_path / "skillfs-0.1.0.tar.gz"
    if not archive.exists():
        pytest.skip(f"skillfs 0.1.0 cannot be downloaded: {done.stderr.strip()[-200:]}")
    with tarfile.open(archive) as archive:
        text = archive.extractfile(f"skillfs-0.1.0/{name}").read().decode()
    return text.replace("from skillfs", "from sandlite.skillfs")


# SkillFS's own example for runners as it is published, with changed imports only; its model is a client that follows a script.
def test_the_published_example_with_runners_runs(tmp_path, monkeypatch, capsys):
    program = published(tmp_path, "examples/example_with_runners.py").replace("/tmp/runner-example", str(tmp_path / "store"))
    script = ScriptedProvider(
        [[call("call_subrunner", runner="search", task="look")], [call("final_answer", matches=[], summary="Nothing.")],
         [call("write_file", path="summary.txt", content="No files.\n")], "I listed all files."]
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setattr("sandlite.runner.AnthropicProvider", lambda model, **_: script)
    exec(compile(program, "example_with_runners", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "Result: I listed all files....\n"
    git(tmp_path, "clone", "-q", "store/runner-example.bundle", "clone")
    assert (tmp_path / "clone/summary.txt").read_text() == "No files.\n"
    assert git(tmp_path / "clone", "log", "--format=%s").splitlines()[0] == "Task completed"


def test_more_names_are_those_of_skillfs(sandbox):
    from sandlite.skillfs.runners import AnthropicAgentRunner, RunnerType
    from sandlite.skillfs.runners.tools import ToolModule, create_subrunner_tool
    from sandlite.skillfs.skills import SkillParseError, parse_yaml_frontmatter

    assert isinstance(SearchRunner(sandbox, ModelProvider(ScriptedProvider([]))), RunnerType)
    assert all(isinstance(module, ToolModule) for module in TOOL_REGISTRY.values())
    model = ModelProvider(ScriptedProvider([[call("final_answer", matches=[], summary="None.")]]))
    schema, handler = create_subrunner_tool(sandbox, model, {"search": SearchRunner})
    assert schema["name"] == "call_subrunner" and schema["input_schema"]["properties"]["runner"]["enum"] == ["search"]
    assert asyncio.run(handler(runner="search", task="x"))["message"] == "None."
    assert parse_yaml_frontmatter("name: a\ndescription: b: c\n", "x").description == "b: c"
    assert parse_yaml_frontmatter("name: a\n", "x") is None
    folded = parse_yaml_frontmatter("name: a\ndescription: >-\n  Reads\n  files.\nmetadata:\n  description: other\n", "x")
    assert (folded.description, folded.short_description) == ("Reads files.", None)
    with pytest.raises(SkillParseError, match="x: invalid YAML: expected"):
        parse_yaml_frontmatter("name\n", "x")
    with pytest.raises(SkillParseError, match="x: invalid YAML: anchors"):
        parse_yaml_frontmatter("name: &a [x]\ndescription: y\n", "x")
    assert AnthropicAgentRunner(object(), "model", "p", [], {}).model == "model"


def test_sub_runners_search(sandbox):
    sandbox.write_file("a.py", "secret = 1\n")
    found = {"matches": [{"path": "/home/user/repo/a.py", "relevance": "has it"}], "summary": "One file."}
    model = ModelProvider(
        ScriptedProvider(
            [
                [call("call_subrunner", runner="search", task="find secret"), call("call_subrunner", runner="x", task="y")],
                [call("grep", pattern="secret"), call("extra")],
                [call("final_answer", **found)],
                "Found.",
            ]
        )
    )
    runner = MainRunner("m", "d", "p", sandbox, model, subrunners={"search": {"class": SearchRunner}})
    runner.subrunner_extra_tools.append({"name": "extra", "description": "", "input_schema": {"type": "object"}})
    runner.subrunner_extra_handlers["extra"] = lambda **_: {"ok": 1}
    result = asyncio.run(runner.run("Find"))
    answers = [block["content"] for message in result.messages for block in message["content"] if block["type"] == "tool_result"]
    assert '"summary": "One file."' in answers[0] and "Unknown runner: x" in answers[1]
    alone = SearchRunner(sandbox, ModelProvider(ScriptedProvider([[call("final_answer", **found)]])))
    result = asyncio.run(alone.run("secret"))
    assert result.message == "One file." and result.data.matches[0].path == "/home/user/repo/a.py" and result.data.query == "secret"
    stuck = SearchRunner(sandbox, ModelProvider(ScriptedProvider([[call("glob", pattern="*")]] * 3)), max_turns=2)
    result = asyncio.run(stuck.run("x"))
    assert not result and "2 turns" in result.message and result.data.matches == []


def test_tools_are_known_by_their_names(sandbox):
    assert list(TOOL_REGISTRY) == ["glob", "grep", "read_file", "write_file", "edit_file", "run_command"]
    with pytest.raises(ValueError, match=r"Unknown tool\(s\): \['nothing'\]"):
        get_schemas(["nothing"])
    edit = TOOL_REGISTRY["edit_file"].build_handler(sandbox)
    assert edit(path="/none", old_string="a", new_string="b", unknown=1)["error"]
    with pytest.raises(TypeError):
        GitRepo(object())


def test_anthropic_s_provider_is_made_without_its_package():
    provider = AnthropicProvider(api_key="sk-ant-none", model="claude-sonnet-4-5-20250929")
    assert provider.model == "claude-sonnet-4-5-20250929" and provider.max_tokens == 4096


def test_skills_are_copied_and_listed(tmp_path, sandbox):
    skill = tmp_path / "skills/counter"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: counter\ndescription: Counts <words>.\nmetadata:\n  short-description: Counts.\n---\n\nCount.\n")
    (skill / "__pycache__").mkdir()
    (skill / "__pycache__/x.pyc").write_text("")
    workspace = loaded(LocalBundleStore(tmp_path / "s"), sandbox, skills={"local": str(tmp_path / "skills")}, load_skills=True)
    catalog = workspace.skill_catalog
    assert len(catalog) == 1 and "counter" in catalog
    found = catalog.get_metadata("counter")
    assert (found.location, found.short_description) == ("/home/user/repo/src/skills/counter/SKILL.md", "Counts.")
    assert not sandbox.box.exists("/home/user/repo/src/skills/counter/__pycache__")
    schema, load = create_load_skill_tool(catalog)
    assert "<description>Counts &lt;words&gt;.</description>" in schema["description"]
    assert load(name="counter")["content"].endswith("Count.\n") and "not found" in load(name="other")["error"]
    with pytest.raises(ValueError, match="network"):
        asyncio.run(workspace.setup_skills({"github": "https://example.com/x"}))


def test_mcp_servers_are_modules_that_are_awaited(tmp_path, sandbox):
    servers = {"my-test": {"command": sys.executable, "args": [SERVER, "--state", "/nonexistent"]}}
    workspace = loaded(LocalBundleStore(tmp_path), sandbox, mcp_servers=servers, generate_mcp_tools=True)
    code = """
import asyncio
from src.servers.my_test import connect_my_test, disconnect_my_test, echo, get_sum

async def main():
    await connect_my_test()
    print(await echo("hi"), await get_sum(a=1, b=2))
    await disconnect_my_test()

asyncio.run(main())
"""
    sandbox.write_file("workspace/job.py", code)
    result = sandbox.run_command("python3 workspace/job.py")
    assert (result.logs, result.exit_code) == ("hi {'sum': 3}\n", 0), result.error
    assert "my-test" in workspace.skill_catalog
    assert "from src.servers.my_test import" in workspace.skill_catalog.get_skill("my-test")
    workspace.save()
    # Without the servers, the saved files report that.
    other = E2BSandbox.create()
    loaded(LocalBundleStore(tmp_path), other)
    assert other.run_command("python3 workspace/job.py").exit_code == 1
    other.close()


def test_the_names_of_the_package_exist():
    for name in ("Workspace", "GitRepo", "E2BSandbox", "SandboxConnection", "SandboxConfig", "BundleStore"):
        assert hasattr(sandlite.skillfs, name), name
