"""A wire tap between a client and a broker: what was acknowledged, and who has a session."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from broker.free_ports import free_port

_NUMBER = re.compile(rb'"number": (\d+)')
_SESSION_EXPIRY = 0x11
_PROPERTY_BYTES = {_SESSION_EXPIRY: 4, 0x21: 2, 0x27: 4, 0x22: 2, 0x19: 1, 0x17: 1}


@dataclass(eq=False)
class Tapped:
    """One connection.

    Attributes:
        client: Id of the client.
        is_lasting: The broker is to keep the session when the connection ends.
        open: Numbers of the readings that are not acknowledged, by packet id.
    """

    client: str = ""
    is_lasting: bool = False
    open: dict[int, int] = field(default_factory=dict)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)


class PacketTap:
    """Relays at a port of its own to the broker, and reads MQTT as it passes."""

    def __init__(self, broker_port: int) -> None:
        self.port = free_port()
        self._broker_port = broker_port
        self._server: asyncio.Server | None = None
        self._connections: set[Tapped] = set()
        self._sessions: set[str] = set()
        self._acknowledged: set[int] = set()

    async def start(self) -> None:
        """Begin to relay."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)

    async def stop(self) -> None:
        """Close all connections."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for each in self._connections:
                for writer in each.writers:
                    writer.close()
            await server.wait_closed()

    def acknowledged(self) -> set[int]:
        """Return the numbers that nobody owes an acknowledgement for any more."""
        owed = {number for each in self._connections for number in each.open.values()}
        return self._acknowledged - owed

    def clients(self) -> int:
        """Return how many connections there are, and sessions of others."""
        return len(self._connections) + len(self._sessions - {c.client for c in self._connections})

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tapped = Tapped(writers=[writer])
        self._connections.add(tapped)
        try:
            broker, to_broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
            tapped.writers.append(to_broker)
            ways = [
                asyncio.create_task(self._pass_on(tapped, reader, to_broker)),
                asyncio.create_task(self._pass_on(tapped, broker, writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass  # the broker is away
        finally:
            self._connections.discard(tapped)
            for each in tapped.writers:
                each.close()

    async def _pass_on(
        self, tapped: Tapped, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            async for packet, body in _packets(reader):
                self._see(tapped, packet[0], body)
                writer.write(packet + body)
                await writer.drain()

    def _see(self, tapped: Tapped, first: int, body: bytes) -> None:
        match first >> 4:
            case 1:  # CONNECT
                tapped.client, tapped.is_lasting = _connect(body)
                change = self._sessions.add if tapped.is_lasting else self._sessions.discard
                change(tapped.client)
            case 3 if first & 6 and (number := _NUMBER.search(body)):  # PUBLISH
                start = 2 + int.from_bytes(body[:2], "big")
                tapped.open[int.from_bytes(body[start : start + 2], "big")] = int(number[1])
            case 4:  # PUBACK
                acknowledged = tapped.open.pop(int.from_bytes(body[:2], "big"), None)
                if acknowledged is not None:
                    self._acknowledged.add(acknowledged)
            case _:
                pass


async def _packets(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield (fixed header, rest) of each packet until the connection ends."""
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            head = await reader.readexactly(2)
            while head[-1] & 0x80:
                head += await reader.readexactly(1)
            length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(head[1:]))
            yield head, await reader.readexactly(length)


def _connect(body: bytes) -> tuple[str, bool]:
    """Return the client id, and whether the session outlives the connection."""
    after_name = 2 + int.from_bytes(body[:2], "big")
    version, flags = body[after_name], body[after_name + 1]
    place = after_name + 4
    is_lasting = not flags & 2
    if version == 5:
        end = place + 1 + body[place]
        place += 1
        is_lasting = False
        while place < end:
            name = body[place]
            size = _PROPERTY_BYTES[name]
            value = int.from_bytes(body[place + 1 : place + 1 + size], "big")
            is_lasting |= name == _SESSION_EXPIRY and value > 0
            place += 1 + size
    length = int.from_bytes(body[place : place + 2], "big")
    return body[place + 2 : place + 2 + length].decode(), is_lasting
