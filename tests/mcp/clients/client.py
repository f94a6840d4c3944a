"""The official Python client against `sandlite mcp`: over standard input and output, and over HTTP.

usage: client.py SANDLITE [URL KEY]
"""

import asyncio
import sys

import httpx2 as httpx
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def check(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert len(tools) == 30, sorted(tools)
    assert tools["read_file"].annotations.read_only_hint and not tools["bash"].annotations.read_only_hint
    assert all(tool.output_schema for tool in tools.values())

    seen = []

    async def progress(progress, total, message):
        seen.append(message)

    result = await client.call_tool("bash", {"command": "echo hi > f; cat f; exit 3"}, progress_callback=progress)
    assert not result.is_error and result.structured_content["stdout"] == "hi\n", result
    assert result.structured_content["exit_code"] == 3
    assert any("hi" in message for message in seen), seen

    # The client checks each answer against the tool's output schema.
    await client.call_tool("write_file", {"path": "a.py", "content": "x = 1\n"})
    await client.call_tool("edit_file", {"path": "a.py", "edits": [{"old": "1", "new": "2"}]})
    read = await client.call_tool("read_file", {"path": "a.py"})
    assert read.structured_content["content"] == "x = 2\n"
    for tool, arguments in {
        "python": {"code": "print(open('a.py').read())"},
        "list_files": {},
        "glob": {"pattern": "*.py"},
        "grep": {"pattern": "x", "context": 1},
        "kv_set": {"key": "k", "value": [1, None, {"a": "b"}]},
        "kv_get": {"key": "k"},
        "kv_keys": {},
        "kv_delete": {"key": "k"},
        "history": {},
        "fork": {},
        "export_snapshot": {},
        "move_file": {"from": "a.py", "to": "b.py"},
        "delete_file": {"path": "b.py"},
    }.items():
        result = await client.call_tool(tool, arguments)
        assert not result.is_error and result.structured_content is not None, (tool, result)

    limited = await client.call_tool("bash", {"command": "echo so far; while :; do :; done", "timeout_ms": 300})
    assert limited.is_error and "so far" in limited.content[0].text, limited

    try:
        await asyncio.wait_for(client.call_tool("bash", {"command": "sleep 20"}), 0.5)
        raise AssertionError("not cancelled")
    except (asyncio.TimeoutError, TimeoutError):
        pass
    after = await client.call_tool("bash", {"command": "echo next"})
    assert after.structured_content["stdout"] == "next\n"

    resources = (await client.list_resources()).resources
    assert "sandlite:///home/user/f" in [str(resource.uri) for resource in resources], resources
    contents = (await client.read_resource("sandlite:///home/user/f")).contents
    assert contents[0].text == "hi\n"
    prompt = await client.get_prompt("sandbox")
    assert "`bash`" in prompt.messages[0].content.text


async def main():
    sandlite = sys.argv[1]
    for mode in ["auto", "legacy"]:
        async with Client(StdioServerParameters(command=sandlite, args=["mcp"]), mode=mode) as client:
            await check(client)
            print("stdio", mode, client.protocol_version)
    if len(sys.argv) > 2:
        for mode in ["auto", "legacy"]:
            http = httpx.AsyncClient(headers={"Authorization": f"Bearer {sys.argv[3]}"}, timeout=60)
            async with Client(streamable_http_client(sys.argv[2], http_client=http), mode=mode) as client:
                await client.call_tool("bash", {"command": "rm -rf *"})
                await check(client)
                print("http", mode, client.protocol_version)


asyncio.run(main())
