"""Random sources and tables, and what happens to them.

Everything is drawn from a `random.Random`, so that a seed names a case and Hypothesis, which hands
over one of its own, can shrink it. Domains are tiny: rows collide, keys match, groups come and go.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

from streamsql.data.types import Row, Value

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01

DOMAINS: dict[str, tuple[Value, ...]] = {
    "INTEGER": (0, 1, 2, 3, -1, None),
    "DOUBLE": (0.0, 0.5, 1.0, 2.25, -1.5, None),
    "TEXT": ("a", "b", "ab", "", None),
    "BOOLEAN": (True, False, None),
    "TIMESTAMP": (*(START + n * SECOND for n in (0, 1, 2, 5)), None),
}
"""Doubles are few binary digits long: what is made of them is exact on both sides."""

NAMES = {"INTEGER": "i", "DOUBLE": "d", "TEXT": "t", "BOOLEAN": "b", "TIMESTAMP": "at"}

Columns = list[tuple[str, str]]
"""Names and types."""

Change = tuple[str, Row, bool]
"""Source, row, and whether it is withdrawn."""


@dataclass(frozen=True)
class Relation:
    """A source or table.

    Attributes:
        columns: A stream's last one is `ts`, its event time.
        key: Names of the columns of its key.
        ttl: Seconds.
        lateness: Seconds of the watermark behind the newest event, or None without watermark.
        link: Whether it is a link source, whose key nobody writes.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    table: bool
    key: tuple[str, ...] = ()
    ttl: int | None = None
    lateness: int | None = None
    link: bool = False

    @property
    def text(self) -> str:
        """The statement that creates it."""
        parts = [f"{name} {kind}" for name, kind in self.columns]
        if self.key and not self.link:
            parts.append(f"KEY ({', '.join(self.key)})")
        if self.lateness is not None:
            parts.append(f"WATERMARK FOR ts AS ts - INTERVAL '{self.lateness} s'")
        kind = "TABLE" if self.table else "LINK SOURCE" if self.link else "SOURCE"
        options = f" WITH (ttl = '{self.ttl} s')" if self.ttl else ""
        return f"CREATE {kind} {self.name} ({', '.join(parts)}){options}"


@dataclass(frozen=True)
class Batch:
    """Changes that happen at once, at a time in microseconds."""

    now: int
    changes: tuple[Change, ...]


def relations(random: Random) -> list[Relation]:
    """Return two to four sources and tables."""
    return [_relation(random, number) for number in range(random.randint(2, 4))]


def _relation(random: Random, number: int) -> Relation:
    counts: dict[str, int] = {}
    columns = []
    for _ in range(random.randint(2, 4)):
        kind = random.choice((*DOMAINS, "INTEGER", "TEXT"))
        counts[kind] = counts.get(kind, 0) + 1
        columns.append((f"{NAMES[kind]}{counts[kind]}", kind))
    table = random.random() < 0.4
    key: tuple[str, ...] = ()
    if random.random() < 0.3:
        key = tuple(name for name, _ in columns[: random.randint(1, 2)])
    ttl = lateness = None
    if not table:
        columns.append(("ts", "TIMESTAMP"))
        ttl = random.choice((None, None, 2, 5))
        lateness = random.choice((None, None, None, 1, 3))
    link = not table and not key and random.random() < 0.1
    if link:
        key = (columns[0][0], columns[1][0])
    return Relation(f"r{number}", tuple(columns), table, key, ttl, lateness, link)


def batches(random: Random, found: list[Relation], counted: frozenset[str]) -> list[Batch]:
    """Return what happens: arrivals, copies, and withdrawals of rows that are there.

    Args:
        random: Source of choices.
        found: The relations.
        counted: Logs from which nothing is withdrawn, since a window by count stands on them.
    """
    now = START
    held: dict[str, list[Row]] = {relation.name: [] for relation in found}
    result = []
    for number in range(random.randint(2, 5)):
        now += random.choice((0, SECOND // 2, SECOND, 3 * SECOND))
        changes: list[Change] = []
        for _ in range(random.randint(0, 8) + (12 if number == 0 else 0)):
            relation = random.choice(found)
            rows = held[relation.name]
            fate = random.random()
            if rows and fate < 0.3 and relation.name not in counted:
                row = rows.pop(random.randrange(len(rows)))
                if not relation.ttl or _time(row) + relation.ttl * SECOND > now:
                    changes.append((relation.name, row, True))
                continue
            row = random.choice(rows) if rows and fate < 0.4 else _row(random, relation, now)
            if relation.key:
                row = _accepted(relation, rows, row)
            rows.append(row)
            changes.append((relation.name, row, False))
        result.append(Batch(now, tuple(changes)))
    return result


def filled_first(found: list[Batch], still: frozenset[str]) -> list[Batch]:
    """Return the batches with what comes to some tables before all else, and stays."""
    came = [c for batch in found for c in batch.changes if c[0] in still and not c[2]]
    others = [
        Batch(batch.now, tuple(c for c in batch.changes if c[0] not in still)) for batch in found
    ]
    return [Batch(START, tuple(came)), *others]


def _row(random: Random, relation: Relation, now: int) -> Row:
    values: list[Value] = []
    for name, kind in relation.columns:
        if name == "ts":
            values.append(now - random.choice((0, 0, 0, SECOND // 2, SECOND, 4 * SECOND)))
        else:
            values.append(random.choice(DOMAINS[kind]))
    return tuple(values)


def _time(row: Row) -> int:
    time: Any = row[-1]
    return int(time)


def _accepted(relation: Relation, rows: list[Row], row: Row) -> Row:
    """Forget what a row replaces; an older one than what is held is sent all the same."""
    names = [name for name, _ in relation.columns]
    key = [row[names.index(name)] for name in relation.key]
    for other in list(rows):
        if [other[names.index(name)] for name in relation.key] == key:
            rows.remove(other)
    return row
