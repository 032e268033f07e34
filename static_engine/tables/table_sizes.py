"""Sizes of stored tables for the planner: those that were read are counted, others estimated.

Also counts of their columns, and of large tables in databases the columns that these compare as we
do.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from static_engine.sources.databases.database_groups import compared_columns
from static_engine.sources.databases.database_sizes import estimated_rows
from static_engine.sources.declared_options import table_options
from static_engine.sources.managed_rows import rows_of_managed
from static_engine.sources.object_stores import is_stored
from static_engine.sources.parquet_file import counted_rows
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_folders.delta_folder import rows_of_delta
from static_engine.sources.table_folders.iceberg_folder import rows_of_iceberg
from static_engine.sources.table_locations import database_url, table_files
from static_engine.tables.table_counts import first_counts, stored_counts
from static_engine.tables.table_store import StoredTable, TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource
from streamsql.wire.site_messages import SourceCount

SMALL_ROWS = 10_000
"""Smaller tables are read whole, once for all queries."""
AGAIN_SECONDS = 600.0
SOON_SECONDS = 60.0
"""Where nothing was learned: a secret or a database may be there now."""
_MAX_TABLES = 1_000
_DIGITS = 2


@dataclass(frozen=True, slots=True)
class _Asked:
    """Facts about a table, as its database or files told them.

    Attributes:
        life: See `TableWatch.life`.
        due: When to ask again.
        rows: How many it has; None: nobody says.
        compared: Columns that its database compares as we do, if it is large.
        counts: Of its columns, by its first rows.
    """

    life: object
    definition: SourceDefinition
    due: float
    rows: int | None
    compared: frozenset[int]
    counts: SourceCount | None


@dataclass(frozen=True, slots=True)
class _Read:
    """Counts of the columns of a table that was read.

    Attributes:
        life: See `TableWatch.life`.
        version: Of the table.
        due: When to count another version.
    """

    life: object
    version: int
    due: float
    counts: SourceCount | None


_KnownT = TypeVar("_KnownT", _Asked, _Read)


class TableSizes:
    """Sizes of the tables that are defined, rounded: small changes are no news.

    Args:
        store: The tables as last read.
        watch: The definitions.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, store: TableStore, watch: TableWatch, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._watch, self._clock = store, watch, clock
        self._asked: dict[str, _Asked] = {}
        self._read: dict[str, _Read] = {}

    def poll(self, wanted: Collection[str] | None = None) -> None:
        """Ask what can tell the size of a table without reading it, where it is due; blocking.

        Args:
            wanted: Names of tables; None: all.
        """
        moment = self._clock()
        self._asked = {n: v for n, v in self._asked.items() if n in self._watch.names}
        self._read = {n: v for n, v in self._read.items() if n in self._watch.names}
        for name in sorted(self._watch.names)[:_MAX_TABLES]:
            if wanted is not None and name not in wanted:
                continue
            definition, life = self._watch.definition(name), self._watch.life(name)
            known, table = self._asked.get(name), self._stored(name)
            if table is not None:
                self._count(name, table, life, moment)
            if definition is None or table is not None:
                continue
            # What was counted of a version that is not kept any more may not hold now.
            is_gone = name in self._read
            if is_gone or known is None or known.life is not life or moment >= known.due:
                rows = self._estimate(definition)
                compared = self._comparing(definition, rows)
                due = moment + (SOON_SECONDS if rows is None else AGAIN_SECONDS)
                counts = first_counts(definition, rows, self._store.locations) if rows else None
                self._asked[name] = _Asked(life, definition, due, rows, compared, counts)
                self._read.pop(name, None)
                if rows is None:
                    return  # it may have taken long not to answer

    def rows(self) -> dict[str, int]:
        """Return the rows of the tables of which something is known."""
        found: dict[str, int] = {}
        for name in sorted(self._watch.names)[:_MAX_TABLES]:
            table, asked = self._stored(name), self._current(self._asked.get(name), name)
            count = table.row_count if table is not None else asked.rows if asked else None
            if count is not None:
                found[name] = rounded(count)
        return found

    def _stored(self, name: str) -> StoredTable | None:
        """Return the rows that are kept of a table as it is defined now."""
        table = self._store.find(name)
        is_current = table is not None and table.definition == self._watch.definition(name)
        return table if is_current else None

    def _current(self, known: _KnownT | None, name: str) -> _KnownT | None:
        """Return what is known of a table, unless it was defined in another way then."""
        is_current = known is not None and known.life is self._watch.life(name)
        return known if is_current else None

    def _count(self, name: str, table: StoredTable, life: object, moment: float) -> None:
        known = self._current(self._read.get(name), name)
        is_old = known is not None and (known.version != table.version or known.counts is None)
        if known is None or (is_old and moment >= known.due):
            counts = stored_counts(table)
            self._read[name] = _Read(life, table.version, moment + SOON_SECONDS, counts)

    def counts(self) -> dict[str, SourceCount]:
        """Return the counts of the columns of tables, by table."""
        found: dict[str, SourceCount] = {}
        for name in sorted(self._watch.names)[:_MAX_TABLES]:
            read, asked = self._read.get(name), self._asked.get(name)
            for known in (self._current(read, name), self._current(asked, name)):
                if known is not None and known.counts is not None:
                    found[name] = known.counts
                    break
        return found

    def compared(self) -> dict[str, frozenset[int]]:
        """Return the columns of large tables that their databases compare as we do.

        By table; none where a database was asked for groups and refused.
        """
        return {asked.definition.name: asked.compared for asked in self._comparable()}

    def compared_names(self) -> dict[str, tuple[str, ...]]:
        """Return the same by the names of the columns."""
        return {
            asked.definition.name: asked.definition.schema.select(
                tuple(sorted(asked.compared))
            ).names
            for asked in self._comparable()
        }

    def _comparable(self) -> list["_Asked"]:
        rows = self.rows()
        return [
            asked
            for name, asked in list(self._asked.items())
            if asked.compared
            and rows.get(name, 0) >= SMALL_ROWS
            and self._watch.life(name) is asked.life
            and self._watch.is_grouped(name)
        ]

    def _comparing(self, definition: SourceDefinition, rows: int | None) -> frozenset[int]:
        try:
            options = table_options(definition)
            if options.source != TableSource.SQL or (rows or 0) < SMALL_ROWS:
                return frozenset()
            url = database_url(options.url, self._store.locations)
            return compared_columns(definition, url, options.table)
        except TableError:
            return frozenset()

    def _estimate(self, definition: SourceDefinition) -> int | None:
        try:
            options, locations = table_options(definition), self._store.locations
            match options.source:
                case TableSource.SQL:
                    return estimated_rows(database_url(options.url, locations), options.table)
                case TableSource.LAKE:
                    return rows_of_managed(definition, locations.managed)
                case _ if is_stored(options.path):
                    return None
                case TableSource.PARQUET:
                    return counted_rows(table_files(options, locations))
                case TableSource.ICEBERG:
                    return rows_of_iceberg(options.path, locations)
                case TableSource.DELTA:
                    return rows_of_delta(options.path, locations)
                case _:
                    return None
        except TableError:
            return None


def rounded(count: int) -> int:
    """Return a number with two digits that count.

    Examples:
        >>> rounded(7), rounded(12_345), rounded(12_500_000)
        (7, 12000, 12000000)
    """
    unit: int = 10 ** max(len(str(count)) - _DIGITS, 0)
    return count // unit * unit
