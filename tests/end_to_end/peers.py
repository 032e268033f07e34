"""Devices of other makers on loopback for a test's time, beside its own synchronous code."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from host.mqtt import Message, open_client

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


def publish(url: str, *messages: tuple[str, object]) -> None:
    async def send() -> None:
        client = open_client(url, "zigbee2mqtt")
        await client.connect()
        tickets = [client.publish(topic, json.dumps(body).encode()) for topic, body in messages]
        for ticket in tickets:
            await ticket.wait(30)
        await client.close()

    asyncio.run(send())


def retained(url: str, root: str) -> dict[str, Any]:
    """Return what is retained on a broker below a level."""

    async def read() -> dict[str, Any]:
        client = open_client(url, "homeassistant")
        found: dict[str, Any] = {}
        last = asyncio.Event()

        def take(messages: list[Message]) -> None:
            found.update({m.topic: json.loads(m.payload) for m in messages if m.retain})
            if any(not message.retain for message in messages):
                last.set()

        client.on_messages(take)
        await client.connect()
        await client.subscribe(f"{root}/#")
        client.publish(f"{root}/end", b"")  # comes after all that is retained
        await asyncio.wait_for(last.wait(), 30)
        await client.close()
        return found

    return asyncio.run(read())
