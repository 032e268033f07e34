"""Definitions that are tried and never stored, and what they make of payloads."""

from collections.abc import Mapping, Sequence

import msgspec

from federated_optimizer.coordinator.contract.trial_model import MappedSample, MappedTrial
from streamsql.algebra.operators import SourceKind
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.connectors import hands_over_records
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Value
from streamsql.errors import BindingError, DeploymentError, WireError
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from streamsql.mapping.topic_pattern import TopicPattern
from streamsql.syntax.parse import parse_statement
from streamsql.syntax.statements import CreateSource
from streamsql.wire.codec import decode_json
from streamsql.wire.source_trials import TrialSample

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
    """Return a source without columns of its own: whatever comes is looked at as it is.

    Raises:
        DeploymentError: The connector reads only what columns name.
    """
    if hands_over_records(connector):
        raise DeploymentError(
            f"connector {connector} reads what columns name, so nothing comes by itself",
            hint="write the statement with the addresses of its columns, and try that",
        )
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


def mapped_samples(text: str, samples: Sequence[TrialSample]) -> MappedTrial:
    """Return what a statement makes of payloads.

    Raises:
        FederationError: The statement is wrong.
    """
    definition = tried_definition(text)
    if samples and samples[0].is_record:
        definition = _by_address(definition)
    mapper = Mapper(definition)
    topic = definition.mapping.option("topic") if definition.mapping else None
    pattern = TopicPattern(topic) if topic else None
    found = tuple(_mapped(mapper, pattern, definition, sample) for sample in samples)
    return MappedTrial(definition.schema, found)


def _by_address(definition: SourceDefinition) -> SourceDefinition:
    """Return the definition as gateways take it of a plug-in that reads by addresses."""
    mapping = definition.mapping
    if mapping is None or mapping.format != PayloadFormat.JSON:
        return definition
    fields = msgspec.structs.replace(mapping, format=PayloadFormat.FIELDS)
    return msgspec.structs.replace(definition, mapping=fields)


def _mapped(
    mapper: Mapper,
    pattern: TopicPattern | None,
    definition: SourceDefinition,
    sample: TrialSample,
) -> MappedSample:
    facts: dict[str, Value] = dict(sample.facts)
    if pattern is not None:
        levels = pattern.facts(str(facts.get("topic", "")))
        if levels is None:
            return MappedSample((), ignored=True)
        facts.update(levels)
    if sample.size > len(sample.payload):
        return MappedSample((), (f"{sample.size:,} bytes are too many to be tried here",))
    if sample.is_record:
        try:
            values = decode_json(sample.payload, dict[str, object])
        except WireError as error:
            return MappedSample((), (error.message,))
        mapped = mapper.map_record(values, facts, sample.arrival)
    else:
        mapped = mapper.map(sample.payload, facts, sample.arrival)
    names = definition.schema.names
    rows = tuple(tuple(row[name] for name in names) for row in mapped.rows[:_MAX_ROWS])
    return MappedSample(rows, tuple(mapped.problems), mapped.ignored)
