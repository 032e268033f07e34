"""Counts of what the lake has, by pyiceberg and DuckDB alone: not by the code that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

_EXPECTED = """
CREATE TABLE expected AS
SELECT gateway, unnest(range(packs * {rows})) AS number
FROM (SELECT unnest(?) AS gateway, unnest(?) AS packs)
"""
_KEPT = """
CREATE TABLE kept AS
SELECT _gateway AS gateway, _epoch AS epoch, _seq AS seq, _place AS place, number, sensor
FROM read_parquet(?, union_by_name = true)
"""
_COUNTS = """
SELECT
  (SELECT count(*) FROM expected),
  (SELECT count(*) FROM expected WHERE (gateway, number) NOT IN (SELECT gateway, number FROM kept)),
  (SELECT count(*) - count(DISTINCT (gateway, epoch, seq, place)) FROM kept),
  (SELECT count(*) FROM kept WHERE seq * {rows} + place IS DISTINCT FROM number
     OR sensor IS DISTINCT FROM 's' || place OR (gateway, number) NOT IN (SELECT * FROM expected))
"""


class Kept:
    """The table of a source, read as a stranger would."""

    def __init__(self, catalog: str, warehouse: Path, source: str) -> None:
        self._catalog = SqlCatalog("pando", uri=catalog, warehouse=warehouse.as_uri())
        self._source = source

    def snapshot(self) -> int | None:
        """Return the id of the newest snapshot; None: there is none."""
        table = self._table()
        found = table.current_snapshot() if table is not None else None
        return found.snapshot_id if found is not None else None

    def rows(self) -> int:
        """Return how many rows the newest snapshot has, by its summary."""
        table = self._table()
        found = table.current_snapshot() if table is not None else None
        if found is None or found.summary is None:
            return 0
        return int(found.summary.additional_properties.get("total-records", "0"))

    def counts(self, packs: Mapping[str, int], rows: int) -> dict[str, int]:
        """Return how many readings were sent, are missing, are there more than once, or differ.

        Args:
            packs: Those sent, by gateway, all of one epoch and numbered from 0.
            rows: Of a pack.
        """
        table = self._table()
        if table is None:
            return {"sent": sum(packs.values()) * rows, "missing": sum(packs.values()) * rows}
        paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
        with duckdb.connect() as connection:
            connection.execute(_EXPECTED.format(rows=rows), [list(packs), list(packs.values())])
            connection.execute(_KEPT, [paths])
            found = connection.execute(_COUNTS.format(rows=rows)).fetchone()
        return dict(zip(("sent", "missing", "twice", "wrong"), found or (), strict=True))

    def _table(self) -> Table | None:
        try:
            return self._catalog.load_table(f"readings.{self._source}")
        except NoSuchTableError:
            return None
