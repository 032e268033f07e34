"""The newest rows of a table, and how its numbers went."""

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from static_engine.care.lake_figures import time_column
from static_engine.care.sums import COUNT, FROM, Sums, SumsShape, names
from static_engine.lake.kept_readings import EVENT_TIME, TIME, WITHDRAWN
from static_engine.lake.lake_scan import moment
from streamsql.data.types import EARLIEST, LATEST
from streamsql.wire.bounds import RowValue
from streamsql.wire.stored_tables.lake_messages import MAX_BUCKETS, LakeSample

BUCKETS = 120
MAX_READ = 2_000_000
"""Rows that are read for one sample."""
MAX_PLOTS = 24
MAX_TEXT = 200
"""Characters of a value that are shown."""


def sample_of(
    table: Table, last: int | None, since: int | None, until: int | None, rows: int
) -> LakeSample:
    """Return a sample of an interval of a table.

    Args:
        table: As loaded.
        last: The latest time in it, or None.
        since: The first time, in microseconds; None: an hour before `until`.
        until: The time after the last; None: just after `last`.
        rows: How many are shown.
    """
    time = time_column(table)
    if not time or last is None:
        return _without_times(table, rows)
    end = min(last + 1 if until is None else until, LATEST)
    begin = max(end - 3_600_000_000 if since is None else since, EARLIEST)
    if begin >= end:
        return LakeSample(since=begin, until=end)
    names_ = [field.name for field in table.schema().fields]
    condition = f"{time} >= '{moment(begin).isoformat()}' AND {time} < '{moment(end).isoformat()}'"
    width = max(1, -(-(end - begin) // BUCKETS))
    numbers: tuple[str, ...] | None = None
    sums: Sums | None = None
    newest: pa.Table | None = None
    read = 0
    cut = False
    for batch in table.scan(condition, selected_fields=tuple(names_)).to_arrow_batch_reader():
        found = pa.Table.from_batches([batch])
        if sums is None:
            numbers = _numbers(found.schema)
            sums = Sums(SumsShape(width, (), numbers))
        sums.add(_timed(found, time).combine_chunks().to_batches()[0] if found.num_rows else batch)
        both = found if newest is None else pa.concat_tables([newest, found])
        newest = both.sort_by([(time, "descending")]).slice(0, rows)
        read += batch.num_rows
        if read > MAX_READ:
            cut = True
            break
    if sums is None or newest is None:
        return LakeSample(tuple(names_), since=begin, until=end)
    shape = SumsShape(width, (), numbers or ())
    buckets = sums.table().slice(0, MAX_BUCKETS)
    series = [name for name in names(shape) if not name.endswith(("_sum", "_count"))]
    series = [FROM, COUNT, *(name for name in series if name not in {FROM, COUNT})]
    return LakeSample(
        tuple(names_),
        _rows(newest.select(names_)),
        begin,
        end,
        tuple(series),
        _rows(buckets.select(series)),
        cut,
    )


def _without_times(table: Table, rows: int) -> LakeSample:
    found = table.scan(limit=rows).to_arrow()
    return LakeSample(tuple(found.column_names), _rows(found.slice(0, rows)))


def _timed(found: pa.Table, time: str) -> pa.Table:
    """Return rows with the columns by which sums know times and withdrawals."""
    if time != EVENT_TIME:
        found = found.append_column(EVENT_TIME, found[time].cast(TIME))
    if WITHDRAWN not in found.column_names:
        found = found.append_column(WITHDRAWN, pa.array([False] * found.num_rows, pa.bool_()))
    return found


def _numbers(schema: pa.Schema) -> tuple[str, ...]:
    numeric = [
        field.name
        for field in schema
        if (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
        and not field.name.startswith("_")
    ]
    return tuple(numeric[:MAX_PLOTS])


def _rows(table: pa.Table) -> tuple[tuple[RowValue, ...], ...]:
    columns = [column.to_pylist() for column in table.columns]
    return tuple(tuple(map(_plain, row)) for row in zip(*columns, strict=True))


def _plain(value: Any) -> RowValue:
    """Return a value as JSON has it: times as text, no NaN, texts cut off."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
