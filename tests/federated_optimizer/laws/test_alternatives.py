"""Every complete plan of a query gives the same rows, and the one that is taken is the cheapest."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer import normalize
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.testing_bundles import (
    NOW,
    SPREAD_TOPOLOGY,
    STREAMS,
    TOPOLOGY,
    Readings,
    evaluate_bundle,
    readings,
)
from federated_optimizer.testing_plans import decisions, plans, recursions, with_way
from streamsql.algebra.choices import Way
from streamsql.algebra.metrics import Metric, Term
from streamsql.algebra.operators import Plan
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

MOST = 6
"""Complete plans of one query that are run."""

FACTS = st.builds(SourceFacts, rows=st.floats(1, 1e4), changes=st.floats(0.01, 1e3))
STATISTICS = st.builds(
    Statistics, sources=st.fixed_dictionaries({}, optional={s.source: FACTS for s in STREAMS})
)
METRICS = st.dictionaries(st.sampled_from(Term), st.sampled_from([0.1, 1.0, 50.0]), min_size=1).map(
    lambda weights: Metric(tuple(weights.items()))
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
        choice = search.plan(number)
        bundle = place(choice.plan, topology, query="q1", taken=choice.taken)
        assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
        assert evaluate_bundle(bundle, world, NOW) == wanted, number


@settings(max_examples=80)
@given(data=st.data())
def test_every_way_of_a_recursion_gives_its_rows(data: st.DataObject) -> None:
    plan = with_way(data.draw(recursions()), Way.AUTO)
    world = data.draw(readings(TOPOLOGY, least=data.draw(st.sampled_from([0, 5]))))
    ready = normalize(plan, TOPOLOGY)
    search = Search(ready, TOPOLOGY, Statistics())
    wanted = evaluate(plan, world.whole, NOW)
    numbers = st.integers(1, search.memo.count())
    for number in data.draw(st.lists(numbers, min_size=1, max_size=MOST, unique=True)):
        choice = search.plan(number)
        bundle = place(choice.plan, TOPOLOGY, query="q1", taken=choice.taken)
        assert evaluate_bundle(bundle, world, NOW) == wanted, number


COUNTED = catalog_of("CREATE SOURCE seen (device TEXT, zone TEXT, level INTEGER, n INTEGER);")
SPREAD = Topology(
    dict.fromkeys(("s0", "s1", "s2"), frozenset({"seen"})),
    bases=("s0", "s1", "s2"),
    static="s0",
    coordinator="s0",
)
DEVICES = "(SELECT level, COUNT(DISTINCT device) AS c FROM seen GROUP BY level)"
ZONES = "(SELECT level, COUNT(DISTINCT zone) AS c FROM seen GROUP BY level)"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT c, COUNT(*) AS n FROM {DEVICES} AS q GROUP BY c",
        "SELECT c, COUNT(*) AS n FROM (SELECT level, COUNT(DISTINCT n) AS c, MAX(n) AS m"
        " FROM seen GROUP BY level) AS q GROUP BY c",
        "SELECT m, COUNT(*) AS n FROM (SELECT zone, COUNT(DISTINCT device) AS c, MAX(n) AS m"
        " FROM seen GROUP BY zone) AS q GROUP BY m",
        "SELECT c, d, COUNT(*) AS n FROM (SELECT level, COUNT(DISTINCT device) AS c,"
        " COUNT(DISTINCT zone) AS d FROM seen GROUP BY level) AS q GROUP BY c, d",
        f"SELECT DISTINCT c FROM {DEVICES} AS q",
        f"SELECT q.level, p.level AS other FROM {DEVICES} AS q, {ZONES} AS p WHERE p.c = q.c",
    ],
)
def test_groups_of_parts_are_brought_together_by_other_columns(text: str) -> None:
    ready = normalize(bound_query(text, COUNTED).plan, SPREAD)
    search = Search(ready, SPREAD, Statistics())
    for number in range(1, min(search.memo.count(), 60) + 1):
        choice = search.plan(number)
        bundle = place(choice.plan, SPREAD, query="q1", taken=choice.taken)
        for seed in range(3):
            whole, at = Database(), {site: Database() for site in SPREAD.bases}
            chance = random.Random(seed)
            for _ in range(30):
                row = (chance.choice("abcdefgh"), chance.choice("xyz"), chance.randrange(9))
                event = SourceEvent((*row, chance.randrange(4)), NOW, delete=False)
                for database in (whole, at[chance.choice(SPREAD.bases)]):
                    database.append("seen", [event])
            wanted = evaluate(ready, whole, NOW)
            assert evaluate_bundle(bundle, Readings(whole, at), NOW) == wanted, number


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY], ids=["one base", "three bases"])
@settings(max_examples=60)
@given(plan=st.one_of(decisions(), plans(3)), statistics=STATISTICS, metric=METRICS)
def test_the_plan_taken_costs_no_more_than_any_listed(
    topology: Topology, plan: Plan, statistics: Statistics, metric: Metric
) -> None:
    search = Search(normalize(plan, topology), topology, statistics, metric)
    order = Weighing(metric).order
    found = search.alternatives()
    costs = {each.number: order(each.cost) for each in found.listed}
    assert costs[found.chosen] == min(costs.values())
    assert found.chosen == search.taken().number
    assert order(search.taken().cost) <= min(
        order(search.plan(number).cost) for number in (1, search.memo.count())
    )
