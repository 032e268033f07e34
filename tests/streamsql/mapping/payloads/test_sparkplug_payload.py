"""Sparkplug B: what the protobuf library writes is read, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._mapping.sparkplug_library import payload_class
from streamsql.data.types import DataType
from streamsql.mapping.payloads.sparkplug_payload import (
    SparkplugKind,
    SparkplugTopic,
    decode_sparkplug,
    signed,
    sparkplug_topic,
)
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import Columns, mapper

PAYLOAD = payload_class()


def written(*metrics: dict[str, object], **fields: int) -> bytes:
    """Return a payload as the protobuf library writes it."""
    data: bytes = PAYLOAD(metrics=metrics, **fields).SerializeToString()
    return data


METRICS = st.fixed_dictionaries(
    {"name": st.text(st.characters(exclude_categories=["Cs"]), min_size=1)},
    optional={
        "alias": st.integers(0, 2**64 - 1),
        "datatype": st.just(0),
        "unknown": st.binary(max_size=9),
    },
)
VALUES = st.one_of(
    st.tuples(st.just("int_value"), st.integers(0, 2**32 - 1)),
    st.tuples(st.just("long_value"), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("float_value"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("double_value"), st.floats(allow_nan=False)),
    st.tuples(st.just("boolean_value"), st.booleans()),
    st.tuples(st.just("string_value"), st.text(st.characters(exclude_categories=["Cs"]))),
    st.tuples(st.just("bytes_value"), st.binary()),
)


@given(st.lists(st.tuples(METRICS, VALUES), max_size=5), st.integers(0, 2**40))
def test_what_the_protobuf_library_writes_is_read(
    metrics: list[tuple[dict[str, object], tuple[str, object]]], time: int
) -> None:
    payload = written(
        *(metric | {kind: value} for metric, (kind, value) in metrics), timestamp=time
    )
    decoded = decode_sparkplug(payload)
    assert decoded.time == time * 1_000
    assert [metric.value for metric in decoded.metrics] == [value for _, (_, value) in metrics]
    assert [metric.name for metric in decoded.metrics] == [metric["name"] for metric, _ in metrics]
    assert [metric.alias for metric in decoded.metrics] == [m.get("alias") for m, _ in metrics]


@given(st.integers(-(2**31), 2**31 - 1))
def test_signed_integers_are_twos_complement(number: int) -> None:
    for datatype, bits in ((3, 32), (4, 64)):
        assert signed(number % 2**bits, datatype) == number
    assert signed(number % 2**32, 7) == number % 2**32
    assert signed(True, 3) is True


BIRTH = written(
    {"name": "Temp", "alias": 1, "datatype": 9, "float_value": 21.5},
    {"name": "Level", "alias": 2, "datatype": 3, "int_value": 2**32 - 2},
    {"name": "On", "alias": 3, "datatype": 11, "boolean_value": True},
    timestamp=1_700_000_000_000,
    seq=0,
)


COLUMNS: Columns = {
    "temp": (DataType.DOUBLE, ColumnMapping("Temp")),
    "level": (DataType.INTEGER, ColumnMapping("Level")),
    "ts": (DataType.TIMESTAMP, ColumnMapping()),
}
SPARKPLUG = SourceMapping("mqtt", format=PayloadFormat.SPARKPLUG)


def test_a_birth_is_a_row_with_its_time() -> None:
    source = mapper(COLUMNS, SPARKPLUG, time_column=2)
    row = {"temp": 21.5, "level": -2, "ts": 1_700_000_000_000_000}
    assert source.map(BIRTH, {}, 5).rows == [row]
    assert source.map_record({"Temp": 1}, {"time": 7}, 5).rows == [
        {"temp": 1.0, "level": None, "ts": 7}
    ]


def test_data_of_aliases_needs_its_birth() -> None:
    mapped = mapper(COLUMNS, SPARKPLUG).map(written({"alias": 1, "float_value": 1.5}), {}, 5)
    assert mapped.problems == [
        "payload: its metrics have aliases only, and their birth is not known"
    ]


def test_a_clock_beyond_the_year_9999_gives_no_time() -> None:
    payload = written({"name": "Temp", "float_value": 1}, timestamp=2**64 - 1)
    assert decode_sparkplug(payload).time is None
    assert mapper(COLUMNS, SPARKPLUG, time_column=2).map(payload, {}, 5).rows[0]["ts"] == 5


@pytest.mark.parametrize(
    "payload",
    [b"\x12", b"\x12\x05a", b"\x0b", b"\xff" * 11, b"\x12\x02\x0a\xff", b"\x12\x03\x0a\x01\xff",
     b"\x08" + b"\xff" * 10, b"\x12\x00" * 10_001, b"\x12\xff\xff\xff\xff\x0f"],
)  # fmt: skip
def test_what_is_no_payload_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"Sparkplug|metrics"):
        decode_sparkplug(payload)


@given(st.binary(max_size=80))
def test_random_bytes_are_metrics_or_refused(payload: bytes) -> None:
    try:
        decoded = decode_sparkplug(payload)
    except ValueError:
        return
    assert len(decoded.metrics) <= 40


def test_topics() -> None:
    data, birth = SparkplugKind.NDATA, SparkplugKind.DBIRTH
    assert sparkplug_topic("spBv1.0/g/NDATA/n") == SparkplugTopic("g", data, "n", "")
    assert sparkplug_topic("spBv1.0/g/DBIRTH/n/d") == SparkplugTopic("g", birth, "n", "d")
    others = ("spBv1.0/STATE/host", "spBv1.0/g/DDATA/n", "spBv1.0/g/NCMD/n", "spBv1.0/g/NDATA/n/d")
    for other in (*others, "spBv1.0/g/DDATA/n/", "a/b", ""):
        assert sparkplug_topic(other) is None
