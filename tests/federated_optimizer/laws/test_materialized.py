"""A MATERIALIZED table is computed once, however often it is read, wherever its readings are."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import Topology, plan
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from stream_engine.simulation.network import Faults, Network
from streamsql.algebra.operators import (
    Fixpoint,
    Materialize,
    Plan,
    Scan,
    SourceKind,
    walk_plan,
)
from streamsql.binder import BoundQuery
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import Fragment, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

GATEWAYS = ("g1", "g2")
SCHEMA = (
    "CREATE SOURCE s (k TEXT, v INTEGER)",
    "CREATE TABLE d (k TEXT, n INTEGER)",
)
SUMS = "t AS MATERIALIZED (SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s GROUP BY k)"
STORED = "t AS MATERIALIZED (SELECT k, SUM(n) AS v, COUNT(*) AS n FROM d GROUP BY k)"
ROWS = "t AS MATERIALIZED (SELECT k, v, v * v AS n FROM s)"
UNION = "SELECT k, n FROM t WHERE k < 'c' UNION ALL SELECT k, v FROM t WHERE v > 2"
JOIN = "SELECT a.k, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.v > 1 AND b.n < 4"
OTHER_JOIN = "SELECT a.k, b.k AS other FROM t a JOIN t b ON a.v = b.n WHERE a.k > 'a'"
SEMI = "SELECT k FROM t WHERE v > 1 AND n IN (SELECT v FROM t WHERE k <> 'b')"
THROUGH = "u AS (SELECT k, n FROM t WHERE v > 1) SELECT a.k FROM u a, u b WHERE a.n = b.n"
RECURSIVE = (
    "r (a, b) AS (SELECT k, v FROM t UNION SELECT r.a, t.v FROM r JOIN t ON t.n = r.b) "
    "SELECT r.a, r.b FROM r JOIN t ON t.k = r.a WHERE t.v > 1"
)
QUERIES = {
    f"{of}, {how}": f"WITH {'RECURSIVE ' if how == 'recursion' else ''}{table}{comma}{text}"
    for of, table in (("groups", SUMS), ("stored", STORED), ("rows", ROWS))
    for how, comma, text in (
        ("union", " ", UNION),
        ("join", " ", JOIN),
        ("join on others", " ", OTHER_JOIN),
        ("subquery", " ", SEMI),
        ("through another", ", ", THROUGH),
        ("recursion", ", ", RECURSIVE),
    )
}
TOPOLOGIES = {
    "one gateway": Topology({"g1": frozenset({"s"})}),
    "gateways": Topology(dict.fromkeys(GATEWAYS, frozenset({"s"}))),
    "co-located": Topology(
        dict.fromkeys(GATEWAYS, frozenset({"s"})), colocation={("s", "k"): "place"}
    ),
    "three bases": Topology(dict.fromkeys(GATEWAYS, frozenset({"s"})), bases=("b1", "b2", "b3")),
}


def bound(text: str, *views: str) -> BoundQuery:
    return bound_query(text, catalog_of(*SCHEMA, *views))


def computing(bundle: FragmentBundle) -> list[Fragment]:
    """Return the fragments with the table inside."""
    return [fragment for fragment in bundle.fragments if names(fragment.plan)]


def names(root: Plan) -> set[str]:
    """Return the names of the tables inside."""
    return {node.name for node in walk_plan(root) if isinstance(node, Materialize)}


def operators(root: Plan) -> Counter[str]:
    """Return how often a circuit has each kind of operator."""

    def recursion(node: Fixpoint) -> RecursiveOperator:
        raise AssertionError(node.name)

    circuit = compile_plan(root, recursion, multiway_joins=False)
    return Counter(type(node.wiring.plan).__name__ for node in circuit.nodes)


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("where", TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_one_fragment_computes_the_table_and_its_readings_stay_equal(
    text: str, where: Topology
) -> None:
    bundle = plan(bound(text), where, query="q")
    (fragment,) = computing(bundle)
    assert names(fragment.plan) == {"t"}
    assert len({n for n in walk_plan(fragment.plan) if isinstance(n, Materialize)}) == 1
    sources = [
        f.id for f in bundle.fragments if any(isinstance(n, Scan) for n in walk_plan(f.plan))
    ]
    assert len(sources) == 1, "the source is read by one fragment"


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("where", TOPOLOGIES.values(), ids=TOPOLOGIES)
@settings(max_examples=8)
@given(
    st.lists(
        st.tuples(st.sampled_from(GATEWAYS), st.sampled_from("abcd"), st.integers(0, 5)),
        max_size=12,
    ),
    st.integers(0, 99),
)
def test_the_answer_is_that_of_the_query(
    text: str, where: Topology, readings: list[tuple[str, str, int]], seed: int
) -> None:
    query = bound(text)
    bundle = plan(query, where, query="q")
    sites = (*dict.fromkeys((*where.gateways, *where.bases, "static")),)
    net = Network(sites, seed=seed, faults=Faults(0.1, 0.1))
    scans = {n for n in walk_plan(query.plan) if isinstance(n, Scan)}
    database = Database()
    for scan in scans:
        at = ("static",) if scan.kind == SourceKind.TABLE else tuple(where.gateways)
        for site in at:
            net.declare(site, scan)
    net.install(bundle)
    for gateway, key, value in readings:
        for scan in scans:
            event = SourceEvent((key, value), 0)
            chosen = where.keeper("d") if scan.kind == SourceKind.TABLE else gateway
            if where is TOPOLOGIES["one gateway"] and chosen != "static":
                chosen = "g1"
            if where is TOPOLOGIES["co-located"] and chosen != "static":
                chosen = GATEWAYS[ord(key) % 2]
            net.ingest(chosen, scan.source, [event])
            database.append(scan.source, [event])
        net.act()
    net.settle()
    assert net.failures == []
    assert net.result("q") == evaluate(query.plan, database, 0)


def test_a_circuit_has_the_operators_of_the_table_once() -> None:
    filtered = (
        "SELECT k, v FROM t WHERE k < 'c' UNION ALL SELECT k, n FROM t WHERE k > 'b' AND k <> 'd'"
    )
    where = TOPOLOGIES["one gateway"]
    kept = plan(bound(f"WITH {SUMS} {filtered}"), where, query="q")
    pushed = f"{filtered} WITH (plan = 1)"
    plain = plan(bound(f"WITH {SUMS.replace('MATERIALIZED', '')} {pushed}"), where, query="q")
    ours = operators(kept.fragments[1].plan)
    theirs = operators(plain.fragments[1].plan)
    assert (ours["Materialize"], ours["Aggregate"], ours["Scan"]) == (1, 1, 1)
    assert (theirs["Materialize"], theirs["Aggregate"]) == (0, 2), "filters moved into each"


def test_rows_of_the_table_travel_once() -> None:
    query = bound(f"WITH {ROWS} {OTHER_JOIN}")
    where = TOPOLOGIES["gateways"]
    bundle = plan(query, where, query="q")
    net = Network((*GATEWAYS, "base", "static"))
    (scan,) = {n for n in walk_plan(query.plan) if isinstance(n, Scan)}
    for gateway in GATEWAYS:
        net.declare(gateway, scan)
    net.install(bundle)
    net.ingest("g1", "s", [SourceEvent((key, n), 0) for n, key in enumerate("abcde")])
    net.ingest("g2", "s", [SourceEvent((key, n), 0) for n, key in enumerate("xyz")])
    net.settle()
    arrived = [
        operator.rows_out
        for fragment in net.sites["base"].statistics()
        for operator in fragment.operators
        if operator.operator.startswith("RemoteSource")
    ]
    assert arrived == [8]
    shown = [
        operator.operator
        for fragment in net.sites["g1"].statistics()
        for operator in fragment.operators
    ]
    assert shown.count("Materialize t") == 1


@pytest.mark.parametrize(
    ("text", "barriers"),
    [
        (f"WITH {SUMS} SELECT k FROM t", 0),
        (f"WITH {SUMS} SELECT 1 AS one", 0),
        (f"WITH {SUMS}, u AS (SELECT k FROM t) SELECT k FROM u", 0),
        (f"WITH {SUMS}, u AS (SELECT k FROM t) SELECT a.k FROM u a, u b", 2),
        (f"WITH {SUMS}, u AS MATERIALIZED (SELECT k FROM t) SELECT a.k FROM u a, u b", 2),
        (f"WITH {SUMS} SELECT k FROM t WHERE v = (SELECT MAX(v) FROM t)", 2),
        (f"WITH {SUMS} SELECT window_end, k FROM t, (WITH t AS (SELECT 1 AS window_end) "
         "SELECT window_end FROM t) x", 0),
        (f"WITH {SUMS}, t2 AS (WITH t AS (SELECT 1 AS k) SELECT k FROM t) "
         "SELECT a.k FROM t a, t2 b", 0),
        (f"SELECT k FROM (WITH {SUMS} SELECT a.k FROM t a, t b) x", 2),
        (f"WITH {SUMS.replace('MATERIALIZED', 'NOT MATERIALIZED')} SELECT a.k FROM t a, t b", 0),
        ("WITH RECURSIVE r (k) AS MATERIALIZED (SELECT k FROM s UNION SELECT d.k FROM r JOIN d "
         "ON d.k = r.k) SELECT a.k FROM r a, r b", 2),
        ("WITH RECURSIVE a (k) AS MATERIALIZED (SELECT k FROM s UNION SELECT k FROM b), "
         "b (k) AS (SELECT k FROM d UNION SELECT k FROM a) SELECT a.k FROM a, a c, b", 2),
    ],
)  # fmt: skip
def test_a_barrier_stands_where_a_table_is_read_twice(text: str, barriers: int) -> None:
    found = [node for node in walk_plan(bound(text).plan) if isinstance(node, Materialize)]
    assert len(found) == barriers
    assert len(set(found)) == min(barriers, 1)


def test_a_view_with_a_materialized_table_computes_it_once() -> None:
    view = f"CREATE VIEW twice AS WITH {SUMS} SELECT a.k, b.v FROM t a JOIN t b ON a.n = b.n"
    query = bound("SELECT x.k FROM twice x JOIN twice y ON x.k = y.k WHERE x.v > 1", view)
    for where in TOPOLOGIES.values():
        assert len(computing(plan(query, where, query="q"))) == 1


def test_tables_of_one_name_and_different_queries_keep_apart() -> None:
    query = bound(
        f"SELECT x.k FROM (WITH {SUMS} {UNION}) x JOIN (WITH {ROWS} {UNION}) y ON x.k = y.k"
    )
    tables = {node for node in walk_plan(query.plan) if isinstance(node, Materialize)}
    assert sorted(table.name for table in tables) == ["t", "t_2"]
    fragments = computing(plan(query, TOPOLOGIES["gateways"], query="q"))
    assert sorted(name for f in fragments for name in names(f.plan)) == ["t", "t_2"]
