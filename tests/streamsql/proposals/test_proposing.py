"""Statements proposed from the payloads of docs/devices.md and of other devices."""

import json

import pytest

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Value
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.source_mapping import PayloadFormat
from streamsql.mapping.topic_pattern import TopicPattern
from streamsql.proposals.announcements.announced_sources import proposals_of_payloads
from streamsql.proposals.proposal import Proposal
from streamsql.proposals.proposing import Asked, maps, propose
from streamsql.proposals.sample import Sample
from streamsql.syntax.parse import parse_statement
from tests.docs.test_devices import Recipe, recipes

NOON = 1_780_308_000_000_000
"""2026-06-01 10:00 UTC, which is noon in Berlin."""

LISTENED = Asked("mqtt", "home", options=(("topic", "#"),), zone="Europe/Berlin")


def heard(*messages: tuple[str, object]) -> list[Sample]:
    """Return samples of topics and payloads; objects become JSON."""
    return [
        Sample(p.encode() if isinstance(p, str) else json.dumps(p).encode(), topic, NOON)
        for topic, p in messages
    ]


def bound(proposal: Proposal) -> SourceDefinition:
    """Return the definition that the proposed statement creates."""
    statement = parse_statement(proposal.text)
    definition = define(statement, Catalog())  # type: ignore[arg-type]
    assert isinstance(definition, SourceDefinition)
    return definition


def rows_of(proposal: Proposal, samples: list[Sample]) -> list[dict[str, Value]]:
    """Return what the created source makes of payloads."""
    definition = bound(proposal)
    assert definition.mapping is not None
    mapper = Mapper(definition)
    topic = definition.mapping.option("topic")
    found: list[dict[str, Value]] = []
    for sample in samples:
        facts = TopicPattern(topic).facts(sample.topic) if topic else {}
        if facts is not None:
            found += mapper.map(sample.payload, facts, sample.arrival).rows
    return found


def only_one(samples: list[Sample], asked: Asked = LISTENED) -> Proposal:
    """Return the proposal, of which there is one."""
    (proposal,) = propose(samples, asked)
    return proposal


def types(proposal: Proposal) -> dict[str, str]:
    """Return types of columns with their units."""
    return {c.name: f"{c.dtype} {c.origin.unit}".strip() for c in proposal.columns}


@pytest.mark.parametrize("recipe", list(recipes()), ids=str)
def test_the_payloads_of_every_recipe_give_statements_that_bind_and_map_them(
    recipe: Recipe,
) -> None:
    samples = [Sample(payload, topic, NOON) for topic, payload in recipe.messages]
    proposals = proposals_of_payloads(samples, LISTENED)
    assert proposals
    for proposal in proposals:
        definition = bound(proposal)
        assert definition.mapping == proposal.mapping
        assert (definition.key, definition.schema) == (proposal.key, proposal.schema)
        if proposal.settings.format != PayloadFormat.SPARKPLUG:  # births count, not messages
            assert len(maps(proposal, samples)) == proposal.samples > 0


def test_tasmota_is_two_sources_told_apart_by_their_sensors() -> None:
    energy, climate = propose(
        heard(
            (
                "tele/a/SENSOR",
                {"Time": "2026-06-01T12:00:00", "ENERGY": {"Power": 4, "Total": 1.5}},
            ),
            ("tele/b/SENSOR", {"Time": "2026-06-01T12:00:01", "ENERGY": {"Power": 0, "Total": 2}}),
            (
                "tele/c/SENSOR",
                {"Time": "2026-06-01T12:00:01", "AM2301": {"Temperature": 70}, "TempUnit": "F"},
            ),
            ("tele/a/LWT", "Online"),
        ),
        LISTENED,
    )
    assert energy.text == (
        "CREATE SOURCE energy (\n"
        "  device TEXT,\n"
        "  power DOUBLE FROM 'ENERGY.Power' UNIT 'W',\n"
        "  total DOUBLE FROM 'ENERGY.Total' UNIT 'kWh',\n"
        "  ts TIMESTAMP FROM 'Time' ZONE 'Europe/Berlin',\n"
        "  KEY (device)\n"
        ") WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{device}/SENSOR', "
        "availability = 'tele/{device}/LWT', only = 'ENERGY')"
    )
    assert types(climate)["temperature"] == "DOUBLE degF"
    assert climate.settings.only == (("AM2301", None),)


def test_the_zone_is_the_readers_only_where_times_fit_it() -> None:
    utc = only_one(heard(("a/x", {"time": "2026-06-01T10:00:03", "v": 1})))
    local = only_one(heard(("a/x", {"time": "2026-06-01T12:00:03", "v": 1})))
    zoned = only_one(heard(("a/x", {"time": "2026-06-01T12:00:03+02:00", "v": 1})))
    assert [p.columns[-1].origin.zone for p in (utc, local, zoned)] == ["", "Europe/Berlin", ""]


def test_a_level_that_differs_becomes_a_column_of_the_key() -> None:
    samples = heard(
        ("house/rooms/hall/climate", {"celsius": 20.5}),
        ("house/rooms/attic/climate", {"celsius": 18}),
    )
    proposal = only_one(samples)
    assert proposal.settings.option("topic") == "house/rooms/{room}/climate"
    assert types(proposal) == {"room": "TEXT", "celsius": "DOUBLE Cel"}
    assert rows_of(proposal, samples) == [
        {"room": "hall", "celsius": 20.5},
        {"room": "attic", "celsius": 18.0},
    ]


def test_a_level_asked_for_with_a_plus_is_a_column_though_one_value_was_seen() -> None:
    asked = Asked("mqtt", "home", options=(("topic", "house/+/climate"),))
    proposal = only_one(heard(("house/hall/climate", {"t": 1})), asked)
    assert proposal.settings.option("topic") == "house/{device}/climate"
    assert proposal.key == (0,)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([True, False], DataType.BOOLEAN),
        (["ON", "OFF"], DataType.BOOLEAN),
        (["open"], DataType.BOOLEAN),
        (["auto", "manual"], DataType.TEXT),
        ([21, 22], DataType.DOUBLE),
        ([2**60], DataType.INTEGER),
        (["21.5", "22"], DataType.DOUBLE),
        (["007"], DataType.TEXT),
        ([1, "x"], DataType.TEXT),
        (["2026-06-01T12:00:00Z"], DataType.TIMESTAMP),
        ([10**50], DataType.DOUBLE),
    ],
)
def test_the_type_of_a_column_is_that_of_all_values_seen(
    values: list[object], dtype: DataType
) -> None:
    samples = heard(*(("a/b", {"state": value}) for value in values))
    proposal = only_one(samples)
    assert proposal.columns[0].dtype == dtype
    assert len(rows_of(proposal, samples)) == len(values)


def test_enumerations_name_both_words_though_one_was_seen() -> None:
    proposal = only_one(heard(("a/b", {"state": "ON", "level": 2.0})))
    assert "state BOOLEAN VALUES ('ON' = TRUE, 'OFF' = FALSE)" in proposal.text


def test_a_unit_comes_from_the_maker_and_never_from_a_guess() -> None:
    guessed = only_one(heard(("a/b", {"temperature": 21.5, "power": 3})))
    stated = only_one(heard(("a/b", {"temp": "21.5 °C", "power_watts": 3, "pressure_hpa": 1013})))
    assert set(types(guessed).values()) == {"DOUBLE"}
    assert types(stated) == {
        "temp": "DOUBLE Cel",
        "power_watts": "DOUBLE W",
        "pressure_hpa": "DOUBLE hPa",
    }


def test_arrays_of_objects_are_rows_with_a_key_of_their_own() -> None:
    samples = heard(
        ("hub/7", {"hub": "h7", "sensors": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]}),
        ("hub/8", {"hub": "h8", "sensors": [{"name": "a", "v": 3}]}),
    )
    proposal = only_one(samples)
    assert proposal.settings.rows == "sensors[*]"
    assert [proposal.columns[place].name for place in proposal.key] == ["device", "name"]
    assert [row["hub"] for row in rows_of(proposal, samples)] == ["h7", "h7", "h8"]


def test_elements_that_nothing_tells_apart_are_counted() -> None:
    asked = Asked("http", "meter", options=(("path", "/values"),))
    samples = heard(("", [{"v": 1}, {"v": 1}]))
    proposal = only_one(samples, asked)
    assert rows_of(proposal, samples) == [{"row": 0, "v": 1.0}, {"row": 1, "v": 1.0}]
    assert "path = '/values'" in proposal.text


def test_a_payload_with_an_id_is_keyed_by_it() -> None:
    proposal = only_one(heard(("x", {"device_id": "a", "v": 1}), ("x", {"device_id": "b", "v": 2})))
    assert [proposal.columns[place].name for place in proposal.key] == ["device_id"]


def test_senml_gives_devices_units_and_times() -> None:
    samples = heard(
        (
            "senml/1",
            [
                {"bn": "urn:dev:mac:0024befffe804ff1/", "bt": 1780308000, "n": "temp", "u": "Cel",
                 "v": 23.1},
                {"n": "open", "vb": True},
            ],
        )
    )  # fmt: skip
    proposal = only_one(samples)
    assert proposal.settings.format == PayloadFormat.SENML
    assert types(proposal) == {
        "device": "TEXT",
        "temp": "DOUBLE Cel",
        "open": "BOOLEAN",
        "ts": "TIMESTAMP",
    }
    assert rows_of(proposal, samples)[0]["ts"] == NOON


@pytest.mark.parametrize(
    ("text", "header", "rows"),
    [
        ("room;t\nhall;20.5\nattic;18", True, 2),
        ("1,2,3\n4,5,6", False, 2),
        ("hall\t1\nattic\t2", False, 2),
    ],
)
def test_lines_with_equally_many_cells_are_csv(text: str, header: bool, rows: int) -> None:
    samples = heard(("csv", text))
    proposal = only_one(samples)
    assert (proposal.settings.format, proposal.settings.header) == (PayloadFormat.CSV, header)
    assert len(rows_of(proposal, samples)) == rows


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xff\xfe", b"\x00", b"{}", b"[]", b"x" * 5_000, b'{"a": ' + b"1" * 400 + b"}"],
)
def test_nothing_is_proposed_from_what_holds_nothing(payload: bytes) -> None:
    assert propose([Sample(payload, "a/b", NOON)], LISTENED) == ()


def test_names_that_there_are_already_are_not_proposed_again() -> None:
    samples = heard(("house/rooms/hall/climate", {"celsius": 20.5}))
    (proposal,) = propose(samples, LISTENED, taken=("climate",))
    assert proposal.name == "climate_2"


def test_topics_that_no_pattern_can_name_become_levels_with_names() -> None:
    samples = heard(("home/front door/t", {"v": 1}), ("home/{odd}/t", {"v": 2}))
    proposal = only_one(samples)
    assert [row["device"] for row in rows_of(proposal, samples)] == ["front door", "{odd}"]
