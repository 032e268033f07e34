"""The observation lane: packs of readings through the disk buffer to the broker.

Every pack is on disk before it is published and leaves the disk only after the broker has
acknowledged it; what was stored while the broker was away follows on the history lane, oldest
first and slower than the live lane. When the disk refuses a pack it is handed to
the client's bounded queue alone; only when that is full too a pack is lost, and counted.
"""

import logging
from collections import deque

import msgspec

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import MAX_AHEAD, PublishedPacks
from gateway.senml import microseconds, records_of
from host.mqtt import MessageClient, PublishTicket, QueueFull
from streamsql.data.schema import Schema
from streamsql.data.types import LATEST, Row
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import ObservationPack, SenmlRecord
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

MAX_PACK_BYTES = 100_000
"""About how large a pack may grow before it is sent; a single row may be larger."""
_RECORD_BYTES = 40


class ObservationLane:
    """Collects rows per stream; `flush` sends them, `replay` catches up, `settle` forgets.

    Attributes:
        sequence: Number of the next pack of this epoch.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (each is one seam)
        self,
        gateway: str,
        epoch: int,
        client: MessageClient,
        topics: Topics,
        buffer: DiskBuffer,
        published: PublishedPacks,
    ) -> None:
        self.gateway = gateway
        self.epoch = epoch
        self.client = client
        self.topics = topics
        self.buffer = buffer
        self.published = published
        self.sequence = 0
        self._collected: dict[str, list[SenmlRecord]] = {}
        self._sizes: dict[str, int] = {}
        self._in_flight: deque[tuple[int, PublishTicket]] = deque()
        self._flying: set[int] = set()
        self._settled: set[int] = set()
        self._replayed_to = 0

    def add(self, stream: str, name: str, ts: int, row: Row, schema: Schema) -> None:
        """Collect a row; sends at once when a pack is full."""
        self.published.reaches(stream, ts)
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
                topic = self.topics.history(self.gateway, stream)
                if not self._publish(number, stream, topic, self._numbered(stream, payload)):
                    break
                published += 1
            self._replayed_to = number
        return published

    def _send(self, stream: str) -> None:
        records = tuple(self._collected.pop(stream))
        pack = ObservationPack(self.epoch, self.sequence, records, self.published.next(stream))
        self._sizes[stream] = 0
        self.sequence += 1
        payload = encode_json(pack)
        number = self.buffer.append(stream, payload)
        if number is not None and not self.client.connected:
            return  # follows as history
        topic = self.topics.observation(self.gateway, stream)
        if not self._publish(number, stream, topic, payload) and number is None:
            self.buffer.count_lost()
            self.published.lose(stream)

    def _numbered(self, stream: str, payload: bytes) -> bytes:
        """Return a stored pack with the number that it is published under now."""
        try:
            pack = decode_json(payload, ObservationPack)
        except WireError as error:
            log.warning("a stored pack of %s is damaged: %s", stream, error)
            self.published.reaches(stream, LATEST)  # nobody knows of when its readings are
            return payload
        for record in pack.e:
            if record.bt is not None:
                self.published.reaches(stream, microseconds(record.bt))
        life = None if pack.epoch == self.epoch else self.epoch
        number = self.published.next(stream)
        return encode_json(msgspec.structs.replace(pack, n=number, life=life))

    def _publish(self, number: int | None, stream: str, topic: str, payload: bytes) -> bool:
        try:
            ticket = self.client.publish(topic, payload)
        except QueueFull:
            return False
        self.published.add(stream, topic, payload)
        if number is not None:
            self._in_flight.append((number, ticket))
            self._flying.add(number)
        return True
