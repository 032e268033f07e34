"""A clock that jumps ahead is believed when it goes on for a day, one that jumps back at once."""

from hypothesis import given
from hypothesis import strategies as st

from static_engine.care.believed_time import BelievedTime, text_of, time_of
from streamsql.catalog.keep_options import DAY

HOUR = DAY // 24
AT = 20_000 * DAY
YEAR = 365 * DAY


def looks(clock: list[tuple[int, int]], start: BelievedTime | None = None) -> BelievedTime:
    """Return the time after looks that are so far apart, and see the clock so far from AT."""
    time = start or BelievedTime(AT, AT)
    for elapsed, now in clock:
        time = time_of(text_of(time.later(AT + now, elapsed)), 0)
    return time


def test_a_year_ahead_and_back_changes_nothing() -> None:
    ahead = looks([(HOUR, HOUR), (HOUR, YEAR), (HOUR, YEAR + HOUR)])
    assert (ahead.time - AT, ahead.until) == (3 * HOUR, AT + YEAR + DAY)
    assert looks([(HOUR, 4 * HOUR)], ahead) == BelievedTime(AT + 4 * HOUR, AT + 4 * HOUR)


def test_a_clock_that_stays_ahead_is_believed_after_a_day() -> None:
    hours = [(HOUR, YEAR + number * HOUR) for number in range(25)]
    assert looks(hours[:24]).time == AT + 24 * HOUR
    assert looks(hours).time == AT + YEAR + DAY


def test_one_that_jumps_again_waits_again() -> None:
    hours = [(HOUR, YEAR + number * HOUR) for number in range(24)]
    assert looks([*hours, (HOUR, 2 * YEAR)]).time == AT + 25 * HOUR


def test_a_service_that_was_off_for_a_week_waits_and_one_that_was_off_overnight_does_not() -> None:
    assert looks([(0, 12 * HOUR)]).time == AT + 12 * HOUR
    off = looks([(0, 7 * DAY)])
    assert off.time == AT
    # It is restarted meanwhile: what it has waited for counts.
    assert looks([(0, 7 * DAY + 12 * HOUR), (0, 8 * DAY)], off).time == AT + 8 * DAY


def test_what_is_damaged_is_not_believed_to_be_a_jump() -> None:
    assert time_of("{", AT) == time_of(None, AT) == BelievedTime(AT, AT)


@given(st.lists(st.tuples(st.integers(0, 3 * DAY), st.integers(-YEAR, YEAR)), max_size=30))
def test_it_is_never_ahead_of_the_clock_that_was_seen_by_more_than_went_by(
    clock: list[tuple[int, int]],
) -> None:
    """The rule, by itself: more than a day of progress needs a clock that went on for a day."""
    time = BelievedTime(AT, AT)
    for elapsed, now in clock:
        after = time.later(AT + now, elapsed)
        assert after.time <= max(AT + now, time.time + elapsed)
        if after.time > time.time + elapsed + DAY:
            assert time.since is not None
            assert AT + now - time.since >= DAY
        time = after
