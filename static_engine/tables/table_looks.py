"""Stored tables as people look at them: what is known of each, some rows, and its values."""

import time
from collections.abc import Callable, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from static_engine.sources.declared_options import TableOptions, table_options
from static_engine.sources.object_stores import is_stored
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_reader import read_table
from static_engine.sources.values.conversion import arrow_schema
from static_engine.tables.column_figures import figures_of, shown
from static_engine.tables.table_store import StoredTable, TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource
from streamsql.data.types import DataType, display
from streamsql.redaction import redacted, redacted_address
from streamsql.wire.bounds import RowValue
from streamsql.wire.stored_tables.lake_messages import (
    MAX_COLUMNS,
    MAX_TABLES,
    ColumnFigures,
    LakeColumn,
    LakeSample,
    TableFigures,
)

MAX_READ = 100_000
"""Rows of which figures are made."""
MAX_SECONDS = 8.0
"""Less than the console waits for an answer."""


class TableLooks:
    """Looks at the tables that are defined; from any one thread.

    Args:
        store: The tables as last read.
        watch: The definitions, and what is wrong.
        sizes: Returns about how many rows tables have, by name.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        store: TableStore,
        watch: TableWatch,
        sizes: Callable[[], dict[str, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._watch, self._sizes, self._clock = store, watch, sizes, clock

    def tables(self) -> tuple[tuple[TableFigures, ...], int]:
        """Return what is known of each table, and how many are left out."""
        names = sorted(self._watch.names)
        sizes = self._sizes()
        definitions = [self._watch.definition(name) for name in names[:MAX_TABLES]]
        found = [self._known(each, sizes) for each in definitions if each is not None]
        return tuple(found), max(len(names) - MAX_TABLES, 0)

    def look(
        self, name: str, rows: int
    ) -> tuple[TableFigures, LakeSample, tuple[ColumnFigures, ...], int]:
        """Return what is known of a table, its first rows, and figures of how many of its rows.

        A table that no query has read is read as far as figures go.

        Raises:
            TableError: There is no such table, or it cannot be read.
        """
        found = (each for each in self._watch.names if each.lower() == name.lower())
        definition = self._watch.definition(next(found, name))
        if definition is None:
            raise TableError(f"there is no stored table {name}", hint="SHOW TABLES lists them")
        batches, whole = self._first(definition)
        read = pa.Table.from_batches(batches, arrow_schema(definition.schema))
        fields = definition.schema.fields[:MAX_COLUMNS]
        few = read.select(list(range(len(fields))))
        names = tuple(field.name for field in fields)
        dtypes = [field.dtype for field in fields]
        columns = [column.to_pylist() for column in few.slice(0, rows).columns]
        sample = LakeSample(
            names,
            tuple(
                tuple(_plain(value, dtype) for value, dtype in zip(row, dtypes, strict=True))
                for row in zip(*columns, strict=True)
            ),
            cut=not whole,
        )
        known = self._known(definition, self._sizes())
        return known, sample, figures_of(fields, few), read.num_rows

    def _first(self, definition: SourceDefinition) -> tuple[list[pa.RecordBatch], bool]:
        """Return the first rows, and whether they are all."""
        stored = self._store.find(definition.name)
        fresh = stored is not None and stored.definition == definition
        if not fresh and is_stored(table_options(definition).path):
            raise TableError(
                f"table {definition.name} is in a store, and no query has fetched it yet",
                hint="it can be looked at once a query reads it",
            )
        source = (
            _batches(stored)
            if stored is not None and fresh
            else read_table(definition, self._store.locations)
        )
        end = self._clock() + MAX_SECONDS
        found: list[pa.RecordBatch] = []
        left = MAX_READ
        for batch in source:
            if left <= 0 or self._clock() >= end:
                return found, False
            found.append(batch.slice(0, left))
            left -= batch.num_rows
        return found, left >= 0

    def _known(self, definition: SourceDefinition, sizes: dict[str, int]) -> TableFigures:
        problem = self._watch.problem(definition.name)
        stored = self._store.find(definition.name)
        if stored is not None and stored.definition != definition:
            stored = None
        options: TableOptions | None = None
        size: int | None = None
        told = False
        try:
            options = table_options(definition)
            prints = self._store.print_of(definition)
            size = None if prints is None else sum(each[2] for each in prints)
            told = prints is not None or options.source == TableSource.LAKE
        except TableError as error:
            problem = problem or error
        return TableFigures(
            definition.name,
            "" if options is None else str(options.source),
            "" if options is None else redacted_address(options.path or options.table),
            stored.row_count if stored is not None else sizes.get(definition.name),
            size,
            None if stored is None else stored.read,
            None if options is None else options.refresh,
            tuple(
                LakeColumn(field.name, str(field.dtype))
                for field in islice(definition.schema.fields, MAX_COLUMNS)
            ),
            "" if problem is None else redacted(str(problem)),
            told,
        )


def _batches(stored: StoredTable) -> Iterator[pa.RecordBatch]:
    if stored.data is not None:
        yield from stored.data.to_batches()
    if stored.snapshot is None:
        return
    try:
        with pq.ParquetFile(stored.snapshot) as file:
            yield from file.iter_batches()
    except (OSError, pa.ArrowException) as error:
        raise TableError(
            f"table {stored.definition.name} is just being read again", hint="try again"
        ) from error


def _plain(value: RowValue, dtype: DataType) -> RowValue:
    """Return a value as it is shown: times as text, long texts cut off."""
    if isinstance(value, str) or dtype == DataType.TIMESTAMP:
        return None if value is None else shown(value, dtype)
    return display(value, dtype)
