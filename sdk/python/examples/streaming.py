"""Output while a command runs: callbacks, streams and a handle that can be written to."""

import asyncio

from sandlite import AsyncSandbox, Sandbox

with Sandbox() as box:
    # A function that is called with each piece of text.
    box.bash("for step in plan act check; do echo $step; done", on_stdout=lambda text: print("  |", text, end=""))

    # A loop over the pieces; the command waits while you work on one.
    stream = box.stream("echo out; echo warning >&2; exit 3")
    for chunk in stream:
        print(f"{chunk.stream}: {chunk.text}", end="")
    print("exit code", stream.result.exit_code)

    # A handle: write, read, wait, kill.
    with box.start("while read -r name; do echo hello $name; done") as process:
        lines = iter(process.stdout)
        for name in ("ada", "bob"):
            process.send_stdin(f"{name}\n")
            print(next(lines), end="")
        print("exit code", process.wait().exit_code)


async def main() -> None:
    async with AsyncSandbox() as box:
        async for chunk in box.stream_python("for n in range(3): print(n * n)"):
            print(chunk.text, end="")


asyncio.run(main())
