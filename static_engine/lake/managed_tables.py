"""Managed tables: tables of the lake whose rows people write, in the namespace `tables`.

A change is copy-on-write in one commit: files in which a row changes are written again, new rows
come as a new file. Columns follow the rules of `kept_columns.py`. A table is there from its first
row on; before, it is empty. Dropping its definition keeps its rows.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import DataScan, FileScanTask, Table
from pyiceberg.types import NestedField

from static_engine.lake.kept_columns import PROPERTY, KeptColumns
from static_engine.lake.kept_readings import arrow_type, iceberg_type
from static_engine.lake.lake import TABLES, Lake, folder_of, rows_of_snapshot
from static_engine.lake.lake_commits import retried
from static_engine.lake.lake_errors import LakeError
from static_engine.lake.lake_settings import LakeSettings
from streamsql.catalog.definitions import SourceDefinition

MAX_SMALL_FILES = 50
"""More files are put together by the next change."""
SMALL_ROWS = 100_000
"""A file with fewer rows is small."""
MAX_ROWS = 5_000_000
"""Of a managed table: changes read it."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Outcome of a change, by columns in the order of the declaration.

    Attributes:
        files: Of the files that change, by their numbers: what their rows become, and which rows
            of the file they were.
        added: New rows; None: there are none.
    """

    files: Mapping[int, tuple[list[pa.Array], list[int]]] = field(default_factory=dict)
    added: list[pa.Array] | None = None


Rewrite = Callable[[Iterator[list[pa.Array]]], Rewritten]
"""From the declared columns of a table's files, one after the other, to what they become."""


def _every_row(_fields: Mapping[int, NestedField]) -> BooleanExpression:
    return AlwaysTrue()


class ManagedTables:
    """The managed tables of a lake, which is opened when it is first needed.

    Args:
        settings: Of the lake.
    """

    def __init__(self, settings: LakeSettings) -> None:
        self._settings = settings
        self._lake: Lake | None = None
        self._lock = Lock()

    def batches(
        self,
        definition: SourceDefinition,
        name: str | None = None,
        condition: Callable[[Mapping[int, NestedField]], BooleanExpression] = _every_row,
    ) -> Iterator[list[pa.Array]]:
        """Yield the declared columns of a table's rows; nothing where it has none yet.

        Args:
            definition: The columns that are read.
            name: Of the table, if the definition is of a part of it.
            condition: Returns what the rows fulfil, from the lake's columns by the positions of
                the declared ones; those that the lake does not have yet are left out.

        Raises:
            LakeError: The lake cannot be read.
        """
        table = self._find(name or definition.name)
        if table is None:
            return
        kept = self._opened().columns_of(table).of(definition)
        known = {field.name: field for field in table.schema().fields}
        fields = {
            position: known[one.column]
            for position, one in enumerate(kept)
            if one is not None and one.column in known
        }
        # Rows are counted by a column, though none of the declared ones may be there.
        read = {field.name for field in fields.values()} or {next(iter(known))}
        scan = table.scan(row_filter=condition(fields), selected_fields=tuple(read))
        for task in scan.plan_files():
            rows = _rows_of(table, task, scan)
            for batch in rows.to_batches(max_chunksize=SMALL_ROWS):
                yield self._declared(definition, table, pa.Table.from_batches([batch]))

    def rows(self, name: str) -> int | None:
        """Return how many rows a table has, None if its newest snapshot does not say.

        Raises:
            LakeError: The lake cannot be read.
        """
        table = self._find(name)
        return 0 if table is None else rows_of_snapshot(table)

    def change(self, definition: SourceDefinition, name: str, rewrite: Rewrite) -> None:
        """Change a table in one commit; again from the start when somebody else was faster.

        Args:
            definition: The table; it is created where it is not there.
            name: Of the change, which the snapshot's summary says.
            rewrite: Called for each attempt. It need not read the files.

        Raises:
            LakeError: It cannot be done; the table is as it was.
        """
        table = self._ensured(definition)

        def attempt() -> bool:
            table.refresh()
            tasks = list(table.scan().plan_files())
            rows = (_rows_of(table, task) for task in tasks)
            outcome = rewrite(self._declared(definition, table, each) for each in rows)
            gone = [tasks[number] for number in outcome.files]
            written = []
            for number, (columns, stay) in outcome.files.items():
                before = _rows_of(table, tasks[number]).take(pa.array(stay, pa.int64()))
                written.append(self._full(definition, table, columns, before))
            if outcome.added is not None:
                written.append(self._full(definition, table, outcome.added))
            if not gone and not written:
                return False
            count = sum(task.file.record_count for task in tasks)
            _check_size(definition, count + sum(each.num_rows for each in written))
            small = [
                task
                for number, task in enumerate(tasks)
                if number not in outcome.files and task.file.record_count < SMALL_ROWS
            ]
            if len(small) > MAX_SMALL_FILES:
                gone += small
                written += [_rows_of(table, task) for task in small]
            try:
                _commit(table, gone, written, name)
            except ValidationException as error:  # of what the other one has changed
                raise CommitFailedException(str(error)) from error
            return True

        retried(attempt, table)

    def _opened(self) -> Lake:
        with self._lock:
            if self._lake is None:
                self._lake = Lake(self._settings)
            return self._lake

    def _find(self, name: str) -> Table | None:
        try:
            return self._opened().catalog.load_table((TABLES, name))
        except NoSuchTableError:
            return None

    def _ensured(self, definition: SourceDefinition) -> Table:
        lake = self._opened()
        table = self._find(definition.name)
        if table is None:
            table = self._created(lake, definition)
        lake.grow(table, definition)
        return table

    def _created(self, lake: Lake, definition: SourceDefinition) -> Table:
        columns, added = KeptColumns().grown(definition)
        schema = IcebergSchema(
            *(
                NestedField(n, one.column, iceberg_type(one.type), required=False, doc=one.words)
                for n, one in enumerate(added, 1)
            )
        )
        # A name may hold anything, also "/" and "..".
        folder = folder_of(definition.name)
        try:
            return lake.catalog.create_table(
                (TABLES, definition.name),
                schema=schema,
                location=f"{self._settings.warehouse_url}/{TABLES}/{folder}",
                properties={
                    "format-version": "2",
                    "write.parquet.compression-codec": "zstd",
                    "write.metadata.delete-after-commit.enabled": "true",
                    # The library would add the same files again, keys unchecked.
                    "commit.retry.num-retries": "0",
                    PROPERTY: columns.as_property(),
                },
            )
        except TableAlreadyExistsError:
            return lake.catalog.load_table((TABLES, definition.name))

    def _declared(
        self, definition: SourceDefinition, table: Table, rows: pa.Table
    ) -> list[pa.Array]:
        """Return the declared columns of rows; NULL where the table lacks one."""
        kept = self._opened().columns_of(table).of(definition)
        found = []
        for declared, column in zip(definition.schema.fields, kept, strict=True):
            if column is None or column.column not in rows.column_names:
                found.append(pa.nulls(rows.num_rows, arrow_type(declared.dtype)))
            else:
                found.append(rows.column(column.column).combine_chunks())
        return found

    def _full(
        self,
        definition: SourceDefinition,
        table: Table,
        columns: list[pa.Array],
        before: pa.Table | None = None,
    ) -> pa.Table:
        """Return rows with all columns of the table.

        Those of former definitions are as they were; new rows have NULL there.
        """
        kept = self._opened().columns_of(table)
        given = {
            one.column: column
            for one, column in zip(kept.of(definition), columns, strict=True)
            if one is not None
        }
        count = len(columns[0])
        full = {}
        for one in kept.columns:
            if one.column in given:
                full[one.column] = given[one.column]
            elif before is not None and one.column in before.column_names:
                full[one.column] = before.column(one.column)
            else:
                full[one.column] = pa.nulls(count, arrow_type(one.type))
        return pa.table(full)


def _check_size(definition: SourceDefinition, count: int) -> None:
    if count > MAX_ROWS:
        raise LakeError(
            f"table {definition.name} would have more than {MAX_ROWS} rows",
            hint="store so many rows in a database, or let a source of the lake keep them",
        )


def _rows_of(table: Table, task: FileScanTask, scan: DataScan | None = None) -> pa.Table:
    """Return the rows of a file: all of them, or the columns and rows that a scan wants."""
    return ArrowScan(
        table_metadata=table.metadata,
        io=table.io,
        projected_schema=table.schema() if scan is None else scan.projection(),
        row_filter=AlwaysTrue() if scan is None else scan.row_filter,
    ).to_table(tasks=[task])


def _commit(table: Table, gone: list[FileScanTask], written: list[pa.Table], name: str) -> None:
    rows = pa.concat_tables(written) if written else None
    with table.transaction() as transaction:
        summary = {"pando.change": name}
        with transaction.update_snapshot(snapshot_properties=summary).overwrite() as snapshot:
            for task in gone:
                snapshot.delete_data_file(task.file)
            if rows is not None and rows.num_rows:
                # The library's own writer of `append`, which alone knows the metrics of a file.
                files = _dataframe_to_data_files(
                    table_metadata=transaction.table_metadata, df=rows, io=table.io
                )
                for file in files:
                    snapshot.append_data_file(file)
