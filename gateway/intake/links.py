"""Publish the links a gateway owns as retained messages, and clear those that are gone."""

import logging

from messaging import MessageClient, QueueFull
from stream_engine.site import SiteEngine
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row, Value, display
from streamsql.errors import WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import LinkMessage
from streamsql.wire.topics import Topics, check_id

log = logging.getLogger(__name__)

MAX_FOUND = 100_000
"""Retained links of an earlier life that are remembered until they are cleared."""

Ends = tuple[str, str]


class LinkPublisher:
    """Keeps the broker's retained links equal to the engine's rows, including expiries.

    Columns are read by role: the key's first two columns are source and target, a number called
    `cost` is the cost (0 without one), the rest are properties. Ends that cannot be
    topic levels are left out and reported once.
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
        self._published: dict[Ends, Row | None] = {}
        self._refused: set[str] = set()

    def forget(self) -> None:
        """Publish everything again, because the broker may have lost its memory.

        What was published and is gone by now is still cleared.
        """
        self._published = dict.fromkeys(self._published)

    def found(self, source: str, target: str) -> None:
        """Note a link that is retained on the broker, perhaps since an earlier life."""
        if len(self._published) < MAX_FOUND:
            self._published.setdefault((source, target), None)

    def publish_changes(self) -> None:
        """Send what changed since the last call; stops early when the queue is full."""
        if not self.client.connected:
            return
        current = self._current()
        try:
            for ends in sorted(self._published.keys() - current.keys()):
                self.client.publish(self.topics.link(self.gateway, *ends), b"", retain=True)
                del self._published[ends]
            for ends, row in current.items():
                if self._published.get(ends) != row:
                    payload = encode_json(self._message(ends, row))
                    self.client.publish(self.topics.link(self.gateway, *ends), payload, retain=True)
                    self._published[ends] = row
        except QueueFull:
            return

    def _current(self) -> dict[Ends, Row]:
        source, target = self.definition.key[:2]
        current: dict[Ends, Row] = {}
        for row in self.engine.source_rows(self.definition.name):
            try:
                ends = (check_id(str(row[source])), check_id(str(row[target])))
            except WireError as error:
                self._refuse(error)
            else:
                current[ends] = row
        return current

    def _refuse(self, error: WireError) -> None:
        if error.message not in self._refused and len(self._refused) < 100:
            self._refused.add(error.message)
            log.warning("a link of %s is not published: %s", self.definition.name, error)

    def _message(self, ends: Ends, row: Row) -> LinkMessage:
        fields = self.definition.schema.fields
        values: dict[str, Value] = {
            field.name: display(value, field.dtype)
            for position, (field, value) in enumerate(zip(fields, row, strict=True))
            if position not in self.definition.key[:2]
        }
        cost = values.get("cost")
        if isinstance(cost, str | bool):
            return LinkMessage(*ends, 0.0, values)
        values.pop("cost", None)
        return LinkMessage(*ends, float(cost or 0.0), values)
