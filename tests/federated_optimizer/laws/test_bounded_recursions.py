"""A recursion that derives only what is asked for gives the rows of the whole one.

Oracles are DuckDB over the rows that hold and, of shortest paths, networkx.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random

import duckdb
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.alternatives.method import Method
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import Statistics
from federated_optimizer.testing_bundles import (
    NOW,
    SPREAD_TOPOLOGY,
    TOPOLOGY,
    evaluate_bundle,
    readings,
)
from federated_optimizer.testing_plans import plans, recursions, with_way
from stream_engine.simulation.network import Faults, Network
from stream_engine.testing.circuit_runs import LocalRun
from streamsql.algebra.choices import Way
from streamsql.algebra.operators import Join, JoinKind, Plan
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import evaluate
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
TTL = 20 * SECOND
CATALOG = catalog_of(
    "CREATE LINK SOURCE link (src TEXT, dst TEXT, n INTEGER, KEY (src, dst)) WITH (ttl = '20 s');"
    "CREATE SOURCE asked (node TEXT, who INTEGER, KEY (node)) WITH (ttl = '20 s');"
    "CREATE LINK SOURCE channel (src TEXT, dst TEXT, bandwidth DOUBLE, KEY (src, dst));",
    library=True,
)
SITES = ("s0", "s1", "s2")
OWNERS = {"link": ("s0", "s1"), "asked": ("s1", "s2")}
GATEWAYS = {s: frozenset(n for n in OWNERS if s in OWNERS[n]) for s in SITES}
ONE_BASE = Topology(GATEWAYS)
THREE_BASES = Topology(GATEWAYS, bases=SITES, static="s0", coordinator="s0")

VIEWS = """
CREATE VIEW reachable AS WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM link UNION
  SELECT l.src, r.dst FROM link l JOIN r ON l.dst = r.src) SELECT * FROM r;
CREATE VIEW within_radius AS WITH RECURSIVE w (src, dst, hops) AS (
  SELECT src, dst, 1 FROM link UNION
  SELECT l.src, w.dst, w.hops + 1 FROM link l JOIN w ON l.dst = w.src WHERE w.hops < 5)
  SELECT src, dst, MIN(hops) AS hops FROM w GROUP BY src, dst;
"""
FORWARD = (
    "WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT r.src, l.dst FROM r JOIN link l ON l.src = r.dst) "
)
CHAINS = (
    "WITH RECURSIVE r (src, dst, n, path) AS (SELECT src, dst, 1, src || '>' || dst FROM link "
    "UNION SELECT r.src, l.dst, r.n + 1, r.path || '>' || l.dst FROM r JOIN link l "
    "ON l.src = r.dst WHERE r.n < 3) "
)
COPIES = CHAINS.replace("UNION", "UNION ALL")
QUERIES = (
    "SELECT r.src, r.dst, a.who FROM reachable r JOIN asked a ON r.src = a.node",
    "SELECT r.src, r.dst FROM reachable r JOIN asked a ON r.dst = a.node AND a.who < 2",
    "SELECT src, dst FROM reachable WHERE src IN (SELECT node FROM asked WHERE who = 1)",
    "SELECT src, dst FROM reachable WHERE src = 'n1'",
    "SELECT src, dst FROM reachable WHERE src IN ('n1', 'n2') AND dst <> 'n1'",
    FORWARD + "SELECT src, dst FROM r WHERE dst = 'n1'",
    FORWARD + "SELECT a.who, r.dst FROM asked a LEFT JOIN r ON r.src = a.node",
    FORWARD + "SELECT a.node FROM asked a WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.dst = a.node)",
    "SELECT a.who, w.dst, w.hops FROM asked a LEFT JOIN within_radius w ON w.src = a.node",
    "SELECT w.dst, COUNT(*) AS n FROM within_radius w JOIN asked a ON w.src = a.node"
    " GROUP BY w.dst",
    CHAINS + "SELECT r.n, r.path FROM r JOIN asked a ON r.src = a.node",
    CHAINS + "SELECT n, path FROM r WHERE dst = 'n1'",
    COPIES + "SELECT r.n, r.path FROM r JOIN asked a ON r.src = a.node",
)
MOST = 6
"""Plans of one query that are run: the first ones have bounded recursions."""
NODES = [f"n{k}" for k in range(5)]
Held = dict[str, dict[Row, tuple[int, Row]]]


def bounds(text: str, topology: Topology = ONE_BASE) -> Iterator[tuple[Search, int]]:
    """Yield the plans in which recursions are bounded, one for each set of methods."""
    search = Search(normalize(bound_query(text, CATALOG).plan, topology), topology, Statistics())
    seen = set()
    for number in range(1, search.memo.count() + 1):
        selection = search.memo.selection(number)
        if any(each.method == Method.BOUND for each in selection.values()):
            plan = search.plan(number)
            if plan.digest not in seen:
                seen.add(plan.digest)
                yield search, number


def bounded(text: str) -> Plan:
    search, number = next(bounds(text))
    return search.plan(number).plan


def changed(random: Random, held: Held, now: int) -> tuple[str, SourceEvent]:
    """Return an insert, an update or a delete, after it has been done to what is held."""
    source = random.choice(("link", "link", "link", "asked"))
    number = random.randrange(4)
    row: Row = (random.choice(NODES), random.choice(NODES), number)
    row = row if source == "link" else (row[0], number)
    key = row[:-1]
    gone = key in held[source] and random.random() < 0.4
    if gone:
        row = held[source].pop(key)[1]
    else:
        held[source][key] = (now, row)
    return source, SourceEvent(row, now, gone)


def holding(held: Held, now: int) -> dict[str, list[Row]]:
    return {s: [row for ts, row in rows.values() if ts + TTL > now] for s, rows in held.items()}


def answer(text: str, held: Held, now: int) -> Counter[Row]:
    """Return what DuckDB answers over the rows that hold."""
    with closing(duckdb.connect(config={"threads": 1})) as peer:
        peer.execute("CREATE TABLE link (src TEXT, dst TEXT, n BIGINT)")
        peer.execute("CREATE TABLE asked (node TEXT, who BIGINT)")
        peer.execute(VIEWS)
        for source, rows in holding(held, now).items():
            for row in rows:
                peer.execute(f"INSERT INTO {source} VALUES ({', '.join('?' * len(row))})", row)
        return Counter(peer.execute(text).fetchall())


@pytest.mark.parametrize("text", QUERIES)
def test_a_bounded_recursion_follows_links_and_asked_keys(text: str) -> None:
    random, held = Random(text), Held(link={}, asked={})
    run = LocalRun(bounded(text))
    whole = LocalRun(normalize(bound_query(text, CATALOG).plan, ONE_BASE))
    now, shown = 0, 0
    for _ in range(40):
        now += random.choice((1, 1, 1, 7)) * SECOND
        events = [changed(random, held, now) for _ in range(random.randint(0, 3))]
        expected = answer(text, held, now)
        assert Counter(run.step(now, events)) == expected, now
        assert Counter(whole.step(now, events)) == expected
        shown += bool(expected)
    assert shown > 5


def paths(held: Held, now: int) -> dict[tuple[str, str], tuple[int, str]]:
    """Return hops and text of the shortest paths of one hop or more; of several the first text."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((str(row[0]), str(row[1])) for row in holding(held, now)["link"])
    found: dict[tuple[str, str], list[list[str]]] = {}
    for a, b in graph.edges:
        for c, way in nx.single_source_all_shortest_paths(graph, b):
            found.setdefault((a, c), []).extend([a, *each] for each in way)
    return {
        ends: min((len(way) - 1, ".".join(way)) for way in ways) for ends, ways in found.items()
    }


@pytest.mark.parametrize(
    "text",
    [
        "SELECT s.src, s.dst, s.hops, s.path FROM shortest_path s JOIN asked a ON s.src = a.node",
        "SELECT src, dst, hops, path FROM shortest_path WHERE src IN (SELECT node FROM asked)",
        "SELECT s.src, s.dst, s.hops, s.path FROM shortest_path s JOIN asked a ON s.dst = a.node",
        "SELECT src, dst, hops, path FROM shortest_path WHERE src = 'n1'",
    ],
)
def test_shortest_paths_from_asked_nodes_are_those_of_networkx(text: str) -> None:
    random, held = Random(text), Held(link={}, asked={})
    run, now = LocalRun(bounded(text)), 0
    place_asked = 1 if "s.dst =" in text else 0
    for _ in range(40):
        now += random.choice((1, 1, 1, 7)) * SECOND
        events = [changed(random, held, now) for _ in range(random.randint(0, 3))]
        asked = {row[0] for row in holding(held, now)["asked"]}
        asked = {"n1"} if "'n1'" in text else asked
        expected = Counter(
            (*ends, *found)
            for ends, found in paths(held, now).items()
            if ends[place_asked] in asked
        )
        assert Counter(run.step(now, events)) == expected, now


@pytest.mark.parametrize(
    ("text", "topology"),
    [(text, ONE_BASE) for text in QUERIES] + [(text, THREE_BASES) for text in QUERIES[::4]],
)
def test_sites_answer_as_duckdb_by_every_way_of_a_bounded_recursion(
    text: str, topology: Topology
) -> None:
    ways = list(bounds(text, topology))
    assert ways
    for search, number in ways[:4]:
        choice = search.plan(number)
        faults = Faults(loss=0.05, repetition=0.05) if number % 2 else None
        network = Network(
            tuple(dict.fromkeys((*SITES, *topology.bases))), seed=number, faults=faults
        )
        for name, owners in OWNERS.items():
            definition = CATALOG.find(name)
            assert isinstance(definition, SourceDefinition)
            for site in owners:
                network.declare(site, definition.scan())
        network.install(place(choice.plan, topology, query="q", taken=choice.taken))
        random, held, now = Random(f"{text} {number}"), Held(link={}, asked={}), SECOND
        for _ in range(2):
            for _ in range(12):
                now += random.randrange(2 * SECOND)
                network.advance(now)
                source, event = changed(random, held, now)
                site = OWNERS[source][NODES.index(str(event.row[0])) % 2]
                network.ingest(site, source, [event])
                for _ in range(random.randrange(6)):
                    network.act()
            network.settle(limit=60_000)
            assert not network.failures
            assert Counter(network.result("q")) == answer(text, held, now), choice.digest


@st.composite
def joined_recursions(draw: st.DrawFn) -> Plan:
    """Return a join of any kind of what reads a recursion with any other plan."""
    recursion = with_way(draw(recursions()), Way.AUTO)
    other = draw(plans(2))
    left, right = (recursion, other) if draw(st.booleans()) else (other, recursion)
    pairs = [
        (a, b)
        for a, mine in enumerate(left.schema.dtypes)
        for b, theirs in enumerate(right.schema.dtypes)
        if mine == theirs
    ]
    if not pairs:
        return recursion
    keys = tuple(draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True)))
    return Join(left, right, draw(st.sampled_from(list(JoinKind))), keys)


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@settings(max_examples=40)
@given(data=st.data())
def test_every_plan_of_a_joined_recursion_gives_its_rows(
    topology: Topology, data: st.DataObject
) -> None:
    plan = data.draw(joined_recursions())
    world = data.draw(readings(topology, least=data.draw(st.sampled_from([0, 5]))))
    search = Search(normalize(plan, topology), topology, Statistics())
    wanted = evaluate(plan, world.whole, NOW)
    numbers = range(1, search.memo.count() + 1)
    some = [number for number in numbers if number < MOST]
    for number in dict.fromkeys((*some, search.memo.shipping)):
        choice = search.plan(number)
        bundle = place(choice.plan, topology, query="q1", taken=choice.taken)
        assert evaluate_bundle(bundle, world, NOW) == wanted, number
