"""Clients that go away while they wait for an answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.requests import Request

from federated_optimizer.coordinator.planning_processes import wanted_until


@contextlib.asynccontextmanager
async def while_asked(request: Request) -> AsyncIterator[None]:
    """End planning that is done inside for a client that closes its connection.

    The body of the request has been read.
    """
    gone = asyncio.Event()
    watch = asyncio.create_task(_watch(request, gone))
    try:
        with wanted_until(gone):
            yield
    finally:
        watch.cancel()


async def _watch(request: Request, gone: asyncio.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()
