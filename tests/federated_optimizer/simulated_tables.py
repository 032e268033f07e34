"""A simulated federation whose static engine has tables that change, with its oracle.

The static engine is a site with the tables as sources; rows of them do not expire.
"""

from collections import Counter
from contextlib import closing
from random import Random

import duckdb

from federated_optimizer import Topology, normalize
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.joins.stored_at_gateways import STORED
from federated_optimizer.alternatives.method import Method
from federated_optimizer.cutting.placing import place
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN, Statistics
from stream_engine.simulation.network import Faults, Network
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
TTL = 20 * SECOND
STATIC = "static"
CATALOG = catalog_of(
    "CREATE SOURCE seat (mid TEXT, rid TEXT, weight INTEGER, KEY (mid)) WITH (ttl = '20 s');"
    "CREATE SOURCE meter (mid TEXT, watt INTEGER, KEY (mid)) WITH (ttl = '20 s');"
    "CREATE TABLE place (rid TEXT PRIMARY KEY, label TEXT, floor INTEGER)"
    " WITH (source = 'csv', path = 'p.csv');"
    "CREATE TABLE tag (mid TEXT, tag INTEGER, PRIMARY KEY (mid, tag))"
    " WITH (source = 'csv', path = 't.csv');"
)
COLUMNS = {
    "seat": "mid TEXT, rid TEXT, weight INTEGER",
    "meter": "mid TEXT, watt INTEGER",
    "place": "rid TEXT, label TEXT, floor INTEGER",
    "tag": "mid TEXT, tag INTEGER",
}
OWNERS = {
    "seat": ("s0", "s1"),
    "meter": ("s2", "s0"),
    "place": (STATIC, STATIC),
    "tag": (STATIC, STATIC),
}
SITES = ("s0", "s1", "s2")
ONE_BASE = Topology({s: frozenset(n for n in OWNERS if s in OWNERS[n]) for s in SITES})
THREE_BASES = Topology(ONE_BASE.gateways, bases=SITES)

QUERIES = (
    "SELECT s.mid, p.label FROM seat s JOIN place p ON s.rid = p.rid WHERE p.floor = 1",
    "SELECT p.label, s.mid FROM place p JOIN seat s ON s.rid = p.rid AND s.weight < p.floor",
    "SELECT s.mid, s.weight, t.tag FROM seat s JOIN tag t ON s.mid = t.mid",
    "SELECT s.mid, p.label FROM seat s LEFT JOIN place p ON s.rid = p.rid",
    "SELECT s.mid FROM seat s WHERE EXISTS (SELECT 1 FROM tag t WHERE t.mid = s.mid)",
    "SELECT s.mid FROM seat s WHERE NOT EXISTS (SELECT 1 FROM tag t WHERE t.mid = s.mid)",
    "SELECT p.label FROM place p WHERE EXISTS (SELECT 1 FROM seat s WHERE s.rid = p.rid)",
    "SELECT p.rid, s.mid FROM place p LEFT JOIN seat s ON s.rid = p.rid",
    "SELECT s.mid, p.label FROM seat s FULL JOIN place p ON s.rid = p.rid",
    "SELECT p.floor, COUNT(*) AS n, MAX(s.weight) AS w FROM seat s JOIN place p ON s.rid = p.rid"
    " GROUP BY p.floor",
    "SELECT DISTINCT p.label FROM seat s JOIN place p ON s.rid = p.rid WHERE s.weight > 0",
    "SELECT mid FROM seat WHERE weight = 3 UNION ALL"
    " SELECT s.mid FROM seat s JOIN tag t ON s.mid = t.mid",
    "SELECT s.mid, p.label FROM seat s LEFT JOIN place p ON s.rid = p.rid AND s.weight < p.floor",
    "SELECT s.mid FROM seat s WHERE EXISTS"
    " (SELECT 1 FROM tag t WHERE t.mid = s.mid AND t.tag > s.weight)",
    "SELECT s.mid, p.label, t.tag FROM seat s JOIN place p ON s.rid = p.rid"
    " JOIN tag t ON t.mid = s.mid",
    "SELECT s.mid, m.watt, p.label FROM seat s JOIN meter m ON s.mid = m.mid"
    " JOIN place p ON p.rid = s.rid",
)


class Plans:
    """The complete plans of a query, as bundles."""

    def __init__(
        self,
        text: str,
        topology: Topology,
        statistics: Statistics = NOTHING_KNOWN,
        kept: Heuristics = ALL,
        *,
        whole_changes: bool = False,
    ) -> None:
        ready = normalize(bound_query(text, CATALOG).plan, topology)
        self._topology, self._statistics, self._kept = topology, statistics, kept
        self.search = Search(ready, topology, statistics, whole_changes=whole_changes, kept=kept)
        self.count = self.search.memo.count()

    def stored(self) -> dict[Method, int]:
        """Return a plan for each method by which rows of a table go to gateways."""
        found = {}
        for number in range(1, self.count + 1):
            used = set(STORED).intersection(self.search.plan(number).methods)
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
            statistics=self._statistics,
            taken=choice.taken,
            kept=self._kept,
        )


class Federation:
    """Gateways and a static engine that run one query, what holds there, what is to be shown."""

    def __init__(self, topology: Topology, seed: int, faults: Faults | None = None) -> None:
        sites = dict.fromkeys((*topology.gateways, *topology.bases, STATIC))
        self.network = Network(tuple(sites), seed=seed, faults=faults)
        self.random = Random(seed)
        self.now = SECOND
        self.held: dict[str, dict[tuple[str, Row], tuple[int, Row]]] = {s: {} for s in sites}
        for name, owners in OWNERS.items():
            definition = CATALOG.find(name)
            assert isinstance(definition, SourceDefinition)
            for site in set(owners):
                self.network.declare(site, definition.scan())

    def happen(self, events: int) -> None:
        """Let rows come, change, go and expire where sites are up."""
        for _ in range(events):
            source = self.random.choice(tuple(OWNERS))
            number, level = self.random.randrange(6), self.random.randrange(3)
            site = OWNERS[source][number % 2]
            if site not in self.network.sites:
                continue
            self.now += self.random.randrange(2 * SECOND)
            self.network.advance(self.now)
            room = self.random.choice((f"r{self.random.randrange(6)}", None))
            row: Row = {
                "seat": (f"s{number}", room, level),
                "meter": (f"s{number}", level),
                "place": (f"r{number}", self.random.choice(("hall", "lab", None)), level),
                "tag": (f"s{number}", level),
            }[source]
            self.change(site, source, row, gone=self.random.random() < 0.25)
            for _ in range(self.random.randrange(6)):
                self.network.act()

    def change(self, site: str, source: str, row: Row, *, gone: bool = False) -> None:
        """Let a row come or go."""
        self.network.ingest(site, source, [SourceEvent(row, self.now, gone)])
        key = source, row if source == "tag" else row[:1]
        if gone:
            self.held[site].pop(key, None)
        else:
            self.held[site][key] = (self.now, row)

    def rest(self) -> Delta:
        """Return the answer once all has arrived."""
        self.network.advance(self.now)
        self.network.settle(limit=60_000)
        assert not self.network.failures
        return self.network.result("q")

    def kill(self, site: str) -> None:
        """Let a site die; what a gateway holds is gone with it, tables are read again."""
        self.network.kill(site, in_flight_survives=self.random.random() < 0.5)
        if site != STATIC:
            self.held[site].clear()

    def restart(self, site: str) -> None:
        """Start a site again."""
        self.network.restart(site)
        if site == STATIC:
            for (source, _), (_, row) in self.held[site].items():
                self.network.ingest(site, source, [SourceEvent(row, self.now, False)])

    def expected(self, text: str) -> Delta:
        """Return the answer of DuckDB over the rows that hold at sites that are up."""
        with closing(duckdb.connect()) as database:
            for name, columns in COLUMNS.items():
                database.execute(f"CREATE TABLE {name} ({columns})")
                marks = ", ".join("?" for _ in columns.split(","))
                for site in self.network.sites:
                    for (source, _), (ts, row) in self.held[site].items():
                        holds = site == STATIC or ts + TTL > self.now
                        if source == name and holds:
                            database.execute(f"INSERT INTO {name} VALUES ({marks})", row)
            return dict(Counter(database.execute(text).fetchall()))
