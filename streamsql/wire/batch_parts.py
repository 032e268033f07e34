"""Parts of deltas that fit messages, by bounds of the bytes that rows take."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice

from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import Row
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.messages import MAX_ROWS_PER_BATCH, WeightedRow

CHUNK_ROWS = 20_000
CHUNK_BYTES = MAX_PAYLOAD_BYTES // 2
_FEW_ROWS = 1_000
_TEXT_BYTES = 4  # most bytes a character of UTF-8 takes
assert CHUNK_ROWS <= MAX_ROWS_PER_BATCH  # noqa: S101  (a constant of this file)


def row_bytes(row: Row) -> int:
    """Return a bound of the bytes that a row takes in a message."""
    size = 16 * len(row)
    for value in row:
        if isinstance(value, str):
            size += _TEXT_BYTES * len(value)
    return size


def chunks(parts: Iterable[Delta]) -> Iterator[tuple[WeightedRow, ...]]:
    """Yield the sum of deltas in pieces of bounded size, filled across the deltas; none is empty.

    A row that several deltas have may be in several pieces, in each of them once.
    """
    chunk: Delta = {}
    size = 0
    for part in parts:
        rows = iter(part)
        while block := list(islice(rows, _FEW_ROWS)):
            bound = _bytes_of(block)
            if len(chunk) + len(block) <= CHUNK_ROWS and size + bound < CHUNK_BYTES:
                accumulate(chunk, dict(zip(block, map(part.__getitem__, block), strict=True)))
                size += bound
                continue
            for row in block:
                if len(chunk) == CHUNK_ROWS or size >= CHUNK_BYTES:
                    if chunk:
                        yield weighted(chunk)
                    chunk = {}
                    size = 0
                add(chunk, row, part[row])
                size += row_bytes(row)
    if chunk:
        yield weighted(chunk)


def weighted(delta: Delta) -> tuple[WeightedRow, ...]:
    """Return the rows of a delta as messages have them."""
    return tuple(map(WeightedRow, delta, delta.values()))


def is_small(delta: Delta) -> bool:
    """Whether a delta certainly fits one part: most do, and need not be measured row by row."""
    if len(delta) == 1:
        (row,) = delta
        return row_bytes(row) < CHUNK_BYTES
    return len(delta) <= _FEW_ROWS and _bytes_of(delta) < CHUNK_BYTES


def _bytes_of(rows: Collection[Row]) -> int:
    """Return a bound of the bytes that rows take in messages."""
    size = 16 * sum(map(len, rows))
    if str in set(map(type, chain.from_iterable(rows))):
        size += _TEXT_BYTES * sum([len(v) for row in rows for v in row if isinstance(v, str)])
    return size
