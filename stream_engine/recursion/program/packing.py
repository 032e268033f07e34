"""Many rows of one message with their provenance, in few bytes.

A group of rows for one port travels as a single blob:

* Rows are stored by column. A column of one value is stored once; one of distinct values as they
  are; any other as a dictionary and one index a row.
* Supports (conjunctions of tokens) share one table of tokens, the most frequent first. A support is
  its ascending token indexes; rows are sorted by it, and each says how many leading indexes it has
  in common with the row before. Derivations along common paths so cost a byte or two each.
* Annotations of other encodings are stored one after the other.
* What is left is deflated when that makes it smaller.

A reader bounds everything before it allocates: rows, columns, tokens, supports, inflated bytes.
"""

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from stream_engine.provenance.annotation import Support
from stream_engine.provenance.parts import MAX_ROWS
from stream_engine.provenance.tokens import MAX_TOKEN, SEQUENCE_BITS, origin_of, sequence_of
from stream_engine.provenance.varint import VarintReader, write_varint
from streamsql.data.types import Row, Value
from streamsql.errors import WireError

PACKED = "+"
"""Ends the name of a port that carries packed groups."""

MAX_TOKENS = 400_000
"""Most tokens of all supports of a group together; it has `MAX_ROWS` rows at most."""

_MAX_INFLATED = 8_000_000
_MAX_SUPPORTS = 2_000
_MAX_SEQUENCE = (1 << SEQUENCE_BITS) - 1
_MAX_ORIGIN = MAX_TOKEN >> SEQUENCE_BITS
_DEFLATE_FROM = 96
_PLAIN, _DEFLATED = b"\0", b"\1"

Dnf = tuple[Support, ...]


class _Group(msgspec.Struct, frozen=True, array_like=True):
    """A blob before it is deflated.

    Attributes:
        columns: Per column its one value, its value in every row, or its distinct values.
        places: One index a row for every column of the third kind.
        tokens: The table of tokens; empty for encoded annotations.
        supports: Supports of all rows; empty when each row has one, of all tokens.
        encoded: Annotations in an encoding of their own.
    """

    size: int
    columns: tuple[tuple[Value, ...], ...]
    places: bytes
    tokens: bytes = b""
    supports: bytes = b""
    encoded: tuple[bytes, ...] = ()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Group)


def pack_supports(rows: Sequence[tuple[Row, Dnf]]) -> bytes:
    """Return rows with the supports that hold each of them up; at least one row and support."""
    frequency = Counter(token for _, supports in rows for s in supports for token in s)
    origins = sorted({origin_of(token) for token in frequency})
    dense = _dense_numbers(frequency, origins)
    ordered = sorted(frequency, key=lambda token: (-frequency[token], dense[token]))
    index = {token: number for number, token in enumerate(ordered)}
    indexed = [
        (sorted([sorted([index[token] for token in s]) for s in supports]), row)
        for row, supports in rows
    ]
    indexed.sort(key=lambda pair: pair[0])
    columns, places = _by_column([row for _, row in indexed])
    group = _Group(
        len(rows),
        columns,
        places,
        _token_table([dense[token] for token in ordered], origins),
        _support_bytes([supports for supports, _ in indexed]),
    )
    return _deflated(_encoder.encode(group))


def pack_encoded(rows: Sequence[tuple[Row, bytes]]) -> bytes:
    """Return rows with annotations that are encoded already; at least one row."""
    columns, places = _by_column([row for row, _ in rows])
    group = _Group(len(rows), columns, places, encoded=tuple([part for _, part in rows]))
    return _deflated(_encoder.encode(group))


def unpack(blob: bytes) -> tuple[list[Row], list[Dnf] | tuple[bytes, ...]]:
    """Return the rows of a blob, and per row its supports or its encoded annotation.

    Raises:
        WireError: It is malformed, or larger than a group may be.
    """
    try:
        group = _decoder.decode(_inflated(blob))
    except (msgspec.MsgspecError, ValueError, RecursionError, zlib.error) as error:
        raise WireError(f"packed rows: {error}") from error
    if not 0 < group.size <= MAX_ROWS:
        raise WireError(f"packed rows: {group.size} rows instead of 1 to {MAX_ROWS}")
    rows = _rows(group)
    if group.encoded:
        if len(group.encoded) != group.size:
            raise WireError("packed rows: not one annotation a row")
        return rows, group.encoded
    return rows, _supports(group)


def _by_column(rows: list[Row]) -> tuple[tuple[tuple[Value, ...], ...], bytes]:
    columns: list[tuple[Value, ...]] = []
    places = bytearray()
    for column in zip(*rows, strict=True):
        # 1, 1.0 and True are equal, but not the same value.
        keys = column if len(set(map(type, column))) == 1 else [(type(v), v) for v in column]
        number: dict[Any, int] = {}
        distinct: list[Value] = []
        for key, value in zip(keys, column, strict=True):
            if key not in number:
                number[key] = len(distinct)
                distinct.append(value)
        columns.append(tuple(distinct))
        if 1 < len(distinct) < len(column):
            for key in keys:
                write_varint(places, number[key])
    return tuple(columns), bytes(places)


def _rows(group: _Group) -> list[Row]:
    size = group.size
    reader = VarintReader(group.places)
    columns: list[Sequence[Value]] = []
    for values in group.columns:
        if len(values) == 1:
            columns.append(values * size)
        elif len(values) == size:
            columns.append(values)
        elif 1 < len(values) < size:
            columns.append([values[reader.read(len(values) - 1)] for _ in range(size)])
        else:
            raise WireError(f"packed rows: {len(values)} values in a column of {size} rows")
    reader.finish()
    return list(zip(*columns, strict=True)) if columns else [()] * size


def _dense_numbers(tokens: Counter[int], origins: list[int]) -> dict[int, int]:
    """Return small numbers for tokens: sequence number * number of origins + origin."""
    place = {origin: number for number, origin in enumerate(origins)}
    count = len(origins)
    return {token: sequence_of(token) * count + place[origin_of(token)] for token in tokens}


def _token_table(numbers: list[int], origins: list[int]) -> bytes:
    """Return origins as differences, then dense numbers above the least of them."""
    out = bytearray()
    write_varint(out, len(origins))
    last = 0
    for origin in origins:
        write_varint(out, origin - last)
        last = origin
    least = min(numbers)
    write_varint(out, least)
    write_varint(out, len(numbers))
    for number in numbers:
        write_varint(out, number - least)
    return bytes(out)


def _read_tokens(payload: bytes) -> list[int]:
    reader = VarintReader(payload)
    origins: list[int] = []
    for _ in range(reader.read(MAX_TOKENS)):
        origins.append(reader.read(_MAX_ORIGIN) + (origins[-1] if origins else 0))
    if not origins or origins[-1] > _MAX_ORIGIN:
        raise WireError("packed rows: tokens have no origin, or one too large")
    limit = _MAX_SEQUENCE * len(origins) + len(origins) - 1
    least = reader.read(limit)
    tokens: list[int] = []
    for _ in range(reader.read(MAX_TOKENS)):
        sequence, place = divmod(least + reader.read(limit - least), len(origins))
        tokens.append(origins[place] << SEQUENCE_BITS | sequence)
    reader.finish()
    return tokens


def _support_bytes(rows: list[list[list[int]]]) -> bytes:
    """Return per row its number of supports less one, and each as what is new in it."""
    if all(supports == rows[0] for supports in rows) and len(rows[0]) == 1:
        return b""
    out = bytearray()
    several = any(len(supports) != 1 for supports in rows)
    write_varint(out, several)
    last: list[int] = []
    for supports in rows:
        if several:
            write_varint(out, len(supports) - 1)
        for support in supports:
            common = 0
            for mine, theirs in zip(support, last, strict=False):
                if mine != theirs:
                    break
                common += 1
            write_varint(out, common)
            write_varint(out, len(support) - common)
            previous = support[common - 1] if common else -1
            for number in support[common:]:
                write_varint(out, number - previous - 1)
                previous = number
            last = support
    return bytes(out)


def _supports(group: _Group) -> list[Dnf]:
    tokens = _read_tokens(group.tokens)
    if not group.supports:
        if not tokens or len(tokens) * group.size > MAX_TOKENS:
            raise WireError("packed rows: a support without tokens, or too many of them")
        return [(frozenset(tokens),)] * group.size
    reader = VarintReader(group.supports)
    several = reader.read(1)
    last: list[int] = []
    room = MAX_TOKENS
    result: list[Dnf] = []
    for _ in range(group.size):
        supports: list[Support] = []
        for _ in range(reader.read(_MAX_SUPPORTS - 1) + 1 if several else 1):
            last = last[: reader.read(len(last))]
            for _ in range(reader.read(len(tokens))):
                number = (last[-1] if last else -1) + 1
                last.append(number + reader.read(len(tokens) - 1 - number))
            room -= len(last)
            if not last or room < 0:
                raise WireError("packed rows: a support without tokens, or too many of them")
            supports.append(frozenset([tokens[number] for number in last]))
        result.append(tuple(supports))
    reader.finish()
    return result


def _deflated(plain: bytes) -> bytes:
    if len(plain) >= _DEFLATE_FROM:
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        small = packer.compress(plain) + packer.flush()
        if len(small) < len(plain):
            return _DEFLATED + small
    return _PLAIN + plain


def _inflated(blob: bytes) -> bytes:
    kind, body = blob[:1], blob[1:]
    if kind == _PLAIN:
        return body
    if kind != _DEFLATED:
        raise WireError("packed rows: of an unknown kind")
    unpacker = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    plain = unpacker.decompress(body, _MAX_INFLATED)
    if not unpacker.eof or unpacker.unused_data:
        raise WireError(f"packed rows: cut off, or more than {_MAX_INFLATED} bytes")
    return plain
