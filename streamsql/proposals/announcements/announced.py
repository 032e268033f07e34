"""A device as it announced itself: its topic and the columns that its payloads feed."""

from collections.abc import Iterable, Mapping

import msgspec

from streamsql.data.types import DataType, Value
from streamsql.mapping.payloads.payload_formats import JsonReader
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat
from streamsql.mapping.units import is_unit, unit_named
from streamsql.proposals.proposal import ProposedColumn
from streamsql.proposals.sample import Sample

MAX_TEXT = 200
"""Characters of a word that a device may have as a path, value or unit."""


class AnnouncedDevice(msgspec.Struct, frozen=True):
    """A device, or what of it is published on one topic.

    Attributes:
        title: Its kind, for people.
        name: A word for its kind.
        device: Its own name, for people.
        topic: Where its payloads come.
        pattern: Of the topic, if its names are known; empty: it is found by comparing devices.
        availability: Topic on which it says that it is there, or empty.
        offline: The payload there with which it goes; empty: `offline`.
        base: First levels of all topics of its bridge, or empty.
    """

    title: str
    name: str
    device: str
    topic: str
    columns: tuple[ProposedColumn, ...]
    format: PayloadFormat = PayloadFormat.JSON
    pattern: str = ""
    availability: str = ""
    offline: str = ""
    base: str = ""


def json_of(sample: Sample) -> object:
    """Return a payload's root, or None if it is no JSON."""
    try:
        return JsonReader().decode(sample.payload, sample.arrival)
    except ValueError:
        return None


def text_in(found: Mapping[str, object], *names: str) -> str:
    """Return the text of the first field that has a short one, or empty."""
    for name in names:
        value = found.get(name)
        if isinstance(value, str) and 0 < len(value.strip()) <= MAX_TEXT:
            return value.strip()
    return ""


def number_column(name: str, path: str, unit: str) -> ProposedColumn:
    """Return a column of numbers, with the unit if it is known."""
    known = unit_named(unit).name if unit and is_unit(unit) else ""
    origin = ColumnMapping(path="" if path == name else path, unit=known)
    return ProposedColumn(name, DataType.DOUBLE, origin)


def plain_column(name: str, path: str, dtype: DataType) -> ProposedColumn:
    """Return a column whose value is taken as it comes."""
    return ProposedColumn(name, dtype, ColumnMapping(path="" if path == name else path))


def switch_column(name: str, path: str, yes: object, no: object) -> ProposedColumn:
    """Return a column that is true or false, from what the device says for either."""
    origin = ColumnMapping(path="" if path == name else path)
    if isinstance(yes, str) and isinstance(no, str) and yes != no and yes and no:
        values: tuple[tuple[str, Value], ...] = ((yes[:MAX_TEXT], True), (no[:MAX_TEXT], False))
        origin = msgspec.structs.replace(origin, values=values)
    return ProposedColumn(name, DataType.BOOLEAN, origin)


def joined(parts: Iterable[AnnouncedDevice]) -> list[AnnouncedDevice]:
    """Return one device for all that is announced of one topic."""
    found: dict[tuple[str, PayloadFormat], AnnouncedDevice] = {}
    for part in parts:
        place = (part.topic, part.format)
        known = found.get(place)
        if known is None:
            found[place] = part
            continue
        names = {column.name for column in known.columns}
        paths = {column.origin.path or column.name for column in known.columns}
        more = tuple(
            column
            for column in part.columns
            if column.name not in names and (column.origin.path or column.name) not in paths
        )
        found[place] = msgspec.structs.replace(known, columns=(*known.columns, *more))
    return list(found.values())
