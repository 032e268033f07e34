"""Rows as JSON and as SenML packs that a reader of SenML understands."""

import json

import pytest

from federated_optimizer.coordinator.sinks.row_payloads import payload_of, row_objects
from streamsql.catalog.sinks import SinkConnector, SinkDefinition, SinkFormat, SinkMode
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
        {"bn": "my_sink/a_20b/", "bt": 1_700_000_000.5, "n": "device", "vs": "a b"},
        {"n": "temp", "u": "K", "v": 373.15},
        {"n": "open", "vb": True},
        {"n": "since", "u": "s", "v": 1.5},
    ]


def test_values_that_are_missing_are_no_records() -> None:
    objects = row_objects(SENML, SCHEMA)
    assert objects(("a", None, None, None, None)) == [
        {"bn": "my_sink/a/", "n": "device", "vs": "a"}
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
