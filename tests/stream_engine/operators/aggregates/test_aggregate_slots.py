"""Aggregates that are found from the same state keep it once."""

from stream_engine.operators.aggregates.aggregate import AggregateOperator
from stream_engine.operators.aggregates.aggregate_slots import slots_of
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import AggregateCall
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.types import DataType

X, Y = Column(1, "x", DataType.DOUBLE), Column(2, "y", DataType.DOUBLE)


def call(function: F, *columns: Column, distinct: bool = False) -> AggregateCall:
    return AggregateCall(function, columns, "a", distinct=distinct)


def test_the_same_state_has_one_slot() -> None:
    slots = slots_of(
        (
            call(F.MIN, X),
            call(F.MAX, Y),
            call(F.MAX, X, distinct=True),
            call(F.PERCENTILE_CONT, X),
            call(F.PERCENTILE_CONT, X, distinct=True),
            call(F.SUM, X),
            call(F.AVG, X),
            call(F.AVG, X, distinct=True),
        ),
        position=3,
    )
    assert [slot for _result, slot in slots.results] == [0, 1, 0, 0, 2, 3, 3, 4]
    assert slots.arguments == (X, Y, X, X, X)
    assert len(slots.accumulators) == 5


def test_arguments_that_only_compare_equal_are_two() -> None:
    zeros = [
        Call("/", (X, Literal(zero, DataType.DOUBLE)), DataType.DOUBLE) for zero in (0.0, -0.0)
    ]
    assert zeros[0] == zeros[1]
    calls = tuple(AggregateCall(F.MAX, (argument,), "a") for argument in zeros)
    assert [slot for _result, slot in slots_of(calls).results] == [0, 1]


def test_a_group_remembers_its_values_once() -> None:
    both = AggregateOperator((0,), (call(F.MIN, X), call(F.MAX, X), call(F.PERCENTILE_CONT, X)))
    both.apply(0, {("a", float(n), None): 1 for n in range(20)})
    assert both.state_rows() == 1 + 20
    assert both.apply(0, {("a", 0.0, None): -1}) == {
        ("a", 0.0, 19.0, 9.5): -1,
        ("a", 1.0, 19.0, 10.0): 1,
    }
