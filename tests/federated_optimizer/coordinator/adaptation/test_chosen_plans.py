"""A running plan stays unless another is much cheaper, or costs the same and takes less work."""

from dataclasses import replace

import pytest

from federated_optimizer.coordinator.adaptation.chosen_plans import Candidate, Chosen, chosen
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS
from streamsql.algebra.metrics import metric_of

NOW = Cost(bytes=1_000.0, cpu=10.0)
LESS = Candidate(Cost(bytes=1_000.0, cpu=7.0), reads_results=True, sends_nothing=True)
CHEAP = Candidate(Cost(bytes=400.0, cpu=20.0), reads_results=False, sends_nothing=False)


def taken(*candidates: Candidate, now: Cost = NOW, metric: str = "bytes") -> Chosen | None:
    return chosen(now, candidates, Weighing(metric_of(metric)), DEFAULT_SPEEDS)


def test_what_is_much_cheaper_is_taken_whatever_it_takes_of_sites() -> None:
    assert taken(CHEAP) == Chosen(0, is_much=True)
    assert taken(replace(CHEAP, cost=Cost(bytes=501.0))) is None


def test_less_effort_is_a_reason_between_plans_that_cost_the_same() -> None:
    assert taken(LESS) == Chosen(0, is_much=False)
    assert taken(replace(LESS, cost=Cost(bytes=1_000.0, cpu=8.5))) is None, "hardly less"


@pytest.mark.parametrize(
    "worse",
    [
        replace(LESS, reads_results=False),  # the way back: others may want the node
        replace(LESS, sends_nothing=False),
        replace(LESS, cost=Cost(bytes=1_020.0, cpu=7.0)),
        replace(LESS, cost=Cost(bytes=1_000.0, cpu=7.0, state=1e8)),
    ],
    ids=["alone", "sends", "dearer", "keeps"],
)
def test_less_effort_is_no_reason_else(worse: Candidate) -> None:
    assert taken(worse) is None


def test_rows_that_are_kept_once_are_a_reason_where_hardly_anything_changes() -> None:
    now = Cost(bytes=1.0, cpu=0.001, state=2e8)
    once = replace(LESS, cost=Cost(bytes=1.0, cpu=0.001, state=1e8))
    assert taken(once, now=now) == Chosen(0, is_much=False)


def test_of_a_few_bytes_the_effort_that_goes_with_them_decides() -> None:
    now = Cost(bytes=9.0, cpu=1.0)
    assert taken(replace(CHEAP, cost=Cost(cpu=0.1)), now=now) is None
    assert taken(replace(LESS, cost=Cost(cpu=0.1)), now=now) == Chosen(0, is_much=False)
    now = Cost(bytes=11.0, cpu=1.0)
    assert taken(replace(LESS, cost=Cost(cpu=0.1)), now=now) == Chosen(0, is_much=True)


def test_the_best_of_several_is_taken() -> None:
    cheaper = replace(CHEAP, cost=Cost(bytes=100.0))
    assert taken(CHEAP, cheaper) == Chosen(1, is_much=True)
    assert taken(cheaper, CHEAP) == Chosen(0, is_much=True)
    assert taken(CHEAP, LESS) == Chosen(0, is_much=True), "it is no longer alike"
    alike = replace(LESS, cost=Cost(bytes=404.0, cpu=7.0))
    assert taken(CHEAP, alike) == Chosen(1, is_much=True), "than what runs"
    least = replace(LESS, cost=Cost(bytes=1_000.0, cpu=5.0))
    assert taken(least, LESS) == Chosen(0, is_much=False), "less than what runs is not enough"


def test_a_slow_plan_is_no_gain_by_latency() -> None:
    now = Cost(bytes=1_000.0, milliseconds=22.0)
    slow = replace(CHEAP, cost=Cost(bytes=1.0, milliseconds=22.0))
    assert taken(slow, now=now, metric="latency") is None
    quick = replace(CHEAP, cost=Cost(bytes=1.0, milliseconds=10.0))
    assert taken(quick, now=now, metric="latency") == Chosen(0, is_much=True)


def test_nothing_is_cheaper_than_nothing() -> None:
    assert taken(replace(CHEAP, cost=Cost()), now=Cost(cpu=1.0)) is None
