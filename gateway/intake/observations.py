"""The observation lane: packs of readings through the disk buffer to the broker.

Every pack is on disk before it is published and leaves the disk only after the broker has
acknowledged it; what was stored while the broker was away follows on the history lane, oldest
first and slower than the live lane (wire.md rule 8). When the disk refuses a pack it is handed to
the client's bounded queue alone; only when that is full too a pack is lost, and counted.
"""

import logging
from collections import deque

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.senml import records_of
from host.mqtt import MessageClient, PublishTicket, QueueFull
from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import ObservationPack, SenmlRecord
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

MAX_PACK_BYTES = 100_000
"""About how large a pack may grow before it is sent; a single row may be larger."""
_RECORD_BYTES = 40
MAX_AHEAD = 1_000
"""Publishes that may wait for the broker while history is still sent: live lanes go first."""


class ObservationLane:
    """Collects rows per stream; `flush` sends them, `replay` catches up, `settle` forgets.

    Attributes:
        sequence: Number of the next pack of this epoch.
    """

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
        self._sizes: dict[str, int] = {}
        self._in_flight: deque[tuple[int, PublishTicket]] = deque()
        self._flying: set[int] = set()
        self._settled: set[int] = set()
        self._replayed_to = 0

    def add(self, stream: str, name: str, ts: int, row: Row, schema: Schema) -> None:
        """Collect a row; sends at once when a pack is full."""
        records = list(records_of(name, ts, row, schema))
        size = sum(_RECORD_BYTES + len(r.vs or "") for r in records)
        self._collected.setdefault(stream, []).extend(records)
        self._sizes[stream] = self._sizes.get(stream, 0) + size
        if self._sizes[stream] >= MAX_PACK_BYTES:
            self._send(stream)

    def flush(self) -> None:
        """Send what was collected."""
        for stream in [name for name, records in self._collected.items() if records]:
            self._send(stream)

    def settle(self) -> None:
        """Remove from disk what the broker has acknowledged."""
        waiting: deque[tuple[int, PublishTicket]] = deque()
        for number, ticket in self._in_flight:
            if ticket.done():
                self._flying.discard(number)
                self._settled.add(number)
            else:
                waiting.append((number, ticket))
        self._in_flight = waiting
        if self._settled and self.buffer.delete(sorted(self._settled)):
            self._settled.clear()

    @property
    def waiting(self) -> int:
        """How many stored packs are still to be sent, as history."""
        return max(len(self.buffer) - len(self._flying) - len(self._settled), 0)

    def replay(self, most: int) -> int:
        """Publish up to `most` stored packs, oldest first, on the history lane; return how many.

        Nothing is sent while the broker is away or many publishes wait.
        """
        if not self.waiting or not self.client.connected or self.client.pending() > MAX_AHEAD:
            return 0
        stored = self.buffer.oldest(most, after=self._replayed_to)
        if not stored:
            self._replayed_to = 0  # begin again with what was refused at its turn
            return 0
        published = 0
        for number, stream, payload in stored:
            if number not in self._flying and number not in self._settled:
                if not self._publish(number, self.topics.history(self.gateway, stream), payload):
                    break
                published += 1
            self._replayed_to = number
        return published

    def _send(self, stream: str) -> None:
        pack = ObservationPack(self.epoch, self.sequence, tuple(self._collected.pop(stream)))
        self._sizes[stream] = 0
        self.sequence += 1
        payload = encode_json(pack)
        number = self.buffer.append(stream, payload)
        if number is not None and not self.client.connected:
            return  # follows as history
        topic = self.topics.observation(self.gateway, stream)
        if not self._publish(number, topic, payload) and number is None:
            self.buffer.count_lost()

    def _publish(self, number: int | None, topic: str, payload: bytes) -> bool:
        try:
            ticket = self.client.publish(topic, payload)
        except QueueFull:
            return False
        if number is not None:
            self._in_flight.append((number, ticket))
            self._flying.add(number)
        return True
