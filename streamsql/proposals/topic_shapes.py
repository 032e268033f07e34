"""Which topics are one source's, and the pattern that they have in common."""

import re
from collections.abc import Iterable, Sequence

from streamsql.mapping.topic_pattern import FACTS, MAX_TOPIC, TopicPattern

KNOWN = (
    "tele/{device}/SENSOR",
    "tele/{device}/STATE",
    "v3/{application}/devices/{device}/up",
    "espresense/devices/{badge}/{room}",
    "zigbee2mqtt/{device}",
    "{device}/status/switch:{channel}",
    "{device}/status/pm1:{channel}",
    "{device}/status/em:{channel}",
    "{device}/status/cover:{channel}",
    "{device}/status/temperature:{channel}",
    "{device}/status/humidity:{channel}",
    "{node}/sensor/{sensor}/state",
    "{node}/binary_sensor/{sensor}/state",
    "{node}/switch/{sensor}/state",
)
"""Patterns of devices and bridges, from their makers' documentation; the first that fits counts."""

AVAILABILITY = {
    "tele/{device}/": ("tele/{device}/LWT", ""),
    "zigbee2mqtt/{device}": ("zigbee2mqtt/{device}/availability", ""),
    "{device}/status/": ("{device}/online", "false"),
    "{node}/": ("{node}/status", ""),
}
"""By the beginning of well-known patterns: where a device says that it is there, and the payload
with which it goes, if it is not `offline`."""

_PATTERNS = tuple(TopicPattern(text) for text in KNOWN)
_UNSPEAKABLE = re.compile(r"[{}\s,+#\0]")
"""A level with one of these cannot stand in a pattern as it is."""
_NUMBERED = re.compile(r"(.*:)(\d{1,9})", re.DOTALL)
_PLURAL = re.compile(r"([a-z_]{3,30})s", re.IGNORECASE)
BORING = frozenset({
    "state", "status", "up", "value", "data", "sensor", "telemetry", "tele", "stat", "battery",
    "linkquality", "voltage", "last_seen", "time", "ts", "id", "source", "channel", "type",
})  # fmt: skip
"""Levels and fields that say little of a source: devices of all kinds have them."""
_FIRST_NAMES = ("device", "part", "item")


def known_pattern(topic: str) -> str:
    """Return the well-known pattern that a topic matches, or empty."""
    for pattern in _PATTERNS:
        if pattern.facts(topic) is not None:
            return pattern.text
    return ""


def common_pattern(topics: Sequence[str], topic_filter: str = "") -> TopicPattern | None:
    """Return the pattern of topics with equally many levels, or None if none matches them all.

    Levels that differ become names, and so does each level where the filter has a `+`.

    Args:
        topics: At least one.
        topic_filter: What was subscribed to.

    Examples:
        >>> common_pattern(["home/devices/a/t", "home/devices/b/t"]).text
        'home/devices/{device}/t'
        >>> common_pattern(["tele/plug/SENSOR"]).text
        'tele/{device}/SENSOR'
    """
    known = {known_pattern(topic) for topic in topics}
    if len(known) == 1 and (text := known.pop()):
        return TopicPattern(text)
    levels = [topic.split("/") for topic in topics]
    if len({len(each) for each in levels}) != 1 or max(map(len, topics)) > MAX_TOPIC:
        return None
    asked = topic_filter.split("/")
    names: set[str] = set()
    parts: list[str] = []
    for position, values in enumerate(zip(*levels, strict=True)):
        open_here = position < len(asked) and asked[position] == "+"
        parts.append(_level(values, parts, names, is_open=open_here))
    try:
        pattern = TopicPattern("/".join(parts))
    except ValueError:
        return None
    return pattern if all(pattern.facts(topic) is not None for topic in topics) else None


def _level(values: Sequence[str], before: list[str], names: set[str], *, is_open: bool) -> str:
    first = values[0]
    if not is_open and len(set(values)) == 1 and not _UNSPEAKABLE.search(first):
        return first
    numbered = [_NUMBERED.fullmatch(value) for value in values]
    prefixes = {found.group(1) for found in numbered if found}
    if all(numbered) and len(prefixes) == 1 and not _UNSPEAKABLE.search(prefix := prefixes.pop()):
        return f"{prefix}{{{_free('channel', names)}}}"
    if not all(values):
        return "+"
    plural = _PLURAL.fullmatch(before[-1]) if before else None
    wanted = plural.group(1).lower() if plural else _FIRST_NAMES[min(len(names), 2)]
    return f"{{{_free(wanted, names)}}}"


def _free(wanted: str, names: set[str]) -> str:
    """Return a name that no other level has, and no fact of every message."""
    number = 2
    name = wanted if wanted not in FACTS else f"{wanted}_level"
    while name in names:
        name = f"{wanted}_{number}"
        number += 1
    names.add(name)
    return name


def availability_of(pattern: TopicPattern) -> tuple[str, str]:
    """Return (the pattern of availability topics, the payload of a device that goes), or empties.

    Examples:
        >>> availability_of(TopicPattern("tele/{device}/SENSOR"))
        ('tele/{device}/LWT', '')
    """
    if pattern.text not in KNOWN:
        return "", ""
    return next(
        (v for begin, v in AVAILABILITY.items() if pattern.text.startswith(begin)), ("", "")
    )


def is_channel(pattern: TopicPattern, name: str) -> bool:
    """Whether a name of a pattern stands for a number behind a colon, as in `switch:{channel}`."""
    return f":{{{name}}}" in pattern.text


def source_name(pattern: TopicPattern | None, fields: Iterable[str]) -> str:
    """Return a name for a source: the last telling word of its topics, or its first telling field.

    Args:
        pattern: Of the topics.
        fields: Names and outer names of what the payloads hold, in their order.

    Examples:
        >>> source_name(TopicPattern("house/{room}/climate"), ["celsius"])
        'climate'
        >>> source_name(TopicPattern("tele/{device}/SENSOR"), ["ENERGY"])
        'energy'
    """
    words = [] if pattern is None else [w.split("{")[0] for w in pattern.text.split("/")]
    own = [name for word in reversed(words) if (name := identifier(word))]
    telling = (name for name in (*own, *map(identifier, fields)) if name and name not in BORING)
    return next(telling, own[-1] if own else "")


def identifier(text: str) -> str:
    """Return a text as a name of a column or source: lower case, `_` between words; or empty.

    Examples:
        >>> identifier("AM2301.TempC"), identifier("1st floor"), identifier("°")
        ('am2301_temp_c', 'n1st_floor', '')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text[:200])
    plain = re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")[:40].rstrip("_")
    return f"n{plain}" if plain[:1].isdigit() else plain
