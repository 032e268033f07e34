"""Values of each type: what conforms, what converts, what is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.types import (
    DataType,
    coerce,
    common_type,
    conforms,
    display,
    timestamp_text,
)

ALL = list(DataType)


@given(st.sampled_from(ALL), st.sampled_from(ALL))
def test_common_type_is_symmetric_and_both_convert_to_it(left: DataType, right: DataType) -> None:
    shared = common_type(left, right)
    assert shared == common_type(right, left)
    if shared is not None and left.is_numeric and right.is_numeric:
        assert shared in (left, right)


@given(
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
    ),
    st.sampled_from([t for t in ALL if t != DataType.NULL]),
)
def test_coerced_values_conform_or_are_refused(value: object, dtype: DataType) -> None:
    try:
        found = coerce(value, dtype)
    except ValueError:
        return
    assert conforms(found, dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (math.nan, DataType.DOUBLE),
        (math.inf, DataType.DOUBLE),
        ("inf", DataType.DOUBLE),
        (2**63, DataType.INTEGER),
        (1.5, DataType.INTEGER),
        (True, DataType.INTEGER),
        (True, DataType.DOUBLE),
        ("yes", DataType.BOOLEAN),
        (2, DataType.BOOLEAN),
        ("last Tuesday", DataType.TIMESTAMP),
        ([1], DataType.TEXT),
        ({}, DataType.DOUBLE),
    ],
)
def test_refuses_what_is_no_value_of_the_type(value: object, dtype: DataType) -> None:
    with pytest.raises(ValueError, match=str(dtype)):
        coerce(value, dtype)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("2026-01-01T00:00:00.000001Z", 1_767_225_600_000_001),
    ],
)
def test_reads_times_in_any_zone_and_writes_them_in_utc(text: str, micros: int) -> None:
    assert coerce(text, DataType.TIMESTAMP) == micros
    assert coerce(timestamp_text(micros), DataType.TIMESTAMP) == micros


@given(st.integers(-(2**60), 2**60))
def test_every_time_has_a_text(micros: int) -> None:
    assert timestamp_text(micros)


def test_null_is_a_value_of_every_type() -> None:
    assert all(conforms(None, dtype) and coerce(None, dtype) is None for dtype in ALL)


def test_people_see_intervals_as_seconds_and_times_as_text() -> None:
    assert display(1_500_000, DataType.INTERVAL) == 1.5
    assert display(0, DataType.TIMESTAMP) == "1970-01-01T00:00:00Z"
    assert display(7, DataType.INTEGER) == 7
