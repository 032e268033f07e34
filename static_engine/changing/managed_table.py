"""INSERT, UPDATE, DELETE and MERGE on a managed table: one commit each."""

from collections.abc import Iterator

import pyarrow as pa

from static_engine.changing.change_checks import (
    Key,
    assigned_places,
    check_keys,
    duplicate,
    failed,
    keys_of,
    missing,
    row_changes,
)
from static_engine.lake.kept_readings import arrow_type
from static_engine.lake.lake_errors import LakeError
from static_engine.lake.managed_tables import ManagedTables, Rewritten
from static_engine.sources.values.conversion import convert_batch, rows_in
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Row
from streamsql.wire.stored_tables.table_changes import TableChange


def change_managed(change: TableChange, tables: ManagedTables) -> int:
    """Change a managed table; return how many rows.

    Raises:
        TableError: It cannot be done; the table is as it was.
    """
    counts: list[int] = []

    def rewrite(files: Iterator[list[pa.Array]]) -> Rewritten:
        attempt = _Attempt(change)
        rewritten = attempt.inserted(files) if _is_insert(change) else attempt.changed(files)
        counts.append(attempt.count)
        return rewritten

    name = change.definition.name
    try:
        tables.change(change.definition, change.id, rewrite)
    except LakeError as error:
        raise failed(error.message, error.hint) from error
    except (OSError, pa.ArrowException) as error:
        what = " ".join(str(error).split())
        raise failed(f"table {name} cannot be written: {what:.300}") from error
    return counts[-1]


def _is_insert(change: TableChange) -> bool:
    return not change.delete and not change.update and change.merge is None


class _Attempt:
    """One attempt at a change, on the rows that the table has then.

    Attributes:
        count: How many rows it concerns.
    """

    def __init__(self, change: TableChange) -> None:
        self._change, self._definition = change, change.definition
        self._files: dict[int, tuple[list[pa.Array], list[int]]] = {}
        self._here: dict[int, Row | None] = {}  # changes of the file that is read, by row
        self._place = 0
        self._kept: set[Key] = set()
        key = set(self._definition.key)
        self._checks = bool(key) and (
            change.merge is not None or bool(key & set(assigned_places(change)))
        )
        self.count = 0

    def inserted(self, files: Iterator[list[pa.Array]]) -> Rewritten:
        """Return the outcome of an INSERT; files are read only where a key is declared."""
        rows = [tuple(row) for row in self._change.rows]
        key = self._definition.key
        if key:
            known = (tuple(row[k] for k in key) for row in self._rows(files))
            check_keys(self._definition, known, keys_of(self._definition, rows))
        self.count = len(rows)
        return Rewritten(added=_columns(self._definition, rows) if rows else None)

    def changed(self, files: Iterator[list[pa.Array]]) -> Rewritten:
        """Return the outcome of any other statement."""
        added: list[Row] = []
        for old, new in row_changes(self._change, self._rows(files)):
            self.count += 1
            if old is not None:
                self._here[self._place] = new
            elif new is not None:
                added.append(new)
        if added:
            check_keys(self._definition, self._kept, keys_of(self._definition, added))
        return Rewritten(self._files, _columns(self._definition, added) if added else None)

    def _rows(self, files: Iterator[list[pa.Array]]) -> Iterator[Row]:
        """Yield all rows. A change of one is known when the next one is asked for."""
        for number, columns in enumerate(files):
            batch = convert_batch(self._definition, columns, 1, f"table {self._definition.name}")
            rows = list(rows_in(batch))
            for self._place, row in enumerate(rows):
                yield row
            self._finish(number, rows)

    def _finish(self, number: int, rows: list[Row]) -> None:
        """Note what becomes of a file."""
        after: list[Row] = []
        stay: list[int] = []
        for place, row in enumerate(rows):
            new = self._here.get(place, row)
            if new is not None:
                after.append(new)
                stay.append(place)
        if self._checks:
            self._check(after)
        if self._here:
            self._files[number] = (_columns(self._definition, after), stay)
            self._here = {}

    def _check(self, rows: list[Row]) -> None:
        """Check that the keys of rows that stay are their own.

        Raises:
            TableError: They are not.
        """
        for key in keys_of(self._definition, rows):
            if None in key:
                raise missing(self._definition, key)
            if key in self._kept:
                raise duplicate(self._definition, key)
            self._kept.add(key)


def _columns(definition: SourceDefinition, rows: list[Row]) -> list[pa.Array]:
    found = []
    for place, field in enumerate(definition.schema.fields):
        values = [row[place] for row in rows]
        try:
            if field.dtype == DataType.TIMESTAMP:
                found.append(pa.array(values, pa.int64()).cast(arrow_type(field.dtype)))
            else:
                found.append(pa.array(values, arrow_type(field.dtype)))
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            raise failed(f"table {definition.name}: column {field.name}: {error}") from None
    return found
