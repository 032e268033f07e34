"""A source of Sparkplug: readings, withdrawals, what is remembered, what is reported."""

import msgspec
import pytest

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.rebirth_requests import RebirthRequests
from gateway.connectors.mqtt.sparkplug_source import SparkplugSource
from gateway.connectors.reading import Reading
from gateway.connectors.testing.source_statements import definitions_of
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.sparkplug import followed_nodes
from tests.streamsql.mapping.sparkplug.written import NOON, alias, bd_seq, level, temp, written

SECOND = 1_000_000
KEYED = (
    "CREATE SOURCE s (node TEXT, device TEXT, temp DOUBLE FROM 'Temp', level INTEGER FROM 'Level', "
    "KEY (node, device)) WITH (connector = 'mqtt', endpoint = 'home', format = 'sparkplug')"
)
BY_NODE = (
    "CREATE SOURCE s (node TEXT, temp DOUBLE FROM 'Temp', KEY (node)) "
    "WITH (connector = 'mqtt', endpoint = 'home', format = 'sparkplug')"
)


class World:
    """A source and its messages."""

    def __init__(self, text: str, memory: object = None) -> None:
        (definition,) = definitions_of(text)
        self.now = NOON * 1_000
        self.problems: list[str] = []
        self.requests = RebirthRequests()
        source = DeclaredSource(
            definition, Mapper(definition), lambda: self.now, {}, self.problems.append
        )
        self.source = SparkplugSource(source, self.requests, memory, lambda _: self.now)

    def hear(self, place: str, payload: bytes, *, retained: bool = False) -> list[Reading]:
        topic = f"spBv1.0/{place}"
        matched = self.source.match(topic)
        assert matched is not None
        return self.source.readings(topic, matched[0], payload, retained=retained)

    def born(self) -> "World":
        self.hear("g/NBIRTH/n", written(bd_seq(0), seq=0))
        self.hear("g/DBIRTH/n/d", written(temp(20.0), level(-2), seq=1))
        return self

    def later(self, seconds: int) -> list[Reading]:
        self.now += seconds * SECOND
        return self.source.due()

    def asked(self) -> list[str]:
        found = list(self.requests.due(self.now))
        for node, _, _ in found:
            self.source.asked(node)
        return [reason for _, reason, _ in found]


def rows(readings: list[Reading]) -> list[tuple[object, ...]]:
    return [tuple(reading.values.values()) for reading in readings if not reading.delete]


def withdrawn(readings: list[Reading]) -> list[dict[str, object]]:
    assert all(reading.matching for reading in readings if reading.delete)
    return [dict(reading.values) for reading in readings if reading.delete]


def test_deaths_withdraw_what_the_topic_names() -> None:
    world = World(KEYED).born()
    assert withdrawn(world.hear("g/DDEATH/n/d", written(seq=2))) == [{"node": "n", "device": "d"}]
    world.born()
    assert withdrawn(world.hear("g/NDEATH/n", written(bd_seq(0)))) == [
        {"node": "n", "device": ""},
        {"node": "n", "device": "d"},
    ]


def test_rows_of_a_node_with_all_its_devices_go_with_the_node_alone() -> None:
    world = World(BY_NODE).born()
    assert world.hear("g/DDEATH/n/d", written(seq=2)) == []
    assert withdrawn(world.hear("g/NDEATH/n", written(bd_seq(0)))) == [{"node": "n"}]


def test_without_key_deaths_give_no_row_and_births_tell_nothing_twice() -> None:
    world = World(KEYED.replace(", KEY (node, device)", "")).born()
    again = written(temp(20.0), level(-2), seq=1)
    world.hear("g/NBIRTH/n", written(bd_seq(0), seq=0))
    assert world.hear("g/DBIRTH/n/d", again) == []
    assert world.hear("g/NDEATH/n", written(bd_seq(0))) == []
    world.hear("g/NBIRTH/n", written(bd_seq(1), seq=0))
    assert rows(world.hear("g/DBIRTH/n/d", again)) == [("n", "d", 20.0, -2)]
    keyed = World(KEYED).born()
    keyed.hear("g/NBIRTH/n", written(bd_seq(0), seq=0))
    assert rows(keyed.hear("g/DBIRTH/n/d", again)) == [("n", "d", 20.0, -2)]


def test_what_is_remembered_survives_the_journal_and_asks_for_births() -> None:
    before = World(KEYED).born()
    assert before.source.is_changed
    memory = before.source.to_remember()
    assert not before.source.is_changed
    before.hear("g/DDATA/n/d", written(alias(1, double_value=3), seq=2))
    assert not before.source.is_changed, "values are not remembered"
    stored = msgspec.json.decode(msgspec.json.encode(memory))
    world = World(KEYED, stored)
    assert world.asked() == ["the gateway was restarted"]
    assert withdrawn(world.later(61)) == [{"node": "n", "device": ""}, {"node": "n", "device": "d"}]
    assert World(KEYED, {"of": "another release"}).asked() == []
    keyless = World(KEYED.replace(", KEY (node, device)", "")).born().source
    assert keyless.to_remember() == {"topic": "spBv1.0/#", "nodes": []}


def test_nodes_that_the_topic_leaves_out_are_not_followed() -> None:
    world = World(KEYED.replace("format", "topic = 'spBv1.0/g/DDATA/n/#', format"))
    assert world.source.match("spBv1.0/g/NBIRTH/other") is None
    assert world.source.match("spBv1.0/g/NCMD/n") is None
    assert world.source.match("spBv1.0/STATE/host") is None
    assert rows(world.hear("g/NBIRTH/n", written(temp(1.0), seq=0))) == []
    assert rows(world.hear("g/DBIRTH/n/d", written(temp(20.0), seq=1))) == [("n", "d", 20.0, None)]


def test_what_cannot_be_read_is_a_problem_with_its_place() -> None:
    world = World(KEYED)
    world.hear("g/DDATA/n/d", b"\xff")
    world.hear("g/NBIRTH/n", b"x" * 1_000_001)
    assert world.problems == [
        "g/n/d: DDATA: it is no Sparkplug payload: it ends too early",
        "g/n: 1,000,001 bytes; the max is 1,000,000",
    ]
    assert world.hear("g/NBIRTH/n", b"") == [], "a retained message was removed"
    ignoring = World(KEYED.replace("format", "retained = 'ignore', format"))
    assert ignoring.hear("g/NBIRTH/n", written(temp(1.0)), retained=True) == []


def moved(topic: str) -> str:
    """Return the source with a topic."""
    return KEYED.replace("format", f"topic = '{topic}', format")


def test_rows_of_nodes_that_the_topic_names_no_more_are_withdrawn() -> None:
    before = World(KEYED).born()
    before.hear("h/NBIRTH/m", written(bd_seq(0), seq=0))
    memory = before.source.to_remember()
    world = World(moved("spBv1.0/h/#"), memory)
    assert world.asked() == ["the gateway was restarted"], "the other node is not asked"
    assert world.source.is_changed
    assert withdrawn(world.later(1)) == [{"node": "n", "device": ""}, {"node": "n", "device": "d"}]
    assert world.later(1) == []
    again = World(moved("spBv1.0/h/#"), world.source.to_remember())
    assert not again.source.is_changed
    assert withdrawn(again.later(1)) == []


def test_rows_of_devices_that_the_topic_names_no_more_are_withdrawn() -> None:
    before = World(KEYED).born()
    before.hear("g/DBIRTH/n/e", written(temp(1.0), seq=2))
    world = World(moved("spBv1.0/g/+/n/d"), before.source.to_remember())
    assert withdrawn(world.later(1)) == [{"node": "n", "device": ""}, {"node": "n", "device": "e"}]


def test_withdrawals_have_the_columns_of_the_former_topic() -> None:
    """Columns may be levels that only the topic names."""
    named = KEYED.replace("node TEXT, device", "line TEXT, device").replace("(node,", "(line,")
    before = World(named.replace("format", "topic = 'spBv1.0/g/+/{line}/+', format")).born()
    world = World(
        named.replace("format", "topic = 'spBv1.0/h/+/{line}/+', format"),
        before.source.to_remember(),
    )
    assert withdrawn(world.later(1)) == [{"line": "n", "device": "d"}]


def test_what_is_too_much_is_a_problem_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_nodes, "MAX_DEVICES", 1)
    world = World(KEYED)
    world.hear("g/NBIRTH/n", written(bd_seq(0), seq=0))
    world.hear("g/NBIRTH/m", written(bd_seq(0), seq=0))
    assert world.problems == ["g/m: more than 1 nodes and devices: g/m is left out"]


def test_a_birth_answers_a_request() -> None:
    world = World(KEYED)
    world.hear("g/NDATA/n", written(seq=4))
    world.born()
    assert world.asked() == []


def test_nobody_is_asked_where_the_source_says_never() -> None:
    world = World(KEYED.replace("format", "rebirth = 'never', format"))
    data = written({"name": "Temp", "double_value": 1.0}, seq=4)
    assert rows(world.hear("g/DDATA/n/d", data)) == [("n", "d", 1.0, None)]
    assert world.asked() == []
