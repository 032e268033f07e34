"""Columns of a file as Arrow arrays of the declared types.

`streamsql.data.types.coerce` says what a value means. Whole columns take a vectorised path where
it gives the same result; the rest, and every column with something wrong, goes value by value, so
that an error names its row.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType, Row, Value, coerce, timestamp_of

_ARROW = {
    DataType.BOOLEAN: pa.bool_(),
    DataType.INTEGER: pa.int64(),
    DataType.DOUBLE: pa.float64(),
    DataType.TEXT: pa.string(),
    DataType.TIMESTAMP: pa.int64(),
    DataType.INTERVAL: pa.int64(),
    DataType.NULL: pa.string(),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return a relation's Arrow schema: c0, c1, … by position, times as 64-bit microseconds."""
    return pa.schema([(f"c{i}", _ARROW[dtype]) for i, dtype in enumerate(schema.dtypes)])


def convert_batch(
    definition: SourceDefinition, columns: Sequence[pa.Array], first_row: int, where: str
) -> pa.RecordBatch:
    """Return a batch in the declared types.

    Args:
        definition: The table.
        columns: One array per declared column, of whatever type the file has.
        first_row: Number of the batch's first row, for errors; rows count from 1.
        where: The file, for errors.

    Raises:
        TableError: A value is not of its column's type; row, column and value are named.
    """
    arrays = [
        _convert(definition.schema.fields[position], column, first_row, where)
        for position, column in enumerate(columns)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(definition.schema))


def batch_of_values(
    definition: SourceDefinition, rows: Sequence[Sequence[object]], first_row: int, where: str
) -> pa.RecordBatch:
    """Return a batch of rows of Python values; see `convert_batch`."""
    arrays = []
    for position, field in enumerate(definition.schema.fields):
        arrays.append(_slow(field, (row[position] for row in rows), first_row, where))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(definition.schema))


def rows_in(*batches: pa.RecordBatch | pa.Table) -> Iterator[Row]:
    """Yield the rows of batches as Python values."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def plain(value: object) -> object:
    """Return a value of a database, JSON or Parquet file in a form `coerce` understands."""
    match value:
        case datetime():
            return timestamp_of(value if value.tzinfo else value.replace(tzinfo=UTC))
        case date():
            return timestamp_of(datetime.combine(value, time(), UTC))
        case timedelta():
            return value // timedelta(microseconds=1)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case UUID():
            return str(value)
        case _:
            return value


def _convert(field: Field, column: pa.Array, first_row: int, where: str) -> pa.Array:
    fast = _fast(column, field.dtype)
    if fast is not None:
        return fast
    return _slow(field, column.to_pylist(), first_row, where)


def _fast(column: pa.Array, dtype: DataType) -> pa.Array | None:
    """Return the column by a vectorised conversion, or None when it is not that simple."""
    if dtype == DataType.NULL or column.null_count == len(column):
        return pa.nulls(len(column), _ARROW[dtype]) if column.null_count == len(column) else None
    kind = column.type
    try:
        if pa.types.is_dictionary(kind):
            column, kind = column.dictionary_decode(), kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return _fast_text(column, dtype)
        return _fast_typed(column, kind, dtype)
    except pa.ArrowInvalid:
        return None  # something in it does not convert; the slow path finds and names it


def _fast_text(column: pa.Array, dtype: DataType) -> pa.Array | None:
    match dtype:
        case DataType.TEXT:
            return column.cast(pa.string())
        case DataType.INTEGER | DataType.INTERVAL if _all_match(column, r"^-?\d{1,18}$"):
            return column.cast(pa.int64())
        case DataType.DOUBLE if _all_match(column, r"^-?\d{1,30}(\.\d{1,30})?([eE]-?\d{1,2})?$"):
            return column.cast(pa.float64())
        case DataType.BOOLEAN if _all_match(column, r"^(true|false)$"):
            return column.cast(pa.bool_())
        case _:
            return None


def _fast_typed(column: pa.Array, kind: pa.DataType, dtype: DataType) -> pa.Array | None:
    target = _ARROW[dtype]
    if dtype == DataType.DOUBLE and pa.types.is_floating(kind):
        doubles = column.cast(target)
        return doubles if pc.all(pc.is_finite(doubles)).as_py() else None
    if dtype == DataType.DOUBLE and pa.types.is_integer(kind):
        return column.cast(target, safe=False)
    if pa.types.is_integer(kind) and target == pa.int64():
        return column.cast(target)
    if pa.types.is_boolean(kind) and dtype == DataType.BOOLEAN:
        return column
    if dtype == DataType.TIMESTAMP and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        # Finer than a microsecond is cut off; the type has no place for it.
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        return column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    if dtype == DataType.INTERVAL and pa.types.is_duration(kind):
        return column.cast(pa.duration("us"), safe=False).cast(pa.int64())
    return None


def _all_match(column: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


def _slow(field: Field, values: Iterable[object], first_row: int, where: str) -> pa.Array:
    converted: list[Value] = []
    for number, value in enumerate(values):
        try:
            converted.append(coerce(plain(value), field.dtype))
        except (ValueError, OverflowError) as error:
            raise TableError(
                f"{where}: row {first_row + number}, column {field.name}: {error}",
                hint="correct the value, or declare the column with another type",
            ) from None
    try:
        return pa.array(converted, type=_ARROW[field.dtype])
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise TableError(f"{where}: column {field.name}: {error}") from error
