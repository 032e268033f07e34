"""Announcements of Home Assistant's discovery, Zigbee2MQTT and Sparkplug become statements."""

import json
import struct
from typing import Any

import pytest

from streamsql.data.types import DataType
from streamsql.proposals.announcements.announced_sources import proposals_of, proposals_of_payloads
from streamsql.proposals.announcements.home_assistant import MAX_COMPONENTS
from streamsql.proposals.proposal import Proposal
from streamsql.proposals.proposing import Asked
from streamsql.proposals.sample import Sample
from tests.streamsql.mapping.sparkplug.written import alias, temp, written
from tests.streamsql.proposals.test_proposing import NOON, bound, rows_of, types

HOME = Asked("mqtt", "home")


def announced(*messages: tuple[str, object]) -> tuple[Proposal, ...]:
    """Return what is proposed of announcements."""
    samples = [
        Sample(p if isinstance(p, bytes) else json.dumps(p).encode(), topic, NOON)
        for topic, p in messages
    ]
    proposals = proposals_of(samples, HOME)
    for proposal in proposals:
        definition = bound(proposal)
        assert definition.mapping == proposal.mapping
        assert definition.key == proposal.key
    return proposals


def sensor(device: str, field: str, **more: object) -> tuple[str, dict[str, object]]:
    """Return the discovery message of one field of a device's payload."""
    config = {
        "name": field,
        "state_topic": f"meter/{device}/state",
        "value_template": f"{{{{ value_json.{field} }}}}",
        "device": {"name": device, "model": "M1", "manufacturer": "Acme"},
        "availability": [{"topic": "meter/bridge/state"}, {"topic": f"meter/{device}/status"}],
        **more,
    }
    return f"homeassistant/sensor/{device}/{field}/config", config


def test_entities_of_one_device_are_columns_and_devices_alike_one_source() -> None:
    (proposal,) = announced(
        sensor("a", "power", unit_of_measurement="W", state_class="measurement"),
        sensor("a", "energy", unit_of_measurement="kWh"),
        sensor("a", "mode"),
        sensor("b", "power", unit_of_measurement="W", state_class="measurement"),
        sensor("b", "energy", unit_of_measurement="kWh"),
        sensor("b", "mode"),
    )
    assert proposal.text == (
        "CREATE SOURCE m1 (\n"
        "  device TEXT,\n"
        "  power DOUBLE UNIT 'W',\n"
        "  energy DOUBLE UNIT 'kWh',\n"
        "  mode TEXT,\n"
        "  KEY (device)\n"
        ") WITH (connector = 'mqtt', endpoint = 'home', topic = 'meter/{device}/state', "
        "availability = 'meter/{device}/status')"
    )
    assert (proposal.title, proposal.topics, proposal.samples) == ("Acme M1", ("a", "b"), 2)
    payload = Sample(b'{"power": 3, "energy": 1.5, "mode": "eco"}', "meter/b/state", NOON)
    assert rows_of(proposal, [payload]) == [
        {"device": "b", "power": 3.0, "energy": 1.5, "mode": "eco"}
    ]


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("{{ value_json.a }}", "a"),
        ("{{value_json.a.b|float}}", "a.b"),
        ("{{ value_json['odd name'] | round(1) }}", '["odd name"]'),
        ("{{ value_json.a | int(default=0) }}", "a"),
    ],
)
def test_templates_that_name_a_field_become_its_path(template: str, path: str) -> None:
    (proposal,) = announced(sensor("a", "x", value_template=template))
    (column,) = proposal.columns
    assert (column.origin.path or column.name) == path


@pytest.mark.parametrize(
    "template",
    ["{{ value_json.a + 1 }}", "{% if value %}1{% endif %}", "{{ value.split(',')[0] }}"],
)
def test_templates_that_compute_are_left_alone(template: str) -> None:
    assert announced(sensor("a", "x", value_template=template)) == ()


def test_abbreviations_and_bare_payloads() -> None:
    (proposal,) = announced(
        (
            "homeassistant/binary_sensor/hall/motion/config",
            {"~": "hall", "stat_t": "~/motion", "pl_on": "yes", "pl_off": "no", "name": "Motion"},
        )
    )
    assert "motion BOOLEAN VALUES ('yes' = TRUE, 'no' = FALSE)" in proposal.text
    assert "topic = 'hall/motion', format = 'text'" in proposal.text


def test_an_availability_of_a_list_has_its_own_words() -> None:
    (proposal,) = announced(
        *(
            sensor(
                device,
                "power",
                availability=[{"t": "bridge"}, {"t": "~/lwt", "pl_not_avail": "gone"}],
                payload_not_available="not this one",
                **{"~": f"meter/{device}"},
            )
            for device in ("a", "b")
        )
    )
    assert proposal.settings.option("availability") == "meter/{device}/lwt"
    assert proposal.settings.option("offline") == "gone"


def boiler(device: str, **components: object) -> tuple[str, dict[str, object]]:
    """Return the discovery message of a device with its components."""
    message = {
        "dev": {"ids": device, "name": device, "mf": "Acme", "mdl": "B2"},
        "o": {"name": "acme2mqtt"},
        "cmps": {
            f"{device}_t": {
                "p": "sensor", "dev_cla": "temperature", "unit_of_meas": "°C",
                "val_tpl": "{{ value_json.temp }}", "uniq_id": f"{device}_t",
            },
            f"{device}_on": {"p": "binary_sensor", "val_tpl": "{{ value_json.on }}", "pl_on": True,
                             "pl_off": False},
            **components,
        },
        "~": f"boiler/{device}",
        "stat_t": "~/state",
        "avty_t": "~/online",
    }  # fmt: skip
    return f"homeassistant/device/{device}/config", message


def test_the_components_of_a_device_are_its_columns() -> None:
    removed = {"p": "sensor"}
    own = {"p": "sensor", "stat_t": "~/power", "unit_of_meas": "W", "name": "Power"}
    state, power = announced(boiler("a", old=removed, w=own), boiler("b", w=own), boiler("c"))
    assert state.text == (
        "CREATE SOURCE b2 (\n"
        "  device TEXT,\n"
        "  temp DOUBLE UNIT 'Cel',\n"
        '  "on" BOOLEAN,\n'
        "  KEY (device)\n"
        ") WITH (connector = 'mqtt', endpoint = 'home', topic = 'boiler/{device}/state', "
        "availability = 'boiler/{device}/online')"
    )
    assert (state.title, state.topics) == ("Acme B2", ("a", "b", "c"))
    assert power.settings.option("topic") == "boiler/{device}/power"
    assert power.topics == ("a", "b")
    payload = Sample(b'{"temp": 61.5, "on": true}', "boiler/b/state", NOON)
    assert rows_of(state, [payload]) == [{"device": "b", "temp": 61.5, "on": True}]


def test_the_components_of_a_device_are_bounded() -> None:
    many = {f"c{n}": {"p": "sensor", "val_tpl": f"{{{{ value_json.f{n} }}}}"} for n in range(300)}
    (proposal,) = announced(boiler("a", **many))
    assert len(proposal.columns) == MAX_COMPONENTS


@pytest.mark.parametrize("components", [None, [], "x", {"a": None}, {"a": {"p": "camera", "x": 1}}])
def test_devices_without_known_components_are_left_out(components: object) -> None:
    topic, message = boiler("a")
    assert announced((topic, {**message, "cmps": components})) == ()


Z2M: list[dict[str, Any]] = [
    {"type": "Coordinator", "friendly_name": "Coordinator", "definition": None},
    *(
        {
            "friendly_name": name,
            "definition": {
                "model": "MCCGQ11LM",
                "vendor": "Aqara",
                "description": "Door sensor",
                "exposes": [
                    {"type": "numeric", "property": "battery", "unit": "%", "access": 1},
                    {"type": "binary", "property": "contact", "value_on": False,
                     "value_off": True, "access": 1},
                    {"type": "numeric", "property": "linkquality", "unit": "lqi", "access": 1},
                ],
            },
        }
        for name in ("front door", "window")
    ),
    {
        "friendly_name": "lamp",
        "definition": {
            "model": "LED1545G12",
            "vendor": "IKEA",
            "description": "Bulb",
            "exposes": [
                {"type": "light", "features": [
                    {"type": "binary", "property": "state", "value_on": "ON",
                     "value_off": "OFF", "access": 7},
                    {"type": "numeric", "property": "brightness", "access": 7},
                    {"type": "composite", "property": "color", "features": [
                        {"type": "numeric", "property": "x", "access": 7}]},
                ]},
                {"type": "enum", "property": "effect", "access": 2, "values": ["blink"]},
                {"type": "numeric", "property": "linkquality", "unit": "lqi", "access": 1},
            ],
        },
    },
]  # fmt: skip


def test_zigbee2mqtts_devices_are_one_source_a_model() -> None:
    door, bulb = announced(("zigbee2mqtt/bridge/devices", Z2M))
    assert (door.name, door.title) == ("door_sensor", "Aqara MCCGQ11LM (Door sensor)")
    assert door.topics == ("front door", "window")
    assert types(door) == {
        "device": "TEXT",
        "battery": "DOUBLE %",
        "contact": "BOOLEAN",
        "linkquality": "INTEGER",
    }
    assert types(bulb) == {
        "device": "TEXT",
        "state": "BOOLEAN",
        "brightness": "DOUBLE",
        "color_x": "DOUBLE",
        "linkquality": "INTEGER",
    }
    samples = [
        Sample(b'{"battery":88,"contact":true,"linkquality":120}', "zigbee2mqtt/front door", NOON),
        Sample(b'{"state":"ON","brightness":254,"color":{"x":0.5}}', "zigbee2mqtt/lamp", NOON),
    ]
    assert [row["contact"] for row in rows_of(door, samples)] == [True]
    assert [(row["state"], row["color_x"]) for row in rows_of(bulb, samples)] == [(True, 0.5)]


def test_a_bridge_that_announces_to_home_assistant_as_well_is_read_once() -> None:
    entity = sensor("x", "battery", state_topic="zigbee2mqtt/window")
    assert len(announced(("zigbee2mqtt/bridge/devices", Z2M), entity)) == 2


def test_friendly_names_with_levels_have_patterns_with_as_many() -> None:
    definition = Z2M[1]["definition"]
    listed = [{"friendly_name": "attic/window", "definition": definition}]
    (proposal,) = announced(("z/bridge/devices", listed))
    assert proposal.settings.option("topic") == "z/{group_1}/{device}"


def metric(name: str, datatype: int) -> bytes:
    """Return a metric of a birth: fields 1 (name) and 4 (data type) of a protobuf message."""
    body = b"\x0a" + bytes([len(name)]) + name.encode() + b"\x20" + bytes([datatype])
    return b"\x12" + bytes([len(body)]) + body


def test_sparkplug_births_name_metrics_with_types() -> None:
    birth = metric("bdSeq", 8) + metric("Inputs/Temperature", 10) + metric("Running", 11)
    (proposal,) = announced(
        ("spBv1.0/plant/DBIRTH/edge/press1", birth),
        ("spBv1.0/plant/DBIRTH/edge/press2", birth),
    )
    assert proposal.name == "press"
    assert proposal.settings.option("topic") == "spBv1.0/{group}/+/{node}/{device}"
    assert [(c.name, c.dtype, c.origin.path) for c in proposal.columns[3:]] == [
        ("temperature", DataType.DOUBLE, "Inputs/Temperature"),
        ("running", DataType.BOOLEAN, "Running"),
        ("ts", DataType.TIMESTAMP, "@time"),
    ]
    value = b"\x0a\x12Inputs/Temperature\x20\x0a\x69" + struct.pack("<d", 21.5)
    data = b"\x12" + bytes([len(value)]) + value
    (row,) = rows_of(proposal, [Sample(data, "spBv1.0/plant/DDATA/edge/press2", NOON)])
    assert (row["device"], row["temperature"]) == ("press2", 21.5)


def test_what_was_listened_to_is_proposed_by_births_and_names() -> None:
    samples = [
        Sample(written(temp(21.5), seq=1), "spBv1.0/plant/DBIRTH/n/press1", NOON),
        Sample(written(alias(1, double_value=5.0), seq=2), "spBv1.0/plant/DDATA/n/press1", NOON),
        Sample(written(alias(1, double_value=5.0), seq=2), "spBv1.0/plant/DDATA/n/unborn", NOON),
        Sample(written({"name": "On", "boolean_value": True}), "spBv1.0/plant/NDATA/n", NOON),
        Sample(b"x", "spBv1.0/plant/NCMD/n", NOON),
        Sample(b'{"t": 1.5}', "a/b", NOON),
    ]
    asked = Asked("mqtt", "home", options=(("topic", "spBv1.0/plant/#"),))
    press, node = proposals_of_payloads(samples[:-1], asked)
    assert press.settings.option("topic") == "spBv1.0/plant/+/{node}/{device}"
    assert [(c.name, c.dtype) for c in press.columns[2:-1]] == [("temp", DataType.DOUBLE)]
    assert [(c.name, c.dtype) for c in node.columns[1:-1]] == [("on", DataType.BOOLEAN)]
    for proposal in (press, node):
        assert bound(proposal).mapping == proposal.mapping
    everything = Asked("mqtt", "home", options=(("topic", "#"),))
    names = [proposal.name for proposal in proposals_of_payloads(samples, everything)]
    assert len(set(names)) == len(names) == 3


def test_what_is_no_announcement_is_left_out() -> None:
    assert (
        announced(
            ("homeassistant/sensor/x/config", "text"),
            ("homeassistant/camera/x/y/config", {"topic": "a"}),
            ("zigbee2mqtt/bridge/devices", {"not": "a list"}),
            ("spBv1.0/plant/DBIRTH/edge/x", b"\xff\xff"),
            ("some/other/topic", {"state_topic": "x"}),
            sensor("a", "x", state_topic="with/+/wildcard"),
        )
        == ()
    )
