"""Orders, set operations, hopping and session windows: each delta is the change of the reference.

Rows collide on purpose; values are NULL, negative zero, the smallest and nearly the greatest.
"""

import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.operators.rows.set_operators import SetOperationOperator
from stream_engine.operators.rows.top_n import TopNOperator
from stream_engine.operators.sessions import session_window
from stream_engine.operators.sessions.session_window import SessionWindowOperator
from stream_engine.operators.windows.tumble_hop_window import HopWindowOperator
from stream_engine.testing.circuit_runs import RemoteRun, accumulated, evaluated_over
from streamsql.algebra.operators import (
    Distinct,
    HopWindow,
    Plan,
    RemoteSource,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    TopN,
)
from streamsql.data.delta import Delta, accumulate, negated
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from tests.stream_engine.operators.changing_relations import relations_in_steps

COLUMNS = Schema.of(
    ("k", DataType.TEXT),
    ("x", DataType.DOUBLE),
    ("ts", DataType.TIMESTAMP),
    ("b", DataType.BOOLEAN),
)
LEFT, RIGHT = RemoteSource("left", COLUMNS), RemoteSource("right", COLUMNS)
DOMAINS: tuple[tuple[Value, ...], ...] = (
    ("", "a", "ab", "b", None),
    (0.0, -0.0, 5e-324, -1.7e308, 1.7e308, 0.1, None),
    (-7, 0, 1, 2, 4, 5, 9, 11, None),
    (True, False, None),
)
rows: st.SearchStrategy[Row] = st.tuples(*map(st.sampled_from, DOMAINS))


pytestmark = pytest.mark.usefixtures("short_blocks")


@st.composite
def orders(draw: st.DrawFn) -> TopN:
    positions = draw(st.lists(st.integers(0, 3), max_size=3, unique=True))
    keys = tuple(SortKey(p, draw(st.booleans()), draw(st.booleans())) for p in positions)
    limit = draw(st.sampled_from((None, 0, 1, 2, 3, 5)))
    partition = draw(st.sampled_from(((), (0,), (3, 2))))
    return TopN(LEFT, keys, limit, draw(st.sampled_from((0, 0, 1, 2))), partition)


@st.composite
def hops(draw: st.DrawFn) -> Plan:
    size, hop = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    return HopWindow(LEFT, 2, size, hop, draw(st.integers(-3, 20)))


@st.composite
def sessions(draw: st.DrawFn) -> Plan:
    partition = draw(st.sampled_from(((), (0,), (3, 0))))
    return SessionWindow(LEFT, 2, draw(st.integers(1, 5)), partition)


@st.composite
def set_operations(draw: st.DrawFn) -> Plan:
    kind, right = draw(st.sampled_from(tuple(SetKind))), draw(st.sampled_from((LEFT, RIGHT)))
    return SetOperation(LEFT, right, kind, draw(st.booleans()))


EVERY = pytest.mark.parametrize(
    "plans",
    [orders(), hops(), sessions(), set_operations(), st.just(Distinct(LEFT))],
    ids=["orders", "hops", "sessions", "set operations", "distinct"],
)


@EVERY
@given(data=st.data(), lefts=relations_in_steps(rows), rights=relations_in_steps(rows))
def test_incremental_equals_from_scratch(
    plans: st.SearchStrategy[Plan], data: st.DataObject, lefts: list[Delta], rights: list[Delta]
) -> None:
    plan = data.draw(plans)
    run = RemoteRun(plan)
    for number in range(max(len(lefts), len(rights))):
        run.step(
            left=lefts[number] if number < len(lefts) else {},
            right=rights[number] if number < len(rights) else {},
        )
        assert run.output == evaluated_over(plan, run.inputs)
    run.step(**{side: negated(rows) for side, rows in run.inputs.items()})
    assert run.output == {}
    assert run.state() == 0


@settings(max_examples=settings().max_examples // 2)
@EVERY
@given(
    data=st.data(),
    lefts=relations_in_steps(rows),
    rights=relations_in_steps(rows),
    choice=st.randoms(use_true_random=False),
)
def test_batching_and_order_do_not_matter(
    plans: st.SearchStrategy[Plan],
    data: st.DataObject,
    lefts: list[Delta],
    rights: list[Delta],
    choice: random.Random,
) -> None:
    """Row by row in any order: what goes may go before it came."""
    plan = data.draw(plans)
    together, apart = RemoteRun(plan), RemoteRun(plan)
    together.step(left=accumulated(lefts), right=accumulated(rights))
    singly: list[tuple[Delta, Delta]] = [
        ({row: w}, {}) for delta in lefts for row, w in delta.items()
    ]
    singly += [({}, {row: w}) for delta in rights for row, w in delta.items()]
    choice.shuffle(singly)
    for left, right in singly:
        apart.step(left=left, right=right)
    assert apart.output == together.output == evaluated_over(plan, together.inputs)
    assert apart.state() == together.state()


def test_the_next_row_moves_up() -> None:
    source = RemoteSource("left", Schema.of(("n", DataType.INTEGER)))
    top = TopNOperator(TopN(source, (SortKey(0),), 2))
    assert top.apply(0, {(3,): 1, (5,): 1, (8,): 1}) == {(3,): 1, (5,): 1}
    assert top.apply(0, {(1,): 1}) == {(1,): 1, (5,): -1}
    assert top.apply(0, {(3,): -1}) == {(3,): -1, (5,): 1}
    assert top.apply(0, {(9,): 1}) == {}
    assert top.state_rows() == 4


def test_an_offset_moves_rows_in_and_out_at_both_ends() -> None:
    source = RemoteSource("left", Schema.of(("n", DataType.INTEGER)))
    top = TopNOperator(TopN(source, (SortKey(0, descending=True),), 2, 1))
    assert top.apply(0, {(1,): 2, (2,): 1}) == {(1,): 2}
    assert top.apply(0, {(3,): 1}) == {(2,): 1, (1,): -1}
    assert top.apply(0, {(3,): -1, (2,): -1}) == {(2,): -1}


def test_copies_that_come_in_front_push_out_what_was_there() -> None:
    source = RemoteSource("left", Schema.of(("n", DataType.INTEGER)))
    top = TopNOperator(TopN(source, (SortKey(0),), 1))
    assert top.apply(0, {(5,): 4}) == {(5,): 1}
    assert top.apply(0, {(3,): 2}) == {(5,): -1, (3,): 1}


def check_over_copies(
    operator: TopNOperator | SessionWindowOperator, plan: Plan, changes: list[dict[int, int]]
) -> None:
    """Compare an operator with the reference after each change of how many copies values have."""
    relation: Delta = {}
    view: Delta = {}
    for change in changes:
        weights = {(n,): max(w, -relation.get((n,), 0)) for n, w in change.items()}
        delta: Delta = {row: weight for row, weight in weights.items() if weight}
        accumulate(relation, delta)
        accumulate(view, operator.apply(0, delta))
        assert view == evaluated_over(plan, {"left": relation})


@given(
    st.integers(0, 4),
    st.integers(0, 3),
    st.lists(st.dictionaries(st.integers(0, 3), st.integers(-4, 4), max_size=3), max_size=8),
)
def test_the_first_copies_of_few_values(
    limit: int, offset: int, changes: list[dict[int, int]]
) -> None:
    """Weights beyond the limit, on both sides of every bound."""
    source = RemoteSource("left", Schema.of(("n", DataType.INTEGER)))
    plan = TopN(source, (SortKey(0, descending=True),), limit or None, offset)
    check_over_copies(TopNOperator(plan), plan, changes)


def test_a_row_between_two_sessions_merges_them() -> None:
    source = RemoteSource("left", Schema.of(("ts", DataType.TIMESTAMP)))
    window = SessionWindowOperator(SessionWindow(source, 0, 5))
    assert window.apply(0, {(1,): 1, (8,): 1}) == {(1, 1, 6): 1, (8, 8, 13): 1}
    merged: Delta = {(1, 1, 13): 1, (4, 1, 13): 1, (8, 1, 13): 1, (1, 1, 6): -1, (8, 8, 13): -1}
    assert window.apply(0, {(4,): 1}) == merged
    assert window.apply(0, {(4,): 1}) == {(4, 1, 13): 1}  # no bounds change, nothing else shows
    assert window.apply(0, {(4,): -1}) == {(4, 1, 13): -1}
    assert window.apply(0, {(4,): -1}) == negated(merged)


@pytest.mark.parametrize("few", [0, 5, session_window.FEW_TIMES])
@given(
    st.integers(1, 4),
    st.lists(st.dictionaries(st.integers(-2, 9), st.integers(-2, 2), max_size=4), max_size=10),
)
def test_sessions_of_dense_times(few: int, gap: int, changes: list[dict[int, int]]) -> None:
    """Times that go split sessions, also where neighbours are exactly a gap apart.

    Partitions are kept in both ways, and change from one to the other.
    """
    source = RemoteSource("left", Schema.of(("ts", DataType.TIMESTAMP)))
    plan = SessionWindow(source, 0, gap)
    with patch.object(session_window, "FEW_TIMES", few):
        check_over_copies(SessionWindowOperator(plan), plan, changes)


def test_a_session_splits_where_neighbours_are_a_gap_apart() -> None:
    source = RemoteSource("left", Schema.of(("ts", DataType.TIMESTAMP)))
    window = SessionWindowOperator(SessionWindow(source, 0, 5))
    window.apply(0, {(0,): 1, (2,): 1, (5,): 1})
    split = {(0, 0, 5): 1, (5, 5, 10): 1, (0, 0, 10): -1, (2, 0, 10): -1, (5, 0, 10): -1}
    assert window.apply(0, {(2,): -1}) == split


def test_only_sessions_that_change_are_given_again() -> None:
    source = RemoteSource("left", Schema.of(("ts", DataType.TIMESTAMP)))
    window = SessionWindowOperator(SessionWindow(source, 0, 5))
    window.apply(0, {(100 * number,): 1 for number in range(50)})
    assert len(window.apply(0, {(1_004,): 1})) == 3


def test_a_row_in_several_windows() -> None:
    source = RemoteSource("left", Schema.of(("ts", DataType.TIMESTAMP), ("k", DataType.TEXT)))
    hop = HopWindowOperator(HopWindow(source, 0, 10, 5))
    assert hop.apply(0, {(7, "a"): 2}) == {(7, "a", 5, 15): 2, (7, "a", 0, 10): 2}
    assert hop.apply(0, {(None, "a"): 2}) == {}


def test_except_all_counts() -> None:
    operator = SetOperationOperator(SetOperation(LEFT, RIGHT, SetKind.EXCEPT, all=True))
    row: Row = ("a", 0.5, None, None)
    assert operator.apply(0, {row: 2}) == {row: 2}
    assert operator.apply(1, {row: 1}) == {row: -1}
    assert operator.apply(0, {row: -1}) == {row: -1}
    assert operator.state_rows() == 2


@given(st.dictionaries(st.integers(0, 3), st.sets(st.integers(0, 99), max_size=70), max_size=3))
def test_the_state_of_a_session_window_is_its_distinct_rows(
    partitions: dict[int, set[int]],
) -> None:
    """Copies take no room, rows without a time none; partitions of few times and of many."""
    source = RemoteSource("left", Schema.of(("ts", DataType.TIMESTAMP), ("k", DataType.INTEGER)))
    window = SessionWindowOperator(SessionWindow(source, 0, 5, (1,)))
    rows: Delta = {(time, k): 1 + time % 2 for k, times in partitions.items() for time in times}
    window.apply(0, {**rows, (None, 0): 1})
    assert window.state_rows() == len(rows)
    window.apply(0, dict.fromkeys(rows, 1))
    assert window.state_rows() == len(rows)
    window.apply(0, {row: -weight - 1 for row, weight in rows.items()})
    assert window.state_rows() == 0
