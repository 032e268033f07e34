"""The client of the in-memory broker (`host.mqtt.in_memory`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from host.mqtt.client_base import ClientBase
from host.mqtt.message_client import ConnectFailed, Message, Will
from host.mqtt.publish_queue import Outbox
from host.mqtt.topic_filters import check_filter
from host.mqtt.unreachable import Failure


class Hub(Protocol):
    """What a client needs of its broker."""

    def admit(self, client: InMemoryClient) -> None:
        """Register a started client and connect it when the broker runs."""

    def leave(self, client: InMemoryClient) -> None:
        """Disconnect cleanly: no will."""

    def subscribe(self, client: InMemoryClient, filters: dict[str, int]) -> None:
        """Add filters to the client's session and send what is retained under them."""

    def unsubscribe(self, client: InMemoryClient, filters: tuple[str, ...]) -> None:
        """Remove filters from the client's session."""

    def acknowledge(self, client: InMemoryClient, receipts: Iterable[int]) -> None:
        """Forget messages that are kept for a client until then."""

    def route(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
        """Take one publish."""


class InMemoryClient(ClientBase):
    """Implements `host.mqtt.message_client.MessageClient` on an in-memory broker."""

    def __init__(  # noqa: PLR0913  (as `open_client`)
        self,
        broker: Hub,
        client_id: str,
        *,
        will: Will | None,
        clean: bool,
        max_pending: int,
        acknowledges_by_hand: bool = False,
    ) -> None:
        outbox = Outbox(max_messages=max_pending, max_bytes=1 << 30, window=max_pending)
        super().__init__(client_id, outbox)
        self.will = will
        self.clean = clean
        self.acknowledges_by_hand = acknowledges_by_hand
        self.session_kept = False
        self._broker = broker
        self._up = asyncio.Event()
        self._scheduled = False

    @property
    def failure(self) -> Failure | None:
        """Why there is no connection; None while there is one."""
        return None if self.connected else Failure("the test has cut it")

    @property
    def connected(self) -> bool:
        """Whether the link is believed to be up."""
        return self._up.is_set()

    async def connect(self, *, timeout: float | None = 10) -> None:  # noqa: ASYNC109
        """Start; see `host.mqtt.message_client.MessageClient.connect`."""
        self._start()
        self._broker.admit(self)
        if timeout is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await self._up.wait()
        except TimeoutError as error:
            await self.close()
            raise ConnectFailed(
                f"the in-memory broker was not started within {timeout:g} s"
            ) from error

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

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge messages; see `host.mqtt.message_client.MessageClient.acknowledge`."""
        if self.connected:
            self._broker.acknowledge(self, receipts)

    def on_arrival(self, callback: Callable[[Message], None]) -> None:
        """Set a callback for messages as they arrive; here they arrive on the event loop."""

        def glance(messages: list[Message]) -> None:
            for message in messages:
                callback(message)

        self._on_messages.insert(0, glance)

    async def close(self) -> None:
        """Flush, then disconnect cleanly; see `host.mqtt.message_client.MessageClient.close`."""
        if self._closed:
            return
        self._closed = True
        if self.connected:
            self._flush()
        self._broker.leave(self)
        self._up.clear()
        self._fail_pending()

    # --- used by the broker ----------------------------------------------------------------

    def link_up(self, *, session_kept: bool = False) -> None:
        """Note being connected; renew subscriptions, then send what waits."""
        self._up.set()
        self.session_kept = session_kept
        if self._filters:
            self._broker.subscribe(self, self._filters)
        self._report_link(connected=True)
        self._feed()

    def link_down(self) -> None:
        """Note being disconnected."""
        self._up.clear()
        self._report_link(connected=False)

    def receive(self, burst: list[Message]) -> None:
        """Hand a burst to the callbacks."""
        self._report(burst)

    def _feed(self) -> None:
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
