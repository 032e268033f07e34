"""When a view of REFRESH AT is refreshed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.catalog.refresh_times import (
    NEVER,
    RefreshSchedule,
    first_repeated,
    minute_of_day,
    next_refresh,
    time_of_day,
    zone_of,
)

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kathmandu")
MINUTES = st.lists(st.integers(0, 1440), min_size=1, max_size=4)


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("after", "zone", "expected"),
    [
        ("2026-01-05T13:59:59Z", "UTC", "2026-01-05T14:00:00Z"),
        ("2026-01-05T14:00:00Z", "UTC", "2026-01-05T19:00:00Z"),
        ("2026-01-05T19:00:00Z", "UTC", "2026-01-06T00:00:00Z"),
        ("2026-01-06T00:00:00Z", "UTC", "2026-01-06T14:00:00Z"),
        ("2026-01-05T12:30:00Z", "Europe/Berlin", "2026-01-05T13:00:00Z"),
        ("2026-01-05T18:00:00Z", "Europe/Berlin", "2026-01-05T23:00:00Z"),
    ],
)
def test_the_times_of_the_language(after: str, zone: str, expected: str) -> None:
    times = (14 * 60, 19 * 60, 24 * 60)
    assert next_refresh(micros(after), times, zone_of(zone)) == micros(expected)


def test_a_time_that_spring_leaves_out_comes_later_and_autumn_does_not_repeat_it() -> None:
    berlin, half_past_two = zone_of("Europe/Berlin"), (150,)
    spring = next_refresh(micros("2026-03-28T12:00:00Z"), half_past_two, berlin)
    assert spring == micros("2026-03-29T01:30:00Z")  # clocks show 03:30
    autumn = next_refresh(micros("2026-10-24T12:00:00Z"), half_past_two, berlin)
    assert autumn == micros("2026-10-25T00:30:00Z")
    assert next_refresh(autumn, half_past_two, berlin) == micros("2026-10-26T01:30:00Z")


@given(
    after=st.datetimes(datetime(2011, 1, 1), datetime(2031, 1, 1)),  # noqa: DTZ001
    times=MINUTES,
    name=st.sampled_from(ZONES),
)
def test_the_next_time_is_later_soon_and_the_first(
    after: datetime, times: list[int], name: str
) -> None:
    zone = zone_of(name)
    begin = int(after.replace(tzinfo=UTC).timestamp()) * 1_000_000
    found = next_refresh(begin, times, zone)
    assert begin < found <= begin + 50 * 3_600_000_000  # some zones skip a day
    shown = datetime.fromtimestamp(found // 1_000_000, zone)
    minute = shown.hour * 60 + shown.minute
    if shown.utcoffset() == (shown - timedelta(hours=3)).utcoffset():  # no clock was moved
        assert minute in {time % 1440 for time in times}
    assert next_refresh(found - 1, times, zone) == found
    middle = (begin + found) // 2
    if begin < middle:
        assert next_refresh(middle, times, zone) == found


def test_the_calendar_ends() -> None:
    assert next_refresh(micros("9999-12-31T23:00:00Z"), (0,), zone_of("UTC")) == NEVER


@given(st.integers(0, 1440))
def test_times_of_day_are_read_as_they_are_written(minute: int) -> None:
    assert minute_of_day(time_of_day(minute)) == minute


@pytest.mark.parametrize("text", ["", "14", "24:01", "7:5", "12:60", "-1:00", "1e:00", "١٢:00"])
def test_what_is_no_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of day from"):
        minute_of_day(text)


def test_midnight_is_one_moment() -> None:
    assert first_repeated((0, 60, 1440)) == 2
    assert first_repeated((0, 60)) is None


@pytest.mark.parametrize("name", ["Europe/Bärlin", "", "../etc/passwd", "No/Where"])
def test_there_is_no_such_zone(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        zone_of(name)


def test_the_schedule_in_words() -> None:
    assert RefreshSchedule("SELECT 1", (540, 1440)).text == "09:00, 24:00"
    assert RefreshSchedule("SELECT 1", (540,), (0.25,)).text == "09:00 (weight 0.25)"
