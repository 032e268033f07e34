"""Waiting for what an event loop does at once, without a time."""

import asyncio

TURNS = 50
"""More than any message takes from one in-memory client through the broker to another."""


async def loop_turns(count: int = TURNS) -> None:
    """Let the event loop turn some times: all that waits for no clock, thread or socket is done."""
    for _ in range(count):
        await asyncio.sleep(0)
