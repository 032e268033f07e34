"""From what a device offers to CREATE SOURCE: a source for each record, a column for each value."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from streamsql.data.types import DataType
from streamsql.mapping.offers import OfferedRecord, OfferedValue
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from streamsql.mapping.units import is_unit, unit_named
from streamsql.proposals.column_types import typed
from streamsql.proposals.proposal import Proposal, ProposedColumn
from streamsql.proposals.proposing import MAX_PROPOSALS, Asked
from streamsql.proposals.topic_shapes import identifier

MAX_COLUMNS = 100

Chosen = Mapping[str, Collection[str]]
"""Addresses by the name of their record."""


def propose_offered(
    records: Sequence[OfferedRecord],
    asked: Asked,
    taken: Iterable[str] = (),
    chosen: Chosen | None = None,
) -> tuple[Proposal, ...]:
    """Return proposed sources, in the order of the records.

    Args:
        records: What the device offers; a record may come in parts, which are sources of their own.
        asked: Connector, endpoint and zone count.
        taken: Names of sources that there are already.
        chosen: What somebody wants; None: all.
    """
    names = set(taken)
    proposals: list[Proposal] = []
    for record in records:
        values = _chosen(record, chosen)
        if not values or len(proposals) >= MAX_PROPOSALS:
            continue
        name = _free(identifier(record.name) or "readings", names)
        proposals.append(_proposed(name, record, values, asked))
    return tuple(proposals)


def _chosen(record: OfferedRecord, chosen: Chosen | None) -> list[OfferedValue]:
    """Return the values to make columns of: the key stays with whatever is wanted."""
    if chosen is None:
        return list(record.values[:MAX_COLUMNS])
    wanted = chosen.get(record.name, ())
    if not any(value.address in wanted for value in record.values):
        return []
    return [
        value for value in record.values if value.address in wanted or value.name in record.key
    ][:MAX_COLUMNS]


def _proposed(
    name: str, record: OfferedRecord, values: Sequence[OfferedValue], asked: Asked
) -> Proposal:
    names: set[str] = set()
    columns = tuple(_column(_free(_name_of(value), names), value, asked.zone) for value in values)
    key = tuple(place for place, value in enumerate(values) if value.name in record.key)
    settings = SourceMapping(
        asked.connector,
        asked.endpoint,
        asked.gateways,
        PayloadFormat.FIELDS,
        options=tuple(record.options.items()),
    )
    return Proposal(name, columns, key, settings, title=record.name, samples=1)


def _column(name: str, value: OfferedValue, zone: str) -> ProposedColumn:
    dtype, origin = _type_of(name, value, zone)
    unit = unit_named(value.unit).name if dtype.is_numeric and is_unit(value.unit) else ""
    path = "" if value.address == name else value.address
    return ProposedColumn(name, dtype, msgspec.structs.replace(origin, path=path, unit=unit))


def _type_of(name: str, value: OfferedValue, zone: str) -> tuple[DataType, ColumnMapping]:
    """Return type and clauses: as the device says it, and times as its sample is written."""
    if value.type is not None and (value.type != DataType.TIMESTAMP or value.sample is None):
        return value.type, ColumnMapping()
    found = None if value.sample is None else typed(name, [value.sample], zone)
    return found or (value.type or DataType.TEXT, ColumnMapping())


def _name_of(value: OfferedValue) -> str:
    return identifier(value.name) or "value"


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name = f"{wanted}_{number}"
        number += 1
    taken.add(name)
    return name
