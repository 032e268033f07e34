"""A thread for calls that block: drivers of databases, files on network drives."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class OwnThread:
    """Runs calls one after the other in a daemon thread, which no exit of the process waits for.

    Args:
        name: Of the thread, for who looks at the process.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, call: Callable[[], T]) -> T:
        """Return what a call returns, or raise what it raises.

        A wait that is cancelled leaves the call to its end, and drops what comes of it.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(finish: Callable[[], None]) -> None:
            if not future.done():
                finish()

        def work() -> None:
            finish: Callable[[], None]
            try:
                finish = partial(future.set_result, call())
            except Exception as error:  # noqa: BLE001  (handed to whoever waits)
                finish = partial(future.set_exception, error)
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(settle, finish)

        self._calls.put(work)
        return await future

    def end(self, last: Callable[[], None]) -> None:
        """Let the thread end after what it has begun, and a last call; does not wait for it."""
        self._calls.put(last)
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            with contextlib.suppress(Exception):  # of `last`: nobody waits for it
                call()
