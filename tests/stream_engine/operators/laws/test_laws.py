"""Every operator over plain rows: incremental equals from scratch, for any batching."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.testing.circuit_runs import RemoteRun, accumulated
from stream_engine.testing.histories import COLUMNS, delta_sequences, deltas
from stream_engine.testing.plans import joins, predicates, projections
from stream_engine.testing.shapes import aggregate_calls
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Plan,
    RemoteSource,
    UnionAll,
)
from streamsql.data.delta import Delta, negated

LEFT, RIGHT = RemoteSource("left", COLUMNS), RemoteSource("right", COLUMNS)


@st.composite
def groupings(draw: st.DrawFn) -> Plan:
    positions = draw(st.lists(st.integers(0, 2), max_size=2, unique=True))
    calls: list[AggregateCall] = draw(
        st.lists(aggregate_calls(COLUMNS), min_size=0 if positions else 1, max_size=4)
    )
    return Aggregate(LEFT, tuple(positions), tuple(calls))


@st.composite
def operators(draw: st.DrawFn) -> Plan:
    """Return one operator over one or two inputs."""
    match draw(st.integers(0, 5)):
        case 0:
            return Filter(LEFT, draw(predicates(COLUMNS)))
        case 1:
            return draw(projections(LEFT))
        case 2:
            return draw(joins(LEFT, draw(st.sampled_from((LEFT, RIGHT)))))
        case 3:
            return draw(groupings())
        case 4:
            return Distinct(LEFT)
        case _:
            return UnionAll((LEFT, draw(st.sampled_from((LEFT, RIGHT)))))


@given(operators(), delta_sequences(), delta_sequences())
def test_incremental_equals_from_scratch(
    plan: Plan, lefts: list[Delta], rights: list[Delta]
) -> None:
    run = RemoteRun(plan)
    assert run.output == run.expected()
    for number in range(max(len(lefts), len(rights))):
        left = lefts[number] if number < len(lefts) else {}
        right = rights[number] if number < len(rights) else {}
        run.step(left=left, right=right)
        assert run.output == run.expected()


@given(operators(), delta_sequences(), delta_sequences(), st.randoms(use_true_random=False))
def test_any_batching_and_interleaving(
    plan: Plan, lefts: list[Delta], rights: list[Delta], choice: random.Random
) -> None:
    """Row by row, left and right in turns, gives what one batch gives."""
    at_once, singly = RemoteRun(plan), RemoteRun(plan)
    at_once.step(left=accumulated(lefts), right=accumulated(rights))
    pending: list[list[tuple[str, Delta]]] = [
        [(side, {row: weight}) for delta in sequence for row, weight in delta.items()]
        for side, sequence in (("left", lefts), ("right", rights))
    ]
    while any(pending):
        side, change = choice.choice([queue for queue in pending if queue]).pop(0)
        singly.step(**{side: change})
    assert singly.output == at_once.output


@given(operators(), delta_sequences(), delta_sequences())
def test_taking_everything_back_leaves_nothing_behind(
    plan: Plan, lefts: list[Delta], rights: list[Delta]
) -> None:
    """The output is that of empty inputs again, and the state of the operators is too."""
    run, empty = RemoteRun(plan), RemoteRun(plan)
    for left, right in zip(lefts, rights, strict=False):
        run.step(left=left, right=right)
    run.step(**{side: negated(rows) for side, rows in run.inputs.items()})
    assert run.output == empty.output
    states = [entry.state_rows for entry in run.circuit.statistics()]
    assert states == [entry.state_rows for entry in empty.circuit.statistics()]


LINEAR: list[Callable[[], st.SearchStrategy[Plan]]] = [
    lambda: predicates(COLUMNS).map(lambda predicate: Filter(LEFT, predicate)),
    lambda: projections(LEFT),
]


@pytest.mark.parametrize("plans_of", LINEAR)
@given(data=st.data())
def test_linear_operators_have_no_memory(
    plans_of: Callable[[], st.SearchStrategy[Plan]], data: st.DataObject
) -> None:
    """f(a + b) = f(a) + f(b), with deltas of any weights."""
    plan = data.draw(plans_of())
    first, second = data.draw(deltas()), data.draw(deltas())
    apart, together = RemoteRun(plan), RemoteRun(plan)
    apart.circuit.step({}, {"left": first}, 0)
    separate = apart.circuit.step({}, {"left": second}, 0)
    assert together.circuit.step({}, {"left": second}, 0) == separate
    both = accumulated([first, second])
    once = RemoteRun(plan).circuit.step({}, {"left": both}, 0)
    assert once == accumulated(
        [RemoteRun(plan).circuit.step({}, {"left": d}, 0) for d in (first, second)]
    )


@given(delta_sequences())
def test_distinct_is_idempotent(sequence: list[Delta]) -> None:
    once, twice = RemoteRun(Distinct(LEFT)), RemoteRun(Distinct(Distinct(LEFT)))
    for delta in sequence:
        assert once.step(left=delta) == twice.step(left=delta)


@given(operators(), delta_sequences())
def test_inputs_are_never_changed(plan: Plan, sequence: list[Delta]) -> None:
    run = RemoteRun(plan)
    for delta in sequence:
        copy = dict(delta)
        run.circuit.step({}, {"left": delta, "right": delta}, 0)
        assert delta == copy
