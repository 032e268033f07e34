"""Waiting until the static service has looked at its tables."""

import asyncio

from static_engine.service.static_engine import StaticEngine

PATIENCE = 60.0


async def polls(engine: StaticEngine, count: int) -> None:
    """Wait until a service has looked at its tables some times more."""
    for _ in range(count):
        last = engine._poll_at
        async with asyncio.timeout(PATIENCE):
            while engine._poll_at == last:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
