"""Pieces of a kept source for windows that start full, in the order of event time."""

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from static_engine.filling.late_readings import COLUMNS as JUDGED
from static_engine.filling.late_readings import NAME, late_readings
from static_engine.lake.kept_columns import MAX_COLUMNS
from static_engine.lake.kept_readings import (
    EPOCH,
    EVENT_TIME,
    GATEWAY,
    PLACE,
    SEQ,
    TIME,
    WITHDRAWN,
    arrow_type,
)
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import LakeError, NotKeptError
from static_engine.lake.lake_scan import LakeScan, between
from streamsql.data.types import LATEST, DataType
from streamsql.wire.bounds import RowValue
from streamsql.wire.fill_messages import (
    MAX_AWAITED,
    MAX_FILL_ROWS,
    Cursor,
    FillRow,
    FillRows,
    FillWanted,
    PackName,
)

_ORDER = (EVENT_TIME, GATEWAY, EPOCH, SEQ, PLACE)
_OWN = (*_ORDER, WITHDRAWN)
_DAY = 86_400_000_000
_SLICE_ROWS = 500_000
"""Rows that are read and sorted at once, about: an interval with more is halved."""

_SLICE_CELLS = 10_000_000
"""Rows times columns, likewise."""
_MAX_BYTES = 4_000_000
"""Of the values of an answer, about."""
_KEPT_SLICES = 4
_KEPT_JUDGEMENTS = 64
"""Names of late readings, of which there are few."""


@dataclass(slots=True)
class _Slice:
    """Rows of an interval that are sorted and not all sent; `after` is the last that was."""

    table: pa.Table
    until: int
    expected: int
    after: Cursor | None = None


@dataclass(slots=True)
class LakePieces:
    """Reads pieces; nothing that a piece needs is kept but for speed.

    Args:
        lake: Where the readings are.
    """

    lake: Lake
    _slices: "OrderedDict[FillWanted, _Slice]" = field(default_factory=OrderedDict)
    _judged: "OrderedDict[FillWanted, pa.Table]" = field(default_factory=OrderedDict)

    def piece(self, wanted: FillWanted) -> FillRows:
        """Return the piece that is asked for.

        Raises:
            LakeError: The lake cannot be read.
        """
        if len(wanted.columns) > MAX_COLUMNS:
            raise LakeError(
                f"{len(wanted.columns):,} columns are asked for; the max is {MAX_COLUMNS:,}"
            )
        try:
            missing = self._missing(wanted)
        except NotKeptError:
            return FillRows(wanted.id, done=True, kept=False)
        if missing:
            return FillRows(wanted.id, missing=missing)
        # Of the same request only, and where it goes on: an answer may have been lost.
        key = replace(wanted, after=None, awaited=(), awaited_since=0)
        kept = self._slices.pop(key, None)
        if kept is not None and kept.after != wanted.after:
            kept = None
        since = wanted.since if wanted.after is None else max(wanted.since, wanted.after[0])
        late = self._late(key)
        while True:
            if kept is None:
                kept = self._slice(wanted, since, late)
            table = kept.table if wanted.after is None else _after(kept.table, wanted.after)
            if table.num_rows:
                break
            if kept.until >= LATEST:
                return FillRows(wanted.id, after=wanted.after, done=True, expected=kept.expected)
            since, kept = kept.until, None
        sent = table.slice(0, _cut(table))
        rest = table.slice(sent.num_rows)
        done = not rest.num_rows and kept.until >= LATEST
        answer = _answer(wanted, sent, done=done, expected=kept.expected)
        if not done:
            self._slices[key] = _Slice(rest, kept.until, kept.expected, answer.after)
            if len(self._slices) > _KEPT_SLICES:
                self._slices.popitem(last=False)
        return answer

    def _missing(self, wanted: FillWanted) -> int:
        """Return how many of the awaited packs the lake does not have."""
        if not wanted.awaited:
            self.lake.table(wanted.source)
            return 0
        if len(wanted.awaited) > MAX_AWAITED:
            raise LakeError(f"{len(wanted.awaited):,} packs are awaited; the max is {MAX_AWAITED}")
        awaited = set(wanted.awaited)
        # Files of earlier packs are not read, however early the readings of the awaited ones are.
        epoch = min(epoch for _gateway, epoch, _number in awaited)
        number = min(number for _gateway, _epoch, number in awaited)
        scan = self.lake.table(wanted.source).scan(
            f"{between(wanted.awaited_since, LATEST)} AND {EPOCH} >= {epoch} AND {SEQ} >= {number}",
            selected_fields=(GATEWAY, EPOCH, SEQ),
        )
        for batch in scan.to_arrow_batch_reader():
            if not awaited:
                break
            columns = (batch.column(name).to_pylist() for name in (GATEWAY, EPOCH, SEQ))
            awaited.difference_update(zip(*columns, strict=True))
        return len(awaited)

    def _late(self, wanted: FillWanted) -> pa.Table | None:
        """Return the names of the late readings, of the whole window whatever was sent of it."""
        if wanted.lateness is None:
            return None
        late = self._judged.pop(wanted, None)
        if late is None:
            scan = self.lake.plan(wanted.source, wanted.since, LATEST, JUDGED)
            late = late_readings(scan, wanted.gateway, wanted.lateness)
        self._judged[wanted] = late
        if len(self._judged) > _KEPT_JUDGEMENTS:
            self._judged.popitem(last=False)
        return late if late.num_rows else None

    def _slice(self, wanted: FillWanted, since: int, late: pa.Table | None) -> _Slice:
        """Read and sort the rows of an interval that begins at a time."""
        whole = scan = self._scan(wanted, since, LATEST)
        most = max(min(_SLICE_ROWS, _SLICE_CELLS // (len(wanted.columns) + len(_OWN))), 1)
        first = max(since, min((file.first for file in whole.files), default=since))
        until = _end(whole, most)
        while True:
            if until < LATEST:
                scan = self._scan(wanted, since, until)
            if _estimate(scan, first, until) <= most or until - first <= 1:
                table = self._read(wanted, scan, 2 * most)
                if table is not None:
                    return _Slice(_without(table, late), until, whole.rows)
                if until - first <= 1:
                    raise LakeError(
                        f"source {wanted.source} has more than {2 * most:,} readings of one "
                        "microsecond: a window cannot be filled with them",
                        hint="see why all of them have one time, or begin empty: backfill = 'no'",
                    )
            last = max((file.last for file in scan.files), default=first)
            until = first + max((min(until, last + 1) - first) // 2, 1)

    def _read(self, wanted: FillWanted, scan: LakeScan, most: int) -> pa.Table | None:
        """Return the rows of a scan in order; the columns that are asked for have numbers.

        None: there are more than so many.
        """
        kept = self.lake.columns_of(self.lake.table(wanted.source))
        tables: list[pa.Table] = []
        count = 0
        for batch in scan.batches():
            columns = []
            for wish in wanted.columns:
                found = kept.find(wish.name, wish.type, wish.unit)
                columns.append(
                    pa.nulls(batch.num_rows, arrow_type(wish.type))
                    if found is None
                    else batch.column(batch.schema.get_field_index(found.column))
                )
            own = [batch.column(batch.schema.get_field_index(name)) for name in _OWN]
            names = [*map(str, range(len(columns))), *_OWN]
            table = pa.Table.from_arrays([*columns, *own], names=names)
            if wanted.gateway:
                table = table.filter(pc.equal(table.column(GATEWAY), wanted.gateway))
            tables.append(table)
            count += table.num_rows
            if count > most:
                return None
        if not tables:
            return pa.table({EVENT_TIME: pa.array([], TIME)})
        return pa.concat_tables(tables).sort_by([(name, "ascending") for name in _ORDER])

    def _scan(self, wanted: FillWanted, since: int, until: int) -> LakeScan:
        kept = self.lake.columns_of(self.lake.table(wanted.source))
        found = [kept.find(c.name, c.type, c.unit) for c in wanted.columns]
        columns = tuple(dict.fromkeys(c.column for c in found if c is not None))
        return self.lake.plan(wanted.source, since, until, (*columns, *_OWN))


def _without(table: pa.Table, late: pa.Table | None) -> pa.Table:
    """Return the rows that are not late, in their order."""
    if late is None or not table.num_rows:
        return table
    left = table.join(late, keys=list(NAME), join_type="left anti")
    return left.select(table.column_names).sort_by([(name, "ascending") for name in _ORDER])


def _end(scan: LakeScan, most: int) -> int:
    """Return a time before which there are about so many rows of a scan, or none that is later."""
    rows = 0
    for file in sorted(scan.files, key=lambda file: file.last):
        rows += file.rows
        if rows > most:
            return min(file.last + 1, LATEST)
    return LATEST


def _estimate(scan: LakeScan, since: int, until: int) -> float:
    """Return about how many rows a scan reads: files are of a day each."""
    return scan.rows * min(1.0, (until - since) / _DAY)


def _after(table: pa.Table, after: Cursor) -> pa.Table:
    """Return the rows behind a row; the table is in order."""
    if not table.num_rows:
        return table
    times = np.asarray(table.column(EVENT_TIME).cast(pa.int64()).combine_chunks())
    begin = int(np.searchsorted(times, after[0], side="left"))
    end = int(np.searchsorted(times, after[0], side="right"))
    same = table.slice(begin, end - begin).select(_ORDER[1:])
    names = zip(*(same.column(name).to_pylist() for name in _ORDER[1:]), strict=True)
    passed = sum(name <= after[1:] for name in names)
    return table.slice(begin + passed)


def _cut(table: pa.Table) -> int:
    """Return how many rows an answer has: rows of one event time stay together.

    A withdrawal has the event time of its row, and takes nothing away before that is there.
    """
    sizes = np.full(table.num_rows, 20 * table.num_columns)
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            sizes += np.asarray(pc.fill_null(pc.binary_length(column), 0))
    fitting = int(np.searchsorted(np.cumsum(sizes), _MAX_BYTES, side="right"))
    most = max(min(MAX_FILL_ROWS, fitting), 1)
    if table.num_rows <= most:
        return int(table.num_rows)
    times = np.asarray(table.column(EVENT_TIME).cast(pa.int64()).combine_chunks())
    first = int(np.searchsorted(times, times[most], side="left"))
    if first:
        return first
    return int(np.searchsorted(times, times[most], side="right"))


def _answer(wanted: FillWanted, table: pa.Table, *, done: bool, expected: int) -> FillRows:
    packs: dict[PackName, int] = {}
    ids = list(zip(*(table.column(n).to_pylist() for n in (GATEWAY, EPOCH, SEQ)), strict=True))
    places = [packs.setdefault(name, len(packs)) for name in ids]
    times = table.column(EVENT_TIME).cast(pa.int64()).to_pylist()
    gone = table.column(WITHDRAWN).to_pylist()
    columns = [
        _values(table.column(str(number)), column.type)
        for number, column in enumerate(wanted.columns)
    ]
    rows = tuple(
        FillRow(place, ts, row, bool(withdrawn))
        for place, ts, row, withdrawn in zip(
            places, times, zip(*columns, strict=True), gone, strict=True
        )
    )
    last = table.num_rows - 1
    after = (times[last], *ids[last], table.column(PLACE)[last].as_py())
    return FillRows(wanted.id, tuple(packs), rows, after, done=done, expected=expected)


def _values(column: pa.ChunkedArray, dtype: DataType) -> list[RowValue]:
    if dtype == DataType.TIMESTAMP:
        column = column.cast(pa.int64())
    values: list[RowValue] = column.to_pylist()
    return values
