"""Slow calls next to the event loop, in threads that do not keep the process alive.

`asyncio.to_thread` is for what ends soon: its threads are waited for when the process stops. A
server that never finishes its answer must not delay that.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_background(call: Callable[[], T], name: str) -> T:
    """Run a call in a thread of its own and return what it returns, or raise what it raises.

    A wait that is cancelled discards the result.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(finish: Callable[[], None]) -> None:
        if not future.cancelled():
            finish()

    def work() -> None:
        finish: Callable[[], None]
        try:
            finish = partial(future.set_result, call())
        except Exception as error:  # noqa: BLE001  (handed to whoever waits)
            finish = partial(future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(settle, finish)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future
