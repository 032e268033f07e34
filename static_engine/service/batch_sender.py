"""Sends batches no faster than the broker takes them."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from host.clocks import wall_clock
from host.mqtt import ClientClosed, MessageClient, PublishTicket, QueueFull
from static_engine.service.installed_fragments import RESULT, InstalledQuery
from streamsql.wire.codec import encode_packed
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

_WINDOW_BYTES = 8 << 20
_PATIENCE_SECONDS = 0.2


class Sender:
    """Publishes the batches of queries; at most a few megabytes are on their way.

    Attributes:
        batches_sent: How many.
    """

    def __init__(self, client: MessageClient, topics: Topics, site: str) -> None:
        self._client = client
        self._topics = topics
        self._site = site
        self._connections = 0
        self._flight: deque[tuple[PublishTicket, int]] = deque()
        self._bytes = 0
        self.batches_sent = 0

    def connection_changed(self) -> None:
        """Note that what is being sent now may not arrive."""
        self._connections += 1

    async def send(self, query: InstalledQuery, wanted: Callable[[], bool]) -> None:
        """Send what a query has to send; given up when the broker goes or `wanted` turns false.

        What was given up is sent as a snapshot next time.
        """
        if not self._client.connected:
            query.request_all()
            return
        connection = self._connections
        await asyncio.to_thread(query.compare)  # 10^6 rows take 0.3 s
        if not wanted():
            return
        snapshot = more = False
        for destination, batch in query.batches(wall_clock()):
            snapshot, more = batch.reset or (snapshot and more), batch.more
            payload = encode_packed(batch)
            while not self._publish(query, destination, payload):
                await asyncio.sleep(_PATIENCE_SECONDS)
                if self._connections != connection or not wanted():
                    break
            else:
                query.traffic.sent(batch, len(payload), snapshot=snapshot)
            await self._make_room(connection)
            if self._connections != connection or not wanted():
                query.request_all()
                return

    def _publish(self, query: InstalledQuery, destination: str, payload: bytes) -> bool:
        name = query.bundle.query
        if destination == RESULT:
            topic = self._topics.output(name, self._site)
        else:
            topic = self._topics.exchange(name, destination, self._site)
        try:
            ticket = self._client.publish(topic, payload)
        except QueueFull:
            return False
        self._flight.append((ticket, len(payload)))
        self._bytes += len(payload)
        self.batches_sent += 1
        return True

    async def _make_room(self, connection: int) -> None:
        """Wait for acknowledgements until the window has room, or the connection changed."""
        while self._flight:
            ticket, size = self._flight[0]
            if not ticket.done():
                if self._bytes <= _WINDOW_BYTES or self._connections != connection:
                    return
                try:
                    await ticket.wait(_PATIENCE_SECONDS)
                except TimeoutError:
                    continue
                except ClientClosed:
                    log.debug("closed while sending")
            self._flight.popleft()
            self._bytes -= size
