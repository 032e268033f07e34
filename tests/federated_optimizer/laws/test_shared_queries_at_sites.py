"""Queries that come and go share what sites compute, and each has DuckDB's rows after every change.

The bundles are those of registration; sites run them over a network that delays and loses messages.
Rows come, and expire; tables change; gateways and the base site die and come back.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_network import Network as Runs
from stream_engine.simulation.network import Faults, Network
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from tests.federated_optimizer.laws.test_shared_queries import (
    CATALOG,
    COLUMNS,
    ONE_BASE,
    VALUES,
    Author,
    Peer,
    rounded,
)
from tests.streamsql.from_text import bound_query

HOUR = 3_600 * MICROSECONDS
GATEWAYS = ("gw-1", "gw-2")
STATIC = ONE_BASE.static


def scan(name: str) -> Scan:
    """Return the scan of a source."""
    plan = bound_query(f"SELECT * FROM {name}", CATALOG).plan
    return next(node for node in walk_plan(plan) if isinstance(node, Scan))


class World:
    """The runs of registration at simulated sites, and the rows that there are."""

    def __init__(self, seed: int, topology: Topology, materialize: Materialize) -> None:
        self.random = Random(seed)
        sharing = Sharing(ComputationIndex(), Strategy.ALL, materialize)
        self.runs = Runs(Planning(topology), sharing)
        faults = Faults(loss=0.05, repetition=0.05) if seed % 2 else None
        self.sites = Network((*GATEWAYS, "base", STATIC), seed=seed, faults=faults)
        for name in "tu":
            for gateway in GATEWAYS:
                self.sites.declare(gateway, scan(name))
        self.sites.declare(STATIC, scan("v"))
        self.texts: dict[str, str] = {}
        self.readings: dict[str, list[tuple[str, int, Row]]] = {g: [] for g in GATEWAYS}
        self.table: dict[Row, Row] = {}
        self.fed = 0

    def start(self) -> None:
        text = Author(self.random).query()
        change = self.runs.register(bound_query(text, CATALOG))
        self.texts[change.query] = text
        for bundle in change.deploy:
            self.sites.install(bundle)
            self.act()

    def stop(self) -> None:
        if not self.runs.reads:
            return
        change = self.runs.deregister(self.random.choice(list(self.runs.reads)))
        for run in change.withdraw:
            self.sites.uninstall(run)
            self.act()
        for bundle in change.deploy:
            self.sites.install(bundle)

    def read(self) -> None:
        gateway, name = self.random.choice(GATEWAYS), self.random.choice("tu")
        row: Row = tuple(self.random.choice(VALUES[c]) for c in COLUMNS["t"])
        if gateway in self.sites.sites:
            now = self.sites.now
            self.readings[gateway].append((name, now, row))
            self.sites.ingest(gateway, name, [SourceEvent(row, now)])

    def write(self) -> None:
        key: Row = (self.random.randrange(3),)
        row: Row = (*key, self.random.choice(VALUES["y"]))
        event = SourceEvent(row, self.sites.now)
        if key in self.table and self.random.random() < 0.3:
            event = SourceEvent(self.table.pop(key), self.sites.now, delete=True)
        else:
            self.table[key] = row
        self.sites.ingest(STATIC, "v", [event])

    def pass_time(self) -> None:
        self.sites.advance(self.sites.now + self.random.choice((1, HOUR // 3)))

    def die(self) -> None:
        site = self.random.choice((*GATEWAYS, "base"))
        self.sites.kill(site)
        self.act()
        self.sites.restart(site)
        if site in self.readings:
            self.readings[site] = []

    def act(self) -> None:
        for _ in range(self.random.randrange(10)):
            self.sites.act()

    def check(self, peer: Peer) -> None:
        self.sites.settle()
        assert not self.sites.failures
        tables: dict[str, list[Row]] = {"t": [], "u": [], "v": list(self.table.values())}
        for readings in self.readings.values():
            for name, time, row in readings:
                if self.sites.now - time < HOUR:
                    tables[name].append(row)
        peer.fill({name: rows for name, rows in tables.items() if rows})
        for name in [name for name, rows in tables.items() if not rows]:
            peer.connection.execute(f"TRUNCATE {name}")
        for query, run in self.runs.reads.items():
            found: Counter[Row] = Counter()
            for row, count in self.sites.result(run).items():
                found[rounded(row)] += count
            assert found == peer.answer(self.texts[query]), self.texts[query]
        for each in self.runs.runs.values():
            flow = self.sites.sites["base"].flow(each.bundle.query)
            assert flow is not None
            assert not flow.busy, each.bundle
            self.fed += sum(
                not self.runs.runs[feed.run].bundle.fragment(feed.source).consumer
                for feed in each.bundle.feeds
            )


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with closing(Peer()) as made:
        yield made


@pytest.mark.parametrize("materialize", list(Materialize))
def test_answers_at_sites_are_those_of_duckdb(peer: Peer, materialize: Materialize) -> None:
    fed = 0
    for seed in range(100, 103):
        world = World(seed, ONE_BASE, materialize)
        often = (*(world.read,) * 12, world.write, *(world.act,) * 4, world.pass_time)
        rare = (world.start, world.start, world.stop, world.die)
        for _ in range(4):
            world.start()
            world.start()
            for _ in range(25):
                world.random.choice((*often, *rare))()
            world.check(peer)
        fed += world.fed
    assert fed > 20, "results are read"
