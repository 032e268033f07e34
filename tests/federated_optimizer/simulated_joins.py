"""A simulated federation in which rows that meet come from different gateways, with its oracle.

DuckDB answers the same text over the rows that hold; which these are is told here, from the events.
"""

from collections import Counter
from contextlib import closing
from random import Random

import duckdb

from federated_optimizer import Topology, normalize
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.method import IN_NETWORK, Method
from federated_optimizer.cutting.placing import place
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import Devices, Statistics
from stream_engine.simulation.network import Faults, Network
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
TTL = 20 * SECOND
CATALOG = catalog_of(
    "CREATE SOURCE seat (mid TEXT, rid TEXT, weight INTEGER, KEY (mid)) WITH (ttl = '20 s');"
    "CREATE SOURCE meter (mid TEXT, watt INTEGER, KEY (mid)) WITH (ttl = '20 s');"
    "CREATE SOURCE room (rid TEXT, status TEXT, light INTEGER, KEY (rid)) WITH (ttl = '20 s');"
)
COLUMNS = {
    "seat": "mid TEXT, rid TEXT, weight INTEGER",
    "room": "rid TEXT, status TEXT, light INTEGER",
    "meter": "mid TEXT, watt INTEGER",
}
OWNERS = {"seat": ("s0", "s1"), "room": ("s1", "s2"), "meter": ("s2", "s0")}
"""Gateways of devices with even and with odd numbers."""

DEVICES = Devices(
    {
        "seat": {f"s{n}": OWNERS["seat"][n % 2] for n in range(6)},
        # One is said to be elsewhere, and one is not announced.
        "room": {"r0": "s1", "r1": "s2", "r2": "s1", "r3": "s0", "r4": "s1"},
        "meter": {f"s{n}": OWNERS["meter"][n % 2] for n in range(6)},
    },
    {("seat", "s0"): 1.0, ("meter", "s2"): 2.0, ("seat", "s1"): 2.0, ("meter", "s0"): 1.0},
)
"""Pairs of seats and meters meet at the meter of even numbers, at the seat of odd ones."""

STATISTICS = Statistics(devices=DEVICES)

SITES = ("s0", "s1", "s2")
ONE_BASE = Topology({s: frozenset(n for n in OWNERS if s in OWNERS[n]) for s in SITES})
THREE_BASES = Topology(ONE_BASE.gateways, bases=SITES, static="s0", coordinator="s0")

QUERIES = (
    "SELECT s.mid, r.status FROM seat s JOIN room r ON s.rid = r.rid",
    "SELECT s.mid, r.light FROM seat s JOIN room r ON s.rid = r.rid AND s.weight < r.light"
    " WHERE r.status = 'open'",
    "SELECT s.mid, s.weight, r.status FROM seat s LEFT JOIN room r ON s.rid = r.rid",
    "SELECT s.mid FROM seat s WHERE EXISTS (SELECT 1 FROM room r WHERE r.rid = s.rid)",
    "SELECT s.mid FROM seat s WHERE NOT EXISTS (SELECT 1 FROM room r WHERE r.rid = s.rid)",
    "SELECT r.rid, r.light FROM room r WHERE EXISTS (SELECT 1 FROM seat s WHERE r.rid = s.rid)",
    "SELECT s.mid, r.rid FROM seat s FULL JOIN room r ON s.rid = r.rid",
    "SELECT r.status, COUNT(*) AS n, MAX(s.weight) AS w FROM seat s JOIN room r ON s.rid = r.rid"
    " GROUP BY r.status",
    "SELECT DISTINCT r.status, s.weight FROM seat s JOIN room r ON s.rid = r.rid"
    " WHERE s.weight > 0",
    "SELECT mid FROM seat WHERE weight = 3 UNION ALL"
    " SELECT s.mid FROM seat s JOIN room r ON s.rid = r.rid",
    "SELECT s.mid, s.weight, m.watt FROM seat s JOIN meter m ON s.mid = m.mid",
    "SELECT s.mid, m.watt FROM seat s FULL JOIN meter m ON s.mid = m.mid",
    "SELECT a.mid, b.mid AS other FROM seat a JOIN seat b ON a.rid = b.rid AND a.weight < b.weight",
)

HEAVY = "WITH x AS (SELECT mid, rid, weight FROM seat WHERE weight > 0) "
TWICE = (
    "SELECT * FROM seat WHERE weight > 1 UNION ALL"
    " SELECT s.* FROM (SELECT * FROM seat WHERE weight > 1) AS s JOIN room r ON s.rid = r.rid",
    "SELECT s.mid, s.rid, s.weight FROM seat s JOIN room r ON s.rid = r.rid WHERE EXISTS"
    " (SELECT 1 FROM seat u WHERE u.weight > 1 AND u.rid = r.status) AND s.weight > 1",
    *(
        HEAVY + text
        for text in (
            "SELECT a.mid, b.mid AS o FROM x a JOIN x b ON a.rid = b.rid AND a.weight < b.weight",
            "SELECT mid FROM x WHERE weight = 2"
            " UNION ALL SELECT a.mid FROM x a JOIN room r ON a.rid = r.rid",
            "SELECT a.mid, a.weight, g.n FROM x a"
            " JOIN (SELECT rid, COUNT(*) AS n FROM x GROUP BY rid) g ON a.rid = g.rid",
            "SELECT a.mid, r.status FROM x a JOIN room r ON a.rid = r.rid"
            " UNION ALL SELECT a.mid, r.status FROM x a JOIN room r ON a.rid = r.rid",
            "SELECT a.mid, r.light FROM x a JOIN room r ON a.rid = r.rid"
            " UNION ALL SELECT a.mid, m.watt FROM x a JOIN meter m ON a.mid = m.mid",
            "SELECT a.mid FROM x a JOIN room r ON a.rid = r.rid WHERE r.status = 'open'"
            " UNION ALL SELECT a.mid FROM x a JOIN room r ON a.rid = r.rid WHERE r.light = 1",
            "SELECT DISTINCT weight FROM x WHERE NOT EXISTS"
            " (SELECT 1 FROM x y JOIN room r ON y.rid = r.rid WHERE y.weight = x.weight)",
        )
    ),
)
"""Queries that read the same rows twice."""


class Plans:
    """The complete plans of a query, as bundles."""

    def __init__(
        self,
        text: str,
        topology: Topology,
        *,
        whole_changes: bool = False,
        kept: Heuristics = ALL,
    ) -> None:
        ready = normalize(bound_query(text, CATALOG).plan, topology)
        self._topology = topology
        self._kept = kept
        self.search = Search(ready, topology, STATISTICS, whole_changes=whole_changes, kept=kept)
        self.count = self.search.memo.count()

    def in_network(self) -> dict[Method, int]:
        """Return a plan for each method by which rows travel between gateways."""
        found = {}
        for number in range(1, self.count + 1):
            used = IN_NETWORK.intersection(self.search.plan(number).methods)
            found.update(dict.fromkeys(used, number))
        return found

    def bundle(self, number: int, version: int = 1) -> FragmentBundle:
        """Return the plan of a number."""
        choice = self.search.plan(number)
        return place(
            choice.plan,
            self._topology,
            query="q",
            version=version,
            statistics=STATISTICS,
            taken=choice.taken,
            kept=self._kept,
        )


class Federation:
    """Gateways that run one query, what holds at them, and what has to be shown."""

    def __init__(self, topology: Topology, seed: int, faults: Faults | None = None) -> None:
        sites = dict.fromkeys((*topology.gateways, *topology.bases))
        self.network = Network(tuple(sites), seed=seed, faults=faults)
        self.random = Random(seed)
        self.now = SECOND
        self.held: dict[str, dict[tuple[str, str], tuple[int, Row]]] = {s: {} for s in sites}
        for name, owners in OWNERS.items():
            definition = CATALOG.find(name)
            assert isinstance(definition, SourceDefinition)
            for site in owners:
                self.network.declare(site, definition.scan())

    def happen(self, events: int) -> None:
        """Let rows come, change, go and expire at gateways that are up."""
        for _ in range(events):
            source = self.random.choice(tuple(OWNERS))
            number = self.random.randrange(6)
            site = OWNERS[source][number % 2]
            if site not in self.network.sites:
                continue
            self.now += self.random.randrange(2 * SECOND)
            self.network.advance(self.now)
            key = f"{'r' if source == 'room' else 's'}{number}"
            room = self.random.choice((f"r{self.random.randrange(6)}", None))
            level = self.random.randrange(4)
            row: Row = {
                "seat": (key, room, level),
                "room": (key, self.random.choice(("open", "shut")), level),
                "meter": (key, level),
            }[source]
            gone = self.random.random() < 0.2
            self.network.ingest(site, source, [SourceEvent(row, self.now, gone)])
            if gone:
                self.held[site].pop((source, key), None)
            else:
                self.held[site][source, key] = (self.now, row)
            for _ in range(self.random.randrange(6)):
                self.network.act()

    def rest(self) -> Delta:
        """Return the answer once all has arrived."""
        self.network.advance(self.now)
        self.network.settle(limit=60_000)
        assert not self.network.failures
        return self.network.result("q")

    def kill(self, site: str) -> None:
        """Let a gateway die with what it holds."""
        self.network.kill(site, in_flight_survives=self.random.random() < 0.5)
        self.held[site].clear()

    def expected(self, text: str) -> Delta:
        """Return the answer of DuckDB over the rows that hold."""
        with closing(duckdb.connect()) as database:
            for name, columns in COLUMNS.items():
                database.execute(f"CREATE TABLE {name} ({columns})")
                marks = ", ".join("?" for _ in columns.split(","))
                for held in self.held.values():
                    for (source, _), (ts, row) in held.items():
                        if source == name and ts + TTL > self.now:
                            database.execute(f"INSERT INTO {name} VALUES ({marks})", row)
            return dict(Counter(database.execute(text).fetchall()))
