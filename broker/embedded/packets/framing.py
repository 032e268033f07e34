"""Cut the byte stream of a connection into packets, however the network chunked it."""

from __future__ import annotations

from collections.abc import Iterator

from broker.embedded.packets.primitives import PacketError

PACKET_TOO_LARGE = 0x95


class Framer:
    """An incremental packet splitter.

    Args:
        max_packet_size: Largest packet accepted, in bytes, its header included. A larger one is
            refused as soon as its length is known, before it is buffered.
    """

    __slots__ = ("_buffer", "_max", "_needed")

    def __init__(self, max_packet_size: int) -> None:
        self._buffer = bytearray()
        self._needed = 0  # bytes the buffer must have before looking at it again is of use
        self._max = max_packet_size

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take more bytes; yield each complete packet as (first byte, body).

        Raises:
            PacketError: The length is malformed or too large; the stream is unusable from here.
        """
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        position, end, needed = 0, len(data), 2
        while position + 1 < end:
            size, start = self._length(data, position + 1, end)
            if size < 0:
                needed = end - position + 1
                break
            if start - position + size > self._max:
                message = f"a packet of {size} bytes is larger than the limit of {self._max}"
                raise PacketError(message, PACKET_TOO_LARGE)
            if start + size > end:
                needed = start + size - position
                break
            yield data[position], data[start : start + size]
            position = start + size
        if position < end:
            self._buffer += data[position:]
            self._needed = needed

    @staticmethod
    def _length(data: bytes, position: int, end: int) -> tuple[int, int]:
        """Decode the remaining length; -1 when it is not complete yet."""
        value = shift = 0
        while position < end:
            digit = data[position]
            position += 1
            value |= (digit & 0x7F) << shift
            if digit < 128:
                return value, position
            shift += 7
            if shift > 21:
                raise PacketError("a packet's length is longer than four bytes")
        return -1, position
