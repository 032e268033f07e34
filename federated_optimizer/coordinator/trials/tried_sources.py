"""Definitions that are tried and never stored, and what they make of payloads."""

from collections.abc import Mapping, Sequence

import msgspec
from typing_extensions import override

from federated_optimizer.coordinator.contract.trial_model import MappedSample, MappedTrial
from streamsql.algebra.operators import SourceKind
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.connectors import ConnectorKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Value
from streamsql.errors import BindingError, WireError
from streamsql.mapping.mapper import Mapped, Mapper
from streamsql.mapping.payloads.sparkplug_payload import decode_sparkplug, sparkplug_topic
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from streamsql.mapping.sparkplug.sparkplug_pattern import ALL_TOPICS, SparkplugPattern
from streamsql.mapping.sparkplug.sparkplug_session import SparkplugSession
from streamsql.mapping.sparkplug.wanted_metrics import wanted_metrics
from streamsql.mapping.topic_pattern import TopicPattern
from streamsql.syntax.parse import parse_statement
from streamsql.syntax.statements import CreateSource
from streamsql.wire.codec import decode_json
from streamsql.wire.trial_messages import TrialSample

_MAX_ROWS = 20
"""Of a payload."""


def tried_definition(text: str) -> SourceDefinition:
    """Return what CREATE SOURCE would create, whether there is a source of its name or not.

    Raises:
        FederationError: The statement is wrong, or creates no source that a connector feeds.
    """
    statement = parse_statement(text)
    if not isinstance(statement, CreateSource) or statement.kind == SourceKind.TABLE:
        raise BindingError(
            "only CREATE SOURCE can be tried",
            span=statement.span,
            hint="CREATE SOURCE climate (…) WITH (connector = 'mqtt', topic = '…')",
            code="unsupported_statement",
        )
    definition = define(statement, Catalog())
    if not isinstance(definition, SourceDefinition) or definition.mapping is None:
        raise BindingError(
            f"{statement.name.text} has no connector, so there is nothing to try",
            span=statement.name.span,
            hint="add WITH (connector = 'mqtt', endpoint = '…', topic = '…')",
            code="bad_clause",
        )
    return msgspec.structs.replace(definition, version=1)


def listening(
    connector: str, endpoint: str, options: Mapping[str, str], name: str = "listening"
) -> SourceDefinition:
    """Return a source without columns of its own: whatever comes is looked at as it is."""
    return SourceDefinition(
        name,
        SourceKind.STREAM,
        Schema.of(("topic", DataType.TEXT)),
        mapping=SourceMapping(
            connector,
            endpoint,
            format=PayloadFormat.TEXT,
            columns=(ColumnMapping(path="@topic"),),
            options=tuple(options.items()),
        ),
        version=1,
    )


def listening_for_births(connector: str, endpoint: str) -> SourceDefinition:
    """Return a source of all births of Sparkplug; in its format the gateway asks nodes for them."""
    found = listening(connector, endpoint, {"topic": ALL_TOPICS}, "announced_nodes")
    assert found.mapping is not None  # noqa: S101  (it has just been made)
    births = (("@birth", "true"),)
    mapping = msgspec.structs.replace(found.mapping, format=PayloadFormat.SPARKPLUG, only=births)
    return msgspec.structs.replace(found, mapping=mapping)


def mapped_samples(text: str, samples: Sequence[TrialSample]) -> MappedTrial:
    """Return what a statement makes of payloads.

    Raises:
        FederationError: The statement is wrong.
    """
    definition = tried_definition(text)
    if samples and samples[0].is_record:
        definition = _by_address(definition)
    mapping = definition.mapping
    assert mapping is not None  # noqa: S101  (`tried_definition` refuses it)
    topic = mapping.option("topic")
    replay: _Replay
    if mapping.connector == ConnectorKind.MQTT and mapping.format == PayloadFormat.SPARKPLUG:
        replay = _SparkplugReplay(definition, mapping, topic or ALL_TOPICS)
    else:
        replay = _Replay(definition, TopicPattern(topic) if topic else None)
    return MappedTrial(definition.schema, tuple(map(replay.mapped, samples)))


def _addresses(definition: SourceDefinition) -> set[str]:
    """Return what the columns of a source read, facts left out."""
    assert definition.mapping is not None  # noqa: S101  (it is tried)
    columns = zip(definition.schema.names, definition.mapping.columns, strict=True)
    found = {column.path or name for name, column in columns}
    return {address for address in found if not address.startswith("@")}


def _by_address(definition: SourceDefinition) -> SourceDefinition:
    """Return the definition as gateways take it of a plug-in that reads by addresses."""
    mapping = definition.mapping
    if mapping is None or mapping.format != PayloadFormat.JSON:
        return definition
    fields = msgspec.structs.replace(mapping, format=PayloadFormat.FIELDS)
    return msgspec.structs.replace(definition, mapping=fields)


class _Replay:
    """Maps payloads of a trial, one after the other, as a gateway would."""

    def __init__(self, definition: SourceDefinition, pattern: TopicPattern | None) -> None:
        self.mapper = Mapper(definition)
        self._names = definition.schema.names
        self._addresses = _addresses(definition)
        self._pattern = pattern

    def mapped(self, sample: TrialSample) -> MappedSample:
        """Return what becomes of a payload."""
        facts: dict[str, Value] = dict(sample.facts)
        if self._pattern is not None:
            levels = self._pattern.facts(str(facts.get("topic", "")))
            if levels is None:
                return MappedSample((), ignored=True)
            facts.update(levels)
        if sample.size > len(sample.payload):
            return MappedSample((), (f"{sample.size:,} bytes are too many to be tried here",))
        if not sample.is_record:
            return self.of(self.mapper.map(sample.payload, facts, sample.arrival))
        try:
            values = decode_json(sample.payload, dict[str, object])
        except WireError as error:
            return MappedSample((), (error.message,))
        if not self._addresses & values.keys():
            return MappedSample((), ignored=True)  # another record of the device
        return self.of(self.mapper.map_record(values, facts, sample.arrival))

    def of(self, *mapped: Mapped) -> MappedSample:
        """Return what became of one payload, which may be several records."""
        rows = [tuple(row[name] for name in self._names) for each in mapped for row in each.rows]
        problems = tuple(problem for each in mapped for problem in each.problems)
        ignored = all(each.ignored for each in mapped)
        return MappedSample(tuple(rows[:_MAX_ROWS]), problems, ignored)


class _SparkplugReplay(_Replay):
    """Maps messages of Sparkplug, which refer to the births before them."""

    def __init__(self, definition: SourceDefinition, mapping: SourceMapping, topic: str) -> None:
        super().__init__(definition, None)
        self._nodes = SparkplugPattern(topic)
        wanted = wanted_metrics(mapping, definition.schema)
        self._session = SparkplugSession(wanted, asks=mapping.option("rebirth") != "never")

    @override
    def mapped(self, sample: TrialSample) -> MappedSample:
        place = sparkplug_topic(str(sample.facts.get("topic", "")))
        known = self._nodes.facts(place) if place is not None else None
        if place is None or known is None or not sample.payload:
            return MappedSample((), ignored=True)
        try:
            message = decode_sparkplug(sample.payload)
            changes = self._session.heard(place, message, sample.arrival)
        except ValueError as error:
            return MappedSample((), (str(error),))
        facts = {**sample.facts, **known}
        found = [
            self.mapper.map_record(
                row.values,
                facts if row.time is None else {**facts, "time": row.time},
                sample.arrival,
            )
            for row in changes.rows
        ]
        if found:
            return self.of(*found)
        texts = [f"{reason}: the gateway asks for it" for reason in changes.rebirths.values()]
        reasons = (*filter(None, (changes.problem,)), *texts)
        return MappedSample((), reasons, ignored=not reasons)
