"""Every window on every kind of source follows the reference while time passes.

Withdrawals from logs are not generated: a log keeps no rows, so that a window by count cannot bring
one back (`RowsWindow` says so).
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.operators.windows.rows_window import RowsWindow
from stream_engine.testing.circuit_runs import LocalRun
from stream_engine.testing.histories import SECOND, SOURCES, Moment, histories
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    HopWindow,
    Plan,
    Project,
    Scan,
    SessionWindow,
    SortKey,
    TopN,
    Window,
    WindowKind,
)
from streamsql.data.types import DataType

A, B, C = ("a",), ("b",), ("c",)


@st.composite
def windows(draw: st.DrawFn, scan: Scan) -> Plan:
    """Return a window of any kind, most of them by count and by time at once."""
    match draw(st.sampled_from(("rows", "rows", "range", "slide", "now"))):
        case "rows":
            within = draw(st.sampled_from((1, SECOND // 2, SECOND, 2 * SECOND, 9 * SECOND)))
            partition = draw(st.sampled_from(((), (0,), (1,))))
            size = draw(st.integers(1, 4))
            return Window(scan, WindowKind.ROWS, size, partition=partition, range=within)
        case "range":
            return Window(scan, WindowKind.RANGE, draw(st.sampled_from((1, SECOND, 3 * SECOND))))
        case "slide":
            size, slide = (draw(st.sampled_from((SECOND // 2, SECOND, 2 * SECOND))) for _ in "ab")
            return Window(scan, WindowKind.RANGE, size, slide)
        case _:
            return Window(scan, WindowKind.NOW)


@settings(max_examples=settings().max_examples // 4)
@pytest.mark.parametrize("scan", SOURCES, ids=lambda scan: scan.source)
@given(data=st.data())
def test_windows_follow_the_reference_at_every_moment(scan: Scan, data: st.DataObject) -> None:
    """After every event, at every wake-up, and a microsecond before it."""
    run = LocalRun(data.draw(windows(scan)))
    for moment in data.draw(histories([scan], max_moments=6)):
        while (wakeup := run.next_wakeup()) is not None and wakeup <= moment.now:
            assert run.output == run.expected(wakeup - 1)
            assert run.step(wakeup) == run.expected(wakeup)
        for event in moment.events if data.draw(st.booleans()) else ():
            assert run.step(moment.now, [event]) == run.expected(moment.now)
        assert run.step(moment.now) == run.expected(moment.now)


@settings(max_examples=settings().max_examples // 2)
@given(histories(SOURCES, max_moments=6), st.data())
def test_what_stands_on_windows_follows_too(history: list[Moment], data: st.DataObject) -> None:
    """Expired rows split sessions, leave hops and let others move up."""
    scan = data.draw(st.sampled_from(SOURCES))
    below = data.draw(windows(scan))
    bounded = data.draw(st.integers(1, 3))
    shape: Plan
    match data.draw(st.sampled_from(("hop", "session", "top", "median"))):
        case "hop":
            shape = HopWindow(_with_time(below), 3, bounded, data.draw(st.integers(1, 2)))
        case "session":
            shape = SessionWindow(_with_time(below), 3, bounded, (0,))
        case "top":
            shape = TopN(below, (SortKey(2, descending=True),), bounded, 1)
        case _:
            column = Column(2, "x", DataType.DOUBLE)
            call = AggregateCall(AggregateFunction.PERCENTILE_CONT, (column,), "m")
            shape = Aggregate(below, (0,), (call,))
    run = LocalRun(shape)
    for moment in history:
        assert run.step(moment.now, moment.events) == run.expected(moment.now)
    while (wakeup := run.next_wakeup()) is not None:
        assert run.step(wakeup) == run.expected(wakeup)


def _with_time(plan: Plan) -> Plan:
    """Return the plan with its INTEGER column once more at position 3, to serve as a time."""
    columns = [Column(i, f.name, f.dtype) for i, f in enumerate(plan.schema.fields)]
    return Project(plan, (*columns, columns[1]), ("k", "n", "x", "ts"))


def test_time_alone_takes_rows_out_of_a_window_by_count() -> None:
    window = RowsWindow(2, (), bounded=False, within=10)
    window.advance(5)
    assert window.apply_timed({(1, A): 1, (3, B): 1, (4, C): 1}) == {B: 1, C: 1}
    assert window.next_wakeup() == 13
    assert window.advance(12) == {}  # A was not inside
    assert window.apply_timed({(4, C): -1}) == {C: -1}  # and is too old to come back
    assert window.advance(13) == {B: -1}
    assert window.next_wakeup() is None
    assert window.state_rows() == 0


def test_rows_that_come_too_late_never_enter() -> None:
    window = RowsWindow(2, (0,), bounded=True, within=10)
    window.advance(20)
    assert window.apply_timed({(10, A): 1, (11, A): 1}) == {A: 1}
    assert window.apply_timed({(10, A): -1}) == {}
    assert window.advance(21) == {A: -1}


def test_copies_leave_together() -> None:
    window = RowsWindow(3, (), bounded=False, within=10)
    window.advance(0)
    assert window.apply_timed({(0, A): 2, (5, B): 2}) == {A: 1, B: 2}
    assert window.advance(10) == {A: -1}
    assert window.advance(15) == {B: -2}
    assert window.state_rows() == 0


@given(st.integers(1, 3), st.randoms(use_true_random=False))
def test_rows_too_old_are_not_kept(size: int, choice: random.Random) -> None:
    window = RowsWindow(size, (), bounded=False, within=10)
    for now in range(0, 100, 2):
        window.advance(now)
        window.apply_timed({(now - choice.randrange(12), (str(now),)): 1})
    assert window.state_rows() <= 7 + size
