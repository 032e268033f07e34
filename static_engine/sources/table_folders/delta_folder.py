"""Delta tables by path."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from static_engine.sources.conditions.file_conditions import arrow_condition
from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_folders.open_files import open_file
from static_engine.sources.table_locations import Locations, resolve
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import convert_batch
from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition

if TYPE_CHECKING:
    from deltalake import DeltaTable


def read_delta(
    definition: SourceDefinition,
    path: str,
    locations: Locations,
    conditions: tuple[Expression, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Delta table in the declared types.

    Rows that fail one of the conditions may be left out, and with them whole files.

    Raises:
        TableMissingError: It is not there.
        TableError: It cannot be read, lacks a column, or names files outside of open folders.
    """
    where = f"table {definition.name}: {path}"
    try:
        table = _opened(path, locations)
        for address in table.file_uris():
            open_file(address, locations)
        dataset = table.to_pyarrow_dataset()
        found = dataset.schema
        places = match_columns(definition, found.names, path)
        names = [found.names[p] for p in places]
        judged = _judged(table)
        fields = {at: found.field(p) for at, p in enumerate(places) if found.names[p] in judged}
        condition = arrow_condition(conditions, fields)
        row = 1
        for batch in dataset.to_batches(columns=names, filter=condition):
            columns = [batch.column(name) for name in names]
            yield convert_batch(definition, columns, row, where)
            row += batch.num_rows
    except ImportError as error:
        raise TableError(
            f"{where}: the library deltalake is not installed", hint='pip install "pando[delta]"'
        ) from error
    except TableError:
        raise
    except Exception as error:  # the library raises what its parts raise
        what = " ".join(str(error).split())
        raise TableError(
            f"{where} is not a readable Delta table: {type(error).__name__}: {what:.300}"
        ) from error


def _judged(table: "DeltaTable") -> set[str]:
    """Return the columns of which the log says of each file what values it has.

    The library takes a column that a file's statistics lack for one without values.
    """
    partitions = set(table.metadata().partition_columns)
    actions = table.get_add_actions(flatten=True)
    told = {name: actions.column(name).to_pylist() for name in actions.schema.names}

    def is_told(name: str) -> bool:
        least, most, nulls = (told.get(f"{what}.{name}") for what in ("min", "max", "null_count"))
        if "." in name or least is None or most is None or nulls is None:
            return False
        files = zip(least, most, nulls, told["num_records"], strict=True)
        return all(
            null is not None and ((low is not None and high is not None) or null == rows)
            for low, high, null, rows in files
        )

    return partitions | {field.name for field in table.schema().fields if is_told(field.name)}


def rows_of_delta(path: str, locations: Locations) -> int | None:
    """Return how many rows a table has by its log; None if that does not say it of each file."""
    try:
        counts = _opened(path, locations).get_add_actions().column("num_records").to_pylist()
    except Exception:  # noqa: BLE001 - whoever reads it says what is wrong
        return None
    return None if None in counts else sum(counts)


def _opened(path: str, locations: Locations) -> "DeltaTable":
    folder = resolve(path, locations)
    if not (folder / "_delta_log").is_dir():
        raise TableMissingError(f"{path!r:.200} has no Delta table (no folder _delta_log)")
    # An extra, which only these tables need.
    from deltalake import DeltaTable  # noqa: PLC0415

    return DeltaTable(folder)
