"""Read managed tables, which are in the lake."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from static_engine.lake.lake_errors import LakeError
from static_engine.lake.managed_tables import ManagedTables
from static_engine.sources.conditions.iceberg_conditions import iceberg_condition
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_parts import Narrowed
from static_engine.sources.values.conversion import convert_batch
from streamsql.catalog.definitions import SourceDefinition


def read_managed(
    definition: SourceDefinition, tables: ManagedTables | None, part: Narrowed | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a managed table, or of a part of it, in the declared types.

    Raises:
        TableError: There is no lake, or it cannot be read.
    """
    where = f"table {definition.name}"
    row = 1
    try:
        lake = lake_of(definition, tables)
        if part is None:
            batches = lake.batches(definition)
        else:
            condition = partial(iceberg_condition, part.conditions)
            batches = lake.batches(definition, part.table, condition)
        for columns in batches:
            yield convert_batch(definition, columns, row, where)
            row += len(columns[0])
    except LakeError as error:
        raise TableError(f"{where}: {error.message}", hint=error.hint) from error
    except (OSError, pa.ArrowException) as error:
        what = " ".join(str(error).split())
        raise TableError(f"{where} cannot be read from the lake: {what:.300}") from error


def rows_of_managed(definition: SourceDefinition, tables: ManagedTables | None) -> int | None:
    """Return how many rows a table has; None if nobody can say."""
    try:
        return tables.rows(definition.name) if tables is not None else None
    except Exception:  # noqa: BLE001 - whoever reads it says what is wrong
        return None


def lake_of(definition: SourceDefinition, tables: ManagedTables | None) -> ManagedTables:
    """Return the managed tables of the static engine.

    Raises:
        TableError: It has no lake.
    """
    if tables is None:
        raise TableError(
            f"table {definition.name} has no source, so it is a managed table of the lake, and "
            "the static engine has none",
            hint="give the static engine the setting lake, or the table a source: "
            "WITH (source = 'csv', path = 'rows.csv')",
        )
    return tables
