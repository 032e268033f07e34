"""Delta tables by path."""

from collections.abc import Iterator

import pyarrow as pa

from static_engine.sources.column_matching import match_columns
from static_engine.sources.conversion import convert_batch
from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_folders.open_files import open_file
from static_engine.sources.table_locations import Locations, resolve
from streamsql.catalog.definitions import SourceDefinition


def read_delta(
    definition: SourceDefinition, path: str, locations: Locations
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Delta table in the declared types.

    Raises:
        TableMissingError: It is not there.
        TableError: It cannot be read, lacks a column, or names files outside of open folders.
    """
    where = f"table {definition.name}: {path}"
    folder = resolve(path, locations)
    if not (folder / "_delta_log").is_dir():
        raise TableMissingError(f"{path!r:.200} has no Delta table (no folder _delta_log)")
    try:
        import deltalake  # noqa: PLC0415 - an extra, which only these tables need
    except ImportError as error:
        raise TableError(
            f"{where}: the library deltalake is not installed", hint='pip install "pando[delta]"'
        ) from error
    try:
        table = deltalake.DeltaTable(folder)
        for address in table.file_uris():
            open_file(address, locations)
        dataset = table.to_pyarrow_dataset()
        found = list(dataset.schema.names)
        names = [found[p] for p in match_columns(definition, found, path)]
        row = 1
        for batch in dataset.to_batches(columns=names):
            columns = [batch.column(name) for name in names]
            yield convert_batch(definition, columns, row, where)
            row += batch.num_rows
    except TableError:
        raise
    except Exception as error:  # the library raises what its parts raise
        what = " ".join(str(error).split())
        raise TableError(
            f"{where} is not a readable Delta table: {type(error).__name__}: {what:.300}"
        ) from error
