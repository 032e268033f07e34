"""Rows as JSON and as SenML packs that a reader of SenML understands."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from federated_optimizer.coordinator.sinks.row_payloads import payload_of, row_objects
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkFormat, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import WireError
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import mapper

SCHEMA = Schema.of(
    ("device", DataType.TEXT),
    ("temp", DataType.DOUBLE),
    ("open", DataType.BOOLEAN),
    ("since", DataType.INTERVAL),
    ("ts", DataType.TIMESTAMP),
)
SENML = SinkDefinition(
    *("my sink", "SELECT", SinkConnector.MQTT, SinkMode.UPSERT),
    key=("device",),
    format=SinkFormat.SENML,
    topic="x/{device}",
    units=("", "degF", "", "", ""),
)
JSON = SinkDefinition("s", "SELECT", SinkConnector.MQTT, SinkMode.APPEND, topic="x")
ROW: Row = ("a b", 212.0, True, 1_500_000, 1_700_000_000_500_000)


def test_json_has_times_in_iso_8601() -> None:
    assert json.loads(payload_of(row_objects(JSON, SCHEMA)(ROW))) == {
        "device": "a b",
        "temp": 212.0,
        "open": True,
        "since": 1.5,
        "ts": "2023-11-14T22:13:20.500000Z",
    }


def test_a_pack_has_names_units_and_a_time_of_the_standard() -> None:
    assert row_objects(SENML, SCHEMA)(ROW) == [
        {"bn": "my_x0020_sink/a_x0020_b/", "bt": 1_700_000_000.5, "n": "device", "vs": "a b"},
        {"n": "temp", "u": "K", "v": 373.15},
        {"n": "open", "vb": True},
        {"n": "since", "u": "s", "v": 1.5},
    ]


def test_values_that_are_missing_are_no_records() -> None:
    objects = row_objects(SENML, SCHEMA)
    assert objects(("a", None, None, None, None)) == [
        {"bn": "my_x0020_sink/a/", "n": "device", "vs": "a"}
    ]
    with pytest.raises(ValueError, match="no column has a value"):
        objects((None, None, None, None, 5))


def test_what_json_cannot_carry_is_refused() -> None:
    with pytest.raises(WireError):
        payload_of({"a": "\ud800"})


def test_our_own_reader_of_senml_understands_a_pack() -> None:
    columns = {
        "temp": (DataType.DOUBLE, ColumnMapping("temp", unit="Cel")),
        "open": (DataType.BOOLEAN, ColumnMapping("open")),
        "ts": (DataType.TIMESTAMP, ColumnMapping("@time")),
    }
    reader = mapper(columns, SourceMapping("mqtt", format=PayloadFormat.SENML))
    mapped = reader.map(payload_of(row_objects(SENML, SCHEMA)(ROW)), {}, 0)
    assert mapped.problems == []
    (row,) = mapped.rows
    assert row["temp"] == pytest.approx(100.0)
    assert (row["open"], row["ts"]) == (True, ROW[-1])


def unescaped(part: str) -> str:
    """Read a part of a name as SQL/XML does."""
    return re.sub(r"_x([0-9A-F]{4,6})_", lambda found: chr(int(found[1], 16)), part)


@given(
    st.lists(
        st.text(alphabet="aF2_x05/%: -.n\u00e9\U0001f600", max_size=8), min_size=2, max_size=2
    ),
    st.text(alphabet="ax_-/ 05F", min_size=1, max_size=8),
)
@example(["d/1", "d_2F1"], "s")
@example(["d/1", "d_x002F_1"], "_s")
def test_different_keys_have_different_base_names_of_the_standard(
    keys: list[str], name: str
) -> None:
    schema = Schema.of(("device", DataType.TEXT), ("n", DataType.INTEGER))
    sink = replace(SENML, name=name, units=())
    objects = row_objects(sink, schema)
    names = [objects((key, 1))[0]["bn"] for key in (*keys, None)]
    assert len(set(names)) == len({*keys, None})
    for key, found in zip(keys, names, strict=False):
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9:./_-]*", found)
        sink_part, key_part, rest = found.split("/")
        assert rest == ""
        assert unescaped(key_part) == (key or "_x_")
        assert unescaped(sink_part.removeprefix("x_x_")) == name
