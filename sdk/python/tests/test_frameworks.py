"""The tools of the frameworks, with the real packages where they are installed and a model that follows a script."""

import asyncio
import json

import pytest

import sandlite
from sandlite import AsyncSandbox, Sandbox, anthropic, openai


@pytest.fixture
def box():
    with Sandbox() as made:
        yield made


def test_openai_s_chat_calls_are_answered(box):
    tools = openai.SandboxTools(box)
    assert tools.chat[0]["type"] == "function" and tools.chat[0]["function"]["parameters"]["required"] == ["command"]
    call = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "echo hi; exit 3"}'}}
    assert tools.dispatch(call) == {"role": "tool", "tool_call_id": "1", "content": "hi\n[exit code 3]"}
    item = {"type": "function_call", "call_id": "2", "name": "write_file", "arguments": '{"path": "f", "content": "x"}'}
    assert tools.dispatch(item)["call_id"] == "2" and box.read_file("f") == "x"


def test_any_input_of_a_model_gets_a_result(box):
    tools = openai.SandboxTools(box, names=["bash", "read_file", "edit_file", "kv_get", "kv_set"])
    offered = [tool["name"] for tool in tools.responses]
    assert offered == ["bash", "read_file", "edit_file", "kv_get", "kv_set", "history"]
    for name, arguments in (
        ("nothing", "{}"),
        ("python", '{"code": "1"}'),
        ("bash", "not json"),
        ("bash", "[]"),
        ("bash", "{}"),
        ("bash", '{"command": "true", "surprise": 1}'),
        ("read_file", '{"path": "none"}'),
        ("read_file", '{"path": 3}'),
        ("bash", "[" * 200_000),
        ("kv_set", '{"key": "k", "value": ' + "[" * 1000 + "]" * 1000 + "}"),
        ("kv_set", '{"key": "k", "value": NaN}'),
        ("bash", '{"command": "echo \\ud800"}'),
        ("bash", 5),
        ("edit_file", '{"path": "none", "edits": [{"old": "a", "new": "b"}]}'),
    ):
        answer = tools.dispatch({"id": "1", "function": {"name": name, "arguments": arguments}})
        assert answer["content"].startswith("error: "), (name, arguments, answer)
    with pytest.raises(ValueError):
        openai.SandboxTools(box, names=["rm"])


def test_arguments_of_any_depth_are_answered(box):
    deep = []
    for _ in range(200_000):
        deep = [deep]
    answer = anthropic.SandboxTools(box).dispatch({"id": "1", "name": "kv_set", "input": {"key": "k", "value": deep}})
    assert answer["is_error"] and answer["content"].startswith("error: ")


def test_anthropic_s_blocks_are_answered(box):
    tools = anthropic.SandboxTools(box)
    assert tools.tools[0]["input_schema"]["type"] == "object"
    message = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "a", "name": "kv_set", "input": {"key": "k", "value": [1]}},
            {"type": "tool_use", "id": "b", "name": "kv_get", "input": {"key": "k"}},
            {"type": "tool_use", "id": "c", "name": "read_file", "input": {"path": "none"}},
        ],
    }
    answer = tools.answer(message)
    assert answer["role"] == "user" and [block["tool_use_id"] for block in answer["content"]] == ["a", "b", "c"]
    assert answer["content"][1]["content"] == "[1]" and answer["content"][2]["is_error"]
    assert tools.answer({"content": [{"type": "text", "text": "done"}]}) is None


def test_a_limit_is_reported_with_the_output(box):
    answer = anthropic.SandboxTools(box).dispatch(
        {"id": "1", "name": "bash", "input": {"command": "echo before; sleep 100", "timeout_ms": 200}}
    )
    assert answer["is_error"] and answer["content"].startswith("before\n") and "[stopped: " in answer["content"]


def test_long_output_is_cut_in_the_middle(box):
    answer = anthropic.SandboxTools(box).dispatch({"id": "1", "name": "bash", "input": {"command": "seq 30000"}})
    text = answer["content"]
    assert len(text) < 62_000 and text.startswith("1\n2\n") and "\n30000\n[the middle of the output is omitted: " in text


def test_models_are_offered_every_option_of_an_action(box):
    offered = {tool["name"]: tool["input_schema"]["properties"] for tool in anthropic.SandboxTools(box).tools}
    options = {"cwd", "env", "stdin", "timeout_ms", "rollback_on_failure", "session", "seed", "record", "at"}
    assert {"command", *options} == set(offered["bash"])
    assert {"literal", "mode", "max_matches", "hidden"} <= set(offered["grep"])
    assert set(offered) == {action["name"] for action in sandlite.actions() if action["audience"] == "models"}


def test_sessions_and_counts_reach_a_model(box):
    tools = anthropic.SandboxTools(box)

    def call(name, **given):
        return tools.dispatch({"id": "1", "name": name, "input": given})["content"]

    call("bash", command="cd /tmp; x=1", session="s")
    assert call("bash", command="echo $x $PWD", session="s") == "1 /tmp"
    call("write_file", path="/tmp/f", content="a.b\na.b\naxb\n")
    assert call("grep", pattern="a.b", path="/tmp", literal=True, mode="count") == "/tmp/f:2"
    assert call("python", code="x = 1", session="p") == "[exit code 0]"
    call("python", code="import os; os.kill(os.getpid(), 9)", session="p")
    assert "[the session has a new Python interpreter: " in call("python", code="print(1)", session="p")
    result = box.session("p").python("print(2)")
    assert (result.stdout, result.restarted) == ("2\n", False)


def test_an_async_sandbox_is_dispatched_to_as_well():
    async def main():
        async with AsyncSandbox() as box:
            tools = openai.SandboxTools(box)
            answer = await tools.adispatch({"id": "1", "function": {"name": "python", "arguments": '{"code": "print(6*7)"}'}})
            assert answer["content"] == "42"
            with pytest.raises(TypeError):
                tools.dispatch({"id": "1"})

    asyncio.run(main())


def test_the_real_openai_package_takes_tools_and_gives_calls(box):
    types = pytest.importorskip("openai.types.chat")
    import httpx
    from openai import OpenAI

    tools = openai.SandboxTools(box)
    seen = []

    def scripted(request):
        asked = json.loads(request.content)
        seen.append(asked)
        call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "echo $((6*7))"}'}}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        if asked["messages"][-1]["role"] == "tool":
            said = {"role": "assistant", "content": f"It is {asked['messages'][-1]['content']}."}
        choice = {"index": 0, "finish_reason": "stop", "message": said}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}
        return httpx.Response(200, json=body)

    client = OpenAI(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(scripted)))
    messages = [{"role": "user", "content": "What is six times seven?"}]
    while True:
        answer = client.chat.completions.create(model="scripted", messages=messages, tools=tools.chat)
        said = answer.choices[0].message
        assert isinstance(said, types.ChatCompletionMessage)
        if not said.tool_calls:
            break
        messages.append(said.model_dump(exclude_none=True))
        messages.extend(tools.dispatch(call) for call in said.tool_calls)
    assert said.content == "It is 42." and seen[0]["tools"][0]["function"]["name"] == "bash"


def test_the_real_anthropic_package_takes_tools_and_gives_calls(box):
    pytest.importorskip("anthropic")
    from anthropic import Anthropic, _base_client

    # The package has its own choice of HTTP client, which changed once.
    httpx = getattr(_base_client, "httpx2", None) or getattr(_base_client, "httpx")

    tools = anthropic.SandboxTools(box)

    def scripted(request):
        asked = json.loads(request.content)
        last = asked["messages"][-1]["content"]
        content = [{"type": "tool_use", "id": "t1", "name": "python", "input": {"code": "print(6 * 7)"}}]
        if isinstance(last, list) and last[0]["type"] == "tool_result":
            content = [{"type": "text", "text": f"It is {last[0]['content']}."}]
        body = {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx.Response(200, json=body)

    client = Anthropic(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(scripted)))
    messages = [{"role": "user", "content": "What is six times seven?"}]
    while True:
        message = client.messages.create(model="scripted", max_tokens=100, messages=messages, tools=tools.tools)
        answer = tools.answer(message)
        if answer is None:
            break
        messages += [{"role": "assistant", "content": [block.model_dump() for block in message.content]}, answer]
    assert message.content[0].text == "It is 42."


def test_langchain_s_tools_are_real_ones(box):
    core = pytest.importorskip("langchain_core")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from sandlite.langchain import sandbox_tools

    tools = {tool.name: tool for tool in sandbox_tools(box)}
    assert tools["bash"].invoke({"command": "echo hi"}) == "hi" and core
    call = {"name": "python", "args": {"code": "print(6 * 7)"}, "id": "1", "type": "tool_call"}
    model = GenericFakeChatModel(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("It is 42.")]))
    messages = [HumanMessage("What is six times seven?")]
    while True:
        said = model.invoke(messages)
        messages.append(said)
        if not said.tool_calls:
            break
        messages += [tools[asked["name"]].invoke(asked) for asked in said.tool_calls]
    answer = messages[-2]
    assert isinstance(answer, ToolMessage) and answer.content == "42" and said.content == "It is 42."
    failed = tools["read_file"].invoke({"name": "read_file", "args": {"path": "none"}, "id": "2", "type": "tool_call"})
    assert failed.status == "error" and "no such file" in failed.content

    async def main():
        async with AsyncSandbox() as other:
            tool = sandbox_tools(other, names=["bash"])[0]
            assert await tool.ainvoke({"command": "echo async"}) == "async"

    asyncio.run(main())


def test_pydantic_ai_s_toolset_serves_an_agent(box):
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from sandlite.pydantic_ai import sandbox_toolset

    offered = []

    def scripted(messages, info):
        offered.extend(tool.name for tool in info.function_tools)
        last = messages[-1].parts[-1]
        if "no such file" in str(last.content):
            return ModelResponse(parts=[ToolCallPart("bash", {"command": "echo 42"})])
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"It is {last.content}.")])
        return ModelResponse(parts=[ToolCallPart("read_file", {"path": "none"})])

    agent = Agent(FunctionModel(scripted), toolsets=[sandbox_toolset(box, names=["bash", "read_file"])])
    assert agent.run_sync("What is six times seven?").output == "It is 42."
    assert set(offered) == {"bash", "read_file", "history"}


def test_failures_in_a_row_do_not_end_an_agent_of_pydantic_ai(box):
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from sandlite.pydantic_ai import sandbox_toolset

    answers = []

    def scripted(messages, info):
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            answers.append(last.content)
        if len(answers) == 4:
            return ModelResponse(parts=[TextPart("I give up.")])
        return ModelResponse(parts=[ToolCallPart("read_file", {"path": f"none-{len(answers)}"})])

    agent = Agent(FunctionModel(scripted), toolsets=[sandbox_toolset(box)])
    assert agent.run_sync("Read on.").output == "I give up."
    assert [f"none-{number}" in answer and "no such file" in answer for number, answer in enumerate(answers)] == [True] * 4


def test_tools_go_on_in_the_session_that_they_were_made_with(box):
    tools = anthropic.SandboxTools(box, session="agent")

    def call(name, **given):
        return tools.dispatch({"id": "1", "name": name, "input": given})["content"]

    call("bash", command="cd /tmp; x=1")
    assert call("bash", command="echo $x $PWD") == "1 /tmp"
    assert call("bash", command="echo [$x]", session="another") == "[]"
    call("python", code="y = 2")
    assert call("python", code="print(y)") == "2"
    assert call("list_files", path="/tmp") != "" and box.sessions() == ["agent", "another"]


def test_every_framework_takes_a_session(box):
    made = [openai.SandboxTools(box, session="s").dispatch({"id": "1", "function": {"name": "bash", "arguments": '{"command": "a=1"}'}})]
    assert made[0]["content"] == "[exit code 0]"
    if pytest.importorskip("langchain_core"):
        from sandlite.langchain import sandbox_tools

        assert sandbox_tools(box, names=["bash"], session="s")[0].invoke({"command": "echo $a"}) == "1"


@pytest.mark.parametrize("names", [["bash"], ["python", "read_file"]])
def test_tools_that_truncate_output_bring_the_tool_that_shows_all_of_it(box, names):
    tools = anthropic.SandboxTools(box, names=names)
    assert {tool["name"] for tool in tools.tools} == {*names, "history"}
    code = {"command": "seq 30000"} if "bash" in names else {"code": "for i in range(30000): print(i)"}
    text = tools.dispatch({"id": "1", "name": names[0], "input": code})["content"]
    note = text.rpartition("`history` and run=")[2]
    asked = {"run": int(note.strip("]").split(" ")[0]), "output_offset": 60_000}
    whole = tools.dispatch({"id": "2", "name": "history", "input": asked})["content"]
    assert "\n15000\n" not in text and "\n15000\n" in whole, whole[:400]


def test_tools_that_cut_nothing_bring_nothing_else(box):
    assert [tool["name"] for tool in anthropic.SandboxTools(box, names=["read_file"]).tools] == ["read_file"]


def test_a_timeout_above_the_preset_is_shortened_with_a_note(box):
    tools = anthropic.SandboxTools(box)
    answer = tools.dispatch({"id": "1", "name": "bash", "input": {"command": "echo done", "timeout_ms": 60_000}})
    assert "is_error" not in answer, answer
    assert answer["content"] == "done\n[the timeout of 60 s was reduced to 30 s, the limit of this sandbox]"
    answer = tools.dispatch({"id": "1", "name": "python", "input": {"code": "print(1)", "timeout_ms": 0}})
    assert answer["content"] == "1\n[the timeout of 0 s was ignored: the limit of this sandbox is 30 s]"
    answer = tools.dispatch({"id": "1", "name": "bash", "input": {"command": "echo done", "timeout_ms": 30_000}})
    assert answer["content"] == "done"
