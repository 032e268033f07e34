"""Values of the columns of a table: how many are missing, the least and greatest, and a bar chart.

Of numbers and times the bars are intervals of equal width; of texts and truth values the most
frequent ones.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsql.data.schema import Field
from streamsql.data.types import DataType, Value, display, text_of
from streamsql.wire.stored_tables.lake_messages import ColumnFigures

BARS = 24
MAX_TEXT = 120
"""Characters of a value that are shown."""
_MEASURED = (DataType.INTEGER, DataType.DOUBLE, DataType.TIMESTAMP, DataType.INTERVAL)


def figures_of(fields: Sequence[Field], rows: pa.Table) -> tuple[ColumnFigures, ...]:
    """Return the figures of each column.

    Args:
        fields: As declared.
        rows: Its columns are in `arrow_schema` of the fields.
    """
    found = zip(fields, rows.columns, strict=True)
    return tuple(_figures(field, column.combine_chunks()) for field, column in found)


def shown(value: Value, dtype: DataType) -> str:
    """Return a value as a short text; NULL is empty."""
    if value is None:
        return ""
    text = text_of(display(value, dtype))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _figures(field: Field, column: pa.Array) -> ColumnFigures:
    there = column.drop_null()
    nulls = len(column) - len(there)
    if len(there) == 0:
        return ColumnFigures(field.name, nulls)
    distinct = int(pc.count_distinct(there).as_py())
    if field.dtype in _MEASURED and distinct > BARS:
        return _intervals(field, there, nulls, distinct)
    return _values(field, there, nulls, distinct)


def _intervals(field: Field, there: pa.Array, nulls: int, distinct: int) -> ColumnFigures:
    bounds = pc.min_max(there).as_py()
    least, greatest = bounds["min"], bounds["max"]
    values = there.to_numpy(zero_copy_only=False)
    ends: Sequence[float]
    if field.dtype == DataType.DOUBLE:
        ends, counts = _of_doubles(values, least, greatest)
    else:
        ends, counts = _of_whole(values, least, greatest)
    texts = [shown(end, field.dtype) for end in ends]
    return ColumnFigures(
        field.name,
        nulls,
        distinct,
        shown(least, field.dtype),
        shown(greatest, field.dtype),
        tuple(f"{begin} to {end}" for begin, end in pairwise(texts)),
        counts,
    )


def _of_whole(values: Any, least: int, greatest: int) -> tuple[list[int], tuple[int, ...]]:
    """Return the bounds of the bars and their counts; exact beyond what doubles tell apart."""
    width = -(-(greatest - least + 1) // BARS)
    # Differences of 64-bit numbers fit 64 bits without a sign.
    above = values.astype(np.uint64) - np.uint64(least % 2**64)
    counts = np.bincount((above // np.uint64(width)).astype(np.int64), minlength=BARS)
    used = -(-(greatest - least + 1) // width)
    ends = [min(least + width * n, greatest) for n in range(used + 1)]
    return ends, tuple(map(int, counts[:used]))


def _of_doubles(values: Any, least: float, greatest: float) -> tuple[list[float], tuple[int, ...]]:
    # Halves keep the width of the largest numbers finite.
    low, high = least / 2, greatest / 2
    try:
        counts, edges = np.histogram(values / 2, BARS, (low, high))
    except ValueError:  # they lie closer together than numbers between them
        return [least, greatest], (len(values),)
    return [float(f"{2 * float(edge):.6g}") for edge in edges], tuple(map(int, counts))


def _values(field: Field, there: pa.Array, nulls: int, distinct: int) -> ColumnFigures:
    counted = pa.table({"value": there}).group_by("value").aggregate([([], "count_all")])
    largest = counted.sort_by([("count_all", "descending"), ("value", "ascending")]).slice(0, BARS)
    if field.dtype in _MEASURED:
        largest = largest.sort_by("value")
    ordered = field.dtype != DataType.BOOLEAN
    bounds = pc.min_max(there).as_py() if ordered else {"min": None, "max": None}
    counts = tuple(largest["count_all"].to_pylist())
    return ColumnFigures(
        field.name,
        nulls,
        distinct,
        shown(bounds["min"], field.dtype),
        shown(bounds["max"], field.dtype),
        tuple(shown(value, field.dtype) for value in largest["value"].to_pylist()),
        counts,
        len(there) - sum(counts),
    )
