"""Window functions: each delta is the change of the reference, for all calls and frames."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.operators.windows.over_window import OverWindowOperator
from stream_engine.operators.windows.over_window_values import Stretch
from stream_engine.state import ranked_blocks
from stream_engine.testing.circuit_runs import evaluated_over
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import (
    AggregateFunction,
    Frame,
    OverWindow,
    RemoteSource,
    SortKey,
    WindowCall,
    WindowFunction,
)
from streamsql.algebra.over_windows import FRAMED_AGGREGATES, NUMBERING, SHIFTING
from streamsql.data.delta import Delta, accumulate
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value

COLUMNS = Schema.of(("k", DataType.TEXT), ("x", DataType.DOUBLE), ("n", DataType.INTEGER))
INPUT = RemoteSource("input", COLUMNS)
DOMAINS: tuple[tuple[Value, ...], ...] = (
    ("a", "b", None),
    (0.0, -0.0, 0.1, 1.7e308, -2.5, None),
    (-3, 0, 1, 2, 2**62, None),
)
X, N = Column(1, "x", DataType.DOUBLE), Column(2, "n", DataType.INTEGER)
rows: st.SearchStrategy[Row] = st.tuples(*map(st.sampled_from, DOMAINS))
deltas: st.SearchStrategy[list[Delta]] = st.lists(
    st.dictionaries(rows, st.sampled_from((-2, -1, 1, 1, 1, 2, 3)), max_size=6), max_size=6
)


@pytest.fixture(autouse=True, scope="module")
def _short_blocks() -> object:
    """Blocks of a few items, so that small lists split."""
    before, ranked_blocks.LOAD = ranked_blocks.LOAD, 2
    yield
    ranked_blocks.LOAD = before


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Return any frame."""
    if draw(st.booleans()):
        return Frame(draw(st.sampled_from((None, 0))), draw(st.sampled_from((None, 0))))
    bounds = st.one_of(st.none(), st.integers(-3, 3))
    start, end = draw(bounds), draw(bounds)
    if start is not None and end is not None:
        start, end = min(start, end), max(start, end)
    return Frame(start, end, peers=False)


@st.composite
def calls(draw: st.DrawFn) -> WindowCall:
    """Return any call."""
    function = draw(st.sampled_from((*WindowFunction, *[WindowFunction.AGGREGATE] * 4)))
    argument: Expression = draw(st.sampled_from((X, N)))
    number = draw(st.sampled_from((1, 1, 2, 2, 3, 5, 1_000_000)))
    if function in NUMBERING:
        return WindowCall(function, "v", number=number if function == WindowFunction.NTILE else 1)
    if function in SHIFTING:
        default = draw(st.sampled_from(((), (argument,), (Literal(None, argument.dtype),))))
        return WindowCall(function, "v", (argument, *default), draw(st.integers(0, 3)))
    frame = draw(frames())
    if function != WindowFunction.AGGREGATE:
        number = number if function == WindowFunction.NTH_VALUE else 1
        return WindowCall(function, "v", (argument,), frame=frame, number=number)
    aggregate = draw(st.sampled_from(FRAMED_AGGREGATES))
    arguments = () if aggregate == AggregateFunction.COUNT_ALL else (argument,)
    return WindowCall(function, "v", arguments, frame=frame, aggregate=aggregate)


@st.composite
def plans(draw: st.DrawFn) -> OverWindow:
    """Return a node with a few calls."""
    keys = st.builds(SortKey, st.integers(0, 2), st.booleans(), st.booleans())
    partition = draw(st.sampled_from(((), (0,), (0, 2))))
    chosen = draw(st.lists(calls(), min_size=1, max_size=3))
    named = tuple(
        msgspec.structs.replace(call, name=f"v{number}") for number, call in enumerate(chosen)
    )
    return OverWindow(INPUT, partition, tuple(draw(st.lists(keys, max_size=2))), named)


def _sum(name: str, frame: Frame) -> WindowCall:
    function, over_rows = WindowFunction.AGGREGATE, AggregateFunction.SUM
    return WindowCall(function, name, (N,), frame=frame, aggregate=over_rows)


def test_the_first_row_of_a_partition_has_nothing_before_it() -> None:
    """An aggregate over the partition changes for all rows there were, which are none."""
    sums = (_sum("all", Frame(None, None)), _sum("few", Frame(-1, 1, peers=False)))
    operator = OverWindowOperator(OverWindow(INPUT, (0,), (SortKey(2),), sums))
    assert operator.apply(0, {("a", None, 1): 1}) == {("a", None, 1, 1, 1): 1}
    assert operator.apply(0, {("a", None, 1): -1}) == {("a", None, 1, 1, 1): -1}


@pytest.mark.parametrize("runs", [2, 4, 7])
def test_a_row_more_or_less_is_looked_at_where_runs_begin_only(runs: int) -> None:
    """NTILE over 2,000 rows: what is emitted are the changed row and one row per run."""
    plan = OverWindow(
        INPUT, (), (SortKey(2),), (WindowCall(WindowFunction.NTILE, "v", number=runs),)
    )
    operator = OverWindowOperator(plan)
    held: Delta = {("a", 0.0, place): 1 for place in range(2_000)}
    output = operator.apply(0, held)
    looked_at: list[int] = []
    values = operator._values[0]

    def counted(stretch: Stretch) -> list[Value]:
        looked_at.append(len(stretch.rows))
        return values(stretch)

    operator._values[0] = counted
    for place, weight in ((-1, 1), (777, -1), (777, 1), (-1, -1), (1_999, -1), (2_500, 1)):
        change: Delta = {("a", 0.0, place): weight}
        accumulate(held, change)
        accumulate(output, operator.apply(0, change))
        assert output == evaluated_over(plan, {"input": held})
    assert sum(looked_at) < 6 * 2 * 6 * runs


@settings(max_examples=200, deadline=None)
@given(plans(), deltas)
def test_every_change_is_that_of_the_reference(plan: OverWindow, changes: list[Delta]) -> None:
    """Also where copies are taken away before they come: they are owed until then."""
    operator = OverWindowOperator(plan)
    output, held = operator.initial(), Delta()
    for change in changes:
        accumulate(held, change)
        accumulate(output, operator.apply(0, change))
        if all(weight > 0 for weight in held.values()):
            assert output == evaluated_over(plan, {"input": held})
    took = {row: -weight for row, weight in held.items()}
    accumulate(output, operator.apply(0, took))
    assert output == {}
    assert operator.state_rows() == 0
