"""Read Parquet files; a folder's files together are one table."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from static_engine.sources.column_matching import match_columns
from static_engine.sources.conversion import convert_batch
from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition

_BATCH_ROWS = 65_536


def read_parquet(definition: SourceDefinition, files: tuple[Path, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of Parquet files in the declared types.

    Raises:
        TableError: A file is not Parquet, lacks a column, or holds a value of another type.
    """
    for file in files:
        where = f"table {definition.name}: {file.name}"
        try:
            # A plain file object: Arrow's own would map the file, and a rewrite would crash us.
            with file.open("rb") as content, pq.ParquetFile(content) as parquet:
                yield from _batches(definition, file, parquet)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TableError(f"{where} is not readable Parquet: {error}") from error
        except OSError as error:
            raise TableError(f"{where} cannot be read: {error.strerror or error}") from error


def _batches(
    definition: SourceDefinition, file: Path, parquet: pq.ParquetFile
) -> Iterator[pa.RecordBatch]:
    found = parquet.schema_arrow
    positions = match_columns(definition, found.names, file.name)
    for position, field in zip(positions, definition.schema.fields, strict=True):
        kind = found.field(position).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise TableError(
                f"table {definition.name}: column {field.name} of {file.name} is {kind}, "
                f"which is not {field.dtype}"
            )
    names = [found.names[p] for p in positions]
    row = 1
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=names):
        columns = [batch.column(name) for name in names]
        yield convert_batch(definition, columns, row, f"table {definition.name}: {file.name}")
        row += batch.num_rows
