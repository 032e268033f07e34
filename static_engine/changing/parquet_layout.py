"""How a Parquet file is written, so that another one is written alike."""

from collections.abc import Iterable
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from static_engine.changing.refusals import not_writable
from streamsql.catalog.definitions import SourceDefinition

_ARROW_SCHEMA = b"ARROW:schema"


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
