"""Every complete plan of a query gives the same rows, and the one that is taken is the cheapest."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.placement import SourceFacts, Statistics, Topology, place
from federated_optimizer.search.choosing import Search
from federated_optimizer.testing_bundles import (
    NOW,
    SPREAD_TOPOLOGY,
    STREAMS,
    TOPOLOGY,
    evaluate_bundle,
    readings,
)
from federated_optimizer.testing_plans import decisions, plans
from streamsql.algebra.operators import Plan
from streamsql.reference import evaluate
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import FragmentBundle

MOST = 6
"""Complete plans of one query that are run."""

FACTS = st.builds(SourceFacts, rows=st.floats(1, 1e4), changes=st.floats(0.01, 1e3))
STATISTICS = st.builds(
    Statistics, sources=st.fixed_dictionaries({}, optional={s.source: FACTS for s in STREAMS})
)


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@settings(max_examples=150)
@given(data=st.data())
def test_every_complete_plan_gives_the_rows_of_the_query(
    topology: Topology, data: st.DataObject
) -> None:
    plan = data.draw(st.one_of(decisions(), plans(3)))
    world = data.draw(readings(topology, least=data.draw(st.sampled_from([0, 5]))))
    ready = normalize(plan, topology)
    search = Search(ready, topology, Statistics())
    wanted = evaluate(plan, world.whole, NOW)
    numbers = st.integers(1, search.memo.count())
    for number in data.draw(st.lists(numbers, min_size=1, max_size=MOST, unique=True)):
        bundle = place(ready, topology, query="q1", methods=search.plan(number).methods)
        assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
        assert evaluate_bundle(bundle, world, NOW) == wanted, number


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@settings(max_examples=60)
@given(plan=st.one_of(decisions(), plans(3)), statistics=STATISTICS)
def test_the_plan_taken_costs_no_more_than_any_listed(
    topology: Topology, plan: Plan, statistics: Statistics
) -> None:
    search = Search(normalize(plan, topology), topology, statistics)
    found = search.alternatives()
    costs = {each.number: each.cost.order for each in found.listed}
    assert costs[found.chosen] == min(costs.values())
    assert found.chosen == search.taken().number
    assert search.taken().cost.order <= min(
        search.plan(number).cost.order for number in (1, search.memo.count())
    )
