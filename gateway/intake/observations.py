"""The observation lane: packs of readings through the disk buffer to the broker.

Every pack is on disk before it is published and leaves the disk only after the broker has
acknowledged it; what was stored while the broker was away follows on the history lane, oldest
first and slower than the live lane (wire.md rule 8).
"""

import logging
from collections import deque

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.senml import records_of
from messaging import MessageClient, PublishTicket, QueueFull
from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import ObservationPack, SenmlRecord
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

MAX_RECORDS = 2_000


class ObservationLane:
    """Collects rows per stream; `flush` sends them, `replay` catches up, `settle` forgets."""

    def __init__(
        self, gateway: str, epoch: int, client: MessageClient, topics: Topics, buffer: DiskBuffer
    ) -> None:
        self.gateway = gateway
        self.epoch = epoch
        self.client = client
        self.topics = topics
        self.buffer = buffer
        self.sequence = 0
        self._collected: dict[str, list[SenmlRecord]] = {}
        self._in_flight: deque[tuple[int, PublishTicket]] = deque()
        self._flying: set[int] = set()

    def add(self, stream: str, name: str, ts: int, row: Row, schema: Schema) -> None:
        """Collect a row; sends at once when a pack is full."""
        records = self._collected.setdefault(stream, [])
        records.extend(records_of(name, ts, row, schema))
        if len(records) >= MAX_RECORDS:
            self._send(stream)

    def flush(self) -> None:
        """Send what was collected."""
        for stream in [name for name, records in self._collected.items() if records]:
            self._send(stream)

    def _send(self, stream: str) -> None:
        pack = ObservationPack(self.epoch, self.sequence, tuple(self._collected.pop(stream)))
        self.sequence += 1
        payload = encode_json(pack)
        number = self.buffer.append(stream, payload)
        if self.client.connected:
            self._publish(number, self.topics.observation(self.gateway, stream), payload)

    def _publish(self, number: int | None, topic: str, payload: bytes) -> None:
        try:
            ticket = self.client.publish(topic, payload)
        except QueueFull:
            return
        if number is not None:
            self._in_flight.append((number, ticket))
            self._flying.add(number)

    def settle(self) -> None:
        """Remove from disk what the broker has acknowledged."""
        done: list[int] = []
        waiting: deque[tuple[int, PublishTicket]] = deque()
        for number, ticket in self._in_flight:
            if ticket.done():
                done.append(number)
            else:
                waiting.append((number, ticket))
        self._in_flight = waiting
        self._flying.difference_update(done)
        self.buffer.delete(done)

    def replay(self, most: int) -> int:
        """Publish stored packs, oldest first, on the history lane; return how many."""
        if not self.client.connected or self._collected:
            return 0
        stored = self.buffer.oldest(most, skip=self._flying)
        for number, stream, payload in stored:
            self._publish(number, self.topics.history(self.gateway, stream), payload)
        return len(stored)
