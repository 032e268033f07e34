"""New rows as columns of a Parquet file, and files that are written as an old one was."""

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from static_engine.changing.change_checks import failed, not_writable
from static_engine.sources.column_matching import match_columns
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Field
from streamsql.data.types import DataType, Row, Value, text_of, timestamp_text

_DAY = 86_400_000_000
_ARROW_SCHEMA = b"ARROW:schema"


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


def write_like(
    model: pq.ParquetFile,
    groups: Iterable[pa.Table],
    sink: BinaryIO,
    definition: SourceDefinition,
    name: str,
) -> None:
    """Write rows with the schema, the compression and the metadata of a file that is there.

    Args:
        model: That file.
        groups: The rows, in its schema; one row group each.
        sink: Takes the file.
        definition: The table, for errors.
        name: Of the file, for errors.

    Raises:
        TableError: A file as this one cannot be written.
    """
    metadata = model.metadata.metadata or {}
    try:
        with pq.ParquetWriter(sink, model.schema_arrow, **_options(model)) as writer:
            for group in groups:
                writer.write_table(group, row_group_size=max(1, group.num_rows))
            if _ARROW_SCHEMA not in metadata and metadata:
                writer.add_key_value_metadata(metadata)
    except (pa.ArrowException, ValueError) as error:
        raise not_writable(
            definition, f"is in {name}, which cannot be written again as it is: {error}"
        ) from error


def check_alike(
    model: pq.ParquetFile, written: pq.ParquetFile, definition: SourceDefinition, name: str
) -> None:
    """Check that a new file has the schema and the metadata of the old one.

    Raises:
        TableError: Its schema could not be kept.
    """
    same = written.schema.equals(model.schema) and _own(written) == _own(model)
    if not same or not written.schema_arrow.equals(model.schema_arrow, check_metadata=True):
        raise not_writable(
            definition, f"is in {name}, whose schema cannot be written again as it is"
        )


def _own(file: pq.ParquetFile) -> dict[bytes, bytes]:
    return {k: v for k, v in (file.metadata.metadata or {}).items() if k != _ARROW_SCHEMA}


def _options(model: pq.ParquetFile) -> dict[str, Any]:
    metadata = model.metadata
    codecs: dict[str, str] = {}
    dictionaries: set[str] = set()
    old_times = indexed = decimals = old_lists = False
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            codec = column.compression.lower()
            codecs[column.path_in_schema] = "none" if codec == "uncompressed" else codec
            if any("DICTIONARY" in encoding for encoding in column.encodings):
                dictionaries.add(column.path_in_schema)
            indexed |= column.has_column_index
    for place in range(len(model.schema)):
        column = model.schema.column(place)
        old_times |= column.physical_type == "INT96"
        old_lists |= ".list.item" in column.path
        decimals |= "Decimal" in str(column.logical_type) and column.physical_type.startswith("INT")
    return {
        "version": metadata.format_version,
        "compression": codecs or "snappy",
        "use_dictionary": sorted(dictionaries) if codecs else True,
        "use_deprecated_int96_timestamps": old_times,
        "store_decimal_as_integer": decimals,
        "write_page_index": indexed,
        "use_compliant_nested_type": not old_lists,
        "store_schema": _ARROW_SCHEMA in (metadata.metadata or {}),
    }
