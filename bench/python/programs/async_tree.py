"""A tree of asyncio tasks, each awaiting its children."""

import asyncio
import sys

scale = float(sys.argv[1])


async def node(depth):
    if depth == 0:
        await asyncio.sleep(0)
        return 1
    return sum(await asyncio.gather(*(node(depth - 1) for _ in range(5))))


async def main():
    total = 0
    for _ in range(max(1, int(2 * scale))):
        total += await node(6)
    return total


print(asyncio.run(main()))
