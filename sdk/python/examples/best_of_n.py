"""Best of N: every attempt has its own fork, and the best one is kept."""

import asyncio

from sandlite import AsyncSandbox

TASK = "Sort the numbers in numbers.txt into sorted.txt."
# What a model proposed, three times.
ATTEMPTS = [
    "sort numbers.txt > sorted.txt",  # as text: 10 comes before 9
    "sort -n numbers.txt > sorted.txt",
    "srot -n numbers.txt > sorted.txt",
]


async def attempt(box: AsyncSandbox, command: str) -> "tuple[int, AsyncSandbox]":
    fork = await box.fork()
    await fork.bash(command)
    test = await fork.bash("[ $(wc -l < sorted.txt) = 3 ] && sort -nc sorted.txt")
    return int(test.ok), fork


async def main() -> None:
    async with AsyncSandbox(files={"numbers.txt": "9\n10\n1\n"}) as box:
        scored = await asyncio.gather(*(attempt(box, command) for command in ATTEMPTS))
        print("scores:", [score for score, _ in scored])
        best = max(range(len(scored)), key=lambda number: scored[number][0])
        print("best:", ATTEMPTS[best])
        print((await scored[best][1].read_file("sorted.txt")).split())
        print("untouched:", not await box.exists("sorted.txt"))
        for _, fork in scored:
            await fork.close()


asyncio.run(main())
