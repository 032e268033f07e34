"""The time of an answer: that of its senders, also when a replay is faster or slower than we."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.alarm_life_cycle import AlarmBook, AlarmState
from federated_optimizer.answer_clock import JUMP, LEAST_SPAN, AnswerClock
from streamsql.catalog.notice_definitions import AlarmDefinition, Severity

SECOND = 1_000_000
THEN = 1_200_000_000 * SECOND  # when a recording was made
WALL = 1_800_000_000 * SECOND


def test_without_batches_it_is_the_time_here() -> None:
    clock = AnswerClock()
    assert clock.at(WALL) == WALL
    clock.heard(0, WALL)
    assert clock.at(WALL) == WALL


@given(
    speed=st.sampled_from([0.1, 0.5, 1.0, 2.0, 10.0, 60.0]),
    pauses=st.lists(st.integers(100, 5 * SECOND), min_size=1, max_size=20),
    further=st.integers(0, 20 * SECOND),
)
def test_it_goes_as_fast_as_its_sender(speed: float, pauses: list[int], further: int) -> None:
    clock, wall = AnswerClock(), WALL
    clock.heard(THEN, wall)
    for pause in pauses:
        wall += pause
        clock.heard(THEN + int((wall - WALL) * speed), wall)
        assert abs(clock.at(wall) - THEN - (wall - WALL) * speed) < 100
    if wall - WALL >= LEAST_SPAN:
        true = THEN + (wall + further - WALL) * speed
        assert clock.at(wall + further) == pytest.approx(true, abs=further * 0.001 * speed + 5)


def test_late_messages_of_a_live_sender_do_not_change_the_speed() -> None:
    clock = AnswerClock()
    for number, delay in enumerate((0, 80_000, 10_000, 60_000)):
        clock.heard(WALL + number * SECOND, WALL + number * SECOND + delay)
    assert clock.at(WALL + 3_600 * SECOND) == WALL + 3_600 * SECOND - 60_000


def test_the_sender_that_is_ahead_counts_and_a_new_life_begins_anew() -> None:
    clock = AnswerClock()
    clock.heard(THEN + 5 * SECOND, WALL)
    clock.heard(THEN, WALL + 1)
    assert clock.at(WALL) == THEN + 5 * SECOND
    clock.heard(THEN - JUMP, WALL + SECOND)
    assert clock.at(WALL + SECOND) == THEN - JUMP


@pytest.mark.parametrize(("speed", "raised"), [(10, True), (1, False)])
def test_for_is_measured_in_the_recording(speed: int, raised: bool) -> None:
    """A row is there for half a second by our clock: in a fast replay for five."""
    definition = AlarmDefinition("a", "SELECT …", Severity.WARNING, 3 * SECOND)
    book, clock = AlarmBook(definition, lambda: 1), AnswerClock()
    clock.heard(THEN, WALL)
    book.follow([("r",)], {("r",): 1}, clock.at(WALL))
    wall = WALL + SECOND // 2
    clock.heard(THEN + speed * SECOND // 2, wall)
    book.follow([("r",)], {}, clock.at(wall))
    assert [row.state for row in book.rows] == ([AlarmState.CLEARED] if raised else [])
    if raised:
        (row,) = book.rows
        assert (row.since, row.raised, row.cleared) == (
            THEN,
            THEN + 3 * SECOND,
            THEN + 5 * SECOND,
        )
