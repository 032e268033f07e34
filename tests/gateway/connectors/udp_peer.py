"""A peer on UDP that answers as a test says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import cast


class UdpPeer(asyncio.DatagramProtocol):
    """Answers each datagram; counts them."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self.answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No subclass in Python 3.11.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.answered += 1
        self._transport.sendto(self._answer(data), addr)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._transport.get_extra_info("sockname")[1])


@contextlib.asynccontextmanager
async def udp_peer(answer: Callable[[bytes], bytes]) -> AsyncIterator[UdpPeer]:
    """Run a peer until the block ends."""
    loop = asyncio.get_running_loop()
    transport, peer = await loop.create_datagram_endpoint(
        lambda: UdpPeer(answer), local_addr=("127.0.0.1", 0)
    )
    try:
        yield peer
    finally:
        transport.close()
