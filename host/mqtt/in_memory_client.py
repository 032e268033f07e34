"""The client of the in-memory broker (`host.mqtt.in_memory`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from host.mqtt.callbacks import call_each
from host.mqtt.message_client import (
    ClientClosed,
    ConnectFailed,
    ConnectionCallback,
    Message,
    MessagesCallback,
    Will,
)
from host.mqtt.publish_queue import Outbox, Outgoing
from host.mqtt.ticket import Ticket
from host.mqtt.topic_filters import check_filter, check_topic


class Hub(Protocol):
    """What a client needs of its broker."""

    def admit(self, client: InMemoryClient) -> None:
        """Register a started client and connect it when the broker runs."""
        ...

    def leave(self, client: InMemoryClient) -> None:
        """Disconnect cleanly: no will."""
        ...

    def subscribe(self, client: InMemoryClient, filters: dict[str, int]) -> None:
        """Add filters to the client's session and send what is retained under them."""
        ...

    def unsubscribe(self, client: InMemoryClient, filters: tuple[str, ...]) -> None:
        """Remove filters from the client's session."""
        ...

    def route(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
        """Take one publish."""
        ...


class InMemoryClient:
    """Implements `host.mqtt.message_client.MessageClient` on an in-memory broker."""

    def __init__(
        self,
        broker: Hub,
        client_id: str,
        *,
        will: Will | None,
        clean: bool,
        max_pending: int,
    ) -> None:
        self.client_id = client_id
        self.will = will
        self.clean = clean
        self.dropped_qos0 = 0
        self._broker = broker
        self._outbox = Outbox(max_messages=max_pending, max_bytes=1 << 30, window=max_pending)
        self._filters: dict[str, int] = {}
        self._on_messages: list[MessagesCallback] = []
        self._on_connection: list[ConnectionCallback] = []
        self._up = asyncio.Event()
        self._started = False
        self._closed = False
        self._scheduled = False

    @property
    def connected(self) -> bool:
        """Whether the link is up."""
        return self._up.is_set()

    async def connect(self, *, timeout: float | None = 10) -> None:  # noqa: ASYNC109
        """Start; see `host.mqtt.message_client.MessageClient.connect`."""
        if self._started:
            message = f"client {self.client_id!r} was already started"
            raise RuntimeError(message)
        self._started = True
        self._broker.admit(self)
        if timeout is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await self._up.wait()
        except TimeoutError as error:
            await self.close()
            message = f"the in-memory broker was not started within {timeout:g} s"
            raise ConnectFailed(message) from error

    async def subscribe(self, *filters: str, qos: int = 1) -> None:
        """Subscribe; see `host.mqtt.message_client.MessageClient.subscribe`."""
        self._check_open()
        for topic_filter in filters:
            check_filter(topic_filter)
        wanted = dict.fromkeys(filters, qos)
        self._filters.update(wanted)
        if self.connected:
            self._broker.subscribe(self, wanted)

    async def unsubscribe(self, *filters: str) -> None:
        """Forget subscriptions; see `host.mqtt.message_client.MessageClient.unsubscribe`."""
        self._check_open()
        for topic_filter in filters:
            self._filters.pop(topic_filter, None)
        self._broker.unsubscribe(self, filters)

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> Ticket:
        """Queue a message; see `host.mqtt.message_client.MessageClient.publish`."""
        self._check_open()
        check_topic(topic)
        ticket = Ticket()
        if qos == 0 and not self.connected:
            self.dropped_qos0 += 1
            ticket.resolve()
            return ticket
        self._outbox.add(Outgoing(topic, payload, qos, retain, ticket))
        self._schedule()
        return ticket

    def on_messages(self, callback: MessagesCallback) -> None:
        """Add a callback for bursts of messages."""
        self._on_messages.append(callback)

    def on_arrival(self, callback: Callable[[Message], None]) -> None:
        """Set a callback for messages as they arrive; here they arrive on the event loop."""

        def glance(messages: list[Message]) -> None:
            for message in messages:
                callback(message)

        self._on_messages.insert(0, glance)

    def on_connection(self, callback: ConnectionCallback) -> None:
        """Add a callback for connects (True) and disconnects (False)."""
        self._on_connection.append(callback)

    def pending(self) -> int:
        """Count the publishes that are not yet acknowledged."""
        return len(self._outbox)

    async def close(self) -> None:
        """Flush, then disconnect cleanly; see `host.mqtt.message_client.MessageClient.close`."""
        if self._closed:
            return
        self._closed = True
        if self.connected:
            self._flush()
        self._broker.leave(self)
        self._up.clear()
        self._outbox.fail(ClientClosed(f"client {self.client_id!r} was closed"))

    # --- used by the broker ----------------------------------------------------------------

    def link_up(self) -> None:
        """Take note of being connected; renew subscriptions, then send what waits."""
        self._up.set()
        if self._filters:
            self._broker.subscribe(self, self._filters)
        call_each(self._on_connection, True, self.client_id)
        self._schedule()

    def link_down(self) -> None:
        """Take note of being disconnected."""
        self._up.clear()
        call_each(self._on_connection, False, self.client_id)

    def receive(self, burst: list[Message]) -> None:
        """Hand a burst to the callbacks."""
        call_each(self._on_messages, burst, self.client_id)

    def _schedule(self) -> None:
        if not self._scheduled and self.connected and len(self._outbox):
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        packet_id = 0
        while self.connected and (item := self._outbox.next()) is not None:
            packet_id += 1
            self._outbox.mark_sent(packet_id)
            self._outbox.acknowledge(packet_id)
            self._broker.route(item.topic, item.payload, item.qos, retain=item.retain)

    def _check_open(self) -> None:
        if self._closed or not self._started:
            state = "closed" if self._closed else "not started"
            message = f"client {self.client_id!r} is {state}"
            raise ClientClosed(message)
