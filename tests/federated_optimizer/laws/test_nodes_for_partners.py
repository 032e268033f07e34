"""Nodes of joins that queries only ask for partners, whatever prices say: each has its own rows.

Queries with EXCEPT, INTERSECT, DISTINCT, IN and EXISTS of joins, with other bounds, come and go and
move onto the nodes. Rows come, are withdrawn, expire and leave windows; sites lose messages and
die. Rows are compared with DuckDB's, which knows nothing of nodes.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import pytest

from federated_optimizer.planning import normalize
from federated_optimizer.registering.computed_anew import Prices
from federated_optimizer.registering.registration import register
from federated_optimizer.registering.registration_terms import Planning
from federated_optimizer.sharing import node_columns
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.partner_joins import with_joins
from federated_optimizer.sharing.strategy import Materialize
from streamsql.algebra.operators import Plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from streamsql.reference import evaluate
from tests.federated_optimizer.laws.test_shared_queries import (
    CATALOG,
    NOW,
    ONE_BASE,
    Peer,
    contents,
    readings_of,
    rounded,
)
from tests.federated_optimizer.laws.test_shared_queries_at_sites import HOUR, World
from tests.streamsql.from_text import bound_query

WINDOW = " [RANGE 30 MINUTES]"
"""No row is as old: time passes in steps of 20 minutes."""
SET_OPERATORS = ("EXCEPT",) * 3 + ("INTERSECT", "UNION", "EXCEPT ALL", "INTERSECT ALL")


class Author:
    """Writes queries over a few joins, with bounds of their own."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.one = random.choice

    def query(self) -> str:
        shape = self.random.random()
        if shape < 0.55:
            return f"{self.operand()} {self.one(SET_OPERATORS)} {self.operand()}"
        if shape < 0.7:
            return self.join().replace("SELECT", "SELECT DISTINCT", 1)
        if shape < 0.8:
            call = self.one(("MAX(c1)", "MAX(c1)", "COUNT(*)"))
            return f"SELECT c0, {call} AS m FROM ({self.operand()}) j GROUP BY c0"
        if shape < 0.9:
            return self.partners()
        return f"SELECT DISTINCT c0 FROM ({self.partners()}) p"

    def operand(self) -> str:
        return self.join() if self.random.random() < 0.8 else self.partners()

    def join(self) -> str:
        side = self.one("aab")
        columns = f"{side}.x AS c0, {side}.y AS c1"
        window = self.one(("", "", WINDOW))
        more = self.one(("", "", " AND a.d > 0.0"))
        return f"SELECT {columns} FROM t{window} a, u b WHERE a.x = b.x{more}{self.bound()}"

    def partners(self) -> str:
        """Return rows that have partners, each as often as it is there."""
        exists = self.random.random() < 0.5
        inside = f"SELECT b.x FROM u b WHERE b.x = a.x{self.bound()}"
        return "SELECT a.x AS c0, a.y AS c1 FROM t a WHERE " + (
            f"EXISTS ({inside})" if exists else "a.x IN (SELECT b.x FROM u b WHERE b.y > 0)"
        )

    def bound(self) -> str:
        within = self.one(("", " AND b.y <= a.y + 2", " AND b.y <= a.y + 1"))
        return self.one(("", " AND a.y <= b.y", " AND a.y <= b.y")) + within


class Moving(World):
    """Queries that move onto what others have, and rows that are withdrawn.

    Attributes:
        moved: Runs that queries have left.
    """

    moved = 0

    def start(self) -> None:
        text = Author(self.random).query()
        change = self.runs.register(bound_query(text, CATALOG))
        self.texts[change.query] = text
        self.deploy(change)

    def deploy(self, change: Any) -> None:
        for bundle in change.deploy:
            self.sites.install(bundle)
            self.act()
        for run in change.withdraw:
            self.sites.uninstall(run)

    def move(self) -> None:
        """Plan the queries of a run again, over all that others have."""
        runs = self.runs.runs
        name = self.random.choice([name for name, run in runs.items() if run.queries] or [""])
        if not name:
            return
        old = runs[name]
        nodes = {other for other, run in runs.items() if run.is_node}

        def allowed(offer: Offer) -> bool:
            return offer.is_readable and offer.run in nodes and offer.run != name

        sharing = replace(self.runs.sharing, allowed=allowed, makes_nodes=False)
        planning = Planning(ONE_BASE, replanned=True, reads=old.bundle.results_read)
        bundle = register(old.bound, sharing, planning, self.runs.next_run).bundle
        bundle = self.runs.elsewhere(bundle, name)
        if bundle.results_read - old.bundle.results_read:
            self.moved += 1
            self.deploy(self.runs.move(name, bundle))

    def withdraw(self) -> None:
        gateway = self.random.choice([*self.readings])
        readings = self.readings[gateway]
        now = self.sites.now
        there = Counter((name, row) for name, time, row in readings if now - time < HOUR)
        single = [
            each for each in readings if there[each[0], each[2]] == 1 and now - each[1] < HOUR
        ]
        if single and gateway in self.sites.sites:
            name, time, row = self.random.choice(single)
            readings.remove((name, time, row))
            self.sites.ingest(gateway, name, [SourceEvent(row, now, delete=True)])

    def compare(self, duck: duckdb.DuckDBPyConnection) -> None:
        """Compare all answers with those of DuckDB."""
        self.sites.settle()
        assert not self.sites.failures
        for name, age in (("t", 60), ("u", 60), ("t30", 30)):
            duck.execute(f"CREATE OR REPLACE TABLE {name} (x BIGINT, y BIGINT, d DOUBLE, s TEXT)")
            rows = [
                row
                for readings in self.readings.values()
                for source, time, row in readings
                if source == name[0] and self.sites.now - time < age * 60 * MICROSECONDS
            ]
            if rows:
                duck.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)
        for query, run in self.runs.reads.items():
            found: Counter[Row] = Counter()
            for row, count in self.sites.result(run).items():
                found[rounded(row)] += count
            text = self.texts[query]
            asked = re.sub(r"\bt" + re.escape(WINDOW), "t30", text)
            assert found == Counter(map(rounded, duck.execute(asked).fetchall())), text


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(duckdb.connect(":memory:", config={"threads": 1})) as connection:
        yield connection


def counted_nodes(patch: pytest.MonkeyPatch) -> list[Plan]:
    """Return the plans of nodes that will be made for partners."""
    made: list[Plan] = []
    checked = node_columns.with_checked

    def noted(plan: Plan) -> Plan:
        made.append(plan)
        return checked(plan)

    patch.setattr(node_columns, "with_checked", noted)
    return made


def test_joins_in_the_place_of_semi_joins_have_the_rows_of_duckdb() -> None:
    random, changed = Random(5), 0
    with closing(Peer()) as peer:
        for _ in range(15):
            tables = contents(random)
            peer.fill(tables)
            database = readings_of(tables, ONE_BASE).whole
            for _ in range(10):
                text = Author(random).query().replace(WINDOW, "")
                plan = normalize(bound_query(text, CATALOG).plan, ONE_BASE)
                joined = with_joins(plan)
                changed += joined != plan
                found: Counter[Row] = Counter()
                for row, count in evaluate(joined, database, NOW).items():
                    found[rounded(row)] += count
                assert found == peer.answer(text), text
    assert changed > 50


@pytest.mark.parametrize("seed", range(4))
def test_rows_at_sites_are_those_of_duckdb(
    seed: int, duck: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Prices, "is_less", lambda *_: True)
    made = counted_nodes(monkeypatch)
    world = Moving(900 + seed, ONE_BASE, Materialize.WANTED_TWICE)
    for _ in range(3):
        for _ in range(3):
            world.start()
        for _ in range(40):
            often = (*(world.read,) * 10, *(world.withdraw,) * 2, *(world.act,) * 4)
            rare = (world.pass_time, world.move, world.move, world.stop, world.start, world.die)
            world.random.choice((*often, *rare))()
        world.compare(duck)
    assert made
    assert world.moved
    for query in list(world.runs.reads):
        world.deploy(world.runs.deregister(query))
    assert not world.runs.runs
    assert not len(world.runs.sharing.index)
