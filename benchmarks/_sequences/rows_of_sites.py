"""The rows that gateways have: a plain model, without any of the engine's code."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb

from benchmarks._sequences.overlapping_queries import COLUMNS, WINDOWS
from streamsql.data.types import Row, Value

SECOND = 1_000_000
TTL = 25 * SECOND
KEYS = {"readings": 1, "seats": 1, "paths": 2}
"""Columns of the key, by source; a source without one may have a row more than once."""

NAMES = {"readings": "s", "seats": "m", "paths": "r"}
"""First letters of values that a gateway alone tells about."""


@dataclass(slots=True)
class SiteRows:
    """The rows of one gateway.

    Attributes:
        keyed: By source and key: the row and its time.
        bags: By source: rows with their times.
    """

    keyed: dict[str, dict[Row, tuple[Row, int]]] = field(default_factory=dict)
    bags: dict[str, list[tuple[Row, int]]] = field(default_factory=dict)

    def put(self, source: str, row: Row, ts: int) -> None:
        """Note a row that has come."""
        if source in KEYS:
            self.keyed.setdefault(source, {})[row[: KEYS[source]]] = (row, ts)
        else:
            self.bags.setdefault(source, []).append((row, ts))

    def any_of(self, source: str, now: int, chance: random.Random) -> tuple[Row, int] | None:
        """Return one of the rows, with its time."""
        found = self.timed(source, now)
        return chance.choice(found) if found else None

    def time_of(self, source: str, row: Row, which: int, now: int) -> int | None:
        """Return the time of one of equal rows, by its place among them; None: there is none."""
        times = sorted(ts for each, ts in self.timed(source, now) if each == row)
        return times[which % len(times)] if times else None

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


ROOMS = ("r1", "r2", None, "r3", "r4", "x5")
"""Rooms; the first half is at the first gateway where all rows of a room are together."""


def new_row(source: str, gateway: str, chance: random.Random, now: int, *, colocated: bool) -> Row:
    """Return a row of a source at a gateway; values are few, so that rows meet."""
    number = int(gateway[-1])
    own = f"{NAMES.get(source, 'w')}{3 * (number - 1) + chance.randrange(1, 4)}"
    room = chance.choice(ROOMS[3 * number - 3 : 3 * number] if colocated else ROOMS)
    values = (None, 0, 1, 2, 3, 4)
    match source:
        case "readings":
            return (own, room, chance.choice(values), chance.choice(values))
        case "seats":
            # Sums of these are exact, so DuckDB's are those of exact sums.
            share = chance.choice((None, 0.0, -0.0, 0.25, 0.5, 1.5, -2.0))
            return (own, room, chance.choice(values[:4]), share)
        case "paths":
            return (own, f"r{chance.randrange(1, 7)}", chance.choice((1, 2, 3)))
        case _:
            late = chance.choice((0, 0, 0, 0, 2, 7)) * SECOND
            return (own, room, chance.choice(values[:5]), now - late)


def happened(source: str, row: Row, now: int) -> int:
    """Return the event time of a row that comes now."""
    match source, row:
        case "visits", (_, _, _, int() as ts):
            return ts
        case _:
            return now


class PlainTables:
    """DuckDB over the rows of all gateways, on one connection for all sequences."""

    def __init__(self) -> None:
        self._database = duckdb.connect(config={"threads": 1})
        for table, columns in COLUMNS.items():
            self._database.execute(f"CREATE TABLE {table}_timed ({columns}, happened BIGINT)")
            names = ", ".join(column.split()[0] for column in columns.split(", "))
            for name, seconds in ((table, TTL // SECOND), *_windows_over(table)):
                there = f"happened + {seconds * SECOND} > getvariable('now')"
                view = f"SELECT {names} FROM {table}_timed WHERE {there}"
                self._database.execute(f"CREATE VIEW {name} AS {view}")
        self._filled: dict[str, list[tuple[Row, int]]] = {}

    def fill(self, sites: Mapping[str, SiteRows], now: int) -> None:
        """Let the tables have the rows of now."""
        statements = [f"SET VARIABLE now = {now}"]
        for table in COLUMNS:
            timed = [found for site in sites.values() for found in site.timed(table, now)]
            if self._filled.get(table, []) == timed:
                continue
            self._filled[table] = timed
            statements.append(f"DELETE FROM {table}_timed")
            if timed:
                rows = ", ".join(f"({', '.join(map(_literal, (*row, ts)))})" for row, ts in timed)
                statements.append(f"INSERT INTO {table}_timed VALUES {rows}")
        # One text for all takes a tenth of the time of a statement for each row.
        self._database.execute("; ".join(("BEGIN", *statements, "COMMIT")))

    def rows(self, query: str) -> Counter[Row]:
        """Return the rows of a query, each as often as it is there."""
        return Counter(self._database.execute(query).fetchall())


def _literal(value: Value) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _windows_over(table: str) -> list[tuple[str, int]]:
    return [(f"{table}_{seconds}", seconds) for seconds in WINDOWS.get(table, ())]
