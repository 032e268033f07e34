"""Without the heuristics of the thesis plans answer as DuckDB does, and a search stays bounded."""

from collections.abc import Iterator
from math import isclose

import pytest

from federated_optimizer import Topology, normalize
from federated_optimizer.alternatives.heuristics import LIFTED, NONE, Heuristic
from federated_optimizer.alternatives.method import Method
from federated_optimizer.search import search_bounds
from federated_optimizer.search.choosing import Search
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.search.joins.join_orders import MAX_ORDERS
from federated_optimizer.search.joins.network_joins import IN_PARTS, MAX_PIECES
from federated_optimizer.statistics.planning_statistics import Statistics
from stream_engine.simulation.network import Faults
from streamsql.algebra.operators import AsOfJoin, Join, SetOperation, walk_plan
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.federated_optimizer.simulated_joins import (
    ONE_BASE,
    STATISTICS,
    THREE_BASES,
    Federation,
    Plans,
)
from tests.streamsql.from_text import bound_query, catalog_of

CHAIN = (
    "SELECT s.mid, r.status, m.watt FROM seat s JOIN room r ON s.rid = r.rid"
    " JOIN meter m ON m.mid = s.mid"
)
PRODUCT = "SELECT r.rid, m.mid FROM room r, meter m WHERE r.light = 3"
QUERIES = (
    CHAIN,
    PRODUCT,
    "SELECT s.mid, m.mid AS other FROM seat s JOIN meter m ON s.weight < m.watt",
    "SELECT r.status, COUNT(*) AS n, MAX(m.watt) AS w FROM seat s JOIN room r ON s.rid = r.rid"
    " JOIN meter m ON m.mid = s.mid GROUP BY r.status",
    "SELECT s.mid, r.light, m.watt FROM seat s LEFT JOIN room r ON s.rid = r.rid"
    " LEFT JOIN meter m ON m.mid = s.mid",
    "SELECT s.mid, b.mid AS other, r.status FROM seat s JOIN room r ON s.rid = r.rid"
    " JOIN seat b ON b.rid = r.rid AND b.weight < s.weight",
    "SELECT s.mid FROM seat s JOIN room r ON s.rid = r.rid"
    " WHERE NOT EXISTS (SELECT 1 FROM meter m WHERE m.mid = s.mid)",
    "SELECT s.mid FROM seat s JOIN room r ON s.rid = r.rid UNION ALL"
    " SELECT m.mid FROM meter m JOIN seat b ON b.mid = m.mid",
    "SELECT r.rid FROM seat s JOIN room r ON s.rid = r.rid EXCEPT SELECT rid FROM room"
    " WHERE light > 1",
)
MOST = 10
"""Plans of a query that are run, of different fragments."""

CASES = [(text, ONE_BASE) for text in QUERIES] + [(text, THREE_BASES) for text in QUERIES[::3]]


def broken(bundle: FragmentBundle) -> set[Heuristic]:
    """Return the rules that a bundle does not keep, as its fragments tell."""
    found: set[Heuristic] = set()
    engines = {fragment.id: fragment.engine for fragment in bundle.fragments}
    for fragment in bundle.fragments:
        if fragment.engine != Engine.GATEWAY:
            continue
        nodes = walk_plan(fragment.plan)
        joins = [n for n in nodes if isinstance(n, Join | AsOfJoin | SetOperation)]
        if any(isinstance(join, Join) and not join.keys for join in joins):
            found.add(Heuristic.NO_PRODUCT)
        if len(joins) > 1:
            found.add(Heuristic.ONE_JOIN)
        if joins and engines.get(fragment.consumer) == Engine.GATEWAY:
            found.add(Heuristic.TO_BASE)
    return found


def different(plans: Plans) -> Iterator[tuple[int, FragmentBundle]]:
    """Yield plans with the numbers of the first that are cut so."""
    seen = set()
    for number in range(1, plans.count + 1, max(plans.count // 500, 1)):
        bundle = plans.bundle(number)
        if bundle.fragments not in seen:
            seen.add(bundle.fragments)
            yield number, bundle


@pytest.mark.parametrize(("text", "topology"), CASES)
def test_plans_that_heuristics_leave_out_answer_as_duckdb(text: str, topology: Topology) -> None:
    plans = Plans(text, topology, kept=NONE)
    found = [(number, bundle) for number, bundle in different(plans) if broken(bundle)]
    assert found
    for number, bundle in found[:: max(len(found) // MOST, 1)]:
        faults = Faults(loss=0.05, repetition=0.05) if number % 2 else None
        federation = Federation(topology, seed=number, faults=faults)
        federation.network.install(bundle)
        for _ in range(2):
            federation.happen(9)
            assert federation.rest() == federation.expected(text), number


def test_each_heuristic_leaves_plans_out() -> None:
    found = [broken(b) for text in QUERIES for _, b in different(Plans(text, ONE_BASE, kept=NONE))]
    assert set().union(*found) == set(Heuristic)


@pytest.mark.parametrize("text", QUERIES)
def test_with_heuristics_no_plan_breaks_one_and_explain_says_which(text: str) -> None:
    plans = Plans(text, ONE_BASE)
    assert not any(broken(bundle) for _, bundle in different(plans))
    left_out = plans.search.alternatives().not_considered
    assert left_out
    assert all(each.endswith(f"({LIFTED})") for each in left_out)
    assert not Plans(text, ONE_BASE, kept=NONE).search.alternatives().not_considered


def test_what_is_wrong_in_any_case_is_not_said_to_be_left_out() -> None:
    acting = Plans(CHAIN, ONE_BASE, whole_changes=True, kept=NONE)
    assert not acting.in_network()
    assert any(each.endswith(IN_PARTS) for each in acting.search.memo.refused)
    assert not Plans(PRODUCT, ONE_BASE, whole_changes=True).search.memo.not_considered


# What two readings of a source send alike is paid once only where the plan is cut.
@pytest.mark.parametrize("text", [text for text in QUERIES if "seat b" not in text])
def test_such_a_plan_is_priced_as_what_it_is_cut_into(text: str) -> None:
    plans = Plans(text, ONE_BASE, kept=NONE)
    for number in range(1, plans.count + 1, max(plans.count // 60, 1)):
        choice = plans.search.plan(number)
        cut = CutPrices.of(choice.taken, ONE_BASE, STATISTICS, NONE)
        assert isclose(choice.cost.bytes, cut.bytes, rel_tol=0.02), (number, choice.methods)


@pytest.mark.parametrize("text", [CHAIN, QUERIES[4]])
def test_gateways_that_die_amid_a_chain_of_joins_and_come_back(text: str) -> None:
    plans = Plans(text, ONE_BASE, kept=NONE)
    chains = [n for n, bundle in different(plans) if Heuristic.TO_BASE in broken(bundle)]
    for number in chains[:: max(len(chains) // 4, 1)]:
        federation = Federation(ONE_BASE, seed=number)
        federation.network.install(plans.bundle(number))
        for lost in ONE_BASE.gateways:
            federation.happen(6)
            federation.kill(lost)
            federation.happen(4)
            federation.rest()
            federation.network.restart(lost)
            federation.happen(4)
            assert federation.rest() == federation.expected(text), (number, lost)


def of_streams(count: int, *, branches: int = 1) -> Search:
    """Return the search without heuristics of joins of streams by one key at three gateways."""
    names = [f"r{i}" for i in range(count)]
    catalog = catalog_of("".join(f"CREATE SOURCE {n} (k TEXT, v INTEGER);" for n in names))
    keys = " AND ".join(f"{n}.k = r0.k" for n in names[1:])
    text = " UNION ALL ".join(
        f"SELECT r0.k FROM {', '.join(names)} WHERE {keys} AND r0.v > {i}" for i in range(branches)
    )
    topology = Topology(dict.fromkeys(("g0", "g1", "g2"), frozenset(names)))
    ready = normalize(bound_query(text, catalog).plan, topology)
    return Search(ready, topology, Statistics(), kept=NONE)


def ways(search: Search) -> int:
    """Return how many alternatives have rows that travel to gateways."""
    every = search.memo.alternatives.values()
    return sum(a.is_in_network and a.method != Method.ORDER for each in every for a in each)


def test_the_search_stays_bounded() -> None:
    memo = of_streams(7).memo
    orders = [sum(a.is_rewritten for a in each) for each in memo.alternatives.values()]
    assert 0 < max(orders) <= MAX_ORDERS
    most = max(map(len, memo.alternatives.values()))
    assert most <= 2 * MAX_PIECES * 2 + MAX_ORDERS
    assert not memo.not_considered  # the budget is enough for the largest block


def test_the_search_of_a_union_is_bounded_as_a_whole_and_says_so() -> None:
    one, two, three = (of_streams(6, branches=count) for count in (1, 2, 3))
    assert not one.memo.not_considered
    assert ways(two) < 2 * ways(one)
    assert ways(three) - ways(two) < ways(one) / 10
    for search in (two, three):
        told, *left_out = search.memo.not_considered
        assert "these hold again for the rest of the query" in told
        assert left_out
        assert not any(LIFTED in each for each in left_out)


@pytest.fixture
def few_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the budget of a search be spent amid small queries."""
    monkeypatch.setattr(search_bounds, "MAX_WAYS", 2)


@pytest.mark.usefixtures("few_ways")
@pytest.mark.parametrize("text", QUERIES)
def test_plans_of_a_search_whose_budget_is_spent_answer_as_duckdb(text: str) -> None:
    plans = Plans(text, ONE_BASE, kept=NONE)
    assert "these hold again" in plans.search.memo.not_considered[0]
    found = [*different(plans)]
    for number, bundle in found[:: max(len(found) // MOST, 1)]:
        federation = Federation(ONE_BASE, seed=number)
        federation.network.install(bundle)
        federation.happen(9)
        assert federation.rest() == federation.expected(text), number
        choice = plans.search.plan(number)
        if "seat b" not in text:
            cut = CutPrices.of(choice.taken, ONE_BASE, STATISTICS, NONE)
            assert isclose(choice.cost.bytes, cut.bytes, rel_tol=0.02), (number, choice.methods)


@pytest.mark.usefixtures("few_ways")
def test_a_search_with_heuristics_has_no_budget() -> None:
    for text in QUERIES:
        told = Plans(text, ONE_BASE).search.alternatives().not_considered
        assert all(each.endswith(f"({LIFTED})") for each in told)
