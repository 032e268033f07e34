"""The lake: opening its catalog, its tables, and what of them a query reads."""

from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock

import msgspec
import pyarrow as pa
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table

from static_engine.lake.kept_columns import PROPERTY, KeptColumns, drift_words
from static_engine.lake.kept_readings import (
    READINGS,
    arrow_schema,
    day_parts,
    iceberg_schema,
    iceberg_type,
)
from static_engine.lake.lake_commits import add_batch, last_batch, retried
from static_engine.lake.lake_errors import LakeError, NotKeptError
from static_engine.lake.lake_scan import LakeScan, planned
from static_engine.lake.lake_settings import LakeSettings
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import EARLIEST, LATEST

CATALOG_NAME = "pando"
_LONGEST_FOLDER = 200
"""File systems take 255 bytes."""
SYSTEM = "system"
TABLES = "tables"
NAMESPACES = (READINGS, SYSTEM, TABLES)
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    # A batch adds one manifest: unmerged, a scan of a day reads thousands.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "50",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class Lake:
    """One lake. Threads may share it.

    Args:
        settings: Where it is.

    Raises:
        LakeError: Its catalog cannot be opened.
    """

    def __init__(self, settings: LakeSettings) -> None:
        self.settings = settings
        self._lock = Lock()
        try:
            self.catalog = SqlCatalog(
                CATALOG_NAME,
                uri=settings.catalog_url,
                warehouse=settings.warehouse_url,
                **settings.options,
            )
            for namespace in NAMESPACES:
                self.catalog.create_namespace_if_not_exists(namespace)
        except (sa.exc.SQLAlchemyError, ImportError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise LakeError(
                f"cannot open the lake's catalog: {reason}",
                hint="look at the setting lake.catalog, and whether the database runs",
            ) from error

    def kept_sources(self) -> list[str]:
        """Return the names of the sources that have a table."""
        return self.names(READINGS)

    def names(self, namespace: str) -> list[str]:
        """Return the names of the tables of a namespace."""
        try:
            return sorted(identifier[-1] for identifier in self.catalog.list_tables(namespace))
        except NoSuchNamespaceError:
            return []

    def table(self, name: str, namespace: str = READINGS) -> Table:
        """Return a table as it is now.

        Raises:
            NotKeptError: There is none.
        """
        try:
            return self.catalog.load_table((namespace, name))
        except NoSuchTableError as error:
            raise NotKeptError(
                f"the lake has no table {namespace}.{name}",
                hint="a source is kept from its first reading on, unless it says keep = 'no'",
            ) from error

    def columns_of(self, table: Table) -> KeptColumns:
        """Return what the columns of a kept source are.

        Raises:
            LakeError: Its property is damaged.
        """
        try:
            return KeptColumns.of_property(table.properties.get(PROPERTY))
        except msgspec.MsgspecError as error:
            raise LakeError(
                f"property {PROPERTY} of table {'.'.join(table.name())} is damaged: {error}"
            ) from error

    def ensure(self, definition: SourceDefinition) -> tuple[Table, list[str]]:
        """Return the table of a source, with all columns of its definition, and what was added.

        Returns:
            The table, and a sentence for each column that the source had not before.

        Raises:
            LakeBusyError: Others change it all the time.
        """
        with self._lock:
            try:
                table = self.catalog.load_table((READINGS, definition.name))
            except NoSuchTableError:
                table = self._create(definition)
            before = self.columns_of(table)
            grew = self.grow(table, definition)
            after = self.columns_of(table).columns
            return table, drift_words(before, after[len(before.columns) :]) if grew else []

    def grow(self, table: Table, definition: SourceDefinition) -> bool:
        """Add the columns that a definition has and a table has not; return whether there were any.

        Raises:
            LakeBusyError: Others change it all the time.
        """

        def attempt() -> bool:
            table.refresh()
            grown, added = self.columns_of(table).grown(definition)
            if not added:
                return False
            with table.transaction() as transaction:
                with transaction.update_schema() as update:
                    for column in added:
                        update.add_column(
                            column.column, iceberg_type(column.type), doc=column.words
                        )
                transaction.set_properties({PROPERTY: grown.as_property()})
            return True

        return retried(attempt, table)

    def schema_of(self, definition: SourceDefinition, table: Table) -> pa.Schema:
        """Return the schema of files with readings of a definition that `ensure` has seen."""
        kept = self.columns_of(table).of(definition)
        return arrow_schema([(column.column, column.type) for column in kept if column is not None])

    def io(self) -> FileIO:
        """Return the store of the lake's files."""
        return load_file_io(dict(self.settings.options), self.settings.warehouse_url)

    def commit(self, table: Table, files: Sequence[str], batch: int, origin: str) -> bool:
        """Make files visible once; see `lake_commits.add_batch`."""
        return add_batch(table, files, batch, origin)

    def last_batch(self, table: Table, origin: str) -> int:
        """Return the number of the last batch that a table has of an origin; -1: none."""
        return last_batch(table, origin)

    def plan(
        self,
        source: str,
        since: int = EARLIEST,
        until: int = LATEST,
        columns: Sequence[str] | None = None,
    ) -> LakeScan:
        """Return what a query reads of a kept source: rows with since <= event time < until.

        Args:
            source: Its name.
            since: Microseconds since 1970.
            until: Likewise.
            columns: Names in the lake; None: all.

        Raises:
            NotKeptError: It is not kept.
        """
        table = self.table(source)
        names = [field.name for field in table.schema().fields] if columns is None else columns
        return planned(table, source, names, since, until)

    def _create(self, definition: SourceDefinition) -> Table:
        columns, added = KeptColumns().grown(definition)
        schema = iceberg_schema([(each.column, each.type, each.words) for each in added])
        try:
            return self.catalog.create_table(
                (READINGS, definition.name),
                schema=schema,
                # Names may hold anything, a step out of the folder too.
                location=f"{self.settings.warehouse_url}/{READINGS}/{folder_of(definition.name)}",
                partition_spec=day_parts(schema),
                properties={**TABLE_PROPERTIES, PROPERTY: columns.as_property()},
            )
        except TableAlreadyExistsError:
            return self.catalog.load_table((READINGS, definition.name))


def folder_of(name: str) -> str:
    """Return the name of a table's folder: plain names as they are, others with escapes.

    What would be longer than file systems take ends in a digest.

    Examples:
        >>> folder_of("heat"), folder_of("../Heat")
        ('heat', '%2E%2E%2F%48eat')
        >>> len(folder_of("x" * 900))
        133
    """
    plain = "abcdefghijklmnopqrstuvwxyz0123456789_-"
    escaped = (
        letter if letter in plain else "".join(f"%{byte:02X}" for byte in letter.encode())
        for letter in name
    )
    folder = "".join(escaped)
    if len(folder) <= _LONGEST_FOLDER:
        return folder
    return f"{folder[:100]}-{blake2b(name.encode(), digest_size=16).hexdigest()}"


def rows_of_snapshot(table: Table) -> int | None:
    """Return about how many rows a table has by its newest snapshot; None if it does not say."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return 0
    summary = snapshot.summary
    written = summary["total-records"] if summary is not None else None
    if summary is None or written is None:
        return None
    # Rows that were deleted by position are in the files still.
    return max(int(written) - int(summary["total-position-deletes"] or 0), 0)
