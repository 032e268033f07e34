"""Turns on the event loop: long work lets others go on."""

import asyncio
import time

TURN_SECONDS = 0.02


class Turn:
    """A turn of 20 ms."""

    def __init__(self) -> None:
        self._end = time.perf_counter() + TURN_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether others have waited long enough."""
        return time.perf_counter() >= self._end

    async def or_wait(self) -> None:
        """Go on; if the turn is over let others have theirs first, and begin another one."""
        if self.is_over:
            await asyncio.sleep(0)
            self._end = time.perf_counter() + TURN_SECONDS
