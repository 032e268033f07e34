"""The last reading of every sensor, retained on the broker: what a map paints first.

A sensor's message follows its readings within a minute when a text or a truth changes, such as a
room that opens, within five when only numbers do, and every ten when nothing does: nothing of ours
reads it, and who wants every reading has a sink.
"""

from collections.abc import Container
from dataclasses import dataclass

from host.mqtt import MessageClient, QueueFull
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row, Value
from streamsql.errors import WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import records_of
from streamsql.wire.topics import Topics, check_id

MAX_SENSORS = 10_000
CHANGED_SECONDS = 60.0
NUMBERS_SECONDS = 300.0
SAME_SECONDS = 600.0
_MOST_AT_ONCE = 200


@dataclass(slots=True)
class _Sensor:
    definition: SourceDefinition
    event: SourceEvent
    published: Row | None = None
    published_at: float = float("-inf")

    def is_due(self, now: float) -> bool:
        """Whether its last reading should be published; the time column alone is no change."""
        age = now - self.published_at
        if age < CHANGED_SECONDS or self.published is None:
            return age >= CHANGED_SECONDS
        before, after = self._facts(self.published), self._facts(self.event.row)
        if not all(map(_is_alike, before, after)):
            return True
        return age >= (SAME_SECONDS if before == after else NUMBERS_SECONDS)

    def _facts(self, row: Row) -> Row:
        time = self.definition.time_column
        return row if time is None else row[:time] + row[time + 1 :]


class LastValues:
    """Remembers the newest event of each sensor and publishes it when it is due."""

    def __init__(self, gateway: str, epoch: int, client: MessageClient, topics: Topics) -> None:
        self.gateway = gateway
        self.epoch = epoch
        self.client = client
        self.topics = topics
        self.sequence = 0
        self._sensors: dict[str, _Sensor] = {}
        self._fresh: dict[str, None] = {}
        self._gone: dict[str, None] = {}

    def define(self, sources: Container[str]) -> None:
        """Keep sensors of these sources; the retained values of others are cleared when due."""
        for name, sensor in list(self._sensors.items()):
            if sensor.definition.name not in sources:
                del self._sensors[name]
                self._fresh.pop(name, None)
                if len(self._gone) < MAX_SENSORS:
                    self._gone[name] = None

    def note(self, sensor: str, event: SourceEvent, definition: SourceDefinition) -> None:
        """Ingest a reading; sensors whose id is no topic level have no retained value."""
        known = self._sensors.get(sensor)
        if known is not None:
            known.event, known.definition = event, definition
        elif len(self._sensors) < MAX_SENSORS and _is_id(sensor):
            self._sensors[sensor] = _Sensor(definition, event)
            self._gone.pop(sensor, None)
        else:
            return
        self._fresh[sensor] = None

    def forget(self) -> None:
        """Publish everything again, because the broker may have lost its memory."""
        for name, sensor in self._sensors.items():
            sensor.published, sensor.published_at = None, float("-inf")
            self._fresh[name] = None

    def publish_due(self, now: float) -> int:
        """Publish what is due, a bounded number at a time; return how many values.

        `now` in seconds of a clock that only goes forward.
        """
        self._clear_gone()
        published = 0
        for name in list(self._fresh):
            sensor = self._sensors[name]
            if published >= _MOST_AT_ONCE or not self.client.connected:
                break
            if sensor.is_due(now) and not self._publish(name, sensor, now):
                break
            published += sensor.published_at == now
            if sensor.published == sensor.event.row:
                del self._fresh[name]
        return published

    def _clear_gone(self) -> None:
        for name in list(self._gone)[:_MOST_AT_ONCE]:
            if not self.client.connected:
                return
            try:
                self.client.publish(self.topics.last(self.gateway, name), b"", retain=True)
            except QueueFull:
                return
            del self._gone[name]

    def _publish(self, name: str, sensor: _Sensor, now: float) -> bool:
        event, schema = sensor.event, sensor.definition.schema
        records = tuple(records_of(name, event.ts, event.row, schema))
        pack = ObservationPack(self.epoch, self.sequence, records)
        try:
            self.client.publish(
                self.topics.last(self.gateway, name), encode_json(pack), retain=True
            )
        except QueueFull:
            return False
        self.sequence += 1
        sensor.published, sensor.published_at = event.row, now
        return True


def _is_alike(before: Value, after: Value) -> bool:
    """Whether a value is as before, or both are numbers."""
    if before == after:
        return True
    return not any(each is None or isinstance(each, bool | str) for each in (before, after))


def _is_id(text: str) -> bool:
    try:
        check_id(text)
    except WireError:
        return False
    return True
