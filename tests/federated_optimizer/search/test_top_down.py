"""The search with bounds finds what an exhaustive one finds, up to seven relations."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.alternatives.method import Method
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.memo.properties import AT_BASE
from federated_optimizer.search.building import build
from federated_optimizer.search.cheapest_plans import cheapest
from federated_optimizer.search.top_down import NO_BOUND, _Search, best
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.testing_bundles import STREAMS, TOPOLOGY
from federated_optimizer.testing_operators import key_pairs
from federated_optimizer.testing_plans import plans
from streamsql.algebra.metrics import BY_BYTES, Metric, Term
from streamsql.algebra.operators import Distinct, Join, JoinKind, Plan

MOST = 3_000
"""Complete plans that the exhaustive search looks at."""

FACTS = st.builds(SourceFacts, rows=st.floats(1, 1e4), changes=st.floats(0.01, 1e3))
STATISTICS = st.builds(
    Statistics, sources=st.fixed_dictionaries({}, optional={s.source: FACTS for s in STREAMS})
)
METRICS = st.dictionaries(st.sampled_from(Term), st.sampled_from([0.5, 1.0, 7.0]), min_size=1).map(
    lambda weights: Metric(tuple(weights.items()))
)
SMALL = st.integers(0, 9).map(float)
COSTS = st.builds(
    Cost, SMALL, messages=SMALL, milliseconds=SMALL, energy=SMALL, cpu=SMALL, state=SMALL
)


def worth(metric: Metric, cost: Cost) -> float:
    """Return the weighted sum, written out."""
    weights = dict(metric.weights)
    return (
        weights.get(Term.BYTES, 0) * cost.bytes
        + weights.get(Term.MESSAGES, 0) * cost.messages
        + weights.get(Term.LATENCY, 0) * cost.milliseconds
        + weights.get(Term.ENERGY, 0) * cost.energy
        + weights.get(Term.CPU, 0) * cost.cpu
        + weights.get(Term.STATE, 0) * cost.state
        + weights.get(Term.ENGINE, 0) * cost.engine
    )


def above(own: Cost, below: list[Cost]) -> Cost:
    """Return the price of an alternative over its inputs: sums, and the slowest path."""
    whole = sum(below, own)
    slowest = max((each.milliseconds for each in below), default=0.0)
    return replace(whole, milliseconds=own.milliseconds + slowest)


def every(memo: Memo, wanted: Wanted) -> Iterator[Cost]:
    """Yield the prices of all plans of a part, without a number and without a bound."""
    for alternative in memo.alternatives[wanted]:
        for costs in product(*(list(every(memo, child)) for child in alternative.children)):
            yield above(alternative.cost, list(costs))


def tree_cost(memo: Memo, wanted: Wanted, rank: int) -> Cost:
    """Return the price of the plan of a place, with what it reads twice paid twice."""
    for alternative in memo.alternatives[wanted]:
        if rank < memo.size(alternative):
            break
        rank -= memo.size(alternative)
    parts = (tree_cost(memo, child, place) for child, place in memo.ranks(alternative, rank))
    return above(alternative.cost, list(parts))


@st.composite
def joins(draw: st.DrawFn) -> Plan:
    """Return a join of two to seven relations, some of them distinct."""
    plan: Plan = draw(st.sampled_from(STREAMS))
    for _ in range(draw(st.integers(1, 6))):
        right: Plan = draw(st.sampled_from(STREAMS))
        right = Distinct(right) if draw(st.booleans()) else right
        pairs = key_pairs(plan, right)
        if pairs:
            plan = Join(plan, right, JoinKind.INNER, (draw(st.sampled_from(pairs)),))
    return plan


@settings(max_examples=60)
@given(plan=st.one_of(joins(), plans(3)), statistics=STATISTICS, metric=METRICS)
def test_the_cheapest_plan_is_found(plan: Plan, statistics: Statistics, metric: Metric) -> None:
    memo = build(normalize(plan, TOPOLOGY), TOPOLOGY, statistics)
    if memo.count() > MOST:
        return
    check(memo, metric)


@settings(max_examples=100)
@given(plan=joins(), metric=METRICS, data=st.data())
def test_the_cheapest_plan_is_found_whatever_parts_cost(
    plan: Plan, metric: Metric, data: st.DataObject
) -> None:
    memo = build(normalize(plan, TOPOLOGY), TOPOLOGY, Statistics())
    if memo.count() > MOST // 10:
        return
    memo.alternatives = {
        wanted: tuple(replace(each, cost=data.draw(COSTS)) for each in alternatives)
        for wanted, alternatives in memo.alternatives.items()
    }
    check(memo, metric)


def check(memo: Memo, metric: Metric) -> None:
    weighing = Weighing(metric)
    least = sorted(worth(metric, each) for each in islice(every(memo, memo.whole), MOST))
    found = tree_cost(memo, memo.whole, memo.rank(best(memo, weighing)))
    assert worth(metric, found) == pytest.approx(least[0])
    numbers = cheapest(memo, weighing, 5)
    prices = [worth(metric, tree_cost(memo, memo.whole, memo.rank(n))) for n in numbers]
    assert len(set(numbers)) == len(numbers) == min(5, memo.count())
    assert prices == pytest.approx(least[: len(prices)])


def test_a_part_that_is_slow_and_small_is_taken_below_what_is_slow_anyway() -> None:
    memo = Memo()
    root, quick, slow = (Wanted(number, AT_BASE) for number in range(3))
    memo.root = root
    memo.alternatives = {
        root: (Alternative(Method.BASE, (quick, slow)),),
        quick: (
            Alternative(Method.SHIP, cost=Cost(10.0, milliseconds=1.0)),
            Alternative(Method.BASE, cost=Cost(5.0, milliseconds=30.0)),
        ),
        slow: (Alternative(Method.SHIP, cost=Cost(1.0, milliseconds=40.0)),),
    }
    for text, number in (((Term.LATENCY,), 2), ((Term.BYTES, Term.LATENCY), 2)):
        metric = Metric(tuple((term, 1.0) for term in text))
        assert best(memo, Weighing(metric)) == number
        assert cheapest(memo, Weighing(metric), 2) == [2, 1]


@settings(max_examples=40)
@given(plan=joins(), metric=METRICS)
def test_of_equal_plans_the_first_one_is_found(plan: Plan, metric: Metric) -> None:
    free = build(normalize(plan, TOPOLOGY), TOPOLOGY, Statistics())
    free.alternatives = {
        wanted: tuple(replace(each, cost=NOTHING) for each in alternatives)
        for wanted, alternatives in free.alternatives.items()
    }
    assert best(free, Weighing(metric)) == 1
    places = [free.rank(number) for number in cheapest(free, Weighing(metric), 3)]
    assert places == list(range(min(free.count(), 3)))


@pytest.mark.parametrize("metric", [BY_BYTES, Metric(((Term.BYTES, 1.0), (Term.LATENCY, 9.0)))])
def test_a_bound_gives_up_what_costs_too_much(metric: Metric) -> None:
    memo = Memo()
    root, below = Wanted(0, AT_BASE), Wanted(1, AT_BASE)
    memo.root = root
    memo.alternatives = {
        root: (
            Alternative(Method.SHIP, cost=Cost(10.0, milliseconds=1.0)),
            Alternative(Method.BASE, (below,), Cost(20.0, milliseconds=1.0)),
        ),
        below: (Alternative(Method.SHIP),),
    }
    search = _Search(memo, Weighing(metric))
    assert [each.rank for each in search.fronts(root, NO_BOUND)] == [0]
    assert below not in search._found, "what is below the dear one is not looked at"
