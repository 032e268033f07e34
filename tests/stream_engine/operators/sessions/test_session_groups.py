"""Groupings of session windows in one step: what the window and the aggregate give one by one."""

from collections.abc import Iterator
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stream_engine.circuit.nodes import OperatorNode
from stream_engine.circuit.session_grouping import session_groups
from stream_engine.operators.aggregates.accumulator import Changes
from stream_engine.operators.aggregates.counting_accumulators import Sum
from stream_engine.operators.sessions.session_groups import SessionGroupsOperator
from stream_engine.state import sorted_list
from stream_engine.testing.circuit_runs import RemoteRun, evaluated_over
from stream_engine.testing.shapes import aggregate_calls
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Plan,
    Project,
    RemoteSource,
    SessionWindow,
)
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.delta import Delta, negated
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from tests.stream_engine.operators.changing_relations import relations_in_steps

COLUMNS = Schema.of(
    ("k", DataType.TEXT),
    ("x", DataType.DOUBLE),
    ("ts", DataType.TIMESTAMP),
    ("b", DataType.BOOLEAN),
    ("n", DataType.INTEGER),
)
SOURCE = RemoteSource("s", COLUMNS)
K, X, TS, B, N = (Column(i, field.name, field.dtype) for i, field in enumerate(COLUMNS.fields))
START, END = (
    Column(5, "window_start", DataType.TIMESTAMP),
    Column(6, "window_end", DataType.TIMESTAMP),
)
COUNT = AggregateCall(F.COUNT_ALL, (), "count")
TOTAL = AggregateCall(F.SUM, (N,), "total")
SUMS = (
    AggregateCall(F.AVG, (X,), "mean"),
    AggregateCall(F.VAR_POP, (X,), "variance"),
    AggregateCall(F.BOOL_OR, (B,), "any"),
    AggregateCall(F.COUNT, (X,), "known"),
)
DOMAINS: tuple[tuple[Value, ...], ...] = (
    ("a", "b", None),
    (0.0, -0.0, 5e-324, -1.7e308, 0.1, None),
    (*range(-2, 18), None),
    (True, False, None),
    (0, 1, 2, None),
)
rows: st.SearchStrategy[Row] = st.tuples(*map(st.sampled_from, DOMAINS))
DOUBLED = Call("+", (N, N), DataType.INTEGER)
PREDICATES: tuple[Expression | None, ...] = (
    None,
    None,
    Call(">", (N, Literal(0, DataType.INTEGER)), DataType.BOOLEAN),
)

pytestmark = pytest.mark.usefixtures("short_blocks")


@pytest.fixture(autouse=True, scope="module")
def _short_lists() -> Iterator[None]:
    """Sorted lists of a few items a block."""
    with patch.object(sorted_list, "_LOAD", 2):
        yield


@st.composite
def groupings(draw: st.DrawFn) -> Aggregate:
    """Return a grouping that takes one step, with what may stand between it and the window."""
    partition = draw(st.sampled_from(((), (0,), (3, 0))))
    plan: Plan = SessionWindow(SOURCE, 2, draw(st.integers(1, 4)), partition)
    predicate = draw(st.sampled_from(PREDICATES))
    if predicate is not None:
        plan = Filter(plan, predicate)
    if draw(st.booleans()):
        columns = [Column(i, field.name, field.dtype) for i, field in enumerate(plan.schema.fields)]
        order = draw(st.permutations(columns))
        names = (*(column.name for column in order), "doubled")
        plan = Project(plan, (*order, DOUBLED), names)
    names = plan.schema.names
    keys = [COLUMNS.names[position] for position in partition]
    keys += draw(
        st.sampled_from((["window_start"], ["window_end"], ["window_end", "window_start"]))
    )
    keys += draw(st.lists(st.sampled_from(names), max_size=1))
    group = tuple(names.index(name) for name in draw(st.permutations(keys)))
    arguments = Schema(
        tuple(field for field in plan.schema.fields if not field.name.startswith("window"))
    )
    found = draw(st.lists(st.one_of(st.just(COUNT), aggregate_calls(arguments)), max_size=3))
    return Aggregate(plan, group, tuple(_over(call, names) for call in found))


def _over(call: AggregateCall, names: tuple[str, ...]) -> AggregateCall:
    """Return a call with its columns where their names are."""
    columns = [argument for argument in call.arguments if isinstance(argument, Column)]
    return replace(
        call, arguments=tuple(Column(names.index(c.name), c.name, c.dtype) for c in columns)
    )


@settings(max_examples=settings().max_examples * 2)
@given(groupings(), relations_in_steps(rows, vanish=True))
def test_incremental_equals_from_scratch(plan: Aggregate, steps: list[Delta]) -> None:
    assert session_groups(plan) is not None
    together, apart = RemoteRun(plan), RemoteRun(plan)
    for delta in steps:
        together.step(s=delta)
        expected = evaluated_over(plan, together.inputs)
        assert together.output == expected
        for row, weight in delta.items():
            apart.step(s={row: weight})
        assert apart.output == expected
    together.step(s=negated(together.inputs["s"]))
    assert together.output == {}
    assert together.state() == 0


@st.composite
def dense_times(draw: st.DrawFn) -> list[Delta]:
    """Return batches of times so close that sessions of many of them merge and fall apart."""
    most = draw(st.sampled_from((12, 60)))
    there: set[int] = set()
    steps = []
    for _ in range(draw(st.integers(1, 8))):
        changed = draw(st.sets(st.integers(0, most), max_size=most // 2))
        if draw(st.booleans()):
            changed &= there  # some go, and nothing comes
        delta: Delta = {}
        for time in changed:
            row: Row = ("a", (0.1, 3.0, 5e-300, None)[time % 4], time, time % 5 == 0, time % 3)
            delta[row] = -1 if time in there else 1
        steps.append(delta)
        there ^= changed
    return steps


@pytest.mark.parametrize(
    "calls",
    [(COUNT,), (TOTAL, *SUMS), (AggregateCall(F.MAX, (N,), "most"), *SUMS)],
    ids=["counts", "sums", "extrema"],
)
@given(gap=st.integers(1, 6), steps=dense_times())
def test_sessions_of_many_times(
    calls: tuple[AggregateCall, ...], gap: int, steps: list[Delta]
) -> None:
    plan = Aggregate(SessionWindow(SOURCE, 2, gap, (0,)), (0, 5, 6), calls)
    run = RemoteRun(plan)
    for delta in steps:
        run.step(s=delta)
        assert run.output == evaluated_over(plan, run.inputs)


GROUPED = SessionWindow(SOURCE, 2, 5, (0,))


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (Aggregate(GROUPED, (5, 6), (COUNT,)), "sessions of two partitions may be one group"),
        (Aggregate(GROUPED, (0,), (COUNT,)), "a group has many sessions"),
        (
            Aggregate(GROUPED, (0, 5), (AggregateCall(F.MAX, (END,), "m"),)),
            "an aggregate looks at the bounds",
        ),
        (
            Aggregate(Filter(GROUPED, Call("<", (TS, END), DataType.BOOLEAN)), (0, 5, 6), (COUNT,)),
            "a filter does",
        ),
        (
            Aggregate(
                Project(
                    GROUPED,
                    (K, START, Call("+", (START, END), DataType.TIMESTAMP)),
                    ("k", "window_start", "sum"),
                ),
                (0, 1, 2),
                (COUNT,),
            ),
            "a group column does",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_groupings_stay_above_the_window(plan: Aggregate, why: str) -> None:
    assert session_groups(plan) is None, why
    run = RemoteRun(plan)
    run.step(s={("a", 0.5, 3, True, 1): 1, ("b", 0.5, 3, True, 1): 1, ("a", 0.5, 6, True, 1): 2})
    run.step(s={("a", 0.5, 3, True, 1): -1})
    assert run.output == evaluated_over(plan, run.inputs)


def counting(*calls: AggregateCall) -> RemoteRun:
    return RemoteRun(Aggregate(GROUPED, (0, 5, 6), calls))


def row(time: int, number: int = 1) -> Row:
    return ("a", None, time, None, number)


def test_a_session_that_grows_shows_one_row() -> None:
    run = counting(COUNT)
    run.step(s={row(time): 1 for time in range(0, 4_000, 4)})
    assert run.output == {("a", 0, 4_001, 1_000): 1}
    assert run.step(s={row(4_000): 1}) == {("a", 0, 4_001, 1_000): -1, ("a", 0, 4_005, 1_001): 1}
    assert run.step(s={row(2_001): 1}) == {("a", 0, 4_005, 1_001): -1, ("a", 0, 4_005, 1_002): 1}
    assert run.step(s={row(2_001): -1, row(4_000): -1, row(0): -1}) == {
        ("a", 0, 4_005, 1_002): -1,
        ("a", 4, 4_001, 999): 1,
    }


def test_a_row_between_two_sessions_merges_them_and_its_going_splits_them() -> None:
    run = counting(COUNT, TOTAL)
    run.step(s={row(1): 1, row(8): 1})
    merged: Delta = {("a", 1, 6, 1, 1): -1, ("a", 8, 13, 1, 1): -1, ("a", 1, 13, 3, 3): 1}
    assert run.step(s={row(4): 1}) == merged
    assert run.step(s={row(4): -1}) == negated(merged)


def test_groups_that_only_the_smaller_session_had_are_merged_too() -> None:
    run = RemoteRun(Aggregate(GROUPED, (0, 4, 5, 6), (COUNT,)))
    run.step(s={row(1, 1): 1, row(2, 1): 1, row(8, 2): 1})
    assert run.output == {("a", 1, 1, 7, 2): 1, ("a", 2, 8, 13, 1): 1}
    run.step(s={row(5, 1): 1})
    assert run.output == {("a", 1, 1, 13, 3): 1, ("a", 2, 1, 13, 1): 1}
    run.step(s={row(9, 2): 1})
    assert run.output == {("a", 1, 1, 14, 3): 1, ("a", 2, 1, 14, 2): 1}


def test_groups_of_the_larger_part_are_shown_with_its_new_bounds() -> None:
    run = RemoteRun(Aggregate(GROUPED, (0, 4, 5, 6), (COUNT,)))
    run.step(s={row(0, 1): 1, row(4, 1): 1, row(8, 2): 1, row(12, 2): 1})
    assert run.output == {("a", 1, 0, 17, 2): 1, ("a", 2, 0, 17, 2): 1}
    run.step(s={row(4, 1): -1})
    assert run.output == {("a", 1, 0, 5, 1): 1, ("a", 2, 8, 17, 2): 1}


@pytest.mark.parametrize(("gone", "left"), [((0, 1), (2, 4)), ((4, 2), (1, 0))])
def test_groups_that_nothing_left_are_shown_with_new_bounds(
    gone: tuple[int, int], left: tuple[int, int]
) -> None:
    run = RemoteRun(Aggregate(GROUPED, (0, 4, 5, 6), (COUNT,)))
    run.step(s={row(0, 1): 1, row(4, 2): 1})
    assert run.output == {("a", 1, 0, 9, 1): 1, ("a", 2, 0, 9, 1): 1}
    run.step(s={row(*gone): -1})
    number, time = left
    assert run.output == {("a", number, time, time + 5, 1): 1}


def test_parts_of_a_session_end_like_any_other() -> None:
    run = counting(COUNT)
    run.step(s={row(time): 1 for time in (0, 4, 8, 100)})
    for time in (4, 8, 0):
        run.step(s={row(time): -1})
    assert run.output == {("a", 100, 105, 1): 1}
    run.step(s={row(102): 1})
    assert run.output == {("a", 100, 107, 2): 1}


@pytest.mark.parametrize("lower_is_larger", [True, False])
def test_only_the_smaller_part_moves(*, lower_is_larger: bool) -> None:
    """A session of 1,000 times loses a tail of 3, and gets it back."""
    run = counting(AggregateCall(F.SUM, (N,), "total", distinct=True), TOTAL)
    sign = 1 if lower_is_larger else -1
    run.step(s={row(sign * 4 * n, n): 1 for n in range(1_000)})
    taken = 0
    update = Sum.update

    def counted(self: Sum, slot: tuple[int, int, int], changes: Changes) -> tuple[int, int, int]:
        nonlocal taken
        taken += len(changes)
        return update(self, slot, changes)

    with patch.object(Sum, "update", counted):
        gone = row(sign * 4 * 996, 996)
        run.step(s={gone: -1})
        assert len(run.output) == 2
        run.step(s={gone: 1})
        assert len(run.output) == 1
    assert taken < 40


def test_slots_that_are_sums_merge_without_their_rows() -> None:
    run = counting(COUNT, TOTAL, AggregateCall(F.VAR_POP, (X,), "v"))
    run.step(s={("a", float(t), t, None, 1): 1 for t in (*range(0, 400, 4), *range(404, 800, 4))})
    update = Sum.update

    def of_one(self: Sum, slot: tuple[int, int, int], changes: Changes) -> tuple[int, int, int]:
        assert len(changes) == 1
        return update(self, slot, changes)

    with patch.object(Sum, "update", of_one):
        run.step(s={("a", None, 400, None, None): 1})
    ((shown, _weight),) = run.output.items()
    assert shown[:5] == ("a", 0, 801, 200, 199)


def test_a_partition_of_one_time_has_no_more_than_its_items() -> None:
    node = counting(COUNT).circuit.nodes[-1]
    assert isinstance(node, OperatorNode)
    operator = node.operator
    assert isinstance(operator, SessionGroupsOperator)
    operator.apply(0, {row(3): 1})
    operator.apply(0, {row(3): 2})
    assert operator.state_rows() == 1
    assert operator.apply(0, {row(3): -3}) == {("a", 3, 8, 3): -1}
    assert operator.state_rows() == 0


@pytest.mark.parametrize("kind", ["count", "count by number", "greatest number"])
@given(rows=st.sets(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(0, 2))))
def test_the_state_is_items_groups_and_what_extrema_remember(
    kind: str, rows: set[tuple[int, int, int]]
) -> None:
    """Of a partition of one time the items alone; an item is what the aggregates need of a row."""
    call = AggregateCall(F.MAX, (N,), "most") if kind == "greatest number" else COUNT
    group = (0, 4, 5, 6) if kind == "count by number" else (0, 5, 6)
    run = RemoteRun(Aggregate(GROUPED, group, (call,)))
    run.step(s={(str(k), None, time, None, n): 1 for k, time, n in rows})
    size = 0
    for partition in (0, 1):
        own = [(time, n) for k, time, n in rows if k == partition]
        session, begins = 0, {}
        times = sorted({time for time, _n in own})
        for before, time in pairwise([-1_000, *times]):
            session += time - before >= 5
            begins[time] = session
        numbers = len({(begins[time], n) for time, n in own})
        items = len(times) if kind == "count" else len(own)
        groups = numbers if kind == "count by number" else session
        size += items
        if len(times) > 1:
            size += groups + (numbers if kind == "greatest number" else 0)
    assert run.state() == size
    run.step(s=negated(run.inputs["s"]))
    assert run.state() == 0
