"""Counts of what is in the columns of stored tables, as gateways make them of their sources.

Of a table in memory rows from all over it are counted, of another one its first rows. Footers say
neither how many values there are nor how long texts are: what is in a column again and again is
stored once, and compressed.
"""

from contextlib import closing
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from static_engine.tables.table_store import StoredTable
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Field
from streamsql.data.types import DataType
from streamsql.wire.site_messages import DECILES, MOST_COLUMNS, ColumnCount, SourceCount

SAMPLE_ROWS = 16_384
"""Rows of a table that are counted."""

_COUNTED = (DataType.BOOLEAN, DataType.INTEGER, DataType.DOUBLE, DataType.TEXT)
_NUMBERS = (DataType.INTEGER, DataType.DOUBLE)


def first_counts(
    definition: SourceDefinition, rows: int, locations: Locations
) -> SourceCount | None:
    """Return the counts of a table that is not kept, by its first rows; None: it cannot be read."""
    # Whether keys are unique shows at the end of a table.
    batches = read_table(msgspec.structs.replace(definition, key=()), locations)
    try:
        with closing(cast("Any", batches)):
            first = next(batches, None)
    except TableError:
        return None
    return None if first is None else counts_of(definition, pa.table(first), rows)


def stored_counts(table: StoredTable) -> SourceCount | None:
    """Return the counts of a table that was read; None: it has no rows, or its file is gone."""
    if table.data is not None:
        return counts_of(table.definition, table.data, table.row_count)
    if table.snapshot is None:
        return None
    try:
        with table.snapshot.open("rb") as content, pq.ParquetFile(content) as parquet:
            first = next(parquet.iter_batches(SAMPLE_ROWS), None)
    except (OSError, pa.ArrowException):
        return None
    return None if first is None else counts_of(table.definition, pa.table(first), table.row_count)


def counts_of(definition: SourceDefinition, data: pa.Table, rows: int) -> SourceCount | None:
    """Return counts of a table by some of its rows, whose columns are in the declared order.

    Args:
        definition: The table.
        data: Of these, at most `SAMPLE_ROWS` from all over them are looked at.
        rows: Of the table.
    """
    if data.num_rows > SAMPLE_ROWS:
        data = data.take(np.linspace(0, data.num_rows - 1, SAMPLE_ROWS, dtype=np.int64))
    if not data.num_rows:
        return None
    rows = max(rows, data.num_rows)
    columns = {
        field.name: _count(field, data.column(position), rows)
        for position, field in enumerate(definition.schema.fields[:MOST_COLUMNS])
        if field.dtype in _COUNTED
    }
    return SourceCount(rows, data.num_rows, 0, columns, definition.name)


def _count(field: Field, column: pa.ChunkedArray, rows: int) -> ColumnCount:
    there = column.drop_null().combine_chunks()
    counts = np.asarray(pc.value_counts(there).field("counts"))
    whole = rows * len(there) / len(column)
    return ColumnCount(
        often=int(counts.max(initial=0)),
        nulls=len(column) - len(there),
        deciles=_deciles(there) if field.dtype in _NUMBERS else (),
        size=(pc.sum(pc.binary_length(there)).as_py() or 0)
        if field.dtype == DataType.TEXT
        else None,
        distinct=_distinct(len(counts), int((counts == 1).sum()), len(there), whole),
    )


def _distinct(values: int, once: int, rows: int, whole: float) -> float:
    """Return about how many values a column has, of which some rows have some.

    P. Haas and L. Stokes, "Estimating the number of classes in a finite population", 1998 (Duj1),
    as PostgreSQL does: all rows give the exact number.

    Examples:
        >>> _distinct(3, 0, 1_000, 30_000), _distinct(10, 10, 10, 10)
        (3.0, 10.0)
        >>> round(_distinct(1_000, 1_000, 1_000, 30_000))
        30000
    """
    if not rows:
        return 0.0
    found = rows * values / (rows - once + once * rows / whole)
    return float(min(max(found, values), whole))


def _deciles(numbers: pa.Array) -> tuple[float, ...]:
    values = np.asarray(numbers, dtype=np.float64)
    values = np.sort(values[np.isfinite(values)])
    if not len(values):
        return ()
    places = np.rint(np.linspace(0, len(values) - 1, DECILES)).astype(np.int64)
    return tuple(float(value) for value in values[places])
