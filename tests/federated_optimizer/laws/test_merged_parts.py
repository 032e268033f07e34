"""Parts that gateways merge on their way to the base give what DuckDB gives of all rows."""

from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from math import isclose
from random import Random

import duckdb
import pytest

from federated_optimizer import Topology, normalize
from federated_optimizer.alternatives.method import Method
from federated_optimizer.costs.fragment_estimates import fragment_estimates
from federated_optimizer.costs.tree_shares import trees_in
from federated_optimizer.cutting.placing import place
from federated_optimizer.search.choosing import Choice, Search
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.statistics.planning_statistics import Devices, SourceFacts, Statistics
from federated_optimizer.statistics.wires import Wires
from stream_engine.simulation.network import Faults, Network
from streamsql.algebra.metrics import metric_of
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
TTL = 30 * SECOND
CATALOG = catalog_of(
    "CREATE SOURCE reading (device TEXT, room TEXT, v INTEGER, w INTEGER, open BOOLEAN,"
    " KEY (device)) WITH (ttl = '30 s');"
)
COLUMNS = "device TEXT, room TEXT, v BIGINT, w BIGINT, open BOOLEAN"
GATEWAYS = tuple(f"g{n}" for n in range(6))
ONE_BASE = Topology(dict.fromkeys(GATEWAYS, frozenset({"reading"})))
TWO_BASES = replace(ONE_BASE, bases=("base", "other"))
LINE = {
    (a, b): float(abs(m - n)) for (m, a), (n, b) in combinations(enumerate(("base", *GATEWAYS)), 2)
}
"""The base at one end, and a gateway behind another one."""

FACTS = {"reading": SourceFacts(rows=1_200, changes=600.0)}
IN_LINE = Statistics(sources=FACTS, wires=Wires(hops=LINE))
ANYWHERE = Statistics(sources=FACTS)

QUERIES = (
    "SELECT room, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, COUNT(v) AS k FROM reading"
    " GROUP BY room",
    "SELECT MIN(v) AS l, MAX(v) AS m, COUNT(*) AS n FROM reading",
    "SELECT room, ARG_MAX(device, w) AS d, BOOL_AND(open) AS o FROM reading GROUP BY room",
    "SELECT COUNT(DISTINCT v) AS n, MAX(w) AS m FROM reading WHERE w > 300",
    "SELECT DISTINCT room, v FROM reading",
    "SELECT device, w FROM reading ORDER BY w DESC LIMIT 3 OFFSET 1",
    "SELECT n, COUNT(*) AS rooms FROM (SELECT room, COUNT(*) AS n FROM reading GROUP BY room"
    " HAVING MAX(v) > 1) AS q GROUP BY n",
)
CASES = [
    *((text, ONE_BASE, IN_LINE) for text in QUERIES),
    *((text, ONE_BASE, ANYWHERE) for text in QUERIES[::2]),
    *((text, TWO_BASES, IN_LINE) for text in QUERIES),
]


class Trees:
    """The plans of a query in which gateways merge parts."""

    def __init__(
        self, text: str, topology: Topology, statistics: Statistics, metric: str = "bytes"
    ) -> None:
        self.topology, self.statistics = topology, statistics
        ready = normalize(bound_query(text, CATALOG).plan, topology)
        self.search = Search(ready, topology, statistics, metric_of(metric))
        every = (self.search.plan(n + 1) for n in range(self.search.memo.count()))
        self.choices = [each for each in every if Method.TREE in each.methods]

    def bundle(self, choice: Choice, version: int = 1) -> FragmentBundle:
        """Return a plan as fragments."""
        return place(
            choice.plan,
            self.topology,
            query="q",
            version=version,
            statistics=self.statistics,
            taken=choice.taken,
        )

    def first(self, version: int = 1) -> FragmentBundle:
        """Return the first plan."""
        return self.bundle(self.choices[0], version)


class Rooms:
    """Gateways with readings that come, change, go and expire, and what holds at them."""

    def __init__(self, topology: Topology, seed: int, faults: Faults | None = None) -> None:
        self.network = Network((*GATEWAYS, *topology.bases), seed=seed, faults=faults)
        self.random = Random(seed)
        self.now = SECOND
        self.held: dict[str, dict[str, tuple[int, Row]]] = {site: {} for site in GATEWAYS}
        definition = CATALOG.find("reading")
        assert isinstance(definition, SourceDefinition)
        for site in GATEWAYS:
            self.network.declare(site, definition.scan())

    def happen(self, events: int) -> None:
        """Let readings come and go at gateways that are up."""
        for _ in range(events):
            number = self.random.randrange(18)
            site = GATEWAYS[number % len(GATEWAYS)]
            if site not in self.network.sites:
                continue
            self.now += self.random.randrange(SECOND)
            self.network.advance(self.now)
            v = self.random.choice((0, 1, 2, 3_000_000_000, -7, None))
            w = self.random.randrange(40) * 100 + number
            room = self.random.choice(("a", "b", "c", None))
            row: Row = (f"d{number}", room, v, w, self.random.random() < 0.7)
            gone = self.random.random() < 0.25
            self.network.ingest(site, "reading", [SourceEvent(row, self.now, gone)])
            if gone:
                self.held[site].pop(f"d{number}", None)
            else:
                self.held[site][f"d{number}"] = (self.now, row)
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
        """Return the answer of DuckDB over the readings that hold."""
        with closing(duckdb.connect()) as database:
            database.execute(f"CREATE TABLE reading ({COLUMNS})")
            for held in self.held.values():
                for ts, row in held.values():
                    if ts + TTL > self.now:
                        database.execute("INSERT INTO reading VALUES (?, ?, ?, ?, ?)", row)
            return dict(Counter(database.execute(text).fetchall()))


@pytest.mark.parametrize(("text", "topology", "statistics"), CASES)
def test_merged_parts_answer_as_duckdb_while_rows_come_and_go(
    text: str, topology: Topology, statistics: Statistics
) -> None:
    trees = Trees(text, topology, statistics)
    assert trees.choices
    for choice in trees.choices[:3]:
        for seed in range(2):
            faults = Faults(loss=0.05, repetition=0.05) if seed % 2 else None
            rooms = Rooms(topology, seed, faults)
            rooms.network.install(trees.bundle(choice))
            for _ in range(3):
                rooms.happen(15)
                assert rooms.rest() == rooms.expected(text), (choice.number, seed)
            rooms.now += TTL
            assert rooms.rest() == rooms.expected(text), "all have expired"


@pytest.mark.parametrize(("text", "topology", "statistics"), CASES)
def test_gateways_that_merge_die_and_come_back(
    text: str, topology: Topology, statistics: Statistics
) -> None:
    trees = Trees(text, topology, statistics)
    rooms = Rooms(topology, len(text))
    rooms.network.install(trees.first())
    for number, lost in enumerate(GATEWAYS, start=1):
        rooms.happen(12)
        rooms.kill(lost)
        rooms.happen(6)
        rooms.rest()
        # The optimizer goes on without a gateway that has been away for long.
        without = Trees(text, replace(topology, absent=frozenset({lost})), statistics)
        rooms.network.install(without.first(version=2 * number))
        rooms.happen(6)
        assert rooms.rest() == rooms.expected(text), f"without {lost}"
        rooms.network.restart(lost)
        rooms.happen(6)
        assert rooms.rest() == rooms.expected(text), f"with {lost} again"
        rooms.network.install(trees.first(version=2 * number + 1))
        assert rooms.rest() == rooms.expected(text), "by the first tree"


def test_gateways_in_a_line_meet_along_it_and_elsewhere_at_one() -> None:
    (tree,) = trees_in(Trees(QUERIES[0], ONE_BASE, IN_LINE).first()).values()
    assert set(tree) == set(GATEWAYS)
    hops = IN_LINE.wires.between
    way = sum(hops(site, parent or "base") for site, parent in tree.items())
    assert way < sum(hops(site, "base") for site in GATEWAYS) / 2
    (star,) = trees_in(Trees(QUERIES[0], ONE_BASE, ANYWHERE).first()).values()
    assert star == {"g0": None, **dict.fromkeys(GATEWAYS[1:], "g0")}


def test_an_absent_gateway_merges_nothing() -> None:
    for lost in GATEWAYS:
        trees = Trees(QUERIES[0], replace(ONE_BASE, absent=frozenset({lost})), IN_LINE)
        (tree,) = trees_in(trees.first()).values()
        assert lost in tree
        assert lost not in tree.values()


def test_a_running_query_keeps_its_tree_while_ways_change() -> None:
    running = trees_in(Trees(QUERIES[0], ONE_BASE, IN_LINE).first())
    back = {pair: 7.0 - hops for pair, hops in LINE.items()}
    moved = replace(IN_LINE, wires=Wires(hops=back))
    assert trees_in(Trees(QUERIES[0], ONE_BASE, moved).first()) != running
    kept = replace(moved, devices=Devices(trees=running))
    assert trees_in(Trees(QUERIES[0], ONE_BASE, kept).first()) == running


@pytest.mark.parametrize(("text", "topology", "statistics"), CASES)
def test_a_tree_is_priced_as_what_it_is_cut_into(
    text: str, topology: Topology, statistics: Statistics
) -> None:
    trees = Trees(text, topology, statistics)
    for choice in trees.choices:
        cost = trees.search.memo.cost(trees.search.memo.selection(choice.number))
        cut = CutPrices.of(choice.taken, topology, statistics)
        assert isclose(cost.energy, cut.energy, rel_tol=0.02) or topology is TWO_BASES
        bundle = trees.bundle(choice)
        told = fragment_estimates(bundle, statistics, "console")
        sent = sum(told[f.id].cost.bytes for f in bundle.fragments if f.engine == Engine.GATEWAY)
        if topology is ONE_BASE:
            assert isclose(cost.bytes, sent, rel_tol=0.02), choice.number


def test_a_change_of_a_reading_arrives_as_a_whole() -> None:
    text = "SELECT room, COUNT(*) AS n FROM reading GROUP BY room"
    trees = Trees(text, ONE_BASE, IN_LINE)
    assert all(each.whole_changes for each in trees.search.alternatives().listed)
    for seed in range(4):
        rooms = Rooms(ONE_BASE, seed)
        rooms.network.install(trees.first())
        shown = set()
        for turn in range(8):
            row = ("d5", "ab"[turn % 2], 1, 1, True)
            rooms.network.ingest("g5", "reading", [SourceEvent(row, rooms.now, False)])
            if not turn:
                rooms.rest()
            for _ in range(60):
                rooms.network.act()
                shown.add(tuple(rooms.network.result("q").items()))
            rooms.rest()
        assert shown == {((("a", 1), 1),), ((("b", 1), 1),)}


def test_one_group_far_away_is_merged_where_energy_counts() -> None:
    text = "SELECT SUM(v) AS s FROM reading"
    by_energy = Trees(text, ONE_BASE, IN_LINE, "energy").search
    taken = by_energy.taken()
    assert Method.TREE in taken.methods
    pushed = by_energy.plan(1)
    assert Method.PARTS in pushed.methods
    assert taken.cost.energy < 0.6 * pushed.cost.energy
    assert not any(
        Method.TREE in Trees(text, ONE_BASE, ANYWHERE, metric).search.taken().methods
        for metric in ("bytes", "latency", "energy")
    )
