"""One source's share of a broker's messages: which are its, and what rows they are."""

import json
from collections.abc import Iterator, Mapping

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.mqtt_options import MqttSource
from gateway.connectors.reading import Reading
from streamsql.mapping.topic_pattern import TopicPattern

MAX_STATUS = 1_000
"""Bytes of a payload on an availability topic."""
_Levels = Mapping[str, str]


class SubscribedSource:
    """A declared source and its patterns.

    Attributes:
        filters: Of MQTT, as they are subscribed to, each with whether it tells availability. That
            of `availability` is not shared.
    """

    def __init__(self, source: DeclaredSource, *, is_trial: bool = False) -> None:
        self.source = source
        self.options = source.options_as(MqttSource)
        # A trial would take messages from those that share them.
        is_shared = self.options.share and not is_trial
        share = f"$share/{self.options.share}/" if is_shared else ""
        self._pattern = TopicPattern(self.options.topic)
        self.filters = [(f"{share}{self._pattern.filter}", False)]
        # A row that a device sent before it went must not come after its withdrawal.
        self.is_in_order = bool(self.options.availability)
        self._availability: TopicPattern | None = None
        if self.options.availability:
            self._availability = TopicPattern(self.options.availability)
            self.filters.append((self._availability.filter, True))

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
        return self.source.read(payload, levels, topic=topic, retained=retained)

    async def readings_aside(
        self, topic: str, levels: _Levels, payload: bytes, *, retained: bool
    ) -> list[Reading]:
        """Return the readings of a large message; see `DeclaredSource.read_aside`."""
        if retained and self.options.retained == "ignore":
            return []
        return await self.source.read_aside(payload, levels, topic=topic, retained=retained)

    def withdrawn(self, levels: _Levels, payload: bytes) -> Iterator[Reading]:
        """Yield the withdrawal of a device's rows, if the message says that it goes.

        The gateway finds the rows: those that have the values which the topic gives.
        """
        if _status(payload) != self.options.offline.lower():
            return
        values = self.source.given(levels)
        if None in values.values() or (levels and not values):
            return  # the topic names no row
        yield Reading(self.source.name, values, delete=True, matching=True)


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
