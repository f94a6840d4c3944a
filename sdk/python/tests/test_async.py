"""The same for asyncio: concurrent, and really cancellable."""

import asyncio

import pytest

from sandlite import AsyncSandbox, errors


def test_every_method_exists_twice():
    from sandlite import Sandbox

    names = lambda kind: {name for name in vars(kind) if not name.startswith("_")}
    assert names(Sandbox) == names(AsyncSandbox) - {"open"}


def test_commands_and_files():
    async def main():
        async with AsyncSandbox() as box:
            await box.write_file("f", "hi\n")
            result = await box.bash("cat f")
            assert result.stdout == "hi\n"
            await box.kv.set("k", 1)
            assert await box.kv.get("k") == 1
            with pytest.raises(errors.FileNotFoundError):
                await box.read_file("none")
            fork = await box.fork()
            await fork.write_file("f", "B")
            assert await box.read_file("f") == "hi\n"
        assert box.closed

    asyncio.run(main())


def test_tasks_that_open_a_sandbox_at_the_same_time_share_it():
    async def write(box, name):
        await box.open()
        await box.write_file(name, "x")

    async def main():
        box = AsyncSandbox()
        names = [str(number) for number in range(8)]
        await asyncio.gather(*(write(box, name) for name in names))
        assert [entry.name for entry in await box.list_files()] == names
        await box.close()

    asyncio.run(main())


def test_sandboxes_run_beside_each_other():
    async def main():
        boxes = [await AsyncSandbox() for _ in range(4)]
        results = await asyncio.gather(*(box.bash(f"echo {number}") for number, box in enumerate(boxes)))
        assert [result.stdout for result in results] == ["0\n", "1\n", "2\n", "3\n"]

    asyncio.run(main())


def test_a_cancelled_command_is_over():
    async def main():
        running = asyncio.Event()

        async def started() -> None:
            running.set()

        async with AsyncSandbox(preset="permissive", tools=[started]) as box:
            task = asyncio.ensure_future(box.bash("tool started '{}'; sleep 200"))
            await running.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            rows = await box.history(1, name="bash")
            assert rows[0].exit_code != 0
            assert (await box.bash("echo next")).stdout == "next\n"

    asyncio.run(main())


def test_sessions_remember():
    async def main():
        async with AsyncSandbox() as box:
            session = box.session("work")
            await session.bash("cd /tmp")
            assert await session.directory() == "/tmp"
            await session.python("x = 1")
            assert (await session.python("print(x)")).stdout == "1\n"
            assert await session.end()

    asyncio.run(main())


def test_the_import_is_quick_and_light():
    import subprocess
    import sys

    code = "import sys, sandlite; print('asyncio' in sys.modules, 'tempfile' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert said == "False False\n"
