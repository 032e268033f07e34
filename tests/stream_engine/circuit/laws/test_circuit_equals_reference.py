"""The law of the engine: incremental equals from scratch, after every step, for any batching."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.testing.circuit_runs import LocalRun
from stream_engine.testing.histories import Moment, histories
from stream_engine.testing.plans import plans
from streamsql.algebra.operators import Plan


@settings(max_examples=settings().max_examples * 5)
@given(plans(), histories())
def test_random_plans_follow_the_reference(plan: Plan, history: list[Moment]) -> None:
    run = LocalRun(plan)
    for moment in history:
        assert run.step(moment.now, moment.events) == run.expected(moment.now)


@given(plans(), histories(), st.randoms(use_true_random=False))
def test_batching_does_not_matter(plan: Plan, history: list[Moment], choice: random.Random) -> None:
    together, apart = LocalRun(plan), LocalRun(plan)
    for moment in history:
        expected = together.step(moment.now, moment.events)
        for event in moment.events:
            apart.step(moment.now, [event])
            if choice.random() < 0.5:
                apart.step(moment.now)
        assert apart.step(moment.now) == expected


@given(plans(), histories())
def test_wakeups_are_when_and_only_when_time_changes_something(
    plan: Plan, history: list[Moment]
) -> None:
    run = LocalRun(plan)
    for moment in history:
        while (wakeup := run.next_wakeup()) is not None and wakeup <= moment.now:
            assert run.output == run.expected(wakeup - 1)
            assert run.step(wakeup) == run.expected(wakeup)
        assert run.step(moment.now, moment.events) == run.expected(moment.now)
