"""A Retry-After of another host never waits long and never raises."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.retry_after import MAX_RETRY_AFTER, retry_after

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MICROS = int(NOW.timestamp()) * 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "1 Jan 99999999999999999999 0:0:0",
        "1 Jan 2026 99999999999999999999:0:0",
        "1 Jan 2026 0:0:0 +99999999999999999999",
        "99999999999999999999 Jan 2026 0:0:0",
        "soon",
        "-5",
        "",
        "²",
    ],
)
def test_what_is_neither_a_number_nor_a_date_is_none(text: str) -> None:
    assert retry_after(text, MICROS) is None


@pytest.mark.parametrize("digits", [30, 100, 60_000])
def test_the_longest_time_is_an_hour(digits: int) -> None:
    assert retry_after("9" * digits, MICROS) == MAX_RETRY_AFTER
    assert retry_after("Fri, 31 Dec 9999 23:59:59 GMT", MICROS) == MAX_RETRY_AFTER


@given(seconds=st.integers(-100_000, 100_000), offset=st.integers(-23, 23))
def test_a_date_in_any_zone_is_the_seconds_until_then(seconds: int, offset: int) -> None:
    there = (NOW + timedelta(seconds=seconds)).astimezone(
        datetime.strptime(f"{offset:+03d}00", "%z").tzinfo
    )
    assert retry_after(format_datetime(there), MICROS) == min(max(seconds, 0), 3_600)


_PARTS = st.sampled_from(
    [
        "Fri,",
        "1",
        "31",
        "Jan",
        "0",
        "9999",
        "9" * 20,
        "0:0:0",
        "23:59",
        "+9999",
        "-0000",
        "GMT",
        ".",
    ]
)


@given(text=st.one_of(st.text(), st.lists(_PARTS, max_size=8).map(" ".join)))
def test_no_text_raises(text: str) -> None:
    asked = retry_after(text, MICROS)
    assert asked is None or 0 <= asked <= MAX_RETRY_AFTER
