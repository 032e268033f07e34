"""Orders of joins as plans to choose from."""

from collections.abc import Iterator
from itertools import combinations
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives
from federated_optimizer.rules import WIDTH_RULES, run_rules
from federated_optimizer.search.building import build
from federated_optimizer.search.choosing import Search
from federated_optimizer.search.joins import join_orders
from federated_optimizer.search.joins.join_graph import JoinGraph, Member, flatten
from federated_optimizer.search.top_down import best
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.testing_bundles import (
    NOW,
    SPREAD_TOPOLOGY,
    STREAMS,
    TABLES,
    TOPOLOGY,
    evaluate_bundle,
    readings,
)
from federated_optimizer.testing_operators import key_pairs
from streamsql.algebra.operators import Join, JoinKind, Plan, Scan, walk_plan
from streamsql.reference import evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE seat (mid TEXT, rid TEXT, weight INTEGER, PRIMARY KEY (mid));
    CREATE SOURCE room (rid TEXT, status TEXT, PRIMARY KEY (rid));
    CREATE SOURCE heat (sensor TEXT, rid TEXT, celsius DOUBLE, PRIMARY KEY (sensor));
    CREATE TABLE machine (mid TEXT, host TEXT, PRIMARY KEY (mid));"""
)
ROOMS = {(source, "rid"): "rid" for source in ("seat", "room", "heat")}
SITES = Topology(
    dict.fromkeys(("gw-1", "gw-2"), frozenset({"seat", "room", "heat"})), colocation=ROOMS
)
FACTS = st.builds(SourceFacts, rows=st.floats(1, 1e4), changes=st.floats(0.01, 1e3))
STATISTICS = st.builds(
    Statistics, sources=st.fixed_dictionaries({s.source: FACTS for s in STREAMS})
)


@st.composite
def blocks(draw: st.DrawFn, sources: tuple[Scan, ...], most: int) -> Plan:
    """Return three relations or more, each joined with what is before it by a column."""
    plan: Plan = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(2, most - 1))):
        right: Plan = draw(st.sampled_from(sources))
        pairs = key_pairs(plan, right)
        if pairs:
            plan = Join(plan, right, JoinKind.INNER, (draw(st.sampled_from(pairs)),))
    return plan


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@settings(max_examples=60)
@given(data=st.data())
def test_every_order_gives_the_rows_of_the_query(topology: Topology, data: st.DataObject) -> None:
    plan = data.draw(blocks((*STREAMS, *TABLES), 4))
    world = data.draw(readings(topology))
    search = Search(normalize(plan, topology), topology, Statistics())
    wanted = evaluate(plan, world.whole, NOW)
    numbers = st.integers(1, search.memo.count())
    for number in data.draw(st.lists(numbers, min_size=1, max_size=4, unique=True)):
        choice = search.plan(number)
        bundle = place(choice.plan, topology, query="q1", taken=choice.taken)
        assert bundle.schema == plan.schema
        assert evaluate_bundle(bundle, world, NOW) == wanted, number


def trees(graph: JoinGraph, inputs: frozenset[int]) -> Iterator[Member]:
    """Yield the joins of some inputs in every order, without products."""
    if len(inputs) == 1:
        yield graph.member(min(inputs))
        return
    first = min(inputs)
    rest = sorted(inputs - {first})
    for size in range(len(rest)):
        for others in combinations(rest, size):
            left = frozenset({first, *others})
            for a in trees(graph, left):
                for b in trees(graph, inputs - left):
                    if graph.connected(a, b):
                        yield graph.joined(a, b)


@settings(max_examples=40)
@given(plan=blocks(STREAMS, 5), statistics=STATISTICS)
def test_no_order_at_all_is_cheaper(plan: Plan, statistics: Statistics) -> None:
    ready = normalize(plan, TOPOLOGY)
    taken = Search(ready, TOPOLOGY, statistics).taken()
    graph = flatten(ready)
    with patch.object(join_orders, "MAX_RELATIONS", 0):  # each tree by itself
        for tree in trees(graph, frozenset(range(len(graph.inputs)))):
            made = run_rules(graph.restored(tree, ready.schema), WIDTH_RULES)
            memo = build(made, TOPOLOGY, statistics)
            least = memo.cost(memo.selection(best(memo, Weighing())))
            assert taken.cost.bytes <= least.bytes * (1 + 1e-9)


def pair_in_network(text: str, statistics: Statistics) -> set[str]:
    ready = normalize(bound_query(text, CATALOG).plan, SITES)
    choice = Search(ready, SITES, statistics).taken()
    bundle = place(choice.plan, SITES, query="q", taken=choice.taken)
    joined = [
        {node.source for node in walk_plan(fragment.plan) if isinstance(node, Scan)}
        for fragment in bundle.fragments
        if any(isinstance(node, Join) for node in walk_plan(fragment.plan))
    ]
    return next((sources for sources in joined if len(sources) > 1), set())


THREE = (
    "SELECT s.mid, h.celsius FROM seat s JOIN room r ON r.rid = s.rid JOIN heat h ON h.rid = r.rid"
)


@pytest.mark.parametrize("busy", ["seat", "heat"])
def test_the_pair_that_saves_most_is_joined_in_the_network(busy: str) -> None:
    rates = {"seat": 0.5, "room": 0.5, "heat": 0.5, busy: 50.0}
    statistics = Statistics(sources={name: SourceFacts(60.0, r) for name, r in rates.items()})
    found = pair_in_network(f"{THREE} WHERE r.status = 'open'", statistics)
    assert found == {"room", busy}


def test_an_order_is_listed_where_something_else_travels() -> None:
    found = alternatives(bound_query(THREE, CATALOG), SITES)
    orders = [each for each in found.listed if "joins in the order" in each.words]
    assert any("seat, then room with heat" in each.words for each in orders)
    costs = [(each.cost.bytes, each.cost.high) for each in found.listed]
    assert len(costs) == len(set(costs))


def orders_of(text: str) -> list[Plan]:
    ready = normalize(bound_query(text, CATALOG).plan, SITES)
    cutter = Cutter(SITES)
    cutter.piece(ready)
    (top,) = join_orders.block_tops(ready)
    return [made for made, _ in join_orders.join_orders(top, cutter)]


def test_orders_are_bounded_and_have_no_products() -> None:
    for count in range(2, 9):
        names = [f"t{number}" for number in range(count)]
        equal = [f"t0.rid = {name}.rid" for name in names[1:]]
        keys = " AND ".join(equal + [f"{name}.celsius > {n}" for n, name in enumerate(names)])
        text = f"SELECT t0.rid FROM {', '.join(f'heat {n}' for n in names)} WHERE {keys}"
        found = orders_of(text)
        assert len(found) == {2: 0, 3: 2, 4: 2, 5: 14, 6: 14, 7: 32, 8: 0}[count]
        for plan in found:
            assert all(node.keys for node in walk_plan(plan) if isinstance(node, Join))


def test_stored_tables_are_asked_last_in_another_order() -> None:
    text = (
        "SELECT m.host, h.celsius FROM machine m JOIN seat s ON s.mid = m.mid "
        "JOIN heat h ON h.sensor = s.mid JOIN heat i ON i.sensor = h.sensor"
    )
    for plan in orders_of(text):
        last = next(node for node in walk_plan(plan) if isinstance(node, Join))
        assert "machine" in {n.source for n in walk_plan(last.right) if isinstance(n, Scan)}
