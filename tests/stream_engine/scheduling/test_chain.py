"""Chains are the lower envelope of the progress chart, also where paths meet and part."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.scheduling.chain import chains_of, rates_of
from stream_engine.scheduling.tasks import Profile, Task


def operator(order: int, selectivity: float, time: float, *consumers: Task) -> Task:
    """Return an operator that takes so much time for a row, measured over a hundred rows."""
    profile = Profile()
    profile.add(100, 0, 1)
    profile.queued, profile.time = 100 * selectivity, 100 * time
    return Task(order, consumers=list(consumers), profile=profile)


def path(*steps: tuple[float, float]) -> list[Task]:
    tasks: list[Task] = []
    for order, (selectivity, time) in reversed(list(enumerate(steps))):
        tasks.insert(0, operator(order, selectivity, time, *tasks[:1]))
    return tasks


def numbers(tasks: list[Task]) -> list[tuple[int, ...]]:
    return [tuple(task.order for task in chain.tasks) for chain in chains_of(tasks)]


def test_a_strong_filter_in_front_is_a_chain_of_its_own() -> None:
    tasks = path((0.2, 1.0), (0.0, 5.0))
    assert numbers(tasks) == [(0,), (1,)]
    assert rates_of(tasks) == {0: pytest.approx(0.8), 1: pytest.approx(0.2)}


def test_a_strong_filter_behind_weak_ones_takes_them_along() -> None:
    tasks = path((0.9, 1.0), (1.0, 1 / 0.9), (0.0, 1 / 0.9))
    assert numbers(tasks) == [(0, 1, 2)]
    assert rates_of(tasks) == dict.fromkeys(range(3), pytest.approx(1 / 3))


def test_a_path_ends_where_the_output_goes_to_two_queues() -> None:
    left, right = operator(1, 0.0, 1.0), operator(2, 0.5, 1.0)
    first = operator(0, 2.0, 1.0, left, right)
    assert numbers([first, left, right]) == [(0,), (1,), (2,)]
    assert rates_of([first, left, right]) == {0: -1.0, 1: 1.0, 2: 0.5}


def test_a_join_counts_with_the_steeper_of_its_paths() -> None:
    join = operator(2, 0.0, 1.0)
    fast, slow = operator(0, 1.0, 1.0, join), operator(1, 1.0, 9.0, join)
    assert numbers([fast, slow, join]) == [(0, 2), (1, 2)]
    assert rates_of([fast, slow, join]) == {0: 0.5, 1: 0.1, 2: 0.5}


def test_an_operator_that_has_never_run_is_in_a_chain_too() -> None:
    assert numbers([Task(0)]) == [(0,)]
    assert rates_of([Task(0)]) == {0: 0.0}


STEPS = st.tuples(st.sampled_from((0.1, 0.3, 0.9, 1.0, 2.0)), st.sampled_from((0.5, 1.0, 4.0)))


@given(st.lists(STEPS, min_size=1, max_size=8))
def test_the_envelope_of_a_path_gets_flatter(steps: list[tuple[float, float]]) -> None:
    """Chains cover the path in order, and in rows of the first queue none is steeper than the last.

    That is what makes them a lower envelope: it is convex. (Where nothing is left there is none.)
    """
    tasks = path(*steps)
    chains = chains_of(tasks)
    assert [task.order for chain in chains for task in chain.tasks] == list(range(len(tasks)))
    for before, after in pairwise(chain.rate for chain in chains):
        assert after <= before + 1e-9


@given(st.integers(0, 2**32))
def test_every_operator_of_a_graph_is_in_a_chain(seed: int) -> None:
    choice = random.Random(seed)
    tasks: list[Task] = []
    for order in reversed(range(12)):
        consumers = choice.sample(tasks, min(len(tasks), choice.choice((0, 1, 1, 2))))
        tasks.insert(0, operator(order, choice.random(), choice.random() + 0.1, *consumers))
    assert set(rates_of(tasks)) == set(range(12))
