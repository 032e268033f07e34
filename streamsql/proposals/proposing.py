"""From payloads to CREATE SOURCE: which sources there are, with columns, types, units and key.

What is proposed maps every payload that it was made of without a problem.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import msgspec

from streamsql.data.types import DataType
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.payloads.payload_reader import FieldPathReader
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from streamsql.mapping.topic_pattern import TopicPattern
from streamsql.mapping.units import is_unit, unit_named
from streamsql.proposals.column_types import fitting_zone, typed
from streamsql.proposals.payload_fields import array_of_rows, fields_of
from streamsql.proposals.proposal import TIME, Proposal, ProposedColumn
from streamsql.proposals.record_formats import csv_lines, senml_parts
from streamsql.proposals.sample import Decoded, Sample, decoded
from streamsql.proposals.sample_groups import SampleGroup, grouped
from streamsql.proposals.source_columns import (
    Fed,
    Origin,
    columns_of_fields,
    id_column,
    row_id,
    with_event_time,
)
from streamsql.proposals.topic_shapes import (
    BORING,
    availability_of,
    common_pattern,
    identifier,
    is_channel,
    source_name,
)

MAX_PROPOSALS = 20
MAX_TOPICS = 50
"""Of a proposal, to show whose it is."""


class Asked(msgspec.Struct, frozen=True):
    """The trial whose payloads are read.

    Attributes:
        connector: Kind of the connector.
        endpoint: Its name at the gateways.
        gateways: Which ones are to serve the source; empty: all that have the endpoint.
        options: Of the connector. With a `topic` the proposals have topics of their own.
        zone: IANA name of the zone of times that name none, if they fit it.
    """

    connector: str
    endpoint: str = ""
    gateways: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    zone: str = ""


def propose(
    samples: Iterable[Sample], asked: Asked, taken: Iterable[str] = ()
) -> tuple[Proposal, ...]:
    """Return proposed sources, the one of most payloads first.

    Args:
        samples: What was heard; what cannot be read is left out.
        asked: What was listened to.
        taken: Names of sources that there are already.
    """
    groups = grouped([read for sample in samples if (read := decoded(sample)) is not None])
    names = set(taken)
    proposals: list[Proposal] = []
    statuses: list[TopicPattern] = []
    for group in groups[: 2 * MAX_PROPOSALS]:
        found = _Proposing(group, groups, asked).proposal()
        if found is not None:
            name = _free(found.name, names)
            names.add(name)
            proposals.append(msgspec.structs.replace(found, name=name))
            status = dict(found.settings.options).get("availability")
            statuses += [TopicPattern(status)] if status else []
    own = [p for p in proposals if not p.topics or not _are_of(p.topics, statuses)]
    return tuple(own[:MAX_PROPOSALS])


def maps(proposal: Proposal, samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples that a proposal maps to rows without a problem."""
    try:
        mapper = Mapper(proposal)
    except ValueError:
        return []
    topic = dict(proposal.settings.options).get("topic", "")
    pattern = TopicPattern(topic) if topic else None
    good: list[Sample] = []
    for sample in samples:
        facts: dict[str, Any] = {"topic": sample.topic}
        levels = pattern.facts(sample.topic) if pattern else {}
        mapped = mapper.map(sample.payload, {**facts, **(levels or {})}, sample.arrival)
        if levels is not None and mapped.rows and not mapped.problems:
            good.append(sample)
    return good


class _Proposing:
    """Makes the proposal of one group of payloads."""

    def __init__(self, group: SampleGroup, groups: Sequence[SampleGroup], asked: Asked) -> None:
        self._group = group
        self._groups = groups
        self._asked = asked
        self._options = dict(asked.options)
        self._pattern = self._topic_pattern()
        self._taken: set[str] = set()

    def proposal(self) -> Proposal | None:
        """Return the proposal, or None where nothing can be proposed."""
        if self._pattern is None and "topic" in self._options:
            return None
        found = self._made(self._group.members)
        if found is None:
            return None
        samples = [member.sample for member in self._group.members]
        good = maps(found, samples)
        if good and len(good) < len(samples):
            again = self._made([m for m in self._group.members if m.sample in good])
            found = again or found
            good = maps(found, good)
        return msgspec.structs.replace(found, samples=len(good)) if good else None

    def _made(self, members: list[Decoded]) -> Proposal | None:
        self._taken = set(self._pattern.names) if self._pattern else set()
        settings = SourceMapping(
            self._asked.connector,
            self._asked.endpoint,
            self._asked.gateways,
            self._group.form,
            options=self._own_options(),
        )
        columns, key, settings = self._columns(members, settings)
        if not columns:
            return None
        levels = tuple(self._topic_columns())
        places = {column.name: place for place, column in enumerate((*levels, *columns))}
        named = [*(column.name for column in levels), *key]
        return Proposal(
            self._name(settings, columns),
            (*levels, *columns),
            tuple(places[name] for name in named),
            settings,
            title=self._pattern.text if self._pattern else "",
            topics=tuple(self._group.topics[:MAX_TOPICS]) if self._pattern else (),
        )

    def _name(self, settings: SourceMapping, columns: Sequence[ProposedColumn]) -> str:
        if settings.only:
            return identifier(settings.only[0][0])
        if self._pattern is None:
            return identifier(self._asked.endpoint) or "readings"
        outer = [column.origin.path.split(".")[0] or column.name for column in columns]
        return source_name(self._pattern, outer) or "readings"

    def _columns(
        self, members: list[Decoded], settings: SourceMapping
    ) -> tuple[list[ProposedColumn], list[str], SourceMapping]:
        """Return the payload's columns, which of them belong to the key, and all options."""
        match settings.format:
            case PayloadFormat.JSON | PayloadFormat.CBOR:
                return self._of_objects(members, settings)
            case PayloadFormat.CSV:
                return self._of_lines(members, settings)
            case PayloadFormat.SENML | PayloadFormat.SENML_CBOR:
                return *self._of_senml(members), settings
            case _:
                return self._of_text(members), [], settings

    def _of_objects(
        self, members: list[Decoded], settings: SourceMapping
    ) -> tuple[list[ProposedColumn], list[str], SourceMapping]:
        roots = [member.root for member in members]
        rows = array_of_rows(roots)
        origin = self._origin(members)
        if not rows:
            fields = fields_of(roots)
            fed = columns_of_fields(fields.values(), origin, self._taken)
            fed = with_event_time(fed, self._taken)
            own_id = "" if self._taken_by_topic() else id_column(fed, len(members))
            only = self._only(members)
            settings = msgspec.structs.replace(settings, only=only)
            return [each.column for each in fed], [own_id] if own_id else [], settings
        reader = FieldPathReader(rows)
        elements: list[object] = []
        places: list[int] = []
        for place, root in enumerate(roots):
            for _, element in reader.elements(root) or ():
                elements.append(element)
                places.append(place)
        fed = columns_of_fields(fields_of(elements).values(), origin, self._taken)
        key = row_id(fed, places)
        if rows != "[*]":
            beside = fields_of(roots).values()
            fed += columns_of_fields(beside, origin, self._taken, of_root=True)
        fed = with_event_time(fed, self._taken)
        settings = msgspec.structs.replace(settings, rows=rows)
        return *self._keyed(fed, key), settings

    def _of_lines(
        self, members: list[Decoded], settings: SourceMapping
    ) -> tuple[list[ProposedColumn], list[str], SourceMapping]:
        delimiters = {member.delimiter for member in members}
        headers: set[bool] = set()
        lines: list[dict[str, object]] = []
        for member in members:
            header, found = csv_lines(str(member.root), member.delimiter)
            headers.add(header)
            lines += found
        if len(delimiters) > 1 or len(headers) > 1:
            return [], [], settings
        fields = fields_of(lines).values()
        fed = columns_of_fields(fields, self._origin(members), self._taken, verbatim=True)
        fed = with_event_time(fed, self._taken)
        settings = msgspec.structs.replace(
            settings, delimiter=delimiters.pop(), header=headers.pop()
        )
        if not self._taken_by_topic():
            return [each.column for each in fed], [], settings
        return *self._keyed(fed, ""), settings

    def _of_senml(self, members: list[Decoded]) -> tuple[list[ProposedColumn], list[str]]:
        self._taken.update(("device", TIME))
        columns = [ProposedColumn("device", DataType.TEXT, ColumnMapping(path="@device"))]
        records = [r for m in members if isinstance(m.root, list) for r in m.root]
        for part, found in senml_parts(records).items():
            name = _free(identifier(part) or "value", self._taken)
            kind = typed(name, found.values)
            if kind is None or part != part.strip() or part.startswith("@"):
                continue
            self._taken.add(name)
            dtype, origin = kind
            unit = found.unit if dtype.is_numeric and is_unit(found.unit) else ""
            origin = msgspec.structs.replace(
                origin,
                path="" if part == name else part or ".",
                unit=unit_named(unit).name if unit else "",
            )
            columns.append(ProposedColumn(name, dtype, origin))
        if len(columns) == 1:
            return [], []
        columns.append(ProposedColumn(TIME, DataType.TIMESTAMP, ColumnMapping(path="@time")))
        return columns, ["device"]

    def _of_text(self, members: list[Decoded]) -> list[ProposedColumn]:
        name = _free("value", self._taken)
        kind = typed(name, [member.root for member in members])
        return [] if kind is None else [ProposedColumn(name, *kind)]

    def _keyed(self, fed: list[Fed], key: str) -> tuple[list[ProposedColumn], list[str]]:
        """Return the columns of rows, and what tells those of one payload apart."""
        columns = [each.column for each in fed]
        if not columns:
            return [], []
        if not key:
            key = _free("row", self._taken)
            where = ColumnMapping(path="@index")
            columns.insert(0, ProposedColumn(key, DataType.INTEGER, where))
        return columns, [key]

    def _origin(self, members: Sequence[Decoded]) -> Origin:
        root = members[-1].root
        beside = root if isinstance(root, dict) else {}
        zone = fitting_zone(beside.values(), self._asked.zone, members[-1].sample.arrival)
        return Origin(self._pattern.text if self._pattern else "", beside, zone)

    def _topic_pattern(self) -> TopicPattern | None:
        topic = self._options.get("topic", "")
        return common_pattern(self._group.topics, topic) if topic else None

    def _taken_by_topic(self) -> bool:
        return self._pattern is not None and bool(self._pattern.names)

    def _topic_columns(self) -> Iterator[ProposedColumn]:
        for name in self._pattern.names if self._pattern else ():
            numbered = self._pattern is not None and is_channel(self._pattern, name)
            yield ProposedColumn(name, DataType.INTEGER if numbered else DataType.TEXT)

    def _own_options(self) -> tuple[tuple[str, str], ...]:
        if self._pattern is None:
            return self._asked.options
        options = {**self._options, "topic": self._pattern.text}
        status, gone = availability_of(self._pattern)
        topics = [topic for group in self._groups for topic in group.topics]
        if status and any(TopicPattern(status).facts(topic) for topic in topics):
            options["availability"] = status
            options.update({"offline": gone} if gone else {})
        return tuple(options.items())

    def _only(self, members: Sequence[Decoded]) -> tuple[tuple[str, str | None], ...]:
        """Return fields that tell the payloads from others on topics of the same pattern."""
        if self._pattern is None:
            return ()
        others = [
            set(member.root)
            for group in self._groups
            if group is not self._group and group.form == self._group.form
            for member in group.members
            if isinstance(member.root, dict)
            and self._pattern.facts(member.sample.topic) is not None
        ]
        roots = [member.root for member in members if isinstance(member.root, dict)]
        shared = [name for name in roots[0] if all(name in root for root in roots)] if roots else []
        return only_fields(shared, others)


def only_fields(
    own: Sequence[str], others: Sequence[Set[str]]
) -> tuple[tuple[str, str | None], ...]:
    """Return the option `only`: few fields that all own payloads have, and others have not.

    Args:
        own: Names that all payloads of a source have.
        others: For each other payload on its topics the names that it has.

    Examples:
        >>> only_fields(["battery", "contact"], [{"battery", "temperature"}])
        (('contact', None),)
    """
    chosen: list[str] = []
    telling = [name for name in own if name.isidentifier() and name.isascii()]
    left = list(others)
    while left and telling:
        best = min(telling, key=lambda name: (sum(name in o for o in left), name.lower() in BORING))
        still = [other for other in left if best in other]
        if len(still) == len(left):
            break
        chosen.append(best)
        left = still
    return tuple((name, None) for name in chosen)


def _are_of(topics: Iterable[str], patterns: Sequence[TopicPattern]) -> bool:
    return all(any(pattern.facts(topic) is not None for pattern in patterns) for topic in topics)


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name = f"{wanted}_{number}"
        number += 1
    return name
