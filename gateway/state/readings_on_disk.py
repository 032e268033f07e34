"""When readings are on disk, so that a device may be told that they were taken."""

import asyncio
from collections.abc import Awaitable, Callable

PAUSE = 0.005
"""Seconds between two writes of observations that somebody waits for: in packs, not one by one."""
RETRY = 0.1
MAX_PENDING = 50_000
"""Events pending for a step beyond which devices have to wait."""


class KeptReadings:
    """Returns to those who wait when what was emitted before is on disk.

    That is so when the journal holds the events and the buffer their observations. While the disk
    refuses either, nobody returns: a device that waits for its acknowledgement keeps its readings,
    and sends them again when this process has died. While the engine is behind, nobody returns
    either.

    Args:
        write: Writes what was collected.
        is_on_disk: Whether everything written is.
        pending: Returns how many events wait for a step.
    """

    def __init__(
        self, write: Callable[[], None], is_on_disk: Callable[[], bool], pending: Callable[[], int]
    ) -> None:
        self._write = write
        self._is_on_disk = is_on_disk
        self._pending = pending
        self._next: asyncio.Task[None] | None = None
        self._written_at = float("-inf")

    def wait(self) -> Awaitable[None]:
        """Return what ends when all that was emitted until now is on disk."""
        if self._next is None:
            self._next = asyncio.create_task(self._work(), name="keeping readings")
        return asyncio.shield(self._next)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(self._written_at + PAUSE - loop.time(), 0))
        self._next = None  # what is emitted from here on needs another write
        self._written_at = loop.time()
        self._write()
        while not self._is_on_disk() or self._pending() > MAX_PENDING:
            await asyncio.sleep(RETRY)
            self._write()
