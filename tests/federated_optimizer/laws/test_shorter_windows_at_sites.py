"""Queries over windows of several lengths come and go at simulated sites with clocks of their own.

Bundles are those of registration. Whenever the network has come to rest, each query has DuckDB's
rows, where every reading is in a window by the clock of the gateway that has it. Gateways and the
base site die and come back, messages are late, lost and repeated, readings come late or early.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import duckdb
import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_network import Network as Runs
from stream_engine.simulation.network import Faults, Network
from stream_engine.site.step_result import StepResult
from streamsql.algebra.operators import Scan, Younger, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE s (k INTEGER, v INTEGER, w TEXT, ts TIMESTAMP) WITH (ttl = '3 minutes');
CREATE SOURCE n (k INTEGER, v INTEGER, w TEXT, ts TIMESTAMP, KEY (k));
"""
)
GATEWAYS = ("gw-1", "gw-2")
TOPOLOGY = Topology(dict.fromkeys(GATEWAYS, frozenset("sn")))
SECOND = MICROSECONDS
START = 10_000 * SECOND


@dataclass(frozen=True)
class Length:
    """A window as written, and its rows in SQL over the clock of a gateway."""

    written: str
    condition: str


LENGTHS = (
    Length("", "TRUE"),
    Length(" [RANGE 2 MINUTES]", "ts > now - 120000000"),
    Length(" [RANGE 1 MINUTE]", "ts > now - 60000000"),
    Length(" [RANGE 20 SECONDS]", "ts > now - 20000000"),
    Length(" [RANGE 5 SECONDS]", "ts > now - 5000000"),
    Length(
        " [RANGE 20 SECONDS SLIDE 10 SECONDS]",
        "ts > now - now % 10000000 - 20000000 AND ts <= now - now % 10000000",
    ),
    Length(" [NOW]", "ts // 1000000 = now // 1000000"),
)
TEMPLATES = (
    "SELECT k, v, w, ts FROM {0}",
    "SELECT w, v, k, ts FROM {0} WHERE k < 3",
    "SELECT w, ts FROM {0}",
    "SELECT v FROM {0} WHERE k > 1",
    "SELECT k, ts FROM {0} WHERE v = 1",
    "SELECT k, COUNT(*) AS n, MAX(v) AS most FROM {0} GROUP BY k",
    "SELECT DISTINCT v FROM {0} WHERE k < 3",
    "SELECT a.k, a.v, b.v AS w FROM {0} AS a JOIN {1} AS b ON a.k = b.k",
    "SELECT a.k, a.w, a.v, b.w AS x, b.ts FROM {0} AS a JOIN {1} AS b ON a.k = b.k",
    "SELECT a.w, b.v, b.w AS x, b.ts FROM {0} AS a JOIN {1} AS b ON a.w = b.w AND b.v > 0",
    "SELECT a.k, b.ts FROM {0} AS a LEFT JOIN {1} AS b ON a.k = b.k AND b.v > 1",
)


@dataclass(frozen=True)
class Text:
    """A query as written, and as DuckDB reads it."""

    written: str
    for_peer: str


def text_of(chance: Random) -> Text:
    """Return a query over one or two windows."""
    template = chance.choice(TEMPLATES)
    ours, theirs = [], []
    for _ in range(2):
        length, source = chance.choice(LENGTHS), chance.choice("ssn")
        ours.append(source + length.written)
        theirs.append(f"(SELECT k, v, w, ts FROM {source} WHERE {length.condition})")
    peer = template.format(*theirs)
    if " AS a" not in template:
        peer = template.format(theirs[0] + " AS one")
    return Text(template.format(*ours), peer)


def scan(name: str) -> Scan:
    """Return the scan of a source."""
    plan = bound_query(f"SELECT * FROM {name}", CATALOG).plan
    return next(node for node in walk_plan(plan) if isinstance(node, Scan))


class Clocks(Network):
    """Sites whose clocks are wrong by a time of their own."""

    def __init__(self, seed: int, faults: Faults | None) -> None:
        super().__init__((*GATEWAYS, "base"), seed=seed, faults=faults)
        self.now = START
        self.ahead = dict.fromkeys((*GATEWAYS, "base"), 0)

    def clock(self, site: str) -> int:
        """Return the time that a site takes it for."""
        return self.now + self.ahead[site]

    def step(self, site: str) -> StepResult:
        """Let a site step at its own time."""
        return self.sites[site].step(self.clock(site))


class World:
    """The runs of registration at simulated sites, and the readings that gateways keep."""

    def __init__(self, seed: int, materialize: Materialize) -> None:
        self.chance = Random(seed)
        sharing = Sharing(ComputationIndex(), Strategy.ALL, materialize)
        self.runs = Runs(Planning(TOPOLOGY), sharing)
        faults = Faults(loss=0.05, repetition=0.05) if seed % 2 else None
        self.sites = Clocks(seed, faults)
        for gateway in GATEWAYS:
            self.sites.ahead[gateway] = self.chance.choice((0, 1, 90, -50)) * SECOND
            for name in "sn":
                self.sites.declare(gateway, scan(name))
        self.sites.ahead["base"] = self.chance.choice((0, 400, -400)) * SECOND
        self.texts: dict[str, Text] = {}
        self.readings: dict[str, list[tuple[str, Row]]] = {g: [] for g in GATEWAYS}
        self.younger = 0
        self.of_itself = 0

    def happen(self) -> None:
        """Let one thing happen, and some messages and steps after it."""
        match self.chance.randrange(10):
            case 0 | 1 | 2 if len(self.runs.reads) < 6:
                self.start()
            case 3 if len(self.runs.reads) > 2:
                self.stop()
            case 4:
                step = self.chance.choice((1, SECOND, 6 * SECOND, 25 * SECOND))
                self.sites.advance(self.sites.now + step)
            case 5 if self.chance.random() < 0.3:
                self.die()
            case _:
                self.read()
        self.act()

    def start(self) -> None:
        text = text_of(self.chance)
        change = self.runs.register(bound_query(text.written, CATALOG))
        self.texts[change.query] = text
        for bundle in change.deploy:
            self.sites.install(bundle)
            self.act()

    def stop(self) -> None:
        change = self.runs.deregister(self.chance.choice(list(self.runs.reads)))
        for run in change.withdraw:
            self.sites.uninstall(run)
            self.act()
        for bundle in change.deploy:
            self.sites.install(bundle)

    def read(self) -> None:
        gateway, name = self.chance.choice(GATEWAYS), self.chance.choice("sn")
        late = self.chance.choice((0, 0, 0, 4, 6, 22, 70, -1, -3)) * SECOND
        ts, value = self.sites.clock(gateway) - late, self.chance.randrange(3)
        key = self.chance.randrange(4)
        if name == "n":  # a key is at one gateway
            key = 2 * (key // 2) + GATEWAYS.index(gateway)
        row = (key, value, f"value {value}", ts)
        self.readings[gateway].append((name, row))
        self.sites.ingest(gateway, name, [SourceEvent(row, ts)])

    def die(self) -> None:
        site = self.chance.choice((*GATEWAYS, "base"))
        self.sites.kill(site)
        self.act()
        self.sites.restart(site)
        if site in self.readings:
            self.readings[site] = []

    def act(self) -> None:
        for _ in range(self.chance.randrange(10)):
            self.sites.act()

    def check(self, peer: duckdb.DuckDBPyConnection) -> None:
        self.sites.advance(self.sites.now)
        self.sites.settle()
        assert not self.sites.failures
        self.fill(peer)
        for query, run in self.runs.reads.items():
            text = self.texts[query]
            found = Counter(dict(self.sites.result(run)))
            assert found == Counter(peer.execute(text.for_peer).fetchall()), text.written
        for each in self.runs.runs.values():
            flow = self.sites.sites["base"].flow(each.bundle.query)
            assert flow is not None
            assert not flow.busy, each.bundle
            nodes = (n for f in each.bundle.own for n in walk_plan(f.plan))
            younger = sum(isinstance(node, Younger) for node in nodes)
            self.younger += younger
            self.of_itself += younger if not each.bundle.feeds else 0

    def fill(self, peer: duckdb.DuckDBPyConnection) -> None:
        """Let DuckDB have what gateways keep, and the clock of the gateway with each."""
        for name, kept in (
            ("s", "WHERE ts + 180000000 > now"),
            (
                "n",
                "QUALIFY row_number() OVER (PARTITION BY site, k ORDER BY ts DESC, place DESC) = 1",
            ),
        ):
            peer.execute(
                "CREATE OR REPLACE TABLE told (site TEXT, now BIGINT, k INT, v INT, w TEXT, "
                "ts BIGINT, place INT)"
            )
            rows = [
                (gateway, self.sites.clock(gateway), *row, place)
                for gateway, readings in self.readings.items()
                for place, (source, row) in enumerate(readings)
                if source == name
            ]
            if rows:
                peer.executemany("INSERT INTO told VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            peer.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM told {kept}")


@pytest.fixture(scope="module")
def peer() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.parametrize("materialize", Materialize)
def test_windows_of_any_length_have_the_rows_of_the_clocks_of_their_sites(
    materialize: Materialize, peer: duckdb.DuckDBPyConnection
) -> None:
    younger = of_itself = 0
    for seed in range(12):
        world = World(seed, materialize)
        for _ in range(6):
            for _ in range(9):
                world.happen()
            world.check(peer)
        younger += world.younger
        of_itself += world.of_itself
    assert younger > 25
    assert of_itself > 1
