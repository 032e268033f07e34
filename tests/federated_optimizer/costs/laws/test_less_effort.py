"""The choice between two plans by their effort: it is never undone for the same facts."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.effort import BYTES_SENT, LESS_EFFORT, effort_of, takes_less_effort
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS as SPEEDS
from streamsql.algebra.metrics import Metric, Term

AMOUNTS = st.floats(0.0, 1e6)
COSTS = st.builds(Cost, bytes=AMOUNTS, cpu=AMOUNTS, state=AMOUNTS)
METRICS = st.sampled_from((Metric(((Term.BYTES, 1.0),)), Metric(((Term.CPU, 1.0),))))


@given(COSTS, COSTS, METRICS)
def test_a_plan_that_is_left_is_not_taken_back(one: Cost, other: Cost, metric: Metric) -> None:
    weighing = Weighing(metric)
    if takes_less_effort(weighing, SPEEDS, one, other):
        assert not takes_less_effort(weighing, SPEEDS, other, one)


@given(st.lists(COSTS, min_size=2, max_size=4), METRICS)
def test_plans_take_no_turns(costs: list[Cost], metric: Metric) -> None:
    weighing, circle = Weighing(metric), [*costs, costs[0]]
    assert not all(takes_less_effort(weighing, SPEEDS, new, old) for old, new in pairwise(circle))


def test_what_the_metric_says_comes_first() -> None:
    weighing, old = Weighing(), Cost(bytes=100.0, cpu=10.0)
    assert takes_less_effort(weighing, SPEEDS, Cost(bytes=101.0 + BYTES_SENT, cpu=1.0), old)
    assert not takes_less_effort(weighing, SPEEDS, Cost(bytes=102.0 + BYTES_SENT, cpu=1.0), old)
    assert not takes_less_effort(weighing, SPEEDS, Cost(bytes=0.0, cpu=LESS_EFFORT * 10.0), old)


def test_memory_counts_as_work() -> None:
    weighing, old = Weighing(), Cost(cpu=10.0, state=1_000_000.0)
    kept = effort_of(old, SPEEDS).value - old.cpu
    new = Cost(cpu=LESS_EFFORT * (10.0 + kept) - kept, state=old.state)
    assert not takes_less_effort(weighing, SPEEDS, new, old)
    assert takes_less_effort(weighing, SPEEDS, replace(new, state=990_000.0), old)
