"""Parts of deltas that fit messages, by bounds of the bytes that rows take; counts of batches."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import Row
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.messages import (
    MAX_ROWS_PER_BATCH,
    DeltaBatch,
    PartTraffic,
    TrafficReport,
    WeightedRow,
)

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


@dataclass(slots=True)
class _Part:
    batches: int = 0
    bytes: int = 0
    snapshots: int = 0
    snapshot_bytes: int = 0
    rows: int = 0
    timed: int = 0
    microseconds: int = 0

    def report(self, fragment: str) -> PartTraffic:
        """Return the counts as those of a fragment."""
        return PartTraffic(
            fragment,
            self.batches,
            self.bytes,
            self.snapshots,
            self.snapshot_bytes,
            self.rows,
            self.timed,
            self.microseconds // 1_000,
        )


@dataclass(slots=True)
class SentParts:
    """Counts of the batches of one query that a site has sent, by fragment."""

    _parts: dict[str, _Part] = field(default_factory=dict)

    def sent(self, batch: DeltaBatch, size: int, *, snapshot: bool) -> None:
        """Count a batch with the bytes of its payload."""
        fragment = batch.port.partition("/")[0]  # "f1/0" is a recursion in fragment f1
        part = self._parts.setdefault(fragment, _Part())
        part.batches += 1
        part.bytes += size
        part.rows += rows_in(batch)
        if snapshot:
            part.snapshots += 1
            part.snapshot_bytes += size
        elif batch.ts is not None:
            part.timed += 1
            part.microseconds += max(batch.now - batch.ts, 0)

    def report(self) -> TrafficReport:
        """Return the counts; those of fragments only if there are several."""
        parts = [part.report(name) for name, part in self._parts.items()]
        return TrafficReport(
            batches=sum(part.batches for part in parts),
            bytes=sum(part.bytes for part in parts),
            snapshots=sum(part.snapshots for part in parts),
            snapshot_bytes=sum(part.snapshot_bytes for part in parts),
            rows=sum(part.rows for part in parts),
            parts=tuple(parts) if len(parts) > 1 else (),
            timed=sum(part.timed for part in parts),
            milliseconds=sum(part.milliseconds for part in parts),
        )


def rows_in(batch: DeltaBatch) -> int:
    """Return the changed rows of a batch."""
    return len(batch.deltas) + len(batch.annotated)
