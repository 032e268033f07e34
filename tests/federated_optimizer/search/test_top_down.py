"""The search with bounds finds what an exhaustive one finds, up to seven relations."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.memo.groups import Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.search.building import build
from federated_optimizer.search.cheapest_plans import cheapest
from federated_optimizer.search.top_down import best
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.testing_bundles import STREAMS, TOPOLOGY
from federated_optimizer.testing_operators import key_pairs
from federated_optimizer.testing_plans import plans
from streamsql.algebra.operators import Distinct, Join, JoinKind, Plan

MOST = 3_000
"""Complete plans that the exhaustive search looks at."""

FACTS = st.builds(SourceFacts, rows=st.floats(1, 1e4), changes=st.floats(0.01, 1e3))
STATISTICS = st.builds(
    Statistics, sources=st.fixed_dictionaries({}, optional={s.source: FACTS for s in STREAMS})
)


def every(memo: Memo, wanted: Wanted) -> Iterator[Cost]:
    """Yield the prices of all plans of a part, without a number and without a bound."""
    for alternative in memo.alternatives[wanted]:
        for costs in product(*(list(every(memo, child)) for child in alternative.children)):
            yield sum(costs, alternative.cost)


def tree_cost(memo: Memo, wanted: Wanted, rank: int) -> Cost:
    """Return the price of the plan of a place, with what it reads twice paid twice."""
    for alternative in memo.alternatives[wanted]:
        if rank < memo.size(alternative):
            break
        rank -= memo.size(alternative)
    parts = (tree_cost(memo, child, place) for child, place in memo.ranks(alternative, rank))
    return sum(parts, alternative.cost)


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
@given(plan=st.one_of(joins(), plans(3)), statistics=STATISTICS)
def test_the_cheapest_plan_is_found(plan: Plan, statistics: Statistics) -> None:
    memo = build(normalize(plan, TOPOLOGY), TOPOLOGY, statistics)
    if memo.count() > MOST:
        return
    least = min(each.bytes for each in islice(every(memo, memo.whole), MOST))
    found = tree_cost(memo, memo.whole, memo.rank(best(memo)))
    assert found.bytes == pytest.approx(least)
    first, *others = cheapest(memo, 5)
    prices = [tree_cost(memo, memo.whole, memo.rank(n)).bytes for n in (first, *others)]
    assert prices[0] == pytest.approx(least)
    assert prices == sorted(prices)
    assert len(prices) == min(5, memo.count())


@settings(max_examples=40)
@given(plan=joins())
def test_of_equal_plans_the_first_one_is_found(plan: Plan) -> None:
    free = build(normalize(plan, TOPOLOGY), TOPOLOGY, Statistics())
    free.alternatives = {
        wanted: tuple(replace(each, cost=NOTHING) for each in alternatives)
        for wanted, alternatives in free.alternatives.items()
    }
    assert best(free) == 1
    places = [free.rank(number) for number in cheapest(free, 3)]
    assert places == list(range(min(free.count(), 3)))
