"""A declared source maps payloads, counts what is wrong, and says it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.connectors.declared_source import MAX_REASON, DeclaredSource
from gateway.connectors.reading import Reading
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Value
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping

CLIMATE = SourceDefinition(
    "climate",
    SourceKind.STREAM,
    Schema.of(("device", DataType.TEXT), ("celsius", DataType.DOUBLE), ("at", DataType.TEXT)),
    key=(0,),
    mapping=SourceMapping(
        "mqtt",
        endpoint="home",
        columns=(ColumnMapping(), ColumnMapping(path="t.c"), ColumnMapping(path="@topic")),
        options=(("topic", "tele/{device}"),),
    ),
)


@dataclass
class Mapped:
    rows: list[dict[str, Value]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: int = 0
    ignored: bool = False


class Told:
    """A mapper that returns what it is told to and keeps what it was asked."""

    def __init__(self, *answers: Mapped) -> None:
        self.answers = list(answers)
        self.facts: list[dict[str, Value]] = []

    def map(self, payload: bytes, facts: Mapping[str, Value], arrival: int) -> Mapped:
        assert payload == b"payload"
        assert arrival == 42
        self.facts.append(dict(facts))
        return self.answers.pop(0)

    def given(self, facts: Mapping[str, Value]) -> dict[str, Value]:
        return {name.upper(): value for name, value in facts.items()}

    def map_record(
        self, values: Mapping[str, object], facts: Mapping[str, Value], arrival: int
    ) -> Mapped:
        return self.map(str(values["holding:1"]).encode(), facts, arrival)


def source(mapper: Told, said: list[str]) -> DeclaredSource:
    return DeclaredSource(CLIMATE, mapper, lambda: 42, {"gateway": "gw-1"}, said.append)


def test_rows_become_readings_of_the_source_named_by_their_key() -> None:
    declared = source(Told(Mapped([{"device": "k1", "celsius": 2.0}, {"device": "k2"}])), [])
    assert declared.read(b"payload") == [
        Reading("climate", {"device": "k1", "celsius": 2.0}, sensor="k1"),
        Reading("climate", {"device": "k2"}, sensor="k2"),
    ]
    assert (declared.payloads, declared.rows, declared.bad) == (1, 2, 0)


def test_levels_and_facts_reach_the_mapper_by_their_names() -> None:
    mapper = Told(Mapped(), Mapped())
    declared = source(mapper, [])
    declared.read(b"payload", {"room": "1.04"}, topic="tele/k1", retained=True)
    declared.read_record({"holding:1": "payload"}, unit=3)
    assert mapper.facts == [
        {"room": "1.04", "gateway": "gw-1", "topic": "tele/k1", "retained": True},
        {"gateway": "gw-1", "unit": 3},
    ]


def test_problems_are_counted_and_said_in_a_bounded_text() -> None:
    said: list[str] = []
    mapper = Told(Mapped(problems=["celsius: 'x' is no number", "y" * 1_000], refused=1))
    declared = source(mapper, said)
    assert declared.read(b"payload") == []
    assert said == ["celsius: 'x' is no number", "y" * MAX_REASON]
    assert declared.bad == 2


def test_what_is_ignored_is_no_problem() -> None:
    declared = source(Told(Mapped(ignored=True)), [])
    declared.read(b"payload")
    assert (declared.ignored, declared.bad) == (1, 0)


def test_addresses_leave_out_facts() -> None:
    assert source(Told(), []).addresses() == (("device", "device"), ("celsius", "t.c"))
