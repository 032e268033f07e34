"""A device that publishes at QoS 1 to its broker, and a tap between that broker and the gateway.

The gateway connects to the tap. What the broker delivers is logged as offered, and what the gateway
acknowledges as acknowledged; neither is changed.
"""

import asyncio
import contextlib
import re
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from benchmarks._device_faults.number_log import Event, NumberLog
from benchmarks._device_faults.peers.peer import Pace, PeerArguments, peer_arguments
from broker.broker_testing import ConnectionClosed, RawClient

IN_FLIGHT = 100
"""Messages that the device has under way to its broker, and that broker to the gateway."""
AUTOSAVE = 100
"""Changes after which the device's broker writes what it holds to disk."""
PUBLISH, PUBACK = 3, 4
_NUMBER = re.compile(rb'\{"n": (\d+)\}$')


def publish_all(arguments: PeerArguments) -> None:
    """Publish all numbers, in order; what is not acknowledged when the connection ends, again."""
    arguments.wait_to_go()
    log = arguments.log
    sent = log.next_number(Event.PUBLISHED)
    while sent < arguments.count:
        try:
            sent = _publish(arguments, log, sent)
        except (ConnectionClosed, OSError):
            sent = log.next_number(Event.PUBLISHED)
            time.sleep(0.1)


def _publish(arguments: PeerArguments, log: NumberLog, sent: int) -> int:
    """Publish until all is acknowledged; return the number of numbers.

    Raises:
        ConnectionClosed: The broker is gone.
        OSError: The same.
    """
    begin, pace = sent, Pace(arguments.rate)
    with RawClient(arguments.other_port, "device") as client:
        client.open(keepalive=0)
        while sent < arguments.count:
            end = min(begin + pace.due(), sent + IN_FLIGHT, arguments.count)
            for number in range(sent, end):
                client.publish("numbers/a", b'{"n": %d}' % number, wait=False)
            for _ in range(sent, end):
                client.expect(PUBACK)
            if end > sent:
                log.add(Event.PUBLISHED, sent, end - 1)
                sent = end
            pace.pause(sent - begin)
    return sent


class Packets:
    """Cuts a stream of bytes into MQTT packets."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def cut(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (first byte, body) of the packets that are complete."""
        self._buffer += data
        while (found := self._next()) is not None:
            yield found

    def _next(self) -> tuple[int, bytes] | None:
        size = shift = 0
        for index, digit in enumerate(self._buffer[1:5], start=2):
            size |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                if len(self._buffer) < index + size:
                    return None
                first, body = self._buffer[0], bytes(self._buffer[index : index + size])
                del self._buffer[: index + size]
                return first, body
        return None


class Tap:
    """One connection of the gateway, and what went through it."""

    def __init__(self, log: NumberLog) -> None:
        self._log = log
        self._delivered, self._answered = Packets(), Packets()
        self._numbers: dict[int, int] = {}

    def delivered(self, data: bytes) -> None:
        """Log what the broker delivers."""
        numbers = []
        for first, body in self._delivered.cut(data):
            found = _NUMBER.search(body)
            if first >> 4 == PUBLISH and first >> 1 & 3 and found:
                (topic,) = struct.unpack_from(">H", body)
                (identifier,) = struct.unpack_from(">H", body, 2 + topic)
                self._numbers[identifier] = int(found[1])
                numbers.append(int(found[1]))
        if numbers:
            self._log.add_all(Event.OFFERED, spans(numbers))

    def answered(self, data: bytes) -> None:
        """Log what the gateway acknowledges."""
        numbers = []
        for first, body in self._answered.cut(data):
            if first >> 4 == PUBACK:
                (identifier,) = struct.unpack_from(">H", body)
                if identifier in self._numbers:
                    numbers.append(self._numbers.pop(identifier))
        if numbers:
            self._log.add_all(Event.ACKNOWLEDGED, spans(numbers))


def spans(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of the runs of numbers that follow each other.

    Examples:
        >>> list(spans([4, 5, 6, 9, 2]))
        [(4, 6), (9, 9), (2, 2)]
    """
    first: int | None = None
    last = 0
    for number in numbers:
        if first is not None and number != last + 1:
            yield first, last
            first = number
        first = number if first is None else first
        last = number
    if first is not None:
        yield first, last


async def serve(arguments: PeerArguments) -> None:
    """Pass on what gateway and broker say to each other, until killed."""
    log = arguments.log

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tap = Tap(log)
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", arguments.other_port)
            # An acknowledgement is logged before it is passed on, a delivery, too.
            ways = (_pass(reader, back, tap.answered), _pass(there, writer, tap.delivered))
            await asyncio.wait(
                [asyncio.create_task(way) for way in ways], return_when=asyncio.FIRST_COMPLETED
            )
            back.close()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", arguments.port)
    async with server:
        await server.serve_forever()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Callable[[bytes], None]
) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            seen(data)
            writer.write(data)
            await writer.drain()


def main() -> None:
    """Publish and tap until killed."""
    arguments = peer_arguments()
    threading.Thread(target=publish_all, args=(arguments,), daemon=True).start()
    asyncio.run(serve(arguments))


if __name__ == "__main__":
    main()
