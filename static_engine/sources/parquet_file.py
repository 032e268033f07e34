"""Read Parquet files; a folder's files together are one table."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from static_engine.sources.conditions.file_conditions import arrow_condition
from static_engine.sources.table_errors import TableError
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import convert_batch
from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition

_BATCH_ROWS = 65_536


def read_parquet(
    definition: SourceDefinition, files: tuple[Path, ...], conditions: tuple[Expression, ...] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of Parquet files in the declared types.

    Row groups are left out whose statistics say that no row passes the conditions.

    Raises:
        TableError: A file is not Parquet, lacks a column, or holds a value of another type.
    """
    for file in files:
        where = f"table {definition.name}: {file.name}"
        try:
            # A plain file object: Arrow's own would map the file, and a rewrite would crash us.
            with file.open("rb") as content, pq.ParquetFile(content) as parquet:
                yield from _batches(definition, file, parquet, conditions)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TableError(f"{where} is not readable Parquet: {error}") from error
        except OSError as error:
            raise TableError(f"{where} cannot be read: {error.strerror or error}") from error


def counted_rows(files: tuple[Path, ...]) -> int | None:
    """Return how many rows files have by their footers; None if one cannot be read."""
    try:
        return sum(int(pq.read_metadata(file).num_rows) for file in files)
    except (pa.ArrowException, OSError):
        return None


def _batches(
    definition: SourceDefinition,
    file: Path,
    parquet: pq.ParquetFile,
    conditions: tuple[Expression, ...],
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
    fields = {p: found.field(at) for p, at in enumerate(positions)}
    where = f"table {definition.name}: {file.name}"
    groups = _row_groups(file, parquet, conditions, fields)
    row = 1
    for group in range(parquet.num_row_groups):
        following = row + parquet.metadata.row_group(group).num_rows
        if group in groups:
            for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names):
                columns = [batch.column(name) for name in names]
                yield convert_batch(definition, columns, row, where)
                row += batch.num_rows
        row = following


def _row_groups(
    file: Path,
    parquet: pq.ParquetFile,
    conditions: tuple[Expression, ...],
    fields: Mapping[int, pa.Field],
) -> frozenset[int]:
    """Return the row groups in which a row may pass."""
    every = frozenset(range(parquet.num_row_groups))
    condition = arrow_condition(conditions, fields)
    # A name that is there twice is no name for Arrow's conditions.
    if condition is None or len(set(parquet.schema_arrow.names)) < len(parquet.schema_arrow.names):
        return every
    with file.open("rb") as content:
        fragment = ds.ParquetFileFormat().make_fragment(pa.PythonFile(content))
        groups = fragment.subset(filter=condition, schema=parquet.schema_arrow).row_groups
        return every & {group.id for group in groups}
