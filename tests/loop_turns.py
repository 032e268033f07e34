"""Waiting for what an event loop does at once, or for so many rounds of one of its loops."""

import asyncio
from typing import Any

TURNS = 50
"""More than any message takes from one in-memory client through the broker to another."""


async def loop_turns(count: int = TURNS) -> None:
    """Let the event loop turn some times: all that waits for no clock, thread or socket is done."""
    for _ in range(count):
        await asyncio.sleep(0)


PATIENCE = 60.0


async def calls(owner: Any, method: str, count: int = 3) -> None:
    """Wait until something on this event loop has called a method of an object some times more."""
    plain = getattr(owner, method)
    enough = asyncio.Event()
    left = count

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left <= 0:
            enough.set()
        return plain(*arguments, **options)

    setattr(owner, method, counted)
    try:
        async with asyncio.timeout(PATIENCE):
            await enough.wait()
    finally:
        setattr(owner, method, plain)
