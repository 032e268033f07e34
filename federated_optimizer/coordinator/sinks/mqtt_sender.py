"""Messages of sinks to a broker: retained per key, or one per row of a stream."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from typing_extensions import override

from federated_optimizer.coordinator.sinks.home_assistant_descriptions import Descriptions
from federated_optimizer.coordinator.sinks.outgoing import Outgoing, Refusal, Sender
from federated_optimizer.coordinator.sinks.row_payloads import payload_of, row_objects
from federated_optimizer.coordinator.sinks.sink_topics import Topics
from host.mqtt import MessageClient, MessagingError, PublishTicket, QueueFull
from streamsql.catalog.sink_definitions import SinkDefinition, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES

log = logging.getLogger(__name__)

MAX_BATCH = 250
"""Messages of one sink that wait for their acknowledgement."""
MAX_PENDING = 2_000
"""Messages that may wait in a client's queue when a sink adds to it: others use it, too."""
POLL_SECONDS = 0.05
CLEARINGS = 200
"""Topics that are emptied at once."""

Published = Callable[[str], None]


class BrokerTarget:
    """One broker, which all its sinks share: its connection, and topics that are to be emptied.

    Args:
        name: For messages to people.
        client: Connected by whoever made it, except with `owns_client`.
        cleared: Called with each topic that the broker has emptied; not if it refuses.
        owns_client: Whether the connection ends with the target.
    """

    def __init__(
        self, name: str, client: MessageClient, cleared: Published, *, owns_client: bool
    ) -> None:
        self.name = name
        self.client = client
        self._cleared = cleared
        self._owns_client = owns_client
        self._to_clear: dict[str, None] = {}
        self._refused: dict[str, str] = {}  # the reason, by topic that the broker does not empty
        self._clearing: asyncio.Task[None] | None = None
        self._is_clear = asyncio.Event()
        self._is_clear.set()
        self._is_connected = asyncio.Event()
        client.on_connection(self._link_changed)
        self._link_changed(client.connected)

    @property
    def problem(self) -> str:
        """Why nothing can be sent, or empty."""
        failure = self.client.failure
        if failure is None:
            return ""
        # The hints of failures are about the federation's own broker.
        hint = f"; {failure.hint}" if failure.hint and not self._owns_client else ""
        return f"{self.name} is not connected: {failure.reason}{hint}"

    @property
    def uncleared(self) -> str:
        """Topics that the broker refuses to empty, and the reason; empty if there are none."""
        if not self._refused:
            return ""
        topic, reason = next(iter(self._refused.items()))
        count = len(self._refused)
        return (
            f"{count} retained {'topic' if count == 1 else 'topics'} of dropped sinks not emptied: "
            f"topic {topic!r:.200}: {reason}; once {self.name} allows it, the next connection "
            "empties them"
        )

    def clear(self, topics: Iterable[str]) -> None:
        """Empty retained topics, before anything else is published.

        Those that the broker refuses to empty are tried again with each new connection.
        """
        self._to_clear |= dict.fromkeys(topics)
        if not self._to_clear:
            return
        self._is_clear.clear()
        if self._clearing is None or self._clearing.done():
            self._clearing = asyncio.get_running_loop().create_task(self._clear_all())

    async def until_ready(self) -> None:
        """Wait until the connection is up and all topics that were to be emptied are."""
        await self._is_clear.wait()
        await self._is_connected.wait()

    async def until_clear(self) -> None:
        """Wait until the broker has answered for all topics that were to be emptied."""
        await self._is_clear.wait()

    async def publish(self, topic: str, payload: bytes, *, retain: bool) -> PublishTicket:
        """Queue a message, as soon as there is room.

        Raises:
            MessagingError: The client is closed.
            ValueError: The topic is none.
        """
        while True:
            if self.client.pending() < MAX_PENDING:
                try:
                    return self.client.publish(topic, payload, retain=retain)
                except QueueFull:
                    pass  # others were faster
            await asyncio.sleep(POLL_SECONDS)

    async def close(self) -> None:
        """Stop; topics that are not empty yet stay so."""
        if self._clearing is not None:
            self._clearing.cancel()
            await asyncio.gather(self._clearing, return_exceptions=True)
        if self._owns_client:
            await self.client.close()

    def _link_changed(self, connected: bool) -> None:
        if connected:
            self._is_connected.set()
            # Its access list may be another now.
            self.clear(self._refused)
        else:
            self._is_connected.clear()

    async def _clear_all(self) -> None:
        while self._to_clear:
            part = list(self._to_clear)[:CLEARINGS]
            try:
                tickets = [await self.publish(topic, b"", retain=True) for topic in part]
                for ticket in tickets:
                    await ticket.wait()
            except MessagingError as error:
                log.warning("topics at %s are not emptied: %s", self.name, error.message)
                return
            for topic, ticket in zip(part, tickets, strict=True):
                del self._to_clear[topic]
                if ticket.refusal:
                    self._refused[topic] = ticket.refusal
                else:
                    self._refused.pop(topic, None)
                    self._cleared(topic)
        if self._refused:
            log.warning("%s", self.uncleared)
        self._is_clear.set()


class MqttSender(Sender):
    """Publishes the messages of one sink at QoS 1."""

    max_batch = MAX_BATCH

    def __init__(self, definition: SinkDefinition, schema: Schema, target: BrokerTarget) -> None:
        self._target = target
        self._retain = definition.mode == SinkMode.UPSERT
        self._object_of = row_objects(definition, schema)
        self._topics = Topics(definition, schema)
        self._descriptions: Descriptions | None = None
        if definition.discovery:
            self._descriptions = Descriptions(definition, schema)
        self._described: set[Row] = set()
        self._refused = ""

    @property
    @override
    def problem(self) -> str:
        return self._target.problem or self._refused or self._target.uncleared

    @override
    async def send(self, batch: Sequence[Outgoing]) -> list[Refusal]:
        await self._target.until_ready()
        refused: list[Refusal] = []
        sent: list[tuple[Outgoing, str, PublishTicket]] = []
        for message in batch:
            try:
                for topic, payload in self._messages(message):
                    ticket = await self._target.publish(topic, payload, retain=self._retain)
                    sent.append((message, topic, ticket))
            except (ValueError, WireError) as error:
                refused.append(Refusal(message, str(error)))
        by_broker: dict[int, Refusal] = {}
        for message, topic, ticket in sent:
            if not ticket.done():
                await ticket.wait()
            if ticket.refusal:
                reason = f"topic {topic!r:.200}: {ticket.refusal}"
                by_broker.setdefault(id(message), Refusal(message, reason))
                self._described.discard(message.key)
        self._refused = next((refusal.reason for refusal in by_broker.values()), "")
        return [*refused, *by_broker.values()]

    def tell_all_again(self) -> None:
        """The broker may have lost what it retained."""
        self._described.clear()

    @override
    async def close(self) -> None:
        """Nothing: the connection is the target's."""

    def _messages(self, message: Outgoing) -> list[tuple[str, bytes]]:
        """Return topics and payloads.

        Raises:
            ValueError: There is no topic or payload of this row.
            WireError: JSON cannot carry a value.
        """
        if not self._retain and message.row is not None:
            payload = _bounded(payload_of(self._object_of(message.row)))
            return [(self._topics.of_row(message.row), payload)]
        topic = self._topics.of_key(message.key)
        made: list[tuple[str, bytes]] = []
        described = self._descriptions
        if described is not None and message.forget:
            made += [(where, b"") for where, _ in described.of(message.key, topic)]
            self._described.discard(message.key)
        elif described is not None and message.key not in self._described:
            made += described.of(message.key, topic)
            self._described.add(message.key)
        payload = b"" if message.row is None else payload_of(self._object_of(message.row))
        return [*made, (topic, _bounded(payload))]


def _bounded(payload: bytes) -> bytes:
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"the row takes {len(payload)} bytes; the max is {MAX_PAYLOAD_BYTES}")
    return payload
