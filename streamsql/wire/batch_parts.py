"""Parts of deltas that fit messages, by bounds of the bytes that rows take; their short form.

Most batches are a reading in the place of another one: two rows that are alike. In the short form
of a batch with few rows a row leaves out the columns that the row before it has as well, numbers
with few digits are those digits, and fields at the end that say nothing are left out.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import Annotated, Any

import msgspec

from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import Row, Value
from streamsql.wire.bounds import (
    MANY,
    MAX_NAMES,
    MAX_PAYLOAD_BYTES,
    Count,
    Epoch,
    Integer,
    Name,
    Number,
    RowText,
    Time,
    Token,
)
from streamsql.wire.messages import (
    MAX_ROWS_PER_BATCH,
    AnnotatedRow,
    DeltaBatch,
    PartTraffic,
    TrafficReport,
    WeightedRow,
)

CHUNK_ROWS = 20_000
CHUNK_BYTES = MAX_PAYLOAD_BYTES // 2
_FEW_ROWS = 1_000
_FEW_TO_MEASURE = 8
_TEXT_BYTES = 4  # most bytes a character of UTF-8 takes
_TEXTS = {str}
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


FEW_ROWS = 32
"""Rows of a batch that are written alike: of more, one by one in Python takes too long.

Two rows of seven columns take 15 µs to write and 10 to read, where the compiled encoder takes 0.2
and 2; the message itself takes some hundred at both ends.
"""
MAX_ALIKE = 62
"""Columns that a number of 64 bits has a bit for."""
MAX_REPEATED_BYTES = MAX_PAYLOAD_BYTES
"""Of the texts that rows leave out, as the row before has them: a batch tells at most twice what a
message may hold."""
_DIGITS = 4
"""Behind the point, of a number that is written by its digits."""
_MOST = 2**31 - 1
"""All digits of such a number together."""


class Decimal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A number: how many digits are behind the point, and the whole number that all digits are."""

    places: Annotated[int, msgspec.Meta(ge=0, le=_DIGITS)]
    digits: Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]


_AlikeRow = Annotated[
    tuple[bool | Integer | Number | RowText | Decimal | None, ...],
    msgspec.Meta(max_length=MAX_NAMES),
]
"""Weight, a bit for each column that is as in the row before, and the other columns."""


class ShortBatch(msgspec.Struct, frozen=True, array_like=True):
    """A `DeltaBatch` on the wire; what is missing at the end has its default.

    Attributes:
        age: How much earlier than `now` the oldest reading is that caused it.
        deltas: Its rows, if none are in `alike`.
        alike: Its rows, each by what differs from the one before.
    """

    version: Count
    epoch: Epoch
    seq: Count
    port: Name
    now: Time = 0
    age: Integer | None = None
    deltas: Annotated[tuple[WeightedRow, ...], MANY] = ()
    alike: Annotated[tuple[_AlikeRow, ...], msgspec.Meta(max_length=FEW_ROWS)] = ()
    reset: bool = False
    more: bool = False
    annotated: Annotated[tuple[AnnotatedRow, ...], MANY] = ()
    kills: Annotated[tuple[Token, ...], MANY] = ()
    watermark: Time | None = None

    def whole(self) -> DeltaBatch:
        """Return the batch.

        Raises:
            ValueError: A row has other columns than the one before, or a time is out of bounds.
        """
        ts = None if self.age is None else self.now - self.age
        if ts is not None and abs(ts) > 2**62:
            raise ValueError("its oldest reading is out of bounds")
        return DeltaBatch(
            version=self.version,
            epoch=self.epoch,
            seq=self.seq,
            port=self.port,
            deltas=tuple(_told(self.alike)) if self.alike else self.deltas,
            reset=self.reset,
            more=self.more,
            annotated=self.annotated,
            kills=self.kills,
            watermark=self.watermark,
            ts=ts,
            now=self.now,
        )


_NOTHING = (None, (), (), False, False, (), (), None)
"""Values of the fields of a `ShortBatch` that may be missing, from `age` on."""


def shortened(batch: DeltaBatch) -> list[Any]:
    """Return the fields of the short form of a batch, without those that are missing."""
    alike = _alike(batch.deltas)
    fields = [
        None if batch.ts is None else batch.now - batch.ts,
        () if alike else batch.deltas,
        alike,
        batch.reset,
        batch.more,
        batch.annotated,
        batch.kills,
        batch.watermark,
    ]
    while fields and fields[-1] == _NOTHING[len(fields) - 1]:
        fields.pop()
    return [batch.version, batch.epoch, batch.seq, batch.port, batch.now, *fields]


def _alike(rows: tuple[WeightedRow, ...]) -> list[list[Any]]:
    """Return rows by what differs from the one before; none where they are not written so."""
    if not 0 < len(rows) <= FEW_ROWS:
        return []
    width = len(rows[0].row)
    if not 0 < width <= MAX_ALIKE or any(len(each.row) != width for each in rows):
        return []
    before: Row = ()
    repeated = 0
    told: list[list[Any]] = []
    for each in rows:
        row = each.row
        same = 0
        values: list[Any] = []
        for place, value in enumerate(row):
            if before and _is_same(value, before[place]):
                same |= 1 << place
                if type(value) is str:
                    repeated += _TEXT_BYTES * len(value)
            else:
                values.append(by_digits(value) if type(value) is float else value)
        told.append([each.weight, same, *values])
        before = row
    return told if repeated <= MAX_REPEATED_BYTES else []


def _is_same(a: Value, b: Value) -> bool:
    """Whether two values are one; zeros of both signs are not."""
    return type(a) is type(b) and a == b and (type(a) is not float or a != 0.0)


def by_digits(value: float) -> float | Decimal:
    """Return a number by its digits where it has few, exactly."""
    for places in range(_DIGITS + 1):
        scale: int = 10**places
        whole = value * scale
        if not -_MOST <= whole <= _MOST:
            break
        digits = round(whole)
        if digits and digits / scale == value:
            return Decimal(places, digits)
    return value


def _told(alike: Iterable[tuple[Any, ...]]) -> Iterator[WeightedRow]:
    """Yield the rows that are written by what differs from the one before.

    Raises:
        ValueError: They are not written so, or are many times as long as what is written.
    """
    before: tuple[Any, ...] = ()
    repeated = 0
    for told in alike:
        weight, same, *values = told if len(told) > 1 else (None, None)
        if type(weight) is not int or type(same) is not int or same < 0:
            raise ValueError("a row begins with its weight and the columns that are as before")
        width = same.bit_count() + len(values)
        if (before and width != len(before)) or same >> width or (same and not before):
            raise ValueError("a row has other columns than the one before")
        values = [v.digits / 10**v.places if type(v) is Decimal else v for v in values]
        # From the left, so what stands at a place is all there when it is put in: a third of the
        # time of asking every column (two rows of seven columns).
        while same:
            last = same & -same
            same ^= last
            place = last.bit_length() - 1
            value = before[place]
            values.insert(place, value)
            if type(value) is str:
                # Of Latin text the length is known without a copy.
                repeated += len(value if value.isascii() else value.encode())
        if repeated > MAX_REPEATED_BYTES:
            raise ValueError(
                f"its rows repeat texts of more than {MAX_REPEATED_BYTES} bytes of one another"
            )
        before = tuple(values)
        yield WeightedRow(before, weight)


def is_small(delta: Delta) -> bool:
    """Whether a delta certainly fits one part: most do, and need not be measured row by row."""
    if len(delta) == 1:
        (row,) = delta
        return row_bytes(row) < CHUNK_BYTES
    return len(delta) <= _FEW_ROWS and _bytes_of(delta) < CHUNK_BYTES


def _bytes_of(rows: Collection[Row]) -> int:
    """Return a bound of the bytes that rows take in messages."""
    size = 16 * sum(map(len, rows))
    if len(rows) < _FEW_TO_MEASURE:
        if str in set(map(type, chain.from_iterable(rows))):
            size += _TEXT_BYTES * sum([len(v) for row in rows for v in row if isinstance(v, str)])
        return size
    # Only columns of texts are looked at: 30 rows take 7 µs instead of 11, two 1.9 instead of 1.2.
    for column in zip_longest(*rows):
        kinds = set(map(type, column))
        if kinds == _TEXTS:
            size += _TEXT_BYTES * sum(map(len, column))  # type: ignore[arg-type]
        elif str in kinds:
            size += _TEXT_BYTES * sum([len(v) for v in column if isinstance(v, str)])
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
