"""The rows that gateways have: a plain model, without any of the engine's code."""

import random
from collections import Counter
from dataclasses import dataclass, field

import duckdb

from benchmarks._sequences.overlapping_queries import COLUMNS, WINDOWS

SECOND = 1_000_000
TTL = 25 * SECOND
KEYS = {"readings": 1, "seats": 1, "paths": 2}
"""Columns of the key, by source; a source without one may have a row more than once."""

NAMES = {"readings": "s", "seats": "m", "paths": "r"}
"""First letters of values that a gateway alone tells about."""

Row = tuple[str | int | None, ...]


@dataclass(slots=True)
class SiteRows:
    """The rows of one gateway.

    Attributes:
        keyed: By source and key: the row and its time.
        bags: By source: rows with their times.
    """

    keyed: dict[str, dict[Row, tuple[Row, int]]] = field(default_factory=dict)
    bags: dict[str, list[tuple[Row, int]]] = field(default_factory=dict)

    def put(self, source: str, row: Row, now: int) -> None:
        """Note a row that has come."""
        if source in KEYS:
            self.keyed.setdefault(source, {})[row[: KEYS[source]]] = (row, now)
        else:
            self.bags.setdefault(source, []).append((row, now))

    def any_of(self, source: str, now: int, chance: random.Random) -> tuple[Row, int] | None:
        """Return one of the rows, with its time."""
        found = self.timed(source, now)
        return chance.choice(found) if found else None

    def withdraw(self, source: str, row: Row, ts: int) -> None:
        """Note that a row is withdrawn."""
        if source in KEYS:
            self.keyed[source].pop(row[: KEYS[source]])
        else:
            self.bags[source].remove((row, ts))

    def timed(self, source: str, now: int) -> list[tuple[Row, int]]:
        """Return the rows that have not expired, with their times."""
        rows = self.keyed.get(source, {}).values() if source in KEYS else self.bags.get(source, [])
        return [(row, ts) for row, ts in rows if ts + TTL > now]


def new_row(source: str, gateway: str, chance: random.Random) -> Row:
    """Return a row of a source at a gateway; values are few, so that rows meet."""
    number = int(gateway[-1])
    own = f"{NAMES.get(source, 'w')}{3 * (number - 1) + chance.randrange(1, 4)}"
    room = chance.choice(("r1", "r2", "r3", "r4", "x5", None))
    values = (None, 0, 1, 2, 3, 4)
    match source:
        case "readings":
            return (own, room, chance.choice(values), chance.choice(values))
        case "paths":
            return (own, f"r{chance.randrange(1, 7)}", chance.choice((1, 2, 3)))
        case _:
            return (own, room, chance.choice(values[:5]))


class PlainTables:
    """DuckDB over the rows of all gateways."""

    def __init__(self) -> None:
        self._database = duckdb.connect()
        for table, columns in COLUMNS.items():
            for name in (table, *(f"{table}_{s}" for s in WINDOWS.get(table, ()))):
                self._database.execute(f"CREATE TABLE {name} ({columns})")

    def fill(self, sites: dict[str, SiteRows], now: int) -> None:
        """Let the tables have the rows of now."""
        for table in COLUMNS:
            timed = [found for site in sites.values() for found in site.timed(table, now)]
            self._put(table, [row for row, _ts in timed])
            for seconds in WINDOWS.get(table, ()):
                recent = [row for row, ts in timed if ts + seconds * SECOND > now]
                self._put(f"{table}_{seconds}", recent)

    def _put(self, table: str, rows: list[Row]) -> None:
        self._database.execute(f"DELETE FROM {table}")
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            self._database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def rows(self, query: str) -> Counter[Row]:
        """Return the rows of a query, each as often as it is there."""
        return Counter(self._database.execute(query).fetchall())
