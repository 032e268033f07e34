"""Durations as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.durations import LONGEST, parse_duration

UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 10**6,
    "min": 60 * 10**6,
    "h": 3_600 * 10**6,
    "d": 86_400 * 10**6,
}


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("90 s", 90_000_000),
        ("30 min", 1_800_000_000),
        ("1 h", 3_600_000_000),
        ("500 ms", 500_000),
        ("2 days", 172_800_000_000),
        ("1.5 hours", 5_400_000_000),
        ("1 h 30 min", 5_400_000_000),
        ("1 hour, 2 minutes and 3 seconds", 3_723_000_000),
        ("10", 10_000_000),
        (" 7 WEEKS ", 7 * 604_800_000_000),
        ("0 s", 0),
    ],
)
def test_known(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text",
    ["", " ", "s", "5 parsecs", "-5 s", "5 s x", "1e3 s", "5s5", "nan", "9" * 20, "101 years"],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|century"):
        parse_duration(text)


def test_a_century_is_the_longest() -> None:
    with pytest.raises(ValueError, match="century"):
        parse_duration("999999 days")


@given(count=st.integers(0, 10**6), unit=st.sampled_from(sorted(UNITS)))
def test_counts_units(count: int, unit: str) -> None:
    expected = count * UNITS[unit]
    if expected <= LONGEST:
        assert parse_duration(f"{count} {unit}") == parse_duration(f"{count}{unit}") == expected
