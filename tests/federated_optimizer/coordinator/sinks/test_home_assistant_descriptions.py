"""Descriptions for Home Assistant: one entity per column, and templates that read the payload."""

import json
import re
from typing import Any

import jinja2
import pytest

from federated_optimizer.coordinator.sinks.home_assistant_descriptions import Descriptions
from federated_optimizer.coordinator.sinks.row_payloads import payload_of, row_objects
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.mapping.units import _UNITS as UNITS
from tests.federated_optimizer.coordinator.sinks import home_assistant_rules as rules

SCHEMA = Schema.of(
    ("room", DataType.TEXT),
    ("it's", DataType.DOUBLE),
    ("open", DataType.BOOLEAN),
    ("label", DataType.TEXT),
    ("energy", DataType.DOUBLE),
    ("ts", DataType.TIMESTAMP),
    ("lasts", DataType.INTERVAL),
)
SINK = SinkDefinition(
    *("climate", "SELECT", SinkConnector.MQTT, SinkMode.UPSERT),
    key=("room",),
    topic="building/{room}",
    discovery="homeassistant",
    units=("", "Cel", "", "", "kWh", "", ""),
)
ROW: Row = ("r/1", 21.5, True, "a", 3.0, 0, 1_500_000)


def described(key: Row = ("r/1",)) -> dict[str, tuple[str, dict[str, Any]]]:
    found = {}
    for topic, payload in Descriptions(SINK, SCHEMA).of(key, "building/r%2F1"):
        said = json.loads(payload)
        found[said["name"]] = (topic, said)
    return found


def rendered(template: str, payload: str) -> str:
    """Render as Home Assistant does: `value_json` is there where the payload is JSON."""
    known: dict[str, Any] = {"value": payload}
    if payload:
        known["value_json"] = json.loads(payload)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701
    return environment.from_string(template).render(known)


def test_every_column_but_the_key_is_an_entity_of_one_device() -> None:
    found = described()
    assert set(found) == {"it's", "open", "label", "energy", "ts", "lasts"}
    topic, said = found["it's"]
    assert topic == "homeassistant/sensor/pando_climate_r_2F1_17a7f5ea8308_it-27-s/config"
    assert said["unique_id"] == "pando_climate_r_2F1_17a7f5ea8308_it-27-s"
    assert said["default_entity_id"] == "sensor.pando_climate_r_2f1_it_s"
    assert said["state_topic"] == "building/r%2F1"
    assert (said["unit_of_measurement"], said["device_class"]) == ("°C", "temperature")
    assert said["state_class"] == "measurement"
    assert said["device"]["identifiers"] == ["pando_climate_r_2F1_17a7f5ea8308"]
    assert said["device"]["name"] == "climate r/1"
    assert found["open"][0].startswith("homeassistant/binary_sensor/")
    assert "device_class" not in found["label"][1]
    assert (found["energy"][1]["device_class"], found["energy"][1]["state_class"]) == (
        "energy",
        "total",
    )
    assert found["ts"][1]["device_class"] == "timestamp"
    assert found["lasts"][1]["unit_of_measurement"] == "s"
    assert len({said["unique_id"] for _, said in found.values()}) == 6


def test_ids_of_different_keys_differ() -> None:
    ids = {
        said["unique_id"]
        for key in (("a-b",), ("a_b",), ("a b",), ("a-20-b",), (None,), ("",))
        for _, said in described(key).values()
    }
    assert len(ids) == 6 * 6


LONG = "x" * 4_000


def test_ids_of_different_sinks_keys_and_columns_differ_however_they_are_divided() -> None:
    """Every way to divide a text into sink, key and column, where each part may have any name."""
    ids: list[str] = []
    for sink, key, columns in (
        ("a", ("b",), ("c", "b_c")),
        ("a_b", (), ("c",)),
        ("a", (), ("b", "b_c")),
        ("a", ("b_c",), ("d",)),
        ("a", ("b", "c"), ("d", "d e", "d-20-e")),
        ("a", (f"{LONG}1",), ("b",)),
        ("a", (f"{LONG}2",), ("b",)),
    ):
        names = [f"k{position}" for position in range(len(key))]
        schema = Schema.of(*((name, DataType.TEXT) for name in (*names, *columns)))
        definition = SinkDefinition(
            *(sink, "SELECT", SinkConnector.MQTT, SinkMode.UPSERT),
            key=tuple(names),
            topic="t",
            discovery="homeassistant",
        )
        for topic, payload in Descriptions(definition, schema).of(key, "t"):
            unique = json.loads(payload)["unique_id"]
            assert topic == f"homeassistant/sensor/{unique}/config"
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,250}", unique)
            ids.append(unique)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ROW, ("21.5", "ON", "a", "3.0", "1970-01-01T00:00:00Z", "1.5")),
        (("r", None, False, None, None, None, None), ("None", "OFF", *("None",) * 4)),
        (("r", 1.0, None, "b", 1.0, None, 0), ("1.0", "None", "b", "1.0", "None", "0.0")),
    ],
)
def test_templates_read_what_is_published(row: Row, expected: tuple[str, ...]) -> None:
    payload = payload_of(row_objects(SINK, SCHEMA)(row)).decode()
    templates = [said["value_template"] for _, said in described().values()]
    assert tuple(rendered(template, payload) for template in templates) == expected


def test_a_key_without_a_row_is_unavailable() -> None:
    for _, said in described().values():
        (available,) = said["availability"]
        assert available["topic"] == said["state_topic"]
        assert rendered(available["value_template"], '{"a": 1}') == "online"
        assert rendered(available["value_template"], "") == "offline"
        assert rendered(said["value_template"], "") == "None"


def in_unit(unit: str) -> tuple[str, dict[str, Any]]:
    """Topic and description of a number with a unit."""
    schema = Schema.of(("room", DataType.TEXT), ("n", DataType.DOUBLE))
    sink = SinkDefinition(
        *("u", "SELECT", SinkConnector.MQTT, SinkMode.UPSERT),
        key=("room",),
        topic="u/{room}",
        discovery="homeassistant",
        units=("", unit),
    )
    ((topic, payload),) = Descriptions(sink, schema).of(("r",), "u/r")
    return topic, json.loads(payload)


def all_described() -> list[tuple[str, dict[str, Any]]]:
    return [*described().values(), *(in_unit(unit) for unit in UNITS)]


def test_descriptions_have_only_keys_that_home_assistant_knows() -> None:
    for topic, said in all_described():
        component = topic.split("/")[1]
        assert said.keys() <= rules.KEYS[component]
        assert said["device"].keys() <= rules.DEVICE_KEYS
        assert said["origin"].keys() <= rules.ORIGIN_KEYS
        assert said["origin"]["name"] == "Pando"
        assert all(entry.keys() <= rules.AVAILABILITY_KEYS for entry in said["availability"])
        assert re.fullmatch(component + r"\.[a-z0-9_]+", said["default_entity_id"])


def test_units_and_state_classes_are_those_of_the_device_class() -> None:
    kinds = set()
    for _, said in all_described():
        kind = said.get("device_class")
        if kind is None:
            continue
        kinds.add(kind)
        assert said.get("unit_of_measurement") in rules.UNITS[kind]
        if "state_class" in said:
            assert said["state_class"] in rules.STATE_CLASSES[kind]
    assert kinds == rules.UNITS.keys()
