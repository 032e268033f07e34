"""Queries of a family, registered one after the other, have the rows that each has by itself.

Rows come through feeds: each run is evaluated over what older runs have computed. The answers are
compared with the plan from scratch and with DuckDB's. What could be shared is counted apart, by
looking at all rows that there may be.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from random import Random
from typing import Any

import duckdb
import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_bundles import Readings
from federated_optimizer.testing_network import Network, answers
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE t (x INTEGER, y INTEGER, d DOUBLE, s TEXT) WITH (ttl = '1 h');
CREATE SOURCE u (x INTEGER, y INTEGER, d DOUBLE, s TEXT) WITH (ttl = '1 h');
CREATE TABLE v (k INTEGER PRIMARY KEY, y INTEGER);
"""
)
COLUMNS = {"t": ("x", "y", "d", "s"), "u": ("x", "y", "d", "s"), "v": ("k", "y")}
BOTH = frozenset({"t", "u"})
ONE_BASE = Topology({"gw-1": BOTH, "gw-2": BOTH})
SEVERAL_BASES = Topology({"gw-1": BOTH, "gw-2": BOTH}, bases=("base-1", "base-2"))
NOW = 1_000
VALUES: dict[str, tuple[Any, ...]] = {
    "x": (None, 0, 1, 1, 2),
    "y": (None, 0, 1, 2, 3),
    "d": (None, 0.0, -0.0, 0.5, 1.5),
    "s": (None, "a", "b", "ab"),
}


class Author:
    """Writes queries whose parts are often those of others."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def one(self, choices: Any) -> Any:
        return self.random.choice(list(choices))

    def block(self) -> tuple[list[tuple[str, str]], str]:
        """Return the tables with their aliases, and FROM and WHERE."""
        count = self.one((1, 2, 2, 2, 3, 3))
        names = [self.one(each) for each in ("tttu", "uuut", "tu")[:count]]
        if count > 1 and self.random.random() < 0.2:
            names[-1] = "v"
        order = self.random.sample(range(count), count)
        tables = [(names[i], "abc"[i]) for i in range(count)]
        conditions = [self.join(tables[i - 1], tables[i]) for i in range(1, count)]
        number = self.one((0, 1, 1, 2))
        conditions += [self.selection(self.one(tables)) for _ in range(number)]
        self.random.shuffle(conditions)
        listed = ", ".join(f"{tables[i][0]} {tables[i][1]}" for i in order)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return tables, f"FROM {listed}{where}"

    def join(self, left: tuple[str, str], right: tuple[str, str]) -> str:
        (_, a), (name, b) = left, right
        key = "k" if name == "v" else "x"
        found = f"{a}.x = {b}.{key}" if self.random.random() < 0.9 else f"{a}.y = {b}.y"
        theta = (f" AND {a}.y < {b}.y", f" AND {b}.y > {a}.y", f" AND {a}.y <= {b}.y")
        more = self.one(theta) if self.random.random() < 0.3 else ""
        return found + more

    def selection(self, table: tuple[str, str]) -> str:
        name, a = table
        forms = [f"{a}.y > 0", f"{a}.y >= 1", f"{a}.y > 1", f"0 < {a}.y", f"{a}.y = 1"]
        forms += [f"{a}.y IN (1, 2)", f"({a}.y = 1 OR {a}.y = 2)", f"{a}.y IS NOT NULL"]
        if name != "v":
            forms += [f"{a}.d > 0.0", f"{a}.d >= 0.5", f"{a}.s LIKE 'a%'", f"{a}.s = 'a'"]
        return str(self.one(forms))

    def query(self) -> str:
        tables, body = self.block()
        columns = [f"{alias}.{c}" for name, alias in tables for c in COLUMNS[name]]
        shape = self.random.random()
        if shape < 0.55:
            some = self.random.sample(columns, self.random.randint(1, len(columns)))
            listed = ", ".join(f"{c} AS c{i}" for i, c in enumerate(some))
            return f"SELECT {listed} {body}"
        if shape < 0.65:
            return f"SELECT DISTINCT {self.one(columns)} AS c0 {body}"
        if shape < 0.72:
            other = self.block()
            parts = ((tables, body), other)
            return " UNION ALL ".join(f"SELECT {t[0][1]}.y AS c0 {b}" for t, b in parts)
        keys = self.random.sample(["a.x", "a.y"], self.one((1, 1, 2)))
        calls = self.random.sample(
            ["COUNT(*)", "SUM(a.y)", "MIN(a.y)", "MAX(a.y)", "COUNT(a.y)", "AVG(a.y)"], 2
        )
        shown = ", ".join(f"{e} AS c{i}" for i, e in enumerate((*keys, *calls)))
        having = self.one(("", "", " HAVING COUNT(*) > 1", " HAVING MAX(a.y) >= 2"))
        return f"SELECT {shown} {body} GROUP BY {', '.join(keys)}{having}"


def contents(random: Random) -> dict[str, list[Row]]:
    """Return rows of all tables, with NULLs and duplicates."""
    made: dict[str, list[Row]] = {
        name: [tuple(random.choice(VALUES[c]) for c in COLUMNS["t"]) for _ in range(9)]
        for name in "tu"
    }
    for rows in made.values():
        rows.append(rows[0])
    made["v"] = [(k, random.choice(VALUES["y"])) for k in range(3)]
    return made


def readings_of(tables: dict[str, list[Row]], topology: Topology) -> Readings:
    whole, stored = Database(), Database()
    gateways = {"gw-1": Database(), "gw-2": Database()}
    for name, rows in tables.items():
        events = [SourceEvent(row, NOW) for row in rows]
        whole.append(name, events)
        if name == "v":
            stored.append(name, events)
        else:
            for n, gateway in enumerate(gateways.values()):
                gateway.append(name, events[n::2])
    return Readings(whole, {**gateways, topology.static: stored})


class Peer:
    """The same tables in DuckDB."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})
        for name in "tu":
            self.connection.execute(f"CREATE TABLE {name} (x BIGINT, y BIGINT, d DOUBLE, s TEXT)")
        self.connection.execute("CREATE TABLE v (k BIGINT, y BIGINT)")

    def fill(self, tables: dict[str, list[Row]]) -> None:
        for name, rows in tables.items():
            self.connection.execute(f"TRUNCATE {name}")
            places = ", ".join("?" for _ in COLUMNS[name])
            self.connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)

    def answer(self, text: str) -> Counter[Row]:
        return Counter(map(rounded, self.connection.execute(text).fetchall()))

    def close(self) -> None:
        self.connection.close()


def rounded(row: tuple[Any, ...]) -> Row:
    return tuple(v if v is None or isinstance(v, str) else float(v) + 0.0 for v in row)


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with closing(Peer()) as made:
        yield made


def network_of(
    topology: Topology, strategy: Strategy = Strategy.ALL, materialize: Materialize | None = None
) -> Network:
    sharing = Sharing(ComputationIndex(), strategy, materialize or Materialize.WANTED_TWICE)
    return Network(Planning(topology), sharing)


def check(network: Network, texts: dict[str, str], readings: Readings, peer: Peer) -> None:
    for query, rows in answers(network, readings, NOW).items():
        text = texts[query]
        assert rows == evaluate(bound_query(text, CATALOG).plan, readings.whole, NOW), text
        found: Counter[Row] = Counter()
        for row, count in rows.items():
            found[rounded(row)] += count
        assert found == peer.answer(text), text


@pytest.mark.parametrize("materialize", list(Materialize))
@pytest.mark.parametrize("strategy", [Strategy.ALL, Strategy.MATCH_PLAN, Strategy.NO_JOINS])
def test_shared_queries_have_their_rows(
    peer: Peer, strategy: Strategy, materialize: Materialize
) -> None:
    read = 0
    for seed in range(3):
        random = Random(seed)
        network, texts = network_of(ONE_BASE, strategy, materialize), {}
        for _ in range(9):
            text = Author(random).query()
            change = network.register(bound_query(text, CATALOG))
            texts[change.query] = text
            assert change.registration is not None
            read += bool(change.registration.used)
        for turn in range(3):
            tables = contents(random)
            peer.fill(tables)
            check(network, texts, readings_of(tables, ONE_BASE), peer)
            gone = random.sample(list(network.reads), 2)
            for query in gone if turn else ():
                network.deregister(query)
        for query in list(network.reads):
            network.deregister(query)
        assert not network.runs
        assert not len(network.sharing.index)
    assert read > 7


def test_queries_of_several_base_sites_read_the_first(peer: Peer) -> None:
    read = 0
    for seed in range(6):
        random = Random(100 + seed)
        network, texts = network_of(SEVERAL_BASES), {}
        for _ in range(6):
            text = Author(random).query()
            change = network.register(bound_query(text, CATALOG))
            texts[change.query] = text
            read += bool(change.registration and change.registration.used)
        tables = contents(random)
        peer.fill(tables)
        check(network, texts, readings_of(tables, SEVERAL_BASES), peer)
    assert read > 5


# --- counted against all rows that there may be --------------------------------------------------

PARTS = (
    *("a.y > 0", "a.y >= 1", "a.y > 1", "a.y = 1", "a.y IN (1, 2)", "(a.y = 1 OR b.y = 2)"),
    *("a.y < b.y", "b.y >= a.y", "a.y <> b.y", "b.y IS NOT NULL", "b.y - a.y <= 1", "a.x > 0"),
    *("a.x < a.y", "b.x = 2", "b.y < 3", "a.y + 1 > b.y"),
)
DOMAIN = (None, -1, 0, 1, 2, 3)


def passing(peer: Peer, conditions: list[str]) -> frozenset[Row]:
    """Return which of all pairs of rows pass; both rows have the same x."""
    where = " AND ".join(conditions)
    rows = peer.connection.execute(f"SELECT a.x, a.y, b.y FROM cases a, cases b WHERE {where}")
    return frozenset(rows.fetchall())


def test_nearly_all_that_could_be_shared_is(peer: Peer) -> None:
    peer.connection.execute("CREATE OR REPLACE TABLE cases (x BIGINT, y BIGINT)")
    peer.connection.executemany("INSERT INTO cases VALUES (?, ?)", list(product(DOMAIN, DOMAIN)))
    shown = "a.x AS ax, a.y AS ay, b.x AS bx, b.y AS bwhy"
    random = Random(1)
    possible = shared = 0
    for _ in range(12):
        network = network_of(ONE_BASE)
        have: list[frozenset[Row]] = []
        for _ in range(8):
            conditions = ["a.x = b.x", *random.sample(PARTS, random.randint(1, 3))]
            rows = passing(peer, conditions)
            text = f"SELECT {shown} FROM t a, u b WHERE {' AND '.join(conditions)}"
            change = network.register(bound_query(text, CATALOG))
            assert change.registration is not None
            used = [
                found.offer.run
                for found in change.registration.used
                if found.offer.fragment == "f0"
            ]
            could = any(rows <= other for other in have)
            if rows:
                possible += could
                shared += bool(used)
                assert could or not used, text
            have.append(rows)
    assert possible > 20
    assert shared / possible > 0.9, (shared, possible)
