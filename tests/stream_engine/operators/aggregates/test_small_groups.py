"""Groups of one row: kept as the row, and right when they grow, shrink and hold NULLs."""

from hypothesis import given
from hypothesis import strategies as st

from stream_engine.operators.aggregates.aggregate import AggregateOperator
from stream_engine.operators.aggregates.small_groups import lone_row_function
from stream_engine.testing.circuit_runs import evaluated_over
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Aggregate, AggregateCall, AggregateFunction, RemoteSource
from streamsql.data.delta import Delta, accumulate
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

COLUMNS = Schema.of(("g", DataType.INTEGER), ("n", DataType.INTEGER), ("x", DataType.DOUBLE))
N = Column(1, "n", DataType.INTEGER)
X = Column(2, "x", DataType.DOUBLE)
F = AggregateFunction
COPIES = (
    AggregateCall(F.MIN, (X,), "c"),
    AggregateCall(F.MAX, (N,), "c"),
    AggregateCall(F.ARG_MIN, (N, X), "c"),
    AggregateCall(F.ARG_MAX, (X, N), "c"),
    AggregateCall(F.COUNT_ALL, (), "c"),
    AggregateCall(F.COUNT, (X,), "c", distinct=True),
    AggregateCall(F.SUM, (N,), "c"),
)
OTHERS = (AggregateCall(F.SUM, (X,), "c"), AggregateCall(F.AVG, (N,), "c"))

rows = st.tuples(
    st.integers(0, 1),
    st.one_of(st.none(), st.integers(-1, 2)),
    st.one_of(st.none(), st.sampled_from((-1.5, -0.0, 2.0))),
)
changes = st.lists(st.dictionaries(rows, st.integers(-2, 2), max_size=6), max_size=8)
calls = st.lists(st.sampled_from(COPIES), max_size=4)


@given(calls, changes)
def test_equal_to_evaluation_from_scratch(chosen: list[AggregateCall], steps: list[Delta]) -> None:
    """Weights below zero are transient: each step ends with a relation."""
    plan = Aggregate(RemoteSource("left", COLUMNS), (0,), tuple(chosen))
    operator = AggregateOperator((0,), tuple(chosen))
    relation: Delta = {}
    view: Delta = {}
    for step in steps:
        delta: Delta = {}
        for row, weight in step.items():
            kept = max(weight, -relation.get(row, 0))
            if kept:
                delta[row] = kept
        accumulate(relation, delta)
        change = operator.apply(0, delta)
        assert set(change.values()) <= {-1, 1}
        accumulate(view, change)
        assert view == evaluated_over(plan, {"left": relation})
    operator.apply(0, {row: -weight for row, weight in relation.items()})
    assert operator.state_rows() == 0


@given(calls, st.lists(st.dictionaries(rows, st.sampled_from((-1, 1)), max_size=3), max_size=6))
def test_removed_before_it_was_there(chosen: list[AggregateCall], steps: list[Delta]) -> None:
    """Whatever comes first, what is left in the end is the aggregate of the sum."""
    plan = Aggregate(RemoteSource("left", COLUMNS), (0,), (*chosen, COPIES[0]))
    operator = AggregateOperator((0,), (*chosen, COPIES[0]))
    balance: Delta = {}
    view: Delta = {}
    keeper: Delta = {(0, 0, 0.0): 50, (1, 0, 0.0): 50}  # so that no group vanishes in between
    accumulate(view, operator.apply(0, keeper))
    for step in steps:
        accumulate(balance, step)
        accumulate(view, operator.apply(0, step))
    settling: Delta = {row: -weight for row, weight in balance.items() if weight < 0}
    accumulate(view, operator.apply(0, settling))
    accumulate(balance, settling)
    accumulate(balance, keeper)
    assert view == evaluated_over(plan, {"left": balance})


def test_what_a_lone_row_shows() -> None:
    row: Row = (7, 3, 0.5)
    output_of = lone_row_function((0,), COPIES)
    assert output_of is not None
    assert output_of(row) == (7, 0.5, 3, 3, 0.5, 1, 1, 3)


def test_only_what_is_a_value_of_the_row_is_copied() -> None:
    for call in OTHERS:
        assert lone_row_function((0,), (call,)) is None
    computed = AggregateCall(F.ARG_MIN, (N, _half_of(N)), "c")
    assert lone_row_function((0,), (computed,)) is None


def test_a_replaced_row_keeps_a_group_without_slots() -> None:
    operator = AggregateOperator((0,), COPIES[:3])
    operator.apply(0, {(1, 2, 0.5): 1})
    assert operator.apply(0, {(1, 3, 0.5): 1, (1, 2, 0.5): -1}) == {
        (1, 0.5, 2, 2): -1,
        (1, 0.5, 3, 3): 1,
    }
    assert operator.state_rows() == 1


def _half_of(column: Column) -> Call:
    return Call("/", (column, Literal(2, DataType.INTEGER)), DataType.INTEGER)
