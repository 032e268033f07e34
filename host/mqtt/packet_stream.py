"""MQTT packets that come and go many at once: publishes and their acknowledgements. Pure."""

import struct
from collections.abc import Iterable
from typing import Final

import msgspec

PUBLISH: Final = 0x30
PUBACK: Final = 0x40
MAX_LENGTH_BYTES: Final = 4

_PUBACK = struct.Struct(">HH").pack
_SUBSCRIPTION: Final = 0x0B
_SIZES: Final = {0x01: 1, 0x02: 4, 0x23: 2}
_TEXTS: Final = {0x03: 1, 0x08: 1, 0x09: 1, 0x26: 2}


class Received(msgspec.Struct, frozen=True):
    """A publish of the broker.

    Attributes:
        packet_id: To acknowledge it by; 0 with QoS 0.
        subscriptions: Which it is for, by number; empty where the broker does not say.
    """

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    packet_id: int = 0
    subscriptions: tuple[int, ...] = ()


class PacketStream:
    """Cuts the bytes of a connection into packets; keeps the beginning of one that is to come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._needed = 0

    def clear(self) -> None:
        """Begin with another connection."""
        self._parts, self._size, self._needed = [], 0, 0

    def packets(self, data: bytes) -> list[tuple[bytes, int]]:
        """Return the packets that are whole now, each with the place where its body begins.

        Bytes that can be no packet are returned with 0, whoever reads them shall refuse them.
        """
        if self._parts:
            self._parts.append(data)
            self._size += len(data)
            if self._size < self._needed:
                return []
            data = b"".join(self._parts)
            self.clear()
        found: list[tuple[bytes, int]] = []
        start, size = 0, len(data)
        while start < size:
            body, length = _body(data, start)
            if body < 0:
                found.append((data[start:], 0))
                return found
            end = body + length
            if body == 0 or end > size:
                rest = data[start:]
                self._parts, self._size = [rest], len(rest)
                self._needed = end - start if body else len(rest) + 1
                return found
            found.append((data[start:end], body - start))
            start = end
        return found


def _body(data: bytes, start: int) -> tuple[int, int]:
    """Return where a packet's body begins, and its length; 0 if they are to come, -1 if wrong."""
    length = shift = 0
    for place in range(start + 1, start + 1 + MAX_LENGTH_BYTES):
        if place >= len(data):
            return 0, 0
        byte = data[place]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return place + 1, length
        shift += 7
    return -1, 0


def read_publish(packet: bytes, body: int, *, is_5: bool) -> Received | None:
    """Return what a PUBLISH says; None if it is of QoS 2, or not as the protocol wants it.

    Args:
        packet: A whole one.
        body: Where its body begins.
        is_5: Whether it has properties, as in MQTT 5.

    Raises:
        UnicodeDecodeError: Its topic is no UTF-8.
    """
    head, size = packet[0], len(packet)
    qos = head >> 1 & 3
    end = body + 2
    if qos > 1 or end > size:
        return None
    end += packet[body] << 8 | packet[body + 1]
    topic = packet[body + 2 : end]
    packet_id = 0
    numbers: tuple[int, ...] = ()
    if qos:
        end += 2
        if end > size:
            return None
        packet_id = packet[end - 2] << 8 | packet[end - 1]
    if is_5:
        properties = _properties(packet, end)
        if properties is None:
            return None
        numbers, end = properties
    if end > size:
        return None
    return Received(topic.decode(), packet[end:], qos, bool(head & 1), packet_id, numbers)


def _properties(packet: bytes, start: int) -> tuple[tuple[int, ...], int] | None:
    """Return the subscriptions among a publish's properties, and where they end."""
    place, length = _body(packet, start - 1)
    if place <= 0:
        return None
    end = place + length
    if not length:
        return (), end
    numbers: list[int] = []
    try:
        while place < end:
            kind = packet[place]
            place += 1
            if kind == _SUBSCRIPTION:
                place, number = _body(packet, place - 1)
                if place <= 0:
                    return None
                numbers.append(number)
            elif kind in _SIZES:
                place += _SIZES[kind]
            else:
                for _ in range(_TEXTS[kind]):
                    place += 2 + (packet[place] << 8 | packet[place + 1])
    except LookupError:
        return None
    return (tuple(numbers), end) if place == end else None


def puback_packets(packet_ids: Iterable[int]) -> bytes:
    """Return the acknowledgements of publishes."""
    return b"".join([_PUBACK(PUBACK << 8 | 2, packet_id) for packet_id in packet_ids])


def publish_packet(  # noqa: PLR0913 - the fields of the packet
    topic: str, payload: bytes, qos: int, packet_id: int, *, retain: bool, is_5: bool = False
) -> bytes:
    """Return a PUBLISH of MQTT 3.1.1, or of 5 without properties; no id with QoS 0.

    Raises:
        ValueError: It is longer than a packet can be.
    """
    name = topic.encode()
    left = 2 + len(name) + (2 if qos else 0) + is_5 + len(payload)
    if left >= 1 << 7 * MAX_LENGTH_BYTES:
        raise ValueError(f"a message of {left} bytes is longer than MQTT allows")
    head = bytearray((PUBLISH | qos << 1 | retain,))
    while left > 0x7F:
        head.append(left & 0x7F | 0x80)
        left >>= 7
    head.append(left)
    head += len(name).to_bytes(2, "big")
    identifier = packet_id.to_bytes(2, "big") if qos else b""
    return b"".join((head, name, identifier, b"\0" if is_5 else b"", payload))
