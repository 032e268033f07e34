"""`MessageClient` over MQTT 3.1.1 or 5 (paho-mqtt with its own network thread).

The event loop owns every piece of state; the network thread (`host.mqtt.paho_link`) only moves
bytes and reports events through the `Inbox`. The `Outbox` keeps publishes until they are
acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from host.mqtt.client_base import ClientBase, check_qos
from host.mqtt.event_inbox import (
    Acknowledged,
    Connected,
    Disconnected,
    Event,
    Inbox,
    Refused,
    Subscribed,
)
from host.mqtt.message_client import (
    ConnectFailed,
    Message,
    SubscribeRefused,
)
from host.mqtt.paho_link import WINDOW, LinkSettings, PahoLink
from host.mqtt.publish_queue import Outbox
from host.mqtt.topic_filters import check_filter, check_topic
from host.mqtt.unreachable import Failure

_LOG = logging.getLogger(__name__)

_FLUSH_TIMEOUT: Final = 5.0
_GOODBYE_TIMEOUT: Final = 1.0
_SUBACK_TIMEOUT: Final = 30.0
_SAY_AGAIN: Final = 60.0


class MqttClient(ClientBase):
    """A broker connection that repairs itself; see `host.mqtt.message_client.MessageClient`."""

    def __init__(
        self,
        settings: LinkSettings,
        *,
        max_pending: int = 10_000,
        max_pending_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        if settings.will is not None:
            check_topic(settings.will.topic)
        outbox = Outbox(max_messages=max_pending, max_bytes=max_pending_bytes, window=WINDOW)
        super().__init__(settings.client_id, outbox)
        self._settings = settings
        self._link = PahoLink(settings)
        self._asked: dict[int, asyncio.Future[tuple[int, ...]]] = {}
        self._on_arrival: Callable[[Message], None] | None = None
        self._inbox: Inbox | None = None
        self._first: asyncio.Future[str] | None = None  # "" or why we were refused
        self._gone = asyncio.Event()
        self._last_failure = Failure("no answer yet")
        self._said: Failure | None = None
        self._say_at = self._say_refusal_at = float("-inf")
        self._refused = self._session_kept = False
        self._generation = 0  # number of the connection, 0 while there is none
        self._closing: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether the link is believed to be up."""
        return self._generation > 0

    @property
    def failure(self) -> Failure | None:
        """Why there is no connection; None while there is one."""
        return None if self.connected else self._last_failure

    @property
    def session_kept(self) -> bool:
        """Whether the broker still had our session at the last connect."""
        return self._session_kept

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge messages; see `host.mqtt.message_client.MessageClient.acknowledge`."""
        self._link.acknowledge(receipts)

    async def connect(self, *, timeout: float | None = 10) -> None:  # noqa: ASYNC109
        """Start; see `host.mqtt.message_client.MessageClient.connect`."""
        self._start()
        loop = asyncio.get_running_loop()
        self._inbox = Inbox(loop, self._deliver, glance=self._glance)
        self._first = loop.create_future()
        self._link.start(self._inbox)
        if timeout is None:
            return
        try:
            async with asyncio.timeout(timeout):
                refusal = await self._first
        except TimeoutError:
            refusal = f"not connected within {timeout:g} s: {self._last_failure.reason}"
        if refusal:
            await self.close()
            message = f"broker {self._settings.address}: {refusal}"
            hint = self._last_failure.hint or "check that it runs, and check address and password"
            raise ConnectFailed(message, hint=hint)

    def _glance(self, message: Message) -> None:
        if self._on_arrival is not None:
            self._on_arrival(message)

    async def subscribe(self, *filters: str, qos: int = 1) -> None:
        """Subscribe; see `host.mqtt.message_client.MessageClient.subscribe`."""
        self._check_open()
        check_qos(qos)
        for topic_filter in filters:
            check_filter(topic_filter)
        self._filters.update(dict.fromkeys(filters, qos))
        if not filters or not self.connected:
            return
        answer = await self._answer(self._link.subscribe([(f, qos) for f in filters]))
        refused = [filters[position] for position in answer]
        if refused:
            for topic_filter in refused:
                self._filters.pop(topic_filter, None)
            raise SubscribeRefused(
                f"broker {self._settings.address} refused the subscription to {refused}",
                hint="check the broker's access rules",
            )

    async def unsubscribe(self, *filters: str) -> None:
        """Forget subscriptions; see `host.mqtt.message_client.MessageClient.unsubscribe`."""
        self._check_open()
        known = [f for f in filters if self._filters.pop(f, None) is not None]
        if known and self.connected:
            await self._answer(self._link.unsubscribe(known))

    def on_arrival(self, callback: Callable[[Message], None]) -> None:
        """Set a callback for messages as they arrive, on the network thread."""
        self._on_arrival = callback

    async def close(self) -> None:
        """Flush, disconnect and stop; see `host.mqtt.message_client.MessageClient.close`.

        All who call wait for one end, which goes on when one of them is cancelled.
        """
        if self._closing is None:
            self._closed = True
            self._closing = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._closing)

    async def _end(self) -> None:
        if self._inbox is not None:
            await self._flush()
            self._link.say_goodbye()
            if self.connected:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GOODBYE_TIMEOUT):
                        await self._gone.wait()
            self._inbox.close()
            await asyncio.to_thread(self._link.stop)
        self._generation = 0
        self._fail_pending()
        self._end_asking()

    async def _flush(self) -> None:
        newest = self._outbox.last()
        if newest is not None and self.connected:
            with contextlib.suppress(TimeoutError):
                await newest.wait(_FLUSH_TIMEOUT)
        if len(self._outbox):
            left = len(self._outbox)
            _LOG.warning("client %s closes with %d publishes unacknowledged", self.client_id, left)

    def _feed(self) -> None:
        while self.connected and (item := self._outbox.next()) is not None:
            packet_id = self._outbox.next_id() if item.qos else 0
            if not self._link.publish(self._generation, item, packet_id):
                return  # the link just broke: everything waits for the next one
            self._outbox.mark_sent(packet_id)

    async def _answer(self, packet_id: int | None) -> tuple[int, ...]:
        """Wait for SUBACK or UNSUBACK.

        A lost link ends the wait without refusals: what is wanted is asked again on reconnecting.
        """
        if packet_id is None:
            return ()
        future: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()
        self._asked[packet_id] = future
        try:
            async with asyncio.timeout(_SUBACK_TIMEOUT):
                return await future
        except TimeoutError:
            _LOG.warning("broker %s did not answer a subscription", self._settings.address)
            return ()
        finally:
            self._asked.pop(packet_id, None)

    def _end_asking(self) -> None:
        for future in self._asked.values():
            if not future.done():
                future.set_result(())

    def _deliver(self, events: list[Event]) -> None:
        messages: list[Message] = []
        for event in events:
            if type(event) is Message:
                messages.append(event)
                continue
            if type(event) is Acknowledged:
                topic = self._outbox.acknowledge(event.packet_id, event.refusal)
                if event.refusal:
                    self._refused_publish(topic, event.refusal)
                continue
            if messages:  # keep their order relative to connects and disconnects
                self._report(messages)
                messages = []
            self._change(event)
        if messages:
            self._report(messages)
        self._feed()

    def _change(self, event: Event) -> None:
        match event:
            case Connected(generation, window, session_kept):
                self._outbox.window = min(WINDOW, window)
                self._session_kept = session_kept
                self._link_up(generation)
            case Disconnected(reason, hint):
                self._link_down(Failure(reason, hint))
            case Refused(reason, hint, permanent):
                self._refused = True
                self._failed(Failure(reason, hint))
                if permanent:
                    self._end_first(reason)
            case Subscribed(packet_id, refused):
                future = self._asked.get(packet_id)
                if future is not None and not future.done():
                    future.set_result(refused)
                elif refused:
                    _LOG.warning(
                        "broker %s refused to renew a subscription", self._settings.address
                    )
            case Acknowledged() | Message():
                raise AssertionError(f"{event!r} is not a change of state")

    def _failed(self, failure: Failure) -> None:
        """Note why there is no connection; say so when it is another reason, and now and then."""
        self._last_failure = failure
        now = time.monotonic()
        if not self._closed:
            self._report_failure(failure)
        if self._closed or (failure == self._said and now < self._say_at):
            return
        self._said, self._say_at = failure, now + _SAY_AGAIN
        _LOG.warning(
            "broker %s cannot be used: %s%s; trying again",
            self._settings.address,
            failure.reason,
            f" ({failure.hint})" if failure.hint else "",
        )

    def _refused_publish(self, topic: str, refusal: str) -> None:
        """Say that the broker does not take a message, now and then."""
        now = time.monotonic()
        if not topic or now < self._say_refusal_at:
            return
        self._say_refusal_at = now + _SAY_AGAIN
        _LOG.warning("broker %s refuses %r: %s", self._settings.address, topic, refusal)

    def _end_first(self, refusal: str) -> None:
        if self._first is not None and not self._first.done():
            self._first.set_result(refusal)

    def _link_up(self, generation: int) -> None:
        if self._closed:
            return
        self._outbox.rewind()
        self._gone.clear()
        self._generation = generation
        if self._filters:
            self._link.subscribe(list(self._filters.items()))
        self._end_first("")
        if self._said is not None:
            _LOG.info("broker %s is reached", self._settings.address)
            self._said = None
        _LOG.debug("client %s connected to %s", self.client_id, self._settings.address)
        self._report_link(connected=True)

    def _link_down(self, failure: Failure) -> None:
        self._gone.set()
        if not self.connected:
            if not self._refused:  # then the broker ends the connection, which says less
                self._failed(failure)
            self._refused = False
            return
        self._generation = 0
        self._last_failure = failure
        self._end_asking()
        if not self._closed:
            self._report_failure(failure)
            address = self._settings.address
            _LOG.warning("client %s lost broker %s: %s", self.client_id, address, failure.reason)
        self._report_link(connected=False)
