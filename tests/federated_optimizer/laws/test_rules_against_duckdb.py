"""Random queries answer after normalization as DuckDB does: joins of all kinds under conditions."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import Any

import duckdb
import pytest

from federated_optimizer import normalize
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from streamsql.algebra.operators import Plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

TABLES = {
    "t": ("a INTEGER", "b INTEGER", "d DOUBLE", "c TEXT", "ts TIMESTAMP"),
    "u": ("a INTEGER", "b INTEGER", "d DOUBLE", "c TEXT", "ts TIMESTAMP"),
    "p": ("k INTEGER PRIMARY KEY", "d DOUBLE", "c TEXT"),
}
CATALOG = catalog_of(*(f"CREATE TABLE {name} ({', '.join(c)})" for name, c in TABLES.items()))
TOPOLOGY = Topology({"gw-1": frozenset({"t", "u"})})
SECOND = 1_000_000
VALUES: dict[str, tuple[Any, ...]] = {
    "INTEGER": (None, 0, 0, 1, 1, 1, 2, 2),
    "DOUBLE": (None, 0.0, 0.5, 1.0, 1.0, 2.0, 2.0),
    "TEXT": (None, "", "a", "a", "ab", "ab"),
    "TIMESTAMP": (None, 0, SECOND, 2 * SECOND, 3 * SECOND),
}
COMPARISONS = ("=", "=", "<", "<=", ">", ">=")


@dataclass
class Author:
    """Writes queries by the choices of a random number generator."""

    random: Random
    aliases: int = 0
    columns: dict[str, list[str]] = field(default_factory=dict)

    def one(self, choices: Any) -> Any:
        return self.random.choice(list(choices))

    def table(self) -> tuple[str, dict[str, list[str]]]:
        self.aliases += 1
        name, alias = self.one(TABLES), f"x{self.aliases}"
        columns: dict[str, list[str]] = {kind: [] for kind in VALUES}
        for each in TABLES[name]:
            column, kind = each.split()[:2]
            columns[kind].append(f"{alias}.{column}")
        source = name
        if self.random.random() < 0.15 and name != "p":
            key = self.one(("a", "b"))
            source = f"(SELECT {key}, SUM(b) AS s FROM {name} GROUP BY {key})"
            columns = {k: [] for k in VALUES} | {"INTEGER": [f"{alias}.{key}", f"{alias}.s"]}
        elif self.random.random() < 0.15 and name != "p":
            made = ", ".join(
                (self.one(("0", "1", "a + 1", "COALESCE(1, a)")) + " AS b", "d, c, ts")
            )
            source = f"(SELECT a, {made} FROM {name})"
            if self.random.random() < 0.5:
                source = f"({source} UNION ALL SELECT a, 2 AS b, d, c, ts FROM {name})"
        elif self.random.random() < 0.2:
            union = f"SELECT * FROM {name} UNION ALL" if self.random.random() < 0.5 else ""
            source = f"({union} SELECT DISTINCT * FROM {name})"
        return f"{source} AS {alias}", columns

    def number(self, kind: str, columns: list[str]) -> str:
        constant = self.one(("0", "1", "2") if kind == "INTEGER" else ("0.5", "1.0", "2.0"))
        column = self.one(columns)
        forms = [column, column, column, f"{column} + {constant}", f"{column} - {constant}"]
        forms += [f"2 * {column}", f"-{column}", f"{constant} - {column}", f"{column} * -1"]
        return str(self.one([*forms, constant, constant]))

    def comparison(self, columns: dict[str, list[str]]) -> str:
        kind = self.one([k for k, names in columns.items() if names])
        names, sign = columns[kind], self.one(COMPARISONS)
        one, other = self.one(names), self.one(names)
        if kind in ("INTEGER", "DOUBLE"):
            both = columns["INTEGER"] + columns["DOUBLE"]
            other = self.one(names if self.random.random() < 0.8 else both)
            shape = self.random.randrange(6)
            if shape < 2:
                return f"{one} {sign} {other}"
            if shape == 2:
                return f"{one} {self.one(('=', '<', '>'))} {self.one(('0', '1', '2', '1.5'))}"
            if shape == 3 and kind == "INTEGER":
                return f"{one} - {other} {sign} {self.one(('0', '1', '-1'))}"
            return f"{self.number(kind, names)} {sign} {self.number(kind, names)}"
        if kind == "TEXT":
            condition = self.one((f"LIKE '{self.one(('a%', '%b'))}'", "IN ('a', 'b')", "> 'a'"))
            return f"{one} {condition}" if self.random.random() < 0.4 else f"{one} {sign} {other}"
        shape = self.random.randrange(3)
        if shape == 0:
            return f"{one} {sign} {other} + INTERVAL '1 s'"
        if shape == 1:
            return f"{one} {sign} TIMESTAMP '1970-01-01 00:00:0{self.random.randrange(4)}'"
        return f"{one} - {other} {sign} INTERVAL '1 s'"

    def condition(self, columns: dict[str, list[str]]) -> str:
        shape = self.random.random()
        if shape < 0.08:
            name = self.one(columns["INTEGER"])
            return f"{name} IS {self.one(('', '', 'NOT '))}NULL"
        if shape < 0.16:
            return f"({self.comparison(columns)} OR {self.comparison(columns)})"
        if shape < 0.2:
            return f"COALESCE({self.one(columns['INTEGER'])}, 1) = 1"
        return self.comparison(columns)

    def conditions(self, columns: dict[str, list[str]], most: int) -> str:
        return " AND ".join(self.condition(columns) for _ in range(self.random.randint(1, most)))

    def key(self, columns: dict[str, list[str]], further: dict[str, list[str]]) -> str:
        kind = self.one([k for k in columns if columns[k] and further[k]])
        return f"{self.one(columns[kind])} = {self.one(further[kind])}"

    def query(self) -> str:
        clause, columns = self.table()
        absent = ""
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3))):
            item, further = self.table()
            word = self.one(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
            key = self.key(columns, further)
            columns = {kind: names + further[kind] for kind, names in columns.items()}
            on = key if self.random.random() < 0.85 else self.condition(columns)
            if word == "LEFT JOIN":
                absent = key.split(" = ")[1]
            if self.random.random() < 0.4:
                on = f"{on} AND {self.conditions(columns, 2)}"
            clause = f"{clause} {word} {item} ON {on}"
        where = self.conditions(columns, 2)
        if absent and self.random.random() < 0.3:
            where = f"{absent} IS NULL"
        if self.random.random() < 0.2:
            item, further = self.table()
            both = {kind: names + further[kind] for kind, names in columns.items()}
            inner = f"{self.key(columns, further)} AND {self.condition(both)}"
            exists = self.one(("EXISTS", "NOT EXISTS"))
            where = f"{where} AND {exists} (SELECT 1 FROM {item} WHERE {inner})"
        shown = [n for kind in ("INTEGER", "DOUBLE", "TEXT") for n in columns[kind]]
        items = ", ".join(self.random.sample(shown, min(len(shown), self.random.randint(1, 4))))
        return f"SELECT {self.one(('', '', 'DISTINCT '))}{items} FROM {clause} WHERE {where}"


def contents(random: Random) -> dict[str, list[Row]]:
    """Return rows of all tables; some are empty."""
    made: dict[str, list[Row]] = {}
    for name, columns in TABLES.items():
        kinds = [column.split()[1] for column in columns]
        number = random.choice((0, 6, 12, 12, 16))
        rows = [tuple(random.choice(VALUES[k]) for k in kinds) for _ in range(number)]
        if name == "p":
            rows = list({row[0]: row for row in rows if row[0] is not None}.values())
        made[name] = rows
    return made


class Peer:
    """The same tables in DuckDB, with other rows for every query."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        for name, columns in TABLES.items():
            written = ", ".join(columns).replace("INTEGER", "BIGINT")
            self._connection.execute(f"CREATE TABLE {name} ({written})")

    def fill(self, tables: dict[str, list[Row]]) -> None:
        for name, rows in tables.items():
            self._connection.execute(f"TRUNCATE {name}")
            written = [f"({', '.join(map(self._literal, row, TABLES[name]))})" for row in rows]
            if rows:
                self._connection.execute(f"INSERT INTO {name} VALUES {', '.join(written)}")

    def answer(self, text: str) -> Counter[Row]:
        return Counter(rounded(row) for row in self._connection.execute(text).fetchall())

    @staticmethod
    def _literal(value: object, column: str) -> str:
        if value is None:
            return "NULL"
        return f"make_timestamp({value})" if "TIMESTAMP" in column else repr(value)

    def close(self) -> None:
        self._connection.close()


def rounded(row: tuple[Any, ...]) -> Row:
    return tuple(v if v is None or isinstance(v, str) else float(v) + 0.0 for v in row)


def ours(plan: Plan, tables: dict[str, list[Row]]) -> Counter[Row]:
    database = Database()
    for name, rows in tables.items():
        database.append(name, [SourceEvent(row, ts=0) for row in rows])
    found: Counter[Row] = Counter()
    for row, count in evaluate(plan, database, now=0).items():
        found[rounded(row)] += count
    return found


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with closing(Peer()) as made:
        yield made


FIRED = {
    "anti_joins": 1,
    "empty_relations": 3,
    "outer_to_inner": 20,
    "self_joins": 1,
    "transitive_predicates": 20,
    "unread_sides": 5,
}
"""How many of every second query a rule changes at least."""


def test_a_normalized_query_answers_as_duckdb_does(peer: Peer) -> None:
    fired: Counter[str] = Counter()
    shown, tables = 0, contents(Random(0))
    for seed in range(250):
        if seed % 10 == 0:
            tables = contents(Random(seed))
            peer.fill(tables)
        text = Author(Random(seed)).query()
        bound = bound_query(text, CATALOG).plan
        ready = normalize(bound, TOPOLOGY)
        if seed % 2:
            fired.update(changing_rules(bound))
        expected = peer.answer(text)
        shown += bool(expected)
        assert ours(ready, tables) == expected, (seed, text, tables)
    assert shown > 50
    assert all(fired[name] >= least for name, least in FIRED.items()), fired


def changing_rules(plan: Plan) -> set[str]:
    """Return the names of the rules that change a plan which the others have left alone."""
    found = set()
    for name in FIRED:
        others = [rule for rule in (*LOGICAL_RULES, *WIDTH_RULES) if rule.name != name]
        (rule,) = [rule for rule in (*LOGICAL_RULES, *WIDTH_RULES) if rule.name == name]
        without = run_rules(plan, others)
        once = rule.apply(without)
        assert rule.apply(once) == once
        if once != without:
            found.add(name)
    return found
