"""Background tasks of a coordinator, and chores that recur."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from streamsql.errors import FederationError

log = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 0.25


class Background:
    """The tasks of one coordinator; all belong to its event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something as a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel everything and wait for it."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def keep_house(
    chores: Iterable[Callable[[], Awaitable[None]]], paused: Callable[[], bool]
) -> None:
    """Do chores again and again unless paused; one that fails does not stop the others."""
    chores = tuple(chores)
    while True:
        await asyncio.sleep(HOUSEKEEPING_SECONDS)
        for work in chores:
            if paused():  # also halfway: another coordinator may take over while one chore waits
                break
            try:
                await work()
            except FederationError as error:
                log.warning("housekeeping: %s", error.message)
            except Exception:
                # Without it no result is released and no query placed anew.
                log.exception("a defect interrupted housekeeping; it continues")
