"""The runner: a model that follows a script, real tools, and conversations that are resumed from the file."""

import asyncio
import json
import subprocess
import sys

import pytest

from sandlite import AsyncSandbox, Sandbox
from sandlite.runner import (
    AnthropicProvider,
    OpenAIProvider,
    Request,
    Runner,
    RunnerTool,
    ScriptedProvider,
    SubRunner,
    ToolSpec,
    call,
    conversations,
    search_runner,
)

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer", "minimum": 1}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.fixture
def box():
    with Sandbox() as made:
        yield made


def last_results(request):
    return [(block["text"], block["is_error"]) for block in request.messages[-1]["content"] if block["type"] == "tool_result"]


def test_a_model_works_with_the_files_until_it_is_done(box):
    model = ScriptedProvider(
        [
            [{"type": "text", "text": "I write it."}, call("write_file", path="/notes.txt", content="one\ntwo\n")],
            [call("run_command", command="wc -l < /notes.txt"), call("glob", pattern="/*.txt")],
            "There are two lines.",
        ]
    )
    outcome = Runner(box, model, instructions="Be brief.").run("Count.")
    assert outcome and outcome.text == "There are two lines." and outcome.turns == 3
    assert outcome.usage == {"input_tokens": 3, "output_tokens": 3}
    assert box.read_file("/notes.txt") == "one\ntwo\n"
    assert model.requests[0].instructions == "Be brief."
    assert [text.strip() for text, _ in last_results(model.requests[2])] == ["2", "/notes.txt"]
    assert {tool.name for tool in model.requests[0].tools} >= {"glob", "grep", "read_file", "write_file", "edit_file", "run_command", "checkpoint"}


def test_events_are_in_order(box):
    model = ScriptedProvider([[{"type": "text", "text": "Look."}, call("run_command", command="exit 3")], "Done."])
    events = list(Runner(box, model).stream("Go"))
    assert [event.kind for event in events] == ["text", "tool_call", "tool_result", "turn", "text", "turn", "done"]
    assert events[2].tool == "run_command" and "exit code 3" in events[2].text
    assert events[-1].outcome.ok


def test_whatever_a_model_calls_is_answered(box):
    def broken() -> str:
        raise OSError("out of paper")

    tool = RunnerTool("print_page", "Prints.", {"type": "object", "properties": {}}, broken)
    model = ScriptedProvider(
        [
            [call("nothing"), call("read_file", path="/missing"), {**call("glob"), "arguments": "not json"}, call("print_page")],
            "Sorry.",
        ]
    )
    assert Runner(box, model, tools=["glob", "read_file", tool]).run("Try").ok
    answers = last_results(model.requests[1])
    assert all(is_error for _, is_error in answers)
    assert "unknown tool `nothing`" in answers[0][0] and "out of paper" in answers[3][0]


def test_a_model_that_never_ends_is_stopped(box):
    model = ScriptedProvider([[call("run_command", command="true")] for _ in range(10)])
    outcome = Runner(box, model, max_turns=4).run("Loop")
    assert not outcome and outcome.turns == 4 and "4 turns" in outcome.error


def test_structured_output_fits_its_schema(box):
    model = ScriptedProvider(["Here it is: 42", [call("final_answer", answer=0)], [call("final_answer", answer=42)]])
    outcome = Runner(box, model, output_schema=SCHEMA).run("Answer")
    assert outcome.ok and outcome.data == {"answer": 42}
    assert "final_answer" in model.requests[1].messages[-1]["content"][0]["text"]
    assert last_results(model.requests[2])[0][1], "zero is too small"
    stubborn = ScriptedProvider([[call("final_answer", answer="no")]] * 5)
    outcome = Runner(box, stubborn, output_schema=SCHEMA).run("Answer")
    assert not outcome and "schema" in outcome.error and len(stubborn.requests) == 3
    with pytest.raises(ValueError):
        Runner(box, stubborn, output_schema={"type": "object", "surprise": 1})


def test_a_conversation_is_resumed_from_the_file_by_another_process(tmp_path):
    path = tmp_path / "agent.db"
    script = """
import sys
from sandlite import Sandbox
from sandlite.runner import Runner, ScriptedProvider, call
box = Sandbox(sys.argv[1])
print(Runner(box, ScriptedProvider([[call("run_command", command="echo blue > /colour")], "Noted."])).run("Remember blue").conversation)
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True)
    with Sandbox(path) as box:
        assert conversations(box) == [done.stdout.strip()]
        model = ScriptedProvider(["Blue."])
        runner = Runner(box, model).resume()
        assert runner.conversation == done.stdout.strip()
        assert runner.run("Which colour?").text == "Blue."
        roles = [message["role"] for message in model.requests[0].messages]
        assert roles == ["user", "assistant", "user", "assistant", "user"]
        assert model.requests[0].messages[0]["content"][0]["text"] == "Remember blue"
        rows = box.history(name="agent_turn")
        assert len(rows) == 6 and rows[-1].command == "user: Remember blue"
        with pytest.raises(LookupError):
            Runner(box, model).resume("0" * 32)


def test_calls_that_a_conversation_was_cut_off_in_are_answered(box):
    def explode(**_):
        raise KeyboardInterrupt

    tool = RunnerTool("wait", "Waits.", {"type": "object", "properties": {}}, explode)
    with pytest.raises(KeyboardInterrupt):
        Runner(box, ScriptedProvider([[call("wait")]]), tools=[tool]).run("Wait")
    model = ScriptedProvider(["Again."])
    assert Runner(box, model, tools=[tool]).resume().run("Go on").ok
    content = model.requests[0].messages[-1]["content"]
    assert content[0]["type"] == "tool_result" and content[0]["is_error"] and content[1]["text"] == "Go on"


def test_a_long_conversation_is_resumed_whole(box):
    model = ScriptedProvider([[call("run_command", command="true")] for _ in range(120)] + ["Done."])
    runner = Runner(box, model, max_turns=200)
    assert runner.run("Go").ok
    assert Runner(box, model).resume().messages == runner.messages


def test_a_sub_runner_reports_to_its_caller(box):
    box.write_file("/src/a.py", "secret = 1\n")
    model = ScriptedProvider(
        [
            [call("call_subrunner", runner="search", task="Where is secret?")],
            [call("grep", pattern="secret", path="/src")],
            [call("final_answer", matches=[{"path": "/src/a.py", "relevance": "it is there"}], summary="Found.")],
            [call("call_subrunner", runner="nobody", task="x"), call("call_subrunner", runner="shouter", task="hi")],
            "HI",
            "In /src/a.py.",
        ]
    )
    shouter = SubRunner("shouter", "Shouts.", tools=[])
    events = list(Runner(box, model, subrunners=[search_runner(), shouter]).stream("Find it"))
    assert events[-1].outcome.text == "In /src/a.py." and events[-1].outcome.usage["input_tokens"] == 6
    assert {tool.name for tool in model.requests[1].tools} == {"glob", "grep", "read_file", "final_answer"}
    assert json.loads(last_results(model.requests[3])[0][0])["matches"][0]["path"] == "/src/a.py"
    assert [text for text, _ in last_results(model.requests[5])][1] == "HI"
    assert {event.runner for event in events} == {"main", "search", "shouter"}


def test_skills_of_the_sandbox_are_offered_by_name(box):
    box.write_file("/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse pdftotext.\n")
    model = ScriptedProvider([[call("load_skill", name="pdf"), call("load_skill", name="../etc")], "Ready."])
    assert Runner(box, model).run("Read a PDF").ok
    offered = next(tool for tool in model.requests[0].tools if tool.name == "load_skill")
    assert "- pdf: Reads PDF files." in offered.description
    answers = last_results(model.requests[1])
    assert "Use pdftotext." in answers[0][0] and answers[1][1]


def test_a_description_may_have_several_lines_or_be_no_yaml(box):
    box.write_file("/skills/a/SKILL.md", "---\nname: a\ndescription: >-\n  Reads\n  PDF: files.\n---\n")
    box.write_file("/skills/b/SKILL.md", "---\nname: [\ndescription: Still named.\n---\n")
    box.write_file("/skills/c/SKILL.md", "---\nmetadata:\n  description: inner\ndescription: 'Outer'\n---\n")
    model = ScriptedProvider(["Ready."])
    assert Runner(box, model).run("Go").ok
    offered = next(tool for tool in model.requests[0].tools if tool.name == "load_skill").description
    assert offered.splitlines()[1:] == ["- a: Reads PDF: files.", "- b: Still named.", "- c: Outer"]


def test_tools_of_the_program_are_called_under_any_name(box):
    box.write_file("/servers/notes/SKILL.md", "---\nname: notes\ndescription: Keeps notes.\n---\n\nUse `mcp notes`.\n")
    own = [RunnerTool(name, "Ours.", {"type": "object"}, lambda **_: "ours") for name in ("load_skill", "call_subrunner")]
    model = ScriptedProvider([[call("load_skill", name="notes"), call("call_subrunner")], "Done."])
    assert Runner(box, model, tools=own).run("Go").ok
    assert last_results(model.requests[1]) == [("ours", False), ("ours", False)]
    model = ScriptedProvider([[call("load_skill", name="notes"), call("load_skill", name="none")], "Done."])
    assert Runner(box, model).run("Go").ok
    answers = last_results(model.requests[1])
    assert "Use `mcp notes`." in answers[0][0] and answers[1][1]
    assert "- notes: Keeps notes." in next(tool for tool in model.requests[0].tools if tool.name == "load_skill").description


def test_the_same_with_asyncio():
    async def main():
        async def double(number: int) -> int:
            return number * 2

        tool = RunnerTool("double", "Doubles.", {"type": "object", "properties": {"number": {"type": "integer"}}}, double)
        model = ScriptedProvider([[call("double", number=21), call("run_command", command="echo hi > /f")], "42"])
        async with AsyncSandbox() as box:
            outcome = await Runner(box, model, tools=["run_command", tool]).arun("Double")
            assert outcome.text == "42" and await box.read_file("/f") == "hi\n"
            assert last_results(model.requests[1])[0] == ("42", False)
            again = await Runner(box, ScriptedProvider(["Yes."])).aresume()
            assert (await again.arun("Sure?")).text == "Yes."
            with pytest.raises(TypeError):
                Runner(box, model).run("x")

    asyncio.run(main())


REQUEST = Request(
    "Be brief.",
    [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {**call("glob", pattern="*"), "id": "a"}]},
        {"role": "user", "content": [{"type": "tool_result", "id": "a", "text": "x", "is_error": True}]},
    ],
    [ToolSpec("glob", "Finds.", {"type": "object", "properties": {}})],
    100,
)


def sse(*events):
    lines = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            lines.append(f"event: {event['type']}")
        lines.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n")
    return "\n".join(lines) + "\n"


def test_anthropic_s_own_package_is_asked_and_understood():
    anthropic = pytest.importorskip("anthropic")
    from anthropic import _base_client

    # Newer versions use another package of the same interface.
    httpx = getattr(_base_client, "httpx2", None) or getattr(_base_client, "httpx")
    asked = []

    def answer(request):
        asked.append(json.loads(request.content))
        start = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "stop_reason": None, "stop_sequence": None}
        body = sse(
            {"type": "message_start", "message": {**start, "usage": {"input_tokens": 7, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "b", "name": "glob", "input": {}}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"pattern": "*.py"}'}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        )
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    client = anthropic.Anthropic(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    *texts, reply = AnthropicProvider("x", client=client).reply(REQUEST)
    assert texts == ["Hel", "lo"] and reply.stop_reason == "tool_use" and reply.usage == {"input_tokens": 7, "output_tokens": 5}
    assert reply.content[1] == {"type": "tool_call", "id": "b", "name": "glob", "arguments": {"pattern": "*.py"}}
    assert asked[0]["system"] == "Be brief." and asked[0]["tools"][0]["input_schema"]["type"] == "object"
    assert asked[0]["messages"][2]["content"][0] == {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True}


def test_openai_s_own_package_is_asked_and_understood():
    openai = pytest.importorskip("openai")
    httpx = pytest.importorskip("httpx")
    asked = []

    def answer(request):
        asked.append(json.loads(request.content))

        def chunk(delta, reason=None):
            return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

        part = {"index": 0, "id": "b", "type": "function", "function": {"name": "glob", "arguments": '{"pat'}}
        rest = {"index": 0, "function": {"arguments": 'tern": "*.py"}'}}
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        body = sse(
            chunk({"role": "assistant", "content": "Hel"}),
            chunk({"content": "lo"}),
            chunk({"tool_calls": [part]}),
            chunk({"tool_calls": [rest]}),
            chunk({}, "tool_calls"),
            {**chunk({}), "choices": [], "usage": usage},
            "[DONE]",
        )
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    client = openai.OpenAI(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    *texts, reply = OpenAIProvider("x", client=client).reply(REQUEST)
    assert texts == ["Hel", "lo"] and reply.stop_reason == "tool_calls" and reply.usage == {"input_tokens": 7, "output_tokens": 5}
    assert reply.content[1] == {"type": "tool_call", "id": "b", "name": "glob", "arguments": {"pattern": "*.py"}}
    assert [message["role"] for message in asked[0]["messages"]] == ["system", "user", "assistant", "tool"]
    assert json.loads(asked[0]["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {"pattern": "*"}
