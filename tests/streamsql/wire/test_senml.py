"""Rows as SenML and back: exact, and whatever others write is understood or refused."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from streamsql.wire.messages import SenmlRecord
from streamsql.wire.senml import microseconds, records_of, row_from, rows_of

TIMES = st.integers(min_value=0, max_value=4_000_000_000_000_000)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: dict[DataType, st.SearchStrategy[Value]] = {
    DataType.BOOLEAN: st.booleans(),
    DataType.INTEGER: st.integers(min_value=-(2**63), max_value=2**63 - 1),
    DataType.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    DataType.TEXT: TEXTS,
    DataType.TIMESTAMP: TIMES,
    DataType.INTERVAL: st.integers(min_value=-(10**12), max_value=10**12),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, list[tuple[str, int, Row]]]:
    """A schema and rows that are not all NULL, with device and time."""
    dtypes = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
    schema = Schema.of(*((f"c{number}", dtype) for number, dtype in enumerate(dtypes)))
    row = st.tuples(*(st.none() | VALUES[dtype] for dtype in dtypes)).filter(
        lambda values: any(value is not None for value in values)
    )
    device = st.sampled_from(["a", "b", "room:1", "é"])
    return schema, draw(st.lists(st.tuples(device, TIMES, row), max_size=5))


@given(tables())
def test_rows_come_back_as_they_were_also_through_json(
    table: tuple[Schema, list[tuple[str, int, Row]]],
) -> None:
    schema, rows = table
    records = [r for name, ts, row in rows for r in records_of(name, ts, row, schema)]
    sent = msgspec.json.decode(msgspec.json.encode(records), type=list[SenmlRecord])
    back = [
        (name, microseconds(seconds), row_from(values, schema))
        for name, seconds, values in rows_of(sent)
    ]
    assert back == rows


@given(st.floats(min_value=-1e12, max_value=1e12) | st.floats(min_value=1e9, max_value=3e9))
def test_seconds_are_rounded_once(seconds: float) -> None:
    assert microseconds(seconds) == round(Fraction(seconds) * 1_000_000)


def test_a_record_without_base_name_is_a_device_of_its_own() -> None:
    """The first example of RFC 8428."""
    record = SenmlRecord(n="urn:dev:ow:10e2073a01080063", u="Cel", v=23.1)
    assert list(rows_of([record])) == [("urn:dev:ow:10e2073a01080063", 0.0, {"value": 23.1})]


def test_base_fields_hold_until_the_next_and_times_are_relative_to_the_base() -> None:
    records = [
        SenmlRecord(bn="dev:", bt=100.0, n="lon", v=1.0),
        SenmlRecord(n="lat", v=2.0),
        SenmlRecord(n="lon", t=60.0, v=3.0),
        SenmlRecord(bn="other:", v=4.0),
    ]
    assert list(rows_of(records)) == [
        ("dev", 100.0, {"lon": 1.0, "lat": 2.0}),
        ("dev", 160.0, {"lon": 3.0}),
        ("other", 100.0, {"value": 4.0}),
    ]


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (SenmlRecord(v=1.0), "needs a name"),
        (SenmlRecord(n="a"), "no value"),
        (SenmlRecord(n="a", t=float("inf"), v=1.0), "no finite time"),
    ],
)
def test_what_has_no_name_value_or_time_is_refused(record: SenmlRecord, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        list(rows_of([record]))


@pytest.mark.parametrize("seconds", [1e300, float("nan"), float("-inf"), 1e13])
def test_times_beyond_64_bits_are_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"time|64 bits"):
        microseconds(seconds)


def test_a_value_of_another_type_is_refused() -> None:
    schema = Schema.of(("on", DataType.BOOLEAN))
    with pytest.raises(ValueError, match="column on"):
        row_from({"on": 3.5}, schema)
