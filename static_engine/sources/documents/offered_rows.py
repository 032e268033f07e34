"""Rows of a document, offered as values by column name, in the declared types."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa

from static_engine.sources.table_errors import TableError
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import batch_of_values
from streamsql.catalog.definitions import SourceDefinition

MAX_BYTES = 64 << 20
"""Of a document: it is held in memory as a whole, several times its size."""
_BATCH_ROWS = 20_000


def where_of(definition: SourceDefinition, file: str) -> str:
    """Return the table and its file, for errors."""
    return f"table {definition.name}: {file}"


def content_of(definition: SourceDefinition, file: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a document.

    Raises:
        TableError: It cannot be read, or is larger than the limit.
    """
    where = where_of(definition, file.name)
    try:
        with file.open("rb") as opened:
            content = opened.read(limit + 1)
    except OSError as error:
        raise TableError(f"{where} cannot be read: {error.strerror or error}") from error
    if len(content) > limit:
        raise too_large(where, limit)
    return content


def too_large(where: str, limit: int) -> TableError:
    """Return the error of a document that is larger than the limit, in bytes."""
    return TableError(
        f"{where} is larger than {limit >> 20} MB",
        hint="split it, or store the rows in a database or in Parquet",
    )


def batches_of(
    definition: SourceDefinition,
    rows: Iterable[Mapping[str, object]],
    offered: Iterable[str],
    file: str,
    first_row: int = 1,
) -> Iterator[pa.RecordBatch]:
    """Yield rows in the declared types; names match without regard to case, the first one counts.

    Args:
        definition: The table.
        rows: Values by name in lower case; what a row lacks is NULL.
        offered: All names that there are. A declared column that is not among them is an error.
        file: Name of the document, for errors.
        first_row: Number of the first row, for errors.

    Raises:
        TableError: A declared column is not offered, or a value is not of its type.
    """
    match_columns(definition, list(dict.fromkeys(name.lower() for name in offered)), file)
    names = [name.lower() for name in definition.schema.names]
    source = iter(rows)
    while part := list(islice(source, _BATCH_ROWS)):
        values = [[_plain(row.get(name)) for name in names] for row in part]
        yield batch_of_values(definition, values, first_row, where_of(definition, file))
        first_row += len(part)


def _plain(value: object) -> object:
    """Return a value that a column can hold; lists and objects as JSON."""
    if isinstance(value, list | dict | tuple):
        return msgspec.json.encode(value).decode()
    return value
