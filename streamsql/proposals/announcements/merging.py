"""Devices that are alike become one source: a topic pattern, and fields that tell them apart."""

from collections.abc import Iterable, Sequence

import msgspec

from streamsql.data.types import DataType
from streamsql.mapping.field_path import parse_field_path
from streamsql.mapping.source_mapping import PayloadFormat, SourceMapping
from streamsql.mapping.topic_pattern import TopicPattern
from streamsql.proposals.announcements.announced import AnnouncedDevice
from streamsql.proposals.proposal import Proposal, ProposedColumn
from streamsql.proposals.proposing import Asked, only_fields
from streamsql.proposals.topic_shapes import common_pattern

MAX_PROPOSALS = 200
MAX_DEVICES = 200
"""Devices that a proposal names."""


def merged(
    devices: Iterable[AnnouncedDevice], asked: Asked, taken: Iterable[str]
) -> tuple[Proposal, ...]:
    """Return a proposal for each kind of device, that of most devices first."""
    kinds: dict[object, list[AnnouncedDevice]] = {}
    for device in devices:
        levels = device.topic.count("/")
        place = (device.columns, device.format, device.pattern or (levels, _ends(device.topic)))
        kinds.setdefault(place, []).append(device)
    groups = sorted(kinds.values(), key=len, reverse=True)[:MAX_PROPOSALS]
    names = set(taken)
    found: list[Proposal] = []
    for group in groups:
        proposal = _proposal(group, groups, asked)
        if proposal is not None:
            name, number = proposal.name, 2
            while name in names:
                name = f"{proposal.name}_{number}"
                number += 1
            names.add(name)
            found.append(msgspec.structs.replace(proposal, name=name))
    return tuple(found)


def _proposal(
    group: Sequence[AnnouncedDevice], groups: Sequence[Sequence[AnnouncedDevice]], asked: Asked
) -> Proposal | None:
    first = group[0]
    pattern = _pattern(group)
    if pattern is None:
        return None
    levels = tuple(ProposedColumn(name, DataType.TEXT) for name in pattern.names)
    columns = tuple(c for c in first.columns if c.name not in pattern.names)
    if not columns:
        return None
    options = {"topic": pattern.text}
    status = _availability(group, pattern)
    if status and levels:  # without a key no row can be withdrawn
        options["availability"] = status
        options.update({"offline": first.offline} if first.offline else {})
    others = [o[0] for o in groups if o is not group and _may_match(pattern, o)]
    only: tuple[tuple[str, str | None], ...] = ()
    if first.format == PayloadFormat.JSON:
        only = only_fields(_fields(columns), [set(_fields(o.columns)) for o in others])
        if not only and pattern.names and first.base:
            only = tuple((name, None) for name in _fields(columns)[:1])
    settings = SourceMapping(
        asked.connector,
        asked.endpoint,
        asked.gateways,
        first.format,
        only=only,
        options=tuple(options.items()),
    )
    return Proposal(
        first.name,
        (*levels, *columns),
        tuple(range(len(levels))),
        settings,
        title=first.title,
        topics=tuple(device.device for device in group[:MAX_DEVICES]),
        samples=len(group),
    )


def _pattern(group: Sequence[AnnouncedDevice]) -> TopicPattern | None:
    if group[0].pattern:
        try:
            return TopicPattern(group[0].pattern)
        except ValueError:
            return None
    return common_pattern([device.topic for device in group])


def _availability(group: Sequence[AnnouncedDevice], pattern: TopicPattern) -> str:
    """Return the pattern of availability topics, where it has the names of the topics' pattern."""
    first = group[0]
    if not first.availability or not pattern.names:
        return ""  # without a key no row can be withdrawn
    if first.pattern:
        return first.availability
    text = first.availability
    for name, level in (pattern.facts(first.topic) or {}).items():
        # The device's own level stands in its availability topic, too.
        text = "/".join(f"{{{name}}}" if part == level else part for part in text.split("/"))
    try:
        status = TopicPattern(text)
    except ValueError:
        return ""
    fits = all(status.facts(d.availability) is not None for d in group if d.availability) and set(
        status.names
    ) == set(pattern.names)
    return status.text if fits else ""


def _fields(columns: Sequence[ProposedColumn]) -> list[str]:
    """Return the outermost fields that columns read."""
    found: list[str] = []
    for column in columns:
        steps = parse_field_path(column.origin.path or f'["{column.name}"]').steps
        if steps and isinstance(steps[0], str):
            found.append(steps[0])
    return list(dict.fromkeys(found))


def _may_match(pattern: TopicPattern, others: Sequence[AnnouncedDevice]) -> bool:
    return any(pattern.facts(other.topic) is not None for other in others)


def _ends(topic: str) -> tuple[str, str]:
    """Return the fixed ends of a topic: devices that are alike differ in between."""
    levels = topic.split("/")
    return levels[0] if len(levels) > 2 else "", levels[-1] if len(levels) > 2 else ""
