"""A source in Sparkplug B: births are remembered, aliases resolved, and deaths withdraw rows."""

from collections.abc import Iterator, Mapping
from functools import partial

import msgspec

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mapping_thread import mapping_thread
from gateway.connectors.mqtt.mqtt_options import MqttSource
from gateway.connectors.mqtt.rebirth_requests import RebirthRequests
from gateway.connectors.reading import Reading
from streamsql.data.types import Value
from streamsql.mapping.payloads.payload_reader import MAX_PAYLOAD
from streamsql.mapping.payloads.sparkplug_payload import (
    SparkplugPayload,
    SparkplugTopic,
    decode_sparkplug,
    sparkplug_topic,
)
from streamsql.mapping.row_columns import column_paths
from streamsql.mapping.sparkplug.sparkplug_pattern import SparkplugPattern
from streamsql.mapping.sparkplug.sparkplug_session import Changes, KnownNode, SparkplugSession
from streamsql.mapping.sparkplug.wanted_metrics import wanted_metrics

_NO_LEVELS: Mapping[str, str] = {}


class SparkplugSource:
    """A declared source, and the conversation with its nodes.

    Args:
        source: Of the format sparkplug.
        requests: Where nodes are asked for their births.
        memory: What `to_remember` has returned in an earlier life, or None.
        now: Microseconds since 1970.

    Attributes:
        filters: Of MQTT. Births, data and deaths come through one.
    """

    def __init__(
        self, source: DeclaredSource, requests: RebirthRequests, memory: object, now: int
    ) -> None:
        mapping = source.definition.mapping
        assert mapping is not None  # noqa: S101  (else it is not a declared source)
        schema = source.definition.schema
        self.source = source
        self.options = source.options_as(MqttSource)
        self._pattern = SparkplugPattern(self.options.topic)
        self.filters = [(self._pattern.filter, False)]
        self.is_in_order = True
        self._requests = requests
        self._is_keyed = bool(source.definition.key)
        facts = {p[1:] for _, p in column_paths(mapping, schema) if p.startswith("@")}
        self._tells_device = bool(facts & self._pattern.device_facts)
        self._session = SparkplugSession(
            wanted_metrics(mapping, schema),
            asks=self.options.rebirth == "request",
        )
        self._restore(memory, now)

    def match(self, topic: str) -> tuple[Mapping[str, str], bool] | None:
        """Return no levels and that it tells no availability, or None if it is not ours."""
        place = sparkplug_topic(topic)
        is_ours = place is not None and self._pattern.has_node(place)
        return (_NO_LEVELS, False) if is_ours else None

    def readings(
        self, topic: str, levels: Mapping[str, str], payload: bytes, *, retained: bool
    ) -> list[Reading]:
        """Return the readings of a message."""
        del levels
        place = self._wanted(topic, payload, retained=retained)
        if place is None:
            return []
        try:
            message = decode_sparkplug(payload)
            return self._taken(place, message, topic, payload, retained=retained)
        except ValueError as error:
            self.source.problem(f"{_where(place)}: {place.kind}: {error}")
            return []

    async def readings_aside(
        self, topic: str, levels: Mapping[str, str], payload: bytes, *, retained: bool
    ) -> list[Reading]:
        """Return the readings of a large message; only its decoding is left to a thread."""
        del levels
        place = self._wanted(topic, payload, retained=retained)
        if place is None:
            return []
        try:
            message = await mapping_thread().run(partial(decode_sparkplug, payload))
            return self._taken(place, message, topic, payload, retained=retained)
        except ValueError as error:
            self.source.problem(f"{_where(place)}: {place.kind}: {error}")
            return []

    def _wanted(self, topic: str, payload: bytes, *, retained: bool) -> SparkplugTopic | None:
        """Return where a message is from, if it is to be read."""
        place = sparkplug_topic(topic)
        if place is None or not payload or (retained and self.options.retained == "ignore"):
            return None
        if len(payload) > MAX_PAYLOAD:
            size = f"{len(payload):,} bytes; the max is {MAX_PAYLOAD:,}"
            self.source.problem(f"{_where(place)}: {size}")
            return None
        return place

    def _taken(
        self,
        place: SparkplugTopic,
        message: SparkplugPayload,
        topic: str,
        payload: bytes,
        *,
        retained: bool,
    ) -> list[Reading]:
        changes = self._session.heard(place, message, self.source.now(), is_old=retained)
        found = list(self._withdrawn(changes))
        facts = self._pattern.facts(place)
        for row in changes.rows if facts is not None else ():
            if row.is_repeat and not self._is_keyed:
                continue  # what a stream has told already
            known: dict[str, Value] = {**(facts or {}), "topic": topic, "retained": retained}
            if row.time is not None:
                known["time"] = row.time
            found += self.source.read_decoded(payload, row.values, **known)
        self._report(changes, f"{_where(place)}: ")
        return found

    def withdrawn(self, levels: Mapping[str, str], payload: bytes) -> Iterator[Reading]:
        """Yield nothing: deaths are messages like others."""
        del levels, payload
        yield from ()

    def due(self, now: int) -> list[Reading]:
        """Return the readings that the time alone makes; called about once a second."""
        changes = self._session.due(now)
        found = list(self._withdrawn(changes))
        self._report(changes, "")
        return found

    @property
    def is_changed(self) -> bool:
        """Whether something new is to be remembered."""
        return self._is_keyed and self._session.is_changed

    def to_remember(self) -> object:
        """Return plain values that the next life reads: the nodes and devices that have rows."""
        self._session.is_changed = False
        known: object = msgspec.to_builtins(self._session.known()) if self._is_keyed else []
        return known

    def _restore(self, memory: object, now: int) -> None:
        try:
            known = msgspec.convert(memory, list[KnownNode])
        except msgspec.ValidationError:
            return  # there is none, or it is of another release: births will come
        self._report(self._session.restore(known, now), "")
        self._session.is_changed = False

    def _withdrawn(self, changes: Changes) -> Iterator[Reading]:
        """Yield withdrawals; the gateway finds the rows by the columns that the topic gives."""
        for gone in changes.gone if self._is_keyed else ():
            if gone.device and not self._tells_device:
                continue  # the rows are of the node with all its devices
            facts = self._pattern.facts_of(gone.group, gone.node, gone.device)
            values = {} if facts is None else self.source.given(facts)
            if values and None not in values.values():
                yield Reading(self.source.name, values, delete=True, matching=True)

    def _report(self, changes: Changes, where: str) -> None:
        if changes.born is not None:
            self._requests.answered(changes.born)
        for node, reason in changes.doubts:
            self._requests.want(node, reason)
        if changes.problem:
            self.source.problem(f"{where}{changes.problem}")


def _where(place: SparkplugTopic) -> str:
    return "/".join(filter(None, (place.group, place.node, place.device)))
