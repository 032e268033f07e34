"""CBOR (RFC 8949) to objects, arrays and values, bounded.

A decoder of our own: libraries build cycles from shared references and insert keys of any type,
which a device can choose so that their hashes collide. Here a payload's size bounds the work, keys
are text or 64-bit integers, and tags are dropped but for large and decimal numbers.
"""

import math
import struct
from decimal import Decimal
from typing import Final

from streamsql.mapping.payloads.payload_reader import MAX_DEPTH, FieldPathReader

_BREAK: Final = object()
_FLOATS = {25: struct.Struct(">e"), 26: struct.Struct(">f"), 27: struct.Struct(">d")}
_SIMPLE = {20: False, 21: True, 22: None, 23: None}
MAX_ITEMS = 400_000
"""Values, arrays, maps and keys of a payload: a million of them take a second."""
_MAX_BIG_NUMBER = 128
_MAX_EXPONENT = 400


class CborReader(FieldPathReader):
    """CBOR: paths are field paths; a map's integer keys are read as `[1]`."""

    def decode(self, payload: bytes, arrival: int) -> object:  # noqa: ARG002
        """Return the payload's objects, arrays and values; byte strings stay bytes."""
        return decode_cbor(payload)


def decode_cbor(payload: bytes) -> object:
    """Return the one item of a payload.

    Raises:
        ValueError: It is none, is cut off, is followed by something, or is nested too deep.

    Examples:
        >>> decode_cbor(bytes.fromhex("a2616101626263820203"))
        {'a': 1, 'bc': [2, 3]}
    """
    source = _Source(payload)
    try:
        item = source.item(0)
    except (IndexError, struct.error):
        raise ValueError("it is no CBOR: it ends too early") from None
    if item is _BREAK or source.position != len(payload):
        raise ValueError(f"it is no CBOR: expected one item, not more at byte {source.position}")
    return item


class _Source:
    """Bytes and how far they are read; `item` raises IndexError or struct.error at the end."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.position = 0
        self.items = 0

    def item(self, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        self.items += 1
        if self.items > MAX_ITEMS:
            raise ValueError(f"it has more than {MAX_ITEMS:,} values")
        first = self.payload[self.position]
        self.position += 1
        major, info = first >> 5, first & 31
        if major == 7:
            return self._simple(info)
        length = self._argument(info, indefinite=major in {2, 3, 4, 5})
        match major:
            case 0 | 1:
                number = length or 0
                return number if major == 0 else -1 - number
            case 2:
                return self._bytes(length, major)
            case 3:
                return _decoded(self._bytes(length, major))
            case 4:
                return self._array(length, depth)
            case 5:
                return self._map(length, depth)
            case _:
                return _untagged(length or 0, self.item(depth + 1))

    def _argument(self, info: int, *, indefinite: bool) -> int | None:
        """Return the number in or behind the first byte; None: indefinite length."""
        if info < 24:
            return info
        if info < 28:
            size: int = 1 << (info - 24)
            return int.from_bytes(self._taken(size))
        if info == 31 and indefinite:
            return None
        raise ValueError(f"it is no CBOR: a reserved length at byte {self.position - 1}")

    def _taken(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.payload):
            raise IndexError
        taken = self.payload[self.position : end]
        self.position = end
        return taken

    def _simple(self, info: int) -> object:
        if info in _FLOATS:
            layout = _FLOATS[info]
            number: float = layout.unpack(self._taken(layout.size))[0]
            return number
        if info in _SIMPLE:
            return _SIMPLE[info]
        if info == 31:
            return _BREAK
        raise ValueError(f"it is no CBOR that is read here: simple value {info}")

    def _bytes(self, length: int | None, major: int) -> bytes:
        if length is not None:
            return self._taken(length)
        chunks: list[bytes] = []
        while (first := self.payload[self.position]) != 0xFF:
            self.position += 1
            size = self._argument(first & 31, indefinite=False)
            if first >> 5 != major or size is None:
                raise ValueError("it is no CBOR: a string of other chunks")
            chunks.append(self._taken(size))
        self.position += 1
        return b"".join(chunks)

    def _array(self, length: int | None, depth: int) -> list[object]:
        # An item is a byte at least: a longer claim ends early and allocates nothing.
        items: list[object] = []
        while length is None or len(items) < length:
            item = self.item(depth + 1)
            if item is _BREAK:
                if length is not None:
                    raise ValueError("it is no CBOR: a break inside an array")
                break
            items.append(item)
        return items

    def _map(self, length: int | None, depth: int) -> dict[str | int, object]:
        found: dict[str | int, object] = {}
        count = 0
        while length is None or count < length:
            key = self.item(depth + 1)
            if key is _BREAK and length is None:
                break
            if isinstance(key, bool) or not isinstance(key, str | int) or abs_bits(key) > 64:
                raise ValueError("a key of a map is neither text nor an integer of 64 bits")
            value = self.item(depth + 1)
            if value is _BREAK:
                raise ValueError("it is no CBOR: a key without a value")
            found[key] = value
            count += 1
        return found


def abs_bits(key: str | int) -> int:
    """Return the bits of an integer's size; a text has none."""
    return key.bit_length() if isinstance(key, int) else 0


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ValueError("it is no CBOR: a text is not UTF-8") from None


def _untagged(tag: int, content: object) -> object:
    """Return a large integer, a decimal fraction or a bigfloat as a number; else the content."""
    if content is _BREAK:
        raise ValueError("it is no CBOR: a tag without content")
    if tag in {2, 3}:
        if not isinstance(content, bytes) or len(content) > _MAX_BIG_NUMBER:
            raise ValueError(f"a large integer is no byte string of at most {_MAX_BIG_NUMBER}")
        number = int.from_bytes(content)
        return number if tag == 2 else -1 - number
    if tag in {4, 5}:
        return _fraction(tag, content)
    return content


def _fraction(tag: int, content: object) -> object:
    match content:
        case [int() as exponent, int() as mantissa] if (
            abs(exponent) <= _MAX_EXPONENT and mantissa.bit_length() <= 8 * _MAX_BIG_NUMBER
        ):
            if tag == 4:
                return Decimal(mantissa).scaleb(exponent)
            try:
                return math.ldexp(mantissa, exponent)
            except OverflowError:
                return math.inf
        case _:
            raise ValueError("a decimal fraction is no exponent and mantissa of bounded size")
