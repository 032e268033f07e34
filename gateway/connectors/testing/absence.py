"""A peer that is away, as its address sees it: attempts to reach it are counted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

from typing_extensions import override

Transport = Literal["tcp", "udp"]

LOOPBACK = "127.0.0.1"
FREE_SECONDS = 5.0


class Attempts:
    """Number of attempts to reach the peer: connections, or datagrams."""

    def __init__(self) -> None:
        self.number = 0


@contextlib.asynccontextmanager
async def counted_attempts(transport: Transport, port: int) -> AsyncIterator[Attempts]:
    """Stand where a peer stood, at loopback: close each connection at once, answer nothing."""
    attempts = Attempts()
    loop = asyncio.get_running_loop()

    def closed(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.number += 1
        writer.close()

    async def listen() -> asyncio.BaseTransport | asyncio.Server:
        if transport == "tcp":
            return await asyncio.start_server(closed, LOOPBACK, port)
        local = (LOOPBACK, port)
        return (await loop.create_datagram_endpoint(lambda: _DeafPort(attempts), local))[0]

    gate = await _once_free(listen)
    try:
        yield attempts
    finally:
        gate.close()
        if isinstance(gate, asyncio.Server):
            await gate.wait_closed()
        await asyncio.sleep(0)  # the loop closes sockets in its next turn


async def _once_free(
    listen: Callable[[], Awaitable[asyncio.BaseTransport | asyncio.Server]],
) -> asyncio.BaseTransport | asyncio.Server:
    """Listen as soon as the peer's socket is closed, which takes some turns of the loop.

    Raises:
        OSError: It is not for `FREE_SECONDS`.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + FREE_SECONDS
    while True:
        try:
            return await listen()
        except OSError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.02)


class _DeafPort(asyncio.DatagramProtocol):
    """Counts datagrams."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts

    @override
    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        self._attempts.number += 1
