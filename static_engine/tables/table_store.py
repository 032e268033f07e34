"""The stored tables as last read: one consistent version each, until the next reading succeeds.

A reading replaces a version only when it succeeded, so a broken file never takes away what queries
have. Large tables are kept as a Parquet snapshot in our own folder: Spark reads it as it needs, and
a file that is being rewritten meanwhile cannot make two queries disagree.
"""

import filecmp
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from host.clocks import wall_clock
from static_engine.changing.change_table import change_table
from static_engine.sources.declared_options import table_options
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Fingerprint, Locations, fingerprint
from static_engine.sources.table_parts import Narrowed
from static_engine.sources.table_reader import read_table
from static_engine.sources.values.conversion import arrow_schema
from streamsql.algebra.operators import Scan
from streamsql.catalog.catalog import kind_of
from streamsql.catalog.definitions import SourceDefinition
from streamsql.wire.stored_tables.table_changes import TableChange


class TableChangedError(TableError):
    """The file changed while it was read; reading it once more will do."""

    code = "table_changed"


class TableShrunkenError(TableError):
    """A table has lost nearly all of its rows at once: it may be half written or half restored.

    Attributes:
        before: Rows that it had, which are kept.
        found: Rows that it has now.
    """

    code = "table_shrunken"

    def __init__(self, table: str, before: int, found: int) -> None:
        super().__init__(
            f"table {table} has {found:,} rows and had {before:,}: the old rows stay for "
            f"{SHRUNKEN_SECONDS / 60:g} minutes",
            hint=f"if that is right, wait, or REFRESH TABLE {table}; else repair the table",
        )
        self.before, self.found = before, found


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One version of a table's rows.

    Attributes:
        version: Grows with every change of the rows; unique in the process.
        row_count: How many.
        data: The rows, or None when they are in `snapshot`.
        snapshot: A Parquet file of ours, or None.
        fingerprint: State of the files it was read from, or None for a database server.
        read: When, in microseconds since 1970.
    """

    definition: SourceDefinition
    version: int
    row_count: int
    data: pa.Table | None
    snapshot: Path | None
    fingerprint: Fingerprint | None
    read: int = field(default_factory=wall_clock)

    def check(self, scan: Scan) -> None:
        """Check that a plan was made for this definition of the table.

        Raises:
            TableError: The table was declared again since.
        """
        schema = self.definition.schema
        if schema != scan.columns:
            raise TableError(
                f"a query reads {scan.source}{scan.columns}, but the table is now {schema}",
                hint="drop the query and start it again",
            )


SHRUNKEN_SECONDS = 600.0
"""For which a table must have lost nearly all of its rows before that is taken for true."""
_MANY_ROWS = 1_000
_LEAST_SHARE = 10
_MEMORY_BYTES = 16 * 2**20
_ROW_GROUP_BYTES = 4 * 2**20
"""Spark holds whole batches of up to 4,096 rows of a snapshot, but never more than a row group."""


class TableStore:
    """Reads tables and keeps their current versions. Not thread-safe: one thread reads.

    Args:
        locations: What may be read.
        folder: Ours alone, for snapshots; emptied at the start.
        memory_rows: Up to this many rows, and 16 MB, a table is kept in memory.
        max_rows: More are an error without snapshots.
        snapshots: Whether larger tables may become Parquet files in `folder`.
    """

    def __init__(
        self,
        locations: Locations,
        folder: Path,
        *,
        memory_rows: int = 200_000,
        max_rows: int = 2_000_000,
        snapshots: bool = True,
    ) -> None:
        self._locations = locations
        self._folder = folder
        self._memory_rows = memory_rows if snapshots else max_rows
        self._snapshots = snapshots
        self._tables: dict[str, StoredTable] = {}
        self._versions = 0
        shutil.rmtree(folder, ignore_errors=True)

    def load(
        self,
        definition: SourceDefinition,
        part: Narrowed | None = None,
        *,
        may_shrink: bool = False,
    ) -> bool:
        """Read a table; return whether there is a new version. On error the old one stays.

        Args:
            definition: The table, or the part's definition.
            part: That is read instead of all of the table.
            may_shrink: Whether it is fine that nearly all rows are gone.

        Raises:
            TableShrunkenError: It has lost nearly all of its rows.
            TableMissingError: Its file or database table is not there.
            TableChangedError: It changed while it was read.
            TableError: It cannot be read as declared.
        """
        options = table_options(definition)
        before = fingerprint(options, self._locations)
        data, snapshot, count = self._read(definition, part)
        try:
            if fingerprint(options, self._locations) != before:
                raise TableChangedError(f"table {definition.name} changed during the read")
        except TableError:
            _delete(snapshot)
            raise
        old = self._tables.get(definition.name)
        same_table = old is not None and old.definition == definition
        if old is not None and same_table and not may_shrink and _shrunken(old.row_count, count):
            _delete(snapshot)
            raise TableShrunkenError(definition.name, old.row_count, count)
        if old is not None and same_table and _same_file(old.snapshot, snapshot):
            # Who reads the old file may go on.
            self._tables[definition.name] = replace(old, fingerprint=before, read=wall_clock())
            _delete(snapshot)
            return False
        same = old is not None and same_table and _equal(old.data, data)
        version = old.version if same and old is not None else self._next_version()
        self._tables[definition.name] = StoredTable(
            definition, version, count, data, snapshot, before
        )
        if old is not None:
            _delete(old.snapshot)
        return not same

    def put(self, definition: SourceDefinition, path: Path) -> None:
        """Set a table's rows, which were computed and are in a Parquet file of the caller's.

        Raises:
            TableError: There are more than may be kept, or the file cannot be read.
        """
        name = definition.name
        try:
            file = pq.ParquetFile(path, memory_map=False)
            count = file.metadata.num_rows
            self.check_room(definition, count)
            data = self._held(definition, count, file.iter_batches())
        except (OSError, pa.ArrowException) as error:
            raise TableError(f"{kind_of(definition)} {name}: {path}: {error}") from error
        old = self._tables.get(name)
        same = old is not None and old.definition == definition and _equal(old.data, data)
        version = old.version if same and old is not None else self._next_version()
        self._tables[name] = StoredTable(
            definition, version, count, data, path if data is None else None, None
        )

    def _held(
        self, definition: SourceDefinition, count: int, batches: Iterator[pa.RecordBatch]
    ) -> pa.Table | None:
        """Return rows that may be kept in memory, or None."""
        if count > self._memory_rows:
            return None
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            size += batch.nbytes
            if self._snapshots and size > _MEMORY_BYTES:
                return None
            held.append(batch)
        return pa.Table.from_batches(held, arrow_schema(definition.schema))

    def change(self, change: TableChange) -> int:
        """Change a table where it is stored; return how many rows. `load` then reads it.

        Raises:
            TableError: It cannot be done; the table is as it was.
        """
        return change_table(change, self._locations)

    def check_room(self, definition: SourceDefinition, count: int) -> None:
        """Check that so many rows of a table may be kept.

        Raises:
            TableError: They may not.
        """
        if count > self._memory_rows and not self._snapshots:
            raise TableError(
                f"{kind_of(definition)} {definition.name} has more than {self._memory_rows} rows",
                hint="run the static engine with Spark, or raise max_table_rows",
            )

    def discard(self, name: str) -> None:
        """Discard a table's rows."""
        table = self._tables.pop(name, None)
        if table is not None:
            _delete(table.snapshot)

    @property
    def names(self) -> frozenset[str]:
        """Names of the tables that are kept and were read: computed ones come by `put`."""
        found = self._tables.items()
        return frozenset(name for name, table in found if table.definition.refresh is None)

    def find(self, name: str) -> StoredTable | None:
        """Return the current version of a table, or None before the first successful reading."""
        return self._tables.get(name)

    def table(self, scan: Scan) -> StoredTable:
        """Return the version a scan reads.

        Raises:
            TableError: It has not been read yet, or was declared again.
        """
        table = self._tables.get(scan.source)
        if table is None:
            raise TableError(f"table {scan.source} has not been read")
        table.check(scan)
        return table

    @property
    def locations(self) -> Locations:
        """The folders and databases that may be read."""
        return self._locations

    def print_of(self, definition: SourceDefinition) -> Fingerprint | None:
        """Return the present state of a table's files; see `sources.location.fingerprint`."""
        return fingerprint(table_options(definition), self._locations)

    def _next_version(self) -> int:
        self._versions += 1
        return self._versions

    def _read(
        self, definition: SourceDefinition, part: Narrowed | None
    ) -> tuple[pa.Table | None, Path | None, int]:
        """Return the rows, in memory or as a snapshot, and their number."""
        batches = read_table(definition, self._locations, part)
        held: list[pa.RecordBatch] = []
        count = size = 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            size += batch.nbytes
            if count > self._memory_rows or (self._snapshots and size > _MEMORY_BYTES):
                self.check_room(definition, count)
                return self._spill(definition, held, batches)
        return pa.Table.from_batches(held, arrow_schema(definition.schema)), None, count

    def _spill(
        self,
        definition: SourceDefinition,
        held: list[pa.RecordBatch],
        rest: Iterator[pa.RecordBatch],
    ) -> tuple[None, Path, int]:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{definition.name}-{self._versions + 1}.parquet"
        count = 0
        try:
            with pq.ParquetWriter(path, arrow_schema(definition.schema)) as writer:
                for batch in held:
                    writer.write_batch(batch, row_group_size=row_group_size(batch))
                    count += batch.num_rows
                held.clear()
                for batch in rest:
                    writer.write_batch(batch, row_group_size=row_group_size(batch))
                    count += batch.num_rows
        except OSError as error:
            _delete(path)
            raise TableError(f"cannot keep table {definition.name} in {path}: {error}") from error
        except BaseException:
            _delete(path)
            raise
        return None, path, count


def row_group_size(data: pa.Table | pa.RecordBatch) -> int:
    """Return how many rows make a row group that Spark has room for."""
    return max(1, int(data.num_rows * _ROW_GROUP_BYTES) // max(int(data.nbytes), 1))


def _shrunken(before: int, now: int) -> bool:
    return before >= _MANY_ROWS and now * _LEAST_SHARE < before


def _equal(old: pa.Table | None, new: pa.Table | None) -> bool:
    return old is not None and new is not None and bool(old.equals(new))


def _same_file(old: Path | None, new: Path | None) -> bool:
    """Both snapshots have the same bytes, as the same rows in the same order do."""
    filecmp.clear_cache()  # it goes by times of change, which may be equal for two files in turn
    return old is not None and new is not None and filecmp.cmp(old, new, shallow=False)


def _delete(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)
