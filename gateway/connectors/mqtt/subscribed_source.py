"""One source's share of a broker's messages: which are its, and what rows they are."""

import json
from collections.abc import Collection, Iterator, Mapping

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.mqtt_options import MqttSource
from gateway.connectors.reading import Reading
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Value
from streamsql.mapping.source_mapping import ColumnMapping
from streamsql.mapping.topic_pattern import TopicPattern

MAX_DEVICES = 10_000
"""Devices of a source whose rows are remembered, to withdraw them when the device goes."""
MAX_ROWS_EACH = 1_000
MAX_STATUS = 1_000
"""Bytes of a payload on an availability topic."""
_Key = tuple[Value, ...]
_Levels = Mapping[str, str]


class SubscribedSource:
    """A declared source, its patterns, and the devices it has heard of.

    Attributes:
        filters: Of MQTT, as they are subscribed to: none is covered by another, so that a message
            comes once. That of `availability` is not shared.
    """

    def __init__(self, source: DeclaredSource, *, is_trial: bool = False) -> None:
        self.source = source
        self.options = source.options_as(MqttSource)
        # A trial would take messages from those that share them.
        is_shared = self.options.share and not is_trial
        share = f"$share/{self.options.share}/" if is_shared else ""
        self._pattern = TopicPattern(self.options.topic)
        self.filters = [f"{share}{self._pattern.filter}"]
        self._availability: TopicPattern | None = None
        if self.options.availability:
            self._availability = TopicPattern(self.options.availability)
            if not covers(self.filters[0], self._availability.filter):
                self.filters.append(self._availability.filter)
        definition = source.definition
        self._key = tuple(definition.schema.names[position] for position in definition.key)
        names = self._availability.names if self._availability is not None else ()
        self._is_key_in_topic = is_key_in_topic(definition, names)
        self._rows_of: dict[tuple[str, ...], dict[_Key, str]] = {}

    def match(self, topic: str) -> "tuple[_Levels, bool] | None":
        """Return (levels by name, whether it tells availability), or None if it is not ours."""
        if self._availability is not None:
            levels = self._availability.facts(topic)
            if levels is not None:
                return levels, True
        levels = self._pattern.facts(topic)
        return None if levels is None else (levels, False)

    def readings(
        self, topic: str, levels: _Levels, payload: bytes, *, retained: bool
    ) -> list[Reading]:
        """Return the readings of a message."""
        if retained and self.options.retained == "ignore":
            return []
        readings = self.source.read(payload, levels, topic=topic, retained=retained)
        if self._availability is not None and self._key and not self._is_key_in_topic:
            self._remember(levels, readings)
        return readings

    def withdrawn(self, levels: _Levels, payload: bytes) -> Iterator[Reading]:
        """Yield the deletions of a device's rows, if the message says that it goes."""
        if _status(payload) != self.options.offline.lower():
            return
        if self._is_key_in_topic:
            # Known from the message alone: it may be of a row that an earlier life has read.
            values: dict[str, Value] = {name: levels[name] for name in self._key}
            sensor = levels[self._key[0]] if len(self._key) == 1 else ""
            yield Reading(self.source.name, values, sensor=sensor, delete=True)
            return
        for key, sensor in self._rows_of.pop(self._device(levels), {}).items():
            values = dict(zip(self._key, key, strict=True))
            yield Reading(self.source.name, values, sensor=sensor, delete=True)

    def _device(self, levels: _Levels) -> tuple[str, ...]:
        assert self._availability is not None  # noqa: S101  (whoever asks has one)
        return tuple(levels[name] for name in self._availability.names)

    def _remember(self, levels: _Levels, readings: list[Reading]) -> None:
        device = self._device(levels)
        rows = self._rows_of.get(device)
        if rows is None:
            if len(self._rows_of) >= MAX_DEVICES:
                self.source.problem(f"more than {MAX_DEVICES:,} devices: {device} will not expire")
                return
            rows = self._rows_of[device] = {}
        for reading in readings:
            key = tuple(_plain(reading.values.get(name)) for name in self._key)
            if len(rows) < MAX_ROWS_EACH or key in rows:
                rows[key] = reading.sensor


def is_key_in_topic(definition: SourceDefinition, names: Collection[str]) -> bool:
    """Whether levels of these names are a source's key, each as it stands in the topic."""
    mapping, schema = definition.mapping, definition.schema
    if mapping is None or not definition.key:
        return False
    return all(
        schema.names[position] in names
        and schema.dtypes[position] == DataType.TEXT
        and mapping.columns[position] == ColumnMapping()
        for position in definition.key
    )


def _plain(value: object) -> Value:
    return value if value is None or isinstance(value, bool | int | float | str) else None


def _status(payload: bytes) -> str:
    """Return what an availability message says: its text, or the field `state` of its JSON."""
    if len(payload) > MAX_STATUS:
        return ""
    text = payload.decode(errors="replace").strip()
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            return text.lower()
        text = str(found.get("state", "")) if isinstance(found, dict) else ""
    return text.lower()


def covers(wide: str, narrow: str) -> bool:
    """Whether every topic that matches one filter matches the other one.

    Examples:
        >>> covers("a/#", "a/+/c"), covers("a/+", "a/#"), covers("+/b", "a/b")
        (True, False, True)
    """
    levels = wide.split("/")
    others = narrow.split("/")
    for position, level in enumerate(levels):
        if level == "#":
            return True
        if position >= len(others) or others[position] == "#":
            return False
        if level not in ("+", others[position]):
            return False
    return len(levels) == len(others)
