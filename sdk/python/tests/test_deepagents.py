"""The backend of deepagents: its own conformance suite, and an agent with a scripted model."""

import asyncio

import pytest

pytest.importorskip("deepagents")
suites = pytest.importorskip("langchain_tests.integration_tests")

from deepagents import create_deep_agent  # noqa: E402
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402

from sandlite import AsyncSandbox, Sandbox  # noqa: E402
from sandlite.deepagents import SandliteBackend  # noqa: E402

#: The suite is older than the package that it tests: the package's own sandboxes return absolute paths, match only files, and
#: overwrite, and fail the same seven.
OUTDATED = {
    "test_glob",
    "test_glob_basic_pattern",
    "test_glob_hidden_files_explicitly",
    "test_glob_with_character_class",
    "test_glob_with_directories",
    "test_glob_with_question_mark",
    "test_write_existing_file_fails",
}


class TestConformance(suites.SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self):
        with Sandbox() as box:
            yield SandliteBackend(box)

    @pytest.fixture(autouse=True)
    def _outdated(self, request):
        if request.node.name in OUTDATED:
            request.node.add_marker(pytest.mark.xfail(reason="the suite is older than deepagents", strict=True))


# The suite leaves this to the plugin's settings.
for _name, _test in list(vars(suites.SandboxIntegrationTests).items()):
    if asyncio.iscoroutinefunction(_test) and _name.startswith("test_"):
        pytest.mark.asyncio(_test)


@pytest.fixture
def backend():
    with Sandbox() as box:
        yield SandliteBackend(box)


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


def test_a_deep_agent_runs_commands_and_reads_what_they_wrote(backend):
    def call(name, identity, **arguments):
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": identity, "type": "tool_call"}])

    model = Scripted(
        messages=iter(
            [
                call("execute", "1", command="mkdir -p /w && seq 3 > /w/n && echo oops >&2; exit 3", timeout=60),
                call("read_file", "2", file_path="/w/n"),
                AIMessage("done"),
            ]
        )
    )
    agent = create_deep_agent(model=model, backend=backend)
    messages = agent.invoke({"messages": [{"role": "user", "content": "Count."}]})["messages"]
    answers = {message.tool_call_id: message.content for message in messages if message.type == "tool"}
    assert "oops" in answers["1"] and "exit code 3" in answers["1"] and "was reduced to 30 s" in answers["1"], answers["1"]
    assert "2" in answers["2"] and messages[-1].content == "done"


def test_both_streams_come_in_the_order_in_which_they_were_written(backend):
    result = backend.execute("echo 1; echo 2 >&2; echo 3")
    assert (result.output, result.exit_code, result.truncated) == ("1\n2\n3\n", 0, False)
    assert backend.execute("echo $((").exit_code == 2
    assert "[stopped: " in backend.execute("echo a; sleep 9", timeout=1).output


def test_a_session_resumes():
    with Sandbox() as box:
        backend = SandliteBackend(box, session="agent", id="mine")
        backend.execute("cd /tmp; x=1")
        assert backend.execute("echo $x $PWD").output == "1 /tmp\n" and backend.id == "mine"


def test_files_are_found_and_changed_without_a_process(backend):
    backend.upload_files([("/p/a.py", b"one = 1\ntwo = 1\n"), ("/p/.hid/b.yml", b"k: v\n"), ("/p/c/d.py", b"\xff")])
    runs = len(backend._box.history(100, name="bash"))
    assert [match["path"] for match in backend.glob("*.py", "/p").matches] == ["/p/a.py", "/p/c/d.py"]
    assert [match["path"] for match in backend.glob("*.yml", "/p").matches] == ["/p/.hid/b.yml"]
    assert backend.glob("**/*.yml", "/p").matches == []
    assert backend.glob("../*.py", "/p").error is not None
    assert backend.edit("/p/a.py", "= 1", "= 2").error is not None
    assert backend.edit("/p/a.py", "= 1", "= 2", replace_all=True).occurrences == 2
    window = backend.read("/p/a.py", offset=1, limit=5)
    assert (window.file_data["content"], window.start_line, window.end_line, window.total_lines) == ("two = 2", 2, 2, 2)
    assert backend.read("/p/c/d.py").file_data["encoding"] == "base64"
    assert backend.delete("/p").error is None and "not found" in backend.delete("/p").error
    assert len(backend._box.history(100, name="bash")) == runs


def test_grep_is_literal_and_counts(backend):
    backend.upload_files([("/g/a.txt", b"a.b\naxb\na.b\n"), ("/g/s/b.md", b"a.b\n")])
    assert [(match["path"], match["line"]) for match in backend.grep("a.b", "/g").matches] == [
        ("/g/a.txt", 1),
        ("/g/a.txt", 3),
        ("/g/s/b.md", 1),
    ]
    assert [match["path"] for match in backend.grep("a.b", "/g", "s/*.md").matches] == ["/g/s/b.md"]
    cut = backend.grep("a.b", "/g", max_count=2)
    assert (len(cut.matches), cut.truncated, backend.grep("a.b", "/g", max_count=3).truncated) == (2, True, False)
    assert backend.grep("a", "/none").error is not None


def test_an_async_sandbox_serves_the_async_methods():
    async def main():
        async with AsyncSandbox() as box:
            backend = SandliteBackend(box)
            assert (await backend.awrite("/tmp/x", "1")).error is None
            assert (await backend.aexecute("cat /tmp/x")).output == "1"
            with pytest.raises(TypeError):
                backend.execute("true")

    asyncio.run(main())
