"""AgentFS's own Python SDK at work on a file: `python agentfs_sdk_at_work.py make|use FILE`."""

import asyncio
import sys

from agentfs_sdk import AgentFS, AgentFSOptions

LARGE = b"sdk-" * 37500


async def make(agent):
    await agent.fs.mkdir("/dir")
    await agent.fs.write_file("/dir/large", LARGE)
    await agent.fs.write_file("/text.txt", "hello from the sdk")
    await agent.kv.set("answer", {"n": 42})
    await agent.kv.set("list", [1, "two", None])
    await agent.kv.set("gone", True)
    await agent.kv.delete("gone")
    call = await agent.tools.start("search", {"q": "x"})
    await agent.tools.success(call, {"hits": 3})
    await agent.tools.record("broken", 1700000000, 1700000001, {"a": 1}, None, "it failed")


async def fails(work):
    try:
        await work
    except Exception:
        return True
    return False


async def use(agent):
    assert sorted(await agent.fs.readdir("/")) == ["dir", "full", "gone", "hard", "hollow", "link", "old"]
    assert await agent.fs.read_file("/dir/large", None) == b"ours" * 50000
    assert await agent.fs.read_file("/hard") == "small"
    assert (await agent.fs.stat("/dir/large")).size == 200000
    assert (await agent.fs.stat("/dir")).is_directory()
    assert (await agent.kv.get("key"))["n"] == 1
    assert len(await agent.kv.list("k")) == 1
    await agent.kv.delete("doomed")
    assert await agent.kv.get("doomed") is None
    await agent.kv.set("key", {"n": 2})
    calls = await agent.tools.get_by_name("bash")
    assert len(calls) == 1 and calls[0].status == "success" and calls[0].result["exitCode"] == 0
    assert (await agent.tools.get_by_name("python"))[0].error == "NameError"
    assert len(await agent.tools.get_recent(0)) == 2
    assert len(await agent.tools.get_stats()) == 2
    await agent.fs.rmdir("/hollow/inner")
    await agent.fs.rmdir("/hollow")
    assert await fails(agent.fs.rmdir("/full"))
    await agent.fs.rename("/full", "/moved")
    await agent.fs.mkdir("/moved/new")
    await agent.fs.rm("/moved/sub", recursive=True)
    await agent.fs.write_file("/dir/new", LARGE)
    await agent.fs.write_file("/hard", "rewritten")
    await agent.fs.unlink("/gone")
    await agent.fs.rename("/old", "/renamed")
    await agent.kv.set("from-sdk", "text")
    call = await agent.tools.start("unfinished", {})
    await agent.tools.error(call, "gave up")
    await agent.tools.record("later", 1700000000, 1700000002, {}, {"ok": True})


async def main():
    what, path = sys.argv[1:]
    agent = await AgentFS.open(AgentFSOptions(path=path))
    await {"make": make, "use": use}[what](agent)
    await agent.close()


asyncio.run(main())
