"""Windows by time and by count, with late rows, early rows and rows taken back."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.operators.windows.rows_window import RowsWindow
from stream_engine.operators.windows.time_window import (
    RangeWindow,
    SteppedWindow,
    current_second,
    sliding,
)
from stream_engine.state.source_relation import TimedDelta
from streamsql.data.delta import Delta, accumulate

Timed = Callable[[], RangeWindow | SteppedWindow]
"""Makes a window."""
Holds = Callable[[int, int], bool]
"""Says whether a row of an event time is in the window at a time."""
A, B, C = ("a",), ("b",), ("c",)


def test_range() -> None:
    window = RangeWindow(10)
    window.advance(10)
    assert window.apply_timed({(5, A): 1, (0, B): 1, (99, C): 1}) == {A: 1, C: 1}
    assert window.next_wakeup() == 15
    assert window.advance(14) == {}
    assert window.advance(15) == {A: -1}
    assert window.apply_timed({(5, A): -1}) == {}  # it has left already
    assert window.apply_timed({(99, C): -1}) == {C: -1}
    assert window.next_wakeup() is None
    assert window.state_rows() == 0


def test_range_with_slide_changes_at_boundaries_only() -> None:
    window = SteppedWindow(sliding(10, 5))
    window.advance(7)
    assert window.apply_timed({(3, A): 1, (6, B): 1}) == {A: 1}  # the edge is 5
    assert window.next_wakeup() == 10
    assert window.advance(9) == {}
    assert window.advance(10) == {B: 1}
    assert window.advance(14) == {}
    assert window.advance(15) == {A: -1}
    assert window.advance(20) == {B: -1}


def test_a_row_waiting_to_enter_can_be_taken_back() -> None:
    window = SteppedWindow(sliding(10, 5))
    window.advance(7)
    assert window.apply_timed({(6, B): 1}) == {}
    assert window.apply_timed({(6, B): -1}) == {}
    assert window.advance(10) == {}
    assert window.state_rows() == 0


def test_a_window_shorter_than_its_slide_misses_rows() -> None:
    window = SteppedWindow(sliding(3, 5))
    window.advance(6)
    assert window.apply_timed({(6, A): 1, (9, B): 1}) == {}
    assert window.advance(10) == {B: 1}
    assert window.advance(15) == {B: -1}


def test_a_jump_over_a_whole_stay_gives_nothing() -> None:
    window = SteppedWindow(current_second)
    window.advance(0)
    assert window.apply_timed({(2_500_000, A): 1}) == {}
    assert window.advance(9_000_000) == {}
    assert window.state_rows() == 0


def test_now() -> None:
    window = SteppedWindow(current_second)
    window.advance(1_200_000)
    assert window.apply_timed({(1_900_000, A): 1, (999_999, B): 1, (2_000_000, C): 1}) == {A: 1}
    assert window.advance(2_000_000) == {A: -1, C: 1}


def test_rows_come_back_when_later_ones_leave() -> None:
    window = RowsWindow(2, (), bounded=False)
    assert window.apply_timed({(1, A): 1, (2, B): 1}) == {A: 1, B: 1}
    assert window.apply_timed({(3, C): 1}) == {A: -1, C: 1}
    assert window.apply_timed({(3, C): -1}) == {C: -1, A: 1}
    assert window.apply_timed({(1, A): -1, (2, B): -1}) == {A: -1, B: -1}
    assert window.state_rows() == 0


def test_a_late_row_enters_only_if_it_belongs_there() -> None:
    window = RowsWindow(2, (), bounded=True)
    window.apply_timed({(5, A): 1, (7, B): 1})
    assert window.apply_timed({(4, C): 1}) == {}
    assert window.apply_timed({(6, C): 1}) == {A: -1, C: 1}
    assert window.state_rows() == 2


def test_copies_count_one_by_one() -> None:
    window = RowsWindow(2, (), bounded=False)
    assert window.apply_timed({(1, A): 3}) == {A: 2}
    assert window.apply_timed({(1, A): -2}) == {A: -1}


def test_partitions_are_apart() -> None:
    window = RowsWindow(1, (0,), bounded=False)
    assert window.apply_timed({(1, ("a", 1)): 1, (2, ("b", 1)): 1}) == {("a", 1): 1, ("b", 1): 1}
    assert window.apply_timed({(3, ("a", 2)): 1}) == {("a", 1): -1, ("a", 2): 1}


def test_a_bounded_window_ignores_what_it_never_saw() -> None:
    window = RowsWindow(2, (), bounded=True)
    assert window.apply_timed({(1, A): -1}) == {}
    window.apply_timed({(2, B): 1})
    assert window.apply_timed({(9, A): -1}) == {}
    assert window.state_rows() == 1


@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_rows_window_follows_a_sorted_list(size: int, choice: random.Random) -> None:
    window = RowsWindow(size, (), bounded=False)
    rows: list[tuple[int, tuple[str]]] = []
    shown: dict[tuple[str], int] = {}
    for _ in range(40):
        change: TimedDelta = {}
        if rows and choice.random() < 0.4:
            gone = choice.choice(rows)
            rows.remove(gone)
            change[gone] = -1
        else:
            timed = (choice.randrange(6), (choice.choice("abc"),))
            rows.append(timed)
            change[timed] = 1
        for row, weight in window.apply_timed(change).items():
            assert isinstance(row[0], str)
            shown[(row[0],)] = shown.get((row[0],), 0) + weight
        last = [row for _, row in sorted(rows)[-size:]]
        assert {row: w for row, w in shown.items() if w} == {r: last.count(r) for r in last}


def _grid(size: int, slide: int) -> tuple[Timed, Holds]:
    """Return a window by time on a grid, and which event times it holds."""

    def holds(ts: int, now: int) -> bool:
        edge = now // slide * slide
        return edge - size < ts <= edge

    return (lambda: SteppedWindow(sliding(size, slide))), holds


def _plain(size: int, _slide: int) -> tuple[Timed, Holds]:
    return (lambda: RangeWindow(size)), lambda ts, now: ts > now - size


@pytest.mark.parametrize("kind", [_grid, _plain])
@given(st.integers(1, 5), st.integers(1, 4), st.randoms(use_true_random=False))
def test_windows_by_time_hold_what_lies_between_their_edges(
    kind: Callable[[int, int], tuple[Timed, Holds]], size: int, slide: int, choice: random.Random
) -> None:
    """At every moment, whatever comes late, early or at an edge; another one goes on from it."""
    make, holds = kind(size, slide)
    window, now = make(), 10
    window.advance(now)
    rows: list[tuple[int, tuple[str]]] = []
    shown: Delta = {}
    for _ in range(30):
        wakeup = window.next_wakeup()
        match choice.randrange(5):
            case 0 | 1:
                rows.append((now + choice.randint(-7, 7), (choice.choice("ab"),)))
                accumulate(shown, window.apply_timed({rows[-1]: 1}))
            case 2 if rows:
                gone = rows.pop(choice.randrange(len(rows)))
                accumulate(shown, window.apply_timed({gone: -1}))
            case 3:
                taken, window = window, make()
                window.fill(now, taken.contents())
                assert window.next_wakeup() == wakeup
            case _:
                later = now + choice.randint(0, 3)
                while wakeup is not None and wakeup <= later and now < later:
                    assert wakeup > now
                    accumulate(shown, window.advance(wakeup))
                    now, wakeup = wakeup, window.next_wakeup()
                now = later
                accumulate(shown, window.advance(now))
        assert shown == Counter(row for ts, row in rows if holds(ts, now))
