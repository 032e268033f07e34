"""The data types every MQTT packet is made of, and the error of a packet that breaks the rules.

Numbers are big-endian; strings are UTF-8 with a 16-bit length; lengths of packets and property
lists are *variable byte integers* of at most four bytes, seven bits each, least significant first.
"""

from __future__ import annotations

from typing import Final

MALFORMED: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
MAX_VARINT: Final = 268_435_455


class PacketError(Exception):
    """A packet breaks the protocol; the connection it came on must end.

    Attributes:
        reason: MQTT 5 reason code, sent in CONNACK or DISCONNECT when the client speaks MQTT 5.
    """

    def __init__(self, message: str, reason: int = MALFORMED) -> None:
        super().__init__(message)
        self.reason = reason


def encode_varint(value: int) -> bytes:
    """Encode a variable byte integer, 0 to 268,435,455."""
    if not 0 <= value <= MAX_VARINT:
        raise ValueError(f"{value} does not fit a variable byte integer")
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value:
        value, digit = value >> 7, value & 0x7F
        out.append(digit | 0x80 if value else digit)
    return bytes(out)


def encode_text(text: str) -> bytes:
    """Encode a string with its length."""
    return encode_binary(text.encode())


def encode_binary(data: bytes) -> bytes:
    """Encode bytes with their 16-bit length."""
    if len(data) > 0xFFFF:
        raise ValueError(f"{len(data)} bytes do not fit a 16-bit length")
    return len(data).to_bytes(2, "big") + data


def decode_text(data: bytes) -> str:
    """Decode UTF-8 as MQTT wants it: well-formed and without NUL.

    Raises:
        PacketError: It is not.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PacketError(f"a string is not UTF-8: {error.reason}") from error
    if "\0" in text:
        raise PacketError("a string contains NUL")
    return text


class Reader:
    """Reads data types from the body of one packet; every read past the end is a PacketError."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes, position: int = 0, end: int | None = None) -> None:
        self._data = data
        self._position = position
        self._end = len(data) if end is None else end

    def remaining(self) -> int:
        """Count the bytes not yet read."""
        return self._end - self._position

    def _take(self, count: int) -> int:
        start = self._position
        if start + count > self._end:
            raise PacketError(f"a packet ends {start + count - self._end} bytes too early")
        self._position = start + count
        return start

    def u8(self) -> int:
        """Read one byte."""
        return self._data[self._take(1)]

    def u16(self) -> int:
        """Read a 16-bit number."""
        start = self._take(2)
        return self._data[start] << 8 | self._data[start + 1]

    def u32(self) -> int:
        """Read a 32-bit number."""
        start = self._take(4)
        return int.from_bytes(self._data[start : start + 4], "big")

    def varint(self) -> int:
        """Read a variable byte integer."""
        value = 0
        for shift in (0, 7, 14, 21):
            digit = self.u8()
            value |= (digit & 0x7F) << shift
            if digit < 128:
                if digit == 0 and shift:
                    raise PacketError("a variable byte integer is longer than needed")
                return value
        raise PacketError("a variable byte integer is longer than four bytes")

    def binary(self) -> bytes:
        """Read bytes with their length."""
        count = self.u16()
        start = self._take(count)
        return self._data[start : start + count]

    def text(self) -> str:
        """Read a string."""
        return decode_text(self.binary())

    def part(self, count: int) -> Reader:
        """Return a reader of the next `count` bytes and step over them."""
        start = self._take(count)
        return Reader(self._data, start, start + count)

    def rest(self) -> bytes:
        """Read everything that is left."""
        start, self._position = self._position, self._end
        return self._data[start : self._end]

    def packet_id(self) -> int:
        """Read a packet identifier, which is never 0."""
        value = self.u16()
        if value == 0:
            raise PacketError("packet identifier 0", PROTOCOL_ERROR)
        return value
