"""INSERT and DELETE on a table in Parquet files.

A file is written again as a whole, with its schema, compression and metadata. New rows of a folder
go into a file of their own; rows go from one of its files, because two cannot be replaced at once.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from static_engine.changing.change_checks import (
    Key,
    check_keys,
    check_unchanged,
    failed,
    is_folder,
    keys_of,
    not_writable,
    one_file,
)
from static_engine.changing.parquet_writing import check_alike, new_rows, write_like
from static_engine.changing.whole_file import add_file, read_whole, replace_whole
from static_engine.sources import table_locations
from static_engine.sources.column_matching import match_columns
from static_engine.sources.conversion import arrow_schema, convert_batch, rows_in
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.parquet_file import read_parquet
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Fingerprint, Locations, files_of, fingerprint
from streamsql.algebra.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.wire.table_changes import TableChange

SUFFIXES = (".parquet",)
MAX_UNPACKED = 256_000_000
"""A file that is changed is held in memory, unpacked."""
_ROW_GROUP = 100_000
_BATCH_ROWS = 65_536


def change_parquet(change: TableChange, options: TableOptions, locations: Locations) -> int:
    """Add rows to a table or take rows from it; return how many.

    A new file is read as a table before it counts, so it holds what was meant.

    Raises:
        TableError: It cannot be done; the table is as it was.
    """
    definition = change.definition
    before = fingerprint(options, locations)
    if not is_folder(options, locations):
        file = one_file(definition, options, locations, SUFFIXES)
        return _File(definition, file).change(change, options, locations, before)
    files = files_of(options.path, locations, SUFFIXES[0])
    if not change.delete:
        if len(files) >= table_locations.MAX_FILES:
            raise failed(
                f"table {definition.name}: its folder has {len(files)} files, which is the "
                "max of a table",
                "rewrite them as fewer files",
            )
        known = (key for file in files for key in _keys_in(definition, file))
        check_keys(definition, known, keys_of(definition, change.rows))
        model = _File(definition, files[-1])
        return model.add_beside(change, options, locations, before)
    hit = [file for file in files if _File(definition, file).has_rows_for(change)]
    if len(hit) > 1:
        names = ", ".join(file.name for file in hit[:3]) + (", …" if len(hit) > 3 else "")
        raise not_writable(
            definition,
            f"has rows to delete in {len(hit)} files ({names}), which cannot be replaced "
            "atomically",
            "DELETE with conditions that match rows of one file each, or rewrite the folder",
        )
    return _File(definition, hit[0]).change(change, options, locations, before) if hit else 0


class _File:
    """One file as it is.

    Args:
        definition: The table.
        file: The file.

    Raises:
        TableError: It may not be written, is too large, or no Parquet file of the table.
    """

    def __init__(self, definition: SourceDefinition, file: Path) -> None:
        self._definition, self._file = definition, file
        self._where = f"table {definition.name}: {file.name}"
        content = read_whole(file, self._where)
        try:
            self._parquet = pq.ParquetFile(pa.BufferReader(content))
        except pa.ArrowException as error:
            raise TableError(f"{self._where} is not readable Parquet: {error}") from error
        metadata = self._parquet.metadata
        groups = range(metadata.num_row_groups)
        unpacked = sum(metadata.row_group(number).total_byte_size for number in groups)
        if unpacked > MAX_UNPACKED:
            raise failed(
                f"{self._where} has {unpacked} bytes unpacked; the max for changes is "
                f"{MAX_UNPACKED}",
                "change it with another tool, or store the table in a database",
            )
        found = self._parquet.schema_arrow.names
        self._positions = match_columns(definition, found, file.name)

    def has_rows_for(self, change: TableChange) -> bool:
        """Whether a DELETE takes rows of the file."""
        return any(kept.num_rows < group.num_rows for group, kept in self._kept(change))

    def change(
        self,
        change: TableChange,
        options: TableOptions,
        locations: Locations,
        before: Fingerprint | None,
    ) -> int:
        """Replace the file; return how many rows have come or gone."""
        definition = self._definition
        groups: list[pa.Table] = []
        gone = 0
        if change.delete:
            for group, kept in self._kept(change):
                gone += group.num_rows - kept.num_rows
                groups += [kept] if kept.num_rows else []
            if not gone:
                return 0
            groups = groups or [self._parquet.schema_arrow.empty_table()]
        else:
            check_keys(
                definition, _keys_in(definition, self._file), keys_of(definition, change.rows)
            )
            groups = [*self._groups(), self._new(change)]
            if len(groups) > 1 and groups[-2].num_rows + len(change.rows) <= _ROW_GROUP:
                groups[-2:] = [pa.concat_tables(groups[-2:]).unify_dictionaries()]

        def check(written: Path) -> None:
            self._check(written, groups)
            check_unchanged(options, locations, before, self._where)

        replace_whole(
            self._file,
            lambda sink: write_like(self._parquet, groups, sink, definition, self._file.name),
            check,
            self._where,
        )
        return gone or len(change.rows)

    def add_beside(
        self,
        change: TableChange,
        options: TableOptions,
        locations: Locations,
        before: Fingerprint | None,
    ) -> int:
        """Write the new rows into a file of their own, like this one; return how many."""
        new = [self._new(change)]
        file = self._file.with_name(f"inserted-{change.id}{SUFFIXES[0]}")
        where = f"table {self._definition.name}: {file.name}"

        def check(written: Path) -> None:
            self._check(written, new)
            check_unchanged(options, locations, before, where)
            if file.exists():
                raise failed(f"{where} already exists", "these rows were already inserted")

        add_file(
            file,
            self._file,
            lambda sink: write_like(self._parquet, new, sink, self._definition, file.name),
            check,
            where,
        )
        return len(change.rows)

    def _new(self, change: TableChange) -> pa.Table:
        return new_rows(self._definition, self._parquet.schema_arrow, change.rows, self._where)

    def _groups(self) -> Iterator[pa.Table]:
        try:
            for number in range(self._parquet.metadata.num_row_groups):
                yield self._parquet.read_row_group(number, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self._where} is not readable Parquet: {error}") from error

    def _kept(self, change: TableChange) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield every row group, and what a DELETE leaves of it."""
        goes = compile_predicate(change.predicate) if change.predicate is not None else None
        for group in self._groups():
            if goes is None:
                yield group, group.slice(0, 0)
                continue
            stays = [not goes(row) for row in rows_in(*self._converted(group))]
            yield group, group.filter(pa.array(stays, pa.bool_()))

    def _converted(self, group: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield rows in the declared types."""
        row = 1
        for batch in group.to_batches(max_chunksize=_BATCH_ROWS):
            columns = [batch.column(position) for position in self._positions]
            yield convert_batch(self._definition, columns, row, self._where)
            row += batch.num_rows

    def _check(self, written: Path, groups: list[pa.Table]) -> None:
        """Check that a new file holds what was meant.

        Raises:
            TableError: It does not.
        """
        with written.open("rb") as content, pq.ParquetFile(content) as parquet:
            check_alike(self._parquet, parquet, self._definition, self._file.name)
        schema = arrow_schema(self._definition.schema)
        try:
            meant = [batch for group in groups for batch in self._converted(group)]
            found = [*read_parquet(self._definition, (written,))]
        except TableError as error:
            raise failed(f"{self._where} cannot hold these rows: {error.message}") from error
        if not pa.Table.from_batches(found, schema).equals(pa.Table.from_batches(meant, schema)):
            raise failed(f"{self._where} cannot hold these rows", "give them other values")


def _keys_in(definition: SourceDefinition, file: Path) -> Iterator[Key]:
    if not definition.key:
        return
    for batch in read_parquet(definition, (file,)):
        yield from zip(*(batch.column(k).to_pylist() for k in definition.key), strict=True)
