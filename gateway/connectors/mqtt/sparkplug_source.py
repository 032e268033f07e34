"""A source in Sparkplug B: births are remembered, aliases resolved, and deaths withdraw rows."""

from collections.abc import Callable, Iterator, Mapping
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
from streamsql.mapping.sparkplug.session_changes import Changes, DeviceId, KnownNode, Node
from streamsql.mapping.sparkplug.sparkplug_pattern import SparkplugPattern
from streamsql.mapping.sparkplug.sparkplug_session import SparkplugSession
from streamsql.mapping.sparkplug.wanted_metrics import wanted_metrics

_NO_LEVELS: Mapping[str, str] = {}


class _Memory(msgspec.Struct):
    """Nodes and devices that have rows, and the topic by which they were chosen."""

    topic: str
    nodes: list[KnownNode]


class SparkplugSource:
    """A declared source, and the conversation with its nodes.

    Args:
        source: Of the format sparkplug.
        requests: Where nodes are asked for their births.
        memory: What `to_remember` has returned in an earlier life, or None.
        clock: Returns up to which time, in microseconds since 1970, the messages of this source
            have been read; of the message that is being read, when it came.

    Attributes:
        filters: Of MQTT. Births, data and deaths come through one.
    """

    def __init__(
        self,
        source: DeclaredSource,
        requests: RebirthRequests,
        memory: object,
        clock: Callable[["SparkplugSource"], int],
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
        self._clock = clock
        self._left: list[Reading] = []
        self._is_fewer = False
        self._restore(memory)

    def match(self, topic: str) -> tuple[Mapping[str, str], bool] | None:
        """Return no levels and that it tells no availability, or None if it is not ours."""
        place = sparkplug_topic(topic)
        is_ours = place is not None and self._pattern.has_node(place.group, place.node)
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
        changes = self._session.heard(place, message, self._clock(self), is_old=retained)
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

    def due(self) -> list[Reading]:
        """Return the readings that the time alone makes; called about once a second."""
        changes = self._session.due(self._clock(self))
        found, self._left = self._left, []
        found += self._withdrawn(changes)
        self._report(changes, "")
        return found

    def asked(self, node: Node) -> None:
        """Note that a rebirth command to a node was published."""
        self._session.asked(node, self.source.now())

    @property
    def devices(self) -> int:
        """Number of nodes and devices that are followed."""
        return self._session.used()[0]

    @property
    def is_changed(self) -> bool:
        """Whether something new is to be remembered."""
        return self._is_keyed and (self._is_fewer or self._session.is_changed)

    def to_remember(self) -> object:
        """Return plain values that the next life reads: the nodes and devices that have rows."""
        self._is_fewer = False
        known = self._session.known() if self._is_keyed else []
        return msgspec.to_builtins(_Memory(self.options.topic, known))

    def _restore(self, memory: object) -> None:
        """Follow what is remembered; rows of what the topic no longer names are withdrawn."""
        try:
            known = msgspec.convert(memory, _Memory)
            former = SparkplugPattern(known.topic)
        except (msgspec.ValidationError, ValueError):
            return  # there is none, or it is of another release: births will come
        nodes: list[KnownNode] = []
        for group, node, birth, devices in known.nodes:
            is_followed = self._pattern.has_node(group, node)
            left = [
                device
                for device in devices
                if not is_followed
                or (
                    self._tells_device
                    and former.facts_of(group, node, device) is not None
                    and self._pattern.facts_of(group, node, device) is None
                )
            ]
            for device in left:
                self._left += self._withdrawal(former, DeviceId(group, node, device))
            if is_followed:
                stay = tuple(device for device in devices if device not in left)
                nodes.append((group, node, birth, stay))
        self._is_fewer = nodes != known.nodes
        self._report(self._session.restore(nodes, self._clock(self)), "")

    def _withdrawn(self, changes: Changes) -> Iterator[Reading]:
        for gone in changes.gone:
            yield from self._withdrawal(self._pattern, gone)

    def _withdrawal(self, pattern: SparkplugPattern, gone: DeviceId) -> Iterator[Reading]:
        """Yield the withdrawal of a device's rows, which the gateway finds by their columns."""
        if not self._is_keyed or (gone.device and not self._tells_device):
            return  # without the device in a column the rows are of the node with all its devices
        facts = pattern.facts_of(gone.group, gone.node, gone.device)
        values = {} if facts is None else self.source.given(facts)
        if values and None not in values.values():
            yield Reading(self.source.name, values, delete=True, matching=True)

    def _report(self, changes: Changes, where: str) -> None:
        if changes.birth_of is not None:
            self._requests.has_birth(changes.birth_of)
        for node, reason in changes.rebirths.items():
            self._requests.want(self.source.name, node, reason)
        if changes.problem:
            self.source.problem(f"{where}{changes.problem}")


def _where(place: SparkplugTopic) -> str:
    return "/".join(filter(None, (place.group, place.node, place.device)))
