"""Publish the links a gateway owns as retained messages, and clear those that are gone."""

from messaging import MessageClient, QueueFull
from stream_engine.site import SiteEngine
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row, Value, display
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import LinkMessage
from streamsql.wire.topics import Topics, check_id


class LinkPublisher:
    """Keeps the broker's retained links equal to the engine's, including expiries.

    Columns are read by role: the key's two columns are source and target, `cost` is the cost (0
    without such a column), the rest are properties.
    """

    def __init__(
        self,
        gateway: str,
        definition: SourceDefinition,
        engine: SiteEngine,
        client: MessageClient,
        topics: Topics,
    ) -> None:
        self.gateway = gateway
        self.definition = definition
        self.engine = engine
        self.client = client
        self.topics = topics
        self._published: dict[tuple[str, str], Row] = {}

    def forget(self) -> None:
        """Publish everything again, after the broker has lost its memory."""
        self._published.clear()

    def publish_changes(self) -> None:
        """Send what changed since the last call; stops early when the queue is full."""
        if not self.client.connected:
            return
        current: dict[tuple[str, str], Row] = {}
        source, target = self.definition.key[:2]
        for row in self.engine.source_rows(self.definition.name):
            current[str(row[source]), str(row[target])] = row
        try:
            for ends in sorted(self._published.keys() - current.keys()):
                self.client.publish(self.topics.link(self.gateway, *ends), b"", retain=True)
                del self._published[ends]
            for ends, row in current.items():
                if self._published.get(ends) != row:
                    self._publish(ends, row)
        except QueueFull:
            return

    def _publish(self, ends: tuple[str, str], row: Row) -> None:
        topic = self.topics.link(self.gateway, check_id(ends[0]), check_id(ends[1]))
        self.client.publish(topic, encode_json(self._message(ends, row)), retain=True)
        self._published[ends] = row

    def _message(self, ends: tuple[str, str], row: Row) -> LinkMessage:
        fields = self.definition.schema.fields
        values: dict[str, Value] = {
            field.name: display(value, field.dtype)
            for position, (field, value) in enumerate(zip(fields, row, strict=True))
            if position not in self.definition.key[:2]
        }
        cost = values.pop("cost", 0.0)
        return LinkMessage(*ends, float(cost or 0.0), values)
