"""Payloads that are rows of one source: alike in form, depth of topic and fields."""

from collections.abc import Sequence

import msgspec

from streamsql.mapping.source_mapping import PayloadFormat
from streamsql.proposals.payload_fields import array_of_rows, fields_of, path_text
from streamsql.proposals.sample import Decoded
from streamsql.proposals.topic_shapes import known_pattern

ALIKE = 0.5
"""Share of common fields from which payloads are of one source."""
_WITH_FIELDS = (PayloadFormat.JSON, PayloadFormat.CBOR)


class SampleGroup(msgspec.Struct):
    """Payloads of one source.

    Attributes:
        fields: Paths of what any of them holds.
        members: In the order in which they came.
    """

    form: PayloadFormat
    levels: int
    pattern: str
    fields: frozenset[str]
    members: list[Decoded]

    @property
    def topics(self) -> list[str]:
        """The different topics."""
        return list(dict.fromkeys(member.sample.topic for member in self.members))


def grouped(found: Sequence[Decoded]) -> list[SampleGroup]:
    """Return the groups, that of most payloads first."""
    groups: list[SampleGroup] = []
    for member in found:
        fields = frozenset(_fields(member))
        topic = member.sample.topic
        levels, pattern = topic.count("/"), known_pattern(topic)
        best, share = None, 0.0
        for group in groups:
            if (group.form, group.levels, group.pattern) != (member.form, levels, pattern):
                continue
            alike = _alike(fields, group.fields)
            if alike >= ALIKE and alike > share:
                best, share = group, alike
        if best is None:
            groups.append(SampleGroup(member.form, levels, pattern, fields, [member]))
        else:
            best.members.append(member)
            best.fields |= fields
    return sorted(groups, key=lambda group: len(group.members), reverse=True)


def _alike(fields: frozenset[str], others: frozenset[str]) -> float:
    """Return how many fields of the smaller set the larger one has, as a share."""
    if not fields or not others:
        return 1.0 if fields == others else 0.0
    return len(fields & others) / min(len(fields), len(others))


def _fields(member: Decoded) -> list[str]:
    if member.form not in _WITH_FIELDS:
        return [_kind(member)]
    rows = array_of_rows([member.root])
    root = member.root
    if rows == "[*]" and isinstance(root, list):
        return ["[*]", *(path_text(steps) for steps in fields_of(root))]
    names = [path_text((name,)) for name in root] if isinstance(root, dict) else []
    return [*dict.fromkeys([*names, *(path_text(steps) for steps in fields_of([root]))])]


def _kind(member: Decoded) -> str:
    """Return what a text is: a number, or words."""
    if member.form != PayloadFormat.TEXT:
        return str(member.form)
    try:
        float(str(member.root))
    except ValueError:
        return "words"
    return "number"
