"""Aggregates under insertion and deletion: each delta is the change of the reference's answer."""

import json
import random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.operators.aggregates import array_aggregate
from stream_engine.operators.aggregates.aggregate import AggregateOperator
from stream_engine.operators.aggregates.array_aggregate import ArrayAggregate
from stream_engine.testing.circuit_runs import accumulated, evaluated_over
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Aggregate, AggregateCall, RemoteSource
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.delta import Delta, accumulate, negated
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from tests.stream_engine.operators.changing_relations import relations_in_steps

COLUMNS = Schema.of(
    ("g", DataType.INTEGER),
    ("n", DataType.INTEGER),
    ("x", DataType.DOUBLE),
    ("t", DataType.TEXT),
    ("b", DataType.BOOLEAN),
)
SOURCE = RemoteSource("left", COLUMNS)
G, N, X, T, B = (Column(i, f.name, f.dtype) for i, f in enumerate(COLUMNS.fields))
DOMAINS: tuple[tuple[Value, ...], ...] = (
    (0, 1, None),
    (0, -3, 7, 2**62, None),
    (0.0, -0.0, 5e-324, 0.1, 1e16, 1.0, -1.7e308, 1.7e308, None),
    ("", "a", "ä\n", None),
    (True, False, None),
)
rows: st.SearchStrategy[Row] = st.tuples(*map(st.sampled_from, DOMAINS))
SPREADS = (F.VAR_SAMP, F.VAR_POP, F.STDDEV_SAMP, F.STDDEV_POP)
CALLS = (
    *(AggregateCall(f, (c,), "a") for f in (*SPREADS, F.SUM, F.AVG) for c in (N, X)),
    *(
        AggregateCall(F.PERCENTILE_CONT, (c,), "a", parameter=p)
        for c in (N, X)
        for p in (0.0, 0.25, 0.5, 0.9, 1.0)
    ),
    AggregateCall(F.PERCENTILE_CONT, (X,), "a"),
    *(AggregateCall(f, (c,), "a") for f in (F.ARRAY_AGG, F.COUNT, F.MIN) for c in (N, X, T, B)),
    AggregateCall(F.BOOL_AND, (B,), "a"),
    AggregateCall(F.BOOL_OR, (B,), "a"),
    AggregateCall(F.ARG_MAX, (T, X), "a"),
    AggregateCall(F.COUNT_ALL, (), "a"),
)
DISTINCT = tuple(
    AggregateCall(c.function, c.arguments, "a", distinct=True, parameter=c.parameter)
    for c in CALLS
    if len(c.arguments) == 1
)


pytestmark = pytest.mark.usefixtures("short_blocks")

calls = st.lists(st.sampled_from(CALLS + DISTINCT), min_size=1, max_size=4).map(tuple)
groups = st.sampled_from(((), (0,), (4, 0)))


@given(groups, calls, relations_in_steps(rows, vanish=True))
def test_incremental_equals_from_scratch(
    group: tuple[int, ...], chosen: tuple[AggregateCall, ...], steps: list[Delta]
) -> None:
    plan, operator = Aggregate(SOURCE, group, chosen), AggregateOperator(group, chosen)
    relation: Delta = {}
    view = operator.initial()
    for step in steps:
        accumulate(relation, step)
        change = operator.apply(0, step)
        assert 0 not in change.values()
        accumulate(view, change)
        assert view == evaluated_over(plan, {"left": relation})
        assert all(not isinstance(v, complex) for row in view for v in row)
    empty = AggregateOperator(group, chosen)
    empty.initial()
    operator.apply(0, negated(relation))
    assert operator.state_rows() == empty.state_rows()


@given(calls, relations_in_steps(rows, vanish=True), st.randoms(use_true_random=False))
def test_what_goes_may_go_before_it_came(
    chosen: tuple[AggregateCall, ...], steps: list[Delta], choice: random.Random
) -> None:
    """Whatever the order and the batches, what is left is the aggregate of the sum."""
    plan, operator = Aggregate(SOURCE, (), chosen), AggregateOperator((), chosen)
    view = operator.initial()
    singly = [{row: weight} for delta in steps for row, weight in delta.items()]
    choice.shuffle(singly)
    while singly:
        batch = [singly.pop() for _ in range(choice.randint(1, len(singly)))]
        accumulate(view, operator.apply(0, accumulated(batch)))
    assert view == evaluated_over(plan, {"left": accumulated(steps)})


def _of(function: F, values: list[Value], column: Column, parameter: float | None = None) -> Value:
    call = AggregateCall(function, (column,), "a", parameter=parameter)
    operator = AggregateOperator((), (call,))
    view = operator.initial()
    for value in values:
        row = tuple(value if position == column.position else None for position in range(5))
        accumulate(view, operator.apply(0, {row: 1}))
    (answer,) = view
    return answer[0]


def test_the_variance_of_large_neighbours_is_exact() -> None:
    """The textbook formula in doubles loses every digit here."""
    assert _of(F.VAR_SAMP, [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], X) == 30.0
    assert _of(F.VAR_POP, [2**62, 2**62 + 2], N) == 1.0


def test_a_deleted_outlier_leaves_no_trace() -> None:
    operator = AggregateOperator((), (AggregateCall(F.STDDEV_POP, (X,), "a"),))
    view = operator.initial()
    for value, weight in ((1.0, 1), (3.0, 1), (1e200, 1), (5e-324, 1), (1e200, -1), (5e-324, -1)):
        accumulate(view, operator.apply(0, {(0, 0, value, "", True): weight}))
    assert view == {(1.0,): 1}


def test_variances_of_few_values() -> None:
    assert _of(F.VAR_SAMP, [1.5], X) is None
    assert _of(F.VAR_POP, [1.5], X) == 0.0
    assert _of(F.STDDEV_SAMP, [None], X) is None
    assert _of(F.VAR_POP, [1.7e308, -1.7e308], X) is None  # beyond the range


def test_medians() -> None:
    assert _of(F.PERCENTILE_CONT, [4, 1, 2], N, 0.5) == 2.0
    assert _of(F.PERCENTILE_CONT, [4, 1, 2, 3], N, 0.5) == 2.5
    assert _of(F.PERCENTILE_CONT, [1, 2, 4], N, 0.75) == 3.0
    assert _of(F.PERCENTILE_CONT, [], N, 0.5) is None


def test_arrays_are_in_order() -> None:
    assert _of(F.ARRAY_AGG, ["b", None, "ä\n", "a"], T) == '["a","b","ä\\n"]'
    assert _of(F.ARRAY_AGG, [1.0, -0.0], X) == "[0.0,1.0]"
    assert _of(F.ARRAY_AGG, [None], T) is None


@given(
    st.sampled_from((0, 3, 256)),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from((-2, -1, 1, 1, 3))), max_size=12),
    st.randoms(use_true_random=False),
)
def test_an_array_of_few_and_of_many_values(
    most: int, changes: list[tuple[int, int]], choice: random.Random
) -> None:
    """What goes may go before it came; in the end nothing is there less than never."""
    missing = [(n, 5) for n in {n for n, _weight in changes}]
    wanted = {n: 5 + sum(w for m, w in changes if m == n) for n, _weight in missing}
    changes = changes + [(n, 30 if wanted[n] < 0 else 5) for n, _weight in missing]
    expected = [n for n in range(5) for _ in range(sum(w for m, w in changes if m == n))]
    choice.shuffle(changes)
    array = ArrayAggregate(0, DataType.INTEGER)
    slot = array.empty()
    with patch.object(array_aggregate, "_MOST_FEW", most):
        for n, weight in changes:
            slot = array.update(slot, [((n,), weight)])
    assert array.result(slot) == (json.dumps(expected, separators=(",", ":")) if expected else None)


def test_truth_values() -> None:
    assert _of(F.BOOL_AND, [True, None], B) is True
    assert _of(F.BOOL_OR, [False, None], B) is False
    assert _of(F.BOOL_AND, [True, False], B) is False
    assert _of(F.BOOL_OR, [None], B) is None
