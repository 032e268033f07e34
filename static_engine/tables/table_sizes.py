"""Sizes of stored tables for the planner: those that were read are counted, others estimated."""

import time
from collections.abc import Callable

from static_engine.sources.database_sizes import estimated_rows
from static_engine.sources.declared_options import table_options
from static_engine.sources.managed_rows import rows_of_managed
from static_engine.sources.object_stores import is_stored
from static_engine.sources.parquet_file import counted_rows
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_folders.delta_folder import rows_of_delta
from static_engine.sources.table_folders.iceberg_folder import rows_of_iceberg
from static_engine.sources.table_locations import database_url, table_files
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource

AGAIN_SECONDS = 600.0
SOON_SECONDS = 60.0
"""Where nothing was learned: a secret or a database may be there now."""
_MAX_TABLES = 1_000
_DIGITS = 2


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
        self._asked: dict[str, tuple[SourceDefinition, float, int | None]] = {}

    def poll(self) -> None:
        """Ask what can tell the size of a table without reading it, where it is due; blocking."""
        moment = self._clock()
        self._asked = {n: v for n, v in self._asked.items() if n in self._watch.names}
        for name in sorted(self._watch.names)[:_MAX_TABLES]:
            definition = self._watch.definition(name)
            known = self._asked.get(name)
            if definition is None or self._store.find(name) is not None:
                continue
            if known is None or known[0] != definition or moment >= known[1]:
                rows = self._estimate(definition)
                pause = SOON_SECONDS if rows is None else AGAIN_SECONDS
                self._asked[name] = (definition, moment + pause, rows)
                if rows is None:
                    return  # it may have taken long not to answer

    def rows(self) -> dict[str, int]:
        """Return the rows of the tables of which something is known."""
        found: dict[str, int] = {}
        for name in sorted(self._watch.names)[:_MAX_TABLES]:
            table, asked = self._store.find(name), self._asked.get(name)
            count = table.row_count if table is not None else asked[2] if asked else None
            if count is not None:
                found[name] = rounded(count)
        return found

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
