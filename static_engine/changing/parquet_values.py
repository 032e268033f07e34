"""Rows as columns of the types a Parquet file has."""

from collections.abc import Sequence

import pyarrow as pa

from static_engine.changing.refusals import failed
from static_engine.sources.column_matching import match_columns
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Field
from streamsql.data.types import DataType, Row, Value, text_of, timestamp_text

_DAY = 86_400_000_000


def new_rows(
    definition: SourceDefinition, schema: pa.Schema, rows: Sequence[Row], where: str
) -> pa.Table:
    """Return rows in a file's schema; columns that are not declared are NULL.

    Nothing is rounded but to a `float` or `halffloat` column, which holds what is nearest.

    Raises:
        TableError: A value is none of the column's type, or NULL where the file allows none.
    """
    positions = match_columns(definition, schema.names, where)
    declared = dict(zip(positions, range(len(positions)), strict=True))
    arrays = []
    for position, column in enumerate(schema):
        place = declared.get(position)
        values: list[Value] = [None if place is None else row[place] for row in rows]
        if not column.nullable and None in values:
            raise failed(
                f"{where}: column {column.name} may not be NULL",
                "give it a value" if place is not None else "declare the column in CREATE TABLE",
            )
        if place is None:
            arrays.append(pa.nulls(len(rows), column.type))
            continue
        field = definition.schema.fields[place]
        try:
            arrays.append(_array(values, field, column.type))
        except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
            raise failed(
                f"{where}: column {column.name} is {column.type}: {error}",
                "give it a value of that type",
            ) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: list[Value], field: Field, kind: pa.DataType) -> pa.Array:
    """Return values of a declared column in the file's type."""
    if pa.types.is_dictionary(kind):
        return _array(values, field, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.array([_text(value, field.dtype) for value in values], kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)
    if pa.types.is_date(kind):
        if any(isinstance(value, int) and value % _DAY for value in values):
            raise ValueError("a day has no time; write midnight")
        return pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(kind)
    if pa.types.is_duration(kind):
        return pa.array(values, pa.int64()).cast(pa.duration("us")).cast(kind)
    if pa.types.is_floating(kind):
        numbers = [float(v) if isinstance(v, int) and _exact(v) else v for v in values]
        return pa.array(numbers, pa.float64()).cast(kind, safe=False)
    if pa.types.is_decimal(kind):
        texts = [None if value is None else text_of(value) for value in values]
        return pa.array(texts, pa.string()).cast(kind)
    if pa.types.is_integer(kind):
        return (
            pa.array(values).cast(kind)
            if any(v is not None for v in values)
            else pa.nulls(len(values), kind)
        )
    return pa.array(values, kind)


def _exact(number: int) -> bool:
    if int(float(number)) != number:
        raise ValueError(f"{number} would be rounded")
    return True


def _text(value: Value, dtype: DataType) -> str | None:
    if value is None:
        return None
    if dtype == DataType.TIMESTAMP and isinstance(value, int):
        return timestamp_text(value)
    return text_of(value)
