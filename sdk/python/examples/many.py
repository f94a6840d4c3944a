"""Many sandboxes at once with asyncio, one of them cancelled."""

import asyncio

from sandlite import AsyncSandbox


async def solve(number: int) -> str:
    async with AsyncSandbox() as box:
        result = await box.bash(f"echo $(({number} * {number}))", check=True)
        return result.stdout.strip()


async def main() -> None:
    print(await asyncio.gather(*(solve(number) for number in range(8))))
    async with AsyncSandbox() as box:
        try:
            await asyncio.wait_for(box.bash("sleep 20"), timeout=0.2)
        except asyncio.TimeoutError:
            print("cancelled; the sandbox lives on:", (await box.bash("echo yes")).stdout.strip())


asyncio.run(main())
