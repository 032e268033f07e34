"""Bounds are told when a row crosses one of them, and tell which rows a window holds."""

import random

import pytest

from stream_engine.operators.windows.window_bounds import WindowBoundsOperator
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Scan, SourceKind, Window, WindowBounds, WindowKind
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError
from streamsql.reference import Database, evaluate

SOURCE = Scan(
    "s",
    SourceKind.STREAM,
    Schema.of(("k", DataType.INTEGER), ("ts", DataType.TIMESTAMP)),
    time_column=1,
    ttl=1_000_000_000,
)
TEN = WindowBounds(SOURCE, WindowKind.RANGE, 10)
IS_ODD = Call(
    "=",
    (
        Call(
            "%",
            (Column(0, "k", DataType.INTEGER), Literal(2, DataType.INTEGER)),
            DataType.INTEGER,
        ),
        Literal(1, DataType.INTEGER),
    ),
    DataType.BOOLEAN,
)


def test_bounds_are_told_when_a_row_leaves_and_not_in_between() -> None:
    bounds = WindowBoundsOperator(TEN)
    assert bounds.advance(10) == {(0, None): 1}
    assert bounds.apply_timed({(5, (1, 5)): 1}) == {}
    assert bounds.next_wakeup() == 15
    assert bounds.advance(12) == {}
    assert bounds.advance(16) == {(0, None): -1, (6, None): 1}
    assert bounds.next_wakeup() is None
    assert bounds.state_rows() == 0


def test_bounds_are_told_when_a_row_comes_after_its_time() -> None:
    bounds = WindowBoundsOperator(TEN)
    bounds.advance(10)
    bounds.advance(20)
    assert bounds.apply_timed({(5, (1, 5)): 1}) == {(0, None): -1, (10, None): 1}


def test_a_row_that_is_replaced_never_leaves() -> None:
    bounds = WindowBoundsOperator(TEN)
    bounds.advance(10)
    bounds.apply_timed({(5, (1, 5)): 1})
    assert bounds.apply_timed({(5, (1, 5)): -1, (9, (1, 9)): 1}) == {}
    assert bounds.advance(15) == {}
    assert bounds.advance(19) == {(0, None): -1, (9, None): 1}


def test_rows_that_a_predicate_drops_move_no_bounds() -> None:
    bounds = WindowBoundsOperator(WindowBounds(SOURCE, WindowKind.RANGE, 10, None, IS_ODD))
    bounds.advance(10)
    bounds.apply_timed({(5, (2, 5)): 1})
    assert bounds.state_rows() == 0
    assert bounds.advance(30) == {}


def test_the_second_of_now_has_an_end() -> None:
    bounds = WindowBoundsOperator(WindowBounds(SOURCE, WindowKind.NOW))
    assert bounds.advance(2_500_000) == {(1_999_999, 2_999_999): 1}


def test_rows_need_a_time() -> None:
    with pytest.raises(InternalError):
        WindowBoundsOperator(TEN).apply_timed({(5, (1, 5)): 1})


@pytest.mark.parametrize(
    ("kind", "size", "slide"),
    [
        (WindowKind.RANGE, 7, None),
        (WindowKind.RANGE, 7, 3),
        (WindowKind.RANGE, 3, 7),
        (WindowKind.NOW, None, None),
    ],
)
@pytest.mark.parametrize("predicate", [None, IS_ODD])
def test_the_bounds_that_were_told_last_hold_the_rows_of_the_window(
    kind: WindowKind, size: int | None, slide: int | None, predicate: Call | None
) -> None:
    """Whatever comes in which order, and however time jumps; the window is the reference's."""
    scale = 400_000 if kind == WindowKind.NOW else 1
    for seed in range(60):
        chance = random.Random(seed)
        operator = WindowBoundsOperator(WindowBounds(SOURCE, kind, size, slide, predicate))
        database, now = Database(), 100 * scale
        told: Delta = {}
        rows: list[tuple[int, tuple[int, int]]] = []
        changes = 0
        for step in range(40):
            now += chance.choice((0, 1, 1, 2, 9)) * scale
            change: Delta = operator.advance(now)
            accumulate(told, change)
            delta: TimedDelta = {}
            for n in range(chance.randrange(3)):
                ts = now + chance.randrange(-20, 6) * scale
                row = (step * 10 + n, ts)
                rows.append((ts, row))
                delta[(ts, row)] = 1
                database.append("s", [SourceEvent(row, ts)])
            late = operator.apply_timed(delta) if delta else {}
            accumulate(told, late)
            changes += bool(change) + bool(late)
            ((low, high),) = told
            assert isinstance(low, int)
            inside = {
                row: 1
                for ts, row in rows
                if low < ts and (high is None or ts <= int(high))
                if predicate is None or row[0] % 2
            }
            window = Window(SOURCE, kind, size, slide)
            expected = evaluate(window, database, now)
            assert inside == {
                row: 1 for row in expected if predicate is None or int(row[0] or 0) % 2
            }
        assert changes < 60
