"""Devices of other makers on loopback for a test's time, beside its own synchronous code."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 30.0


@contextmanager
def beside(serve: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Run a server of asyncio on a thread of its own until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    manager = serve()

    async def enter() -> T:
        return await manager.__aenter__()

    async def leave() -> None:
        await manager.__aexit__(None, None, None)

    try:
        found = asyncio.run_coroutine_threadsafe(enter(), loop).result(PATIENCE)
        try:
            yield found
        finally:
            asyncio.run_coroutine_threadsafe(leave(), loop).result(PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
