"""How long rows are held back."""

from hypothesis import given
from hypothesis import strategies as st

from stream_engine.operators.windows.hold import Hold

TIMES = st.lists(st.integers(0, 50), min_size=1, max_size=20).map(sorted)


def overs(hold: Hold, times: list[int]) -> list[int]:
    """Return the steps with which the hold was over."""
    return [now for now in times if hold.over_at(now)]


def test_what_was_never_held_is_never_over() -> None:
    hold = Hold()
    assert not hold.is_on
    assert overs(hold, [1, 2, 3]) == []


@given(TIMES, st.integers(0, 20))
def test_a_wait_begins_with_the_next_step_and_is_over_once(times: list[int], wait: int) -> None:
    hold = Hold()
    hold.begin(wait)
    assert hold.is_on
    assert hold.until is None  # only a step knows the time
    reached = [now for now in times if now >= times[0] + wait]
    assert overs(hold, times) == reached[:1]
    assert hold.is_on == (not reached)
    assert hold.until == (None if reached else times[0] + wait)


@given(TIMES, TIMES)
def test_without_a_wait_it_lasts_until_it_is_ended(before: list[int], after: list[int]) -> None:
    hold = Hold()
    hold.begin(None)
    assert overs(hold, before) == []
    assert hold.until is None
    hold.end()
    assert hold.is_on  # until the next step
    assert overs(hold, after) == after[:1]
    assert not hold.is_on


def test_it_can_be_ended_before_its_wait_is_over() -> None:
    hold = Hold()
    hold.begin(100)
    assert overs(hold, [1, 2]) == []
    hold.end()
    assert overs(hold, [3, 101]) == [3]


def test_a_new_hold_forgets_the_wait_of_the_last() -> None:
    hold = Hold()
    hold.begin(10)
    assert overs(hold, [1]) == []
    hold.begin(10)
    assert overs(hold, [9, 11, 18, 19, 20]) == [19]
    hold.end()  # nothing is held: it says nothing of the next hold
    hold.begin(None)
    assert overs(hold, [21, 99]) == []


def test_a_hold_without_a_wait_forgets_when_the_last_would_have_been_over() -> None:
    hold = Hold()
    hold.begin(10)
    assert overs(hold, [1]) == []
    assert hold.until == 11
    hold.begin(None)
    assert hold.until is None
    assert overs(hold, [11, 99]) == []
