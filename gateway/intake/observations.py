"""The observation lane: packs of readings through the disk buffer to the broker.

Every pack is on disk before it is published and leaves the disk only after the broker has
acknowledged it; what was stored while the broker was away follows on the history lane, oldest
first and slower than the live lane. When the disk refuses a pack it is handed to
the client's bounded queue alone; only when that is full too a pack is lost, and counted.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import MAX_AHEAD, PublishedPacks
from host.mqtt import MessageClient, PublishTicket, QueueFull
from streamsql.data.schema import Schema
from streamsql.data.types import LATEST, DataType, Row
from streamsql.errors import WireError
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.codec import decode_compressed_json, encode_compressed_json, encode_json
from streamsql.wire.fill_messages import Cut
from streamsql.wire.messages import ObservationPack, SenmlRecord
from streamsql.wire.senml import Observed, microseconds, records_of_rows
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

MAX_PACK_BYTES = 100_000
"""About how large a pack may grow before it is sent; a single row may be larger."""
_RECORD_BYTES = 40
PATIENT_SECONDS = 2.0
"""For which rows are collected that only the lake reads."""
MAX_RECENT = 16
"""Packs of a stream whose numbers are remembered."""


class _Collected:
    """Rows that wait for their pack; they become records when it is sent.

    Attributes:
        size: About how many bytes they take in it.
        since: When the first of them came, or None.
    """

    __slots__ = ("_rows", "_texts", "_width", "_withdrawn", "schema", "since", "size")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.size = 0
        self.since: float | None = None
        self._rows: list[Observed] = []
        self._withdrawn: list[int] = []
        self._width = _RECORD_BYTES * len(schema)
        self._texts = [p for p, dtype in enumerate(schema.dtypes) if dtype == DataType.TEXT]

    def add(self, observed: Observed, *, withdrawn: bool) -> None:
        """Append a row."""
        if withdrawn:
            self._withdrawn.append(len(self._rows))
        self._rows.append(observed)
        name, _ts, row = observed
        self.size += self._width + len(name)
        for position in self._texts:
            text = row[position]
            if isinstance(text, str):
                self.size += len(text)

    def taken(self) -> tuple[list[SenmlRecord], tuple[int, ...]]:
        """Return the records of all rows, and the places of withdrawals; begin again."""
        rows, self._rows, self.size, self.since = self._rows, [], 0, None
        withdrawn, self._withdrawn = self._withdrawn, []
        return records_of_rows(rows, self.schema), tuple(_places(rows, withdrawn))


def _has_value(row: Row) -> bool:
    return any(value is not None for value in row)


def _places(rows: Sequence[Observed], positions: Iterable[int]) -> Iterator[int]:
    """Yield places among the rows that have records: one of nothing but NULLs has none."""
    place = counted = 0
    for position in positions:
        place += sum([_has_value(row) for _name, _ts, row in rows[counted:position]])
        counted = position
        if _has_value(rows[position][2]):
            yield place


def _everything(_stream: str) -> bool:
    return True


class ObservationLane:
    """Collects rows per stream; `flush` sends them, `replay` catches up, `settle` forgets.

    Attributes:
        sequence: Number of the next pack of this epoch.
        stamps: Version and layout of the definition of each declared source.
        is_read: Says whether anybody reads a stream; what nobody reads is not collected.
        is_waited_for: Says whether readers want it soon. Of other streams larger packs are sent
            less often, compressed.
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
        self.stamps: Mapping[str, tuple[int, int]] = {}
        self.is_read: Callable[[str], bool] = _everything
        self.is_waited_for: Callable[[str], bool] = _everything
        self._collected: dict[str, _Collected] = {}
        self._in_flight: deque[tuple[int, PublishTicket]] = deque()
        self._flying: set[int] = set()
        self._settled: set[int] = set()
        self._unbuffered: list[PublishTicket] = []
        self._replayed_to = 0
        self._recent: dict[str, deque[tuple[int, int]]] = {}

    def cut(self, stream: str) -> Cut:
        """Send what was collected, and return where the packs of a stream are cut by that."""
        self.flush()
        recent = self._recent.get(stream, ())
        packs = tuple((self.gateway, self.epoch, number) for number, _since in recent)
        since = min((since for _number, since in recent), default=0)
        return Cut(self.epoch, self.sequence, packs, since)

    def add(
        self,
        stream: str,
        rows: Sequence[Observed],
        schema: Schema,
        withdrawn: Collection[int] = (),
    ) -> None:
        """Collect rows of one schema; a pack is sent as soon as it is full.

        Args:
            stream: Their source.
            rows: In order.
            schema: Of the rows.
            withdrawn: Positions of those that are withdrawals.
        """
        if not self.is_read(stream):
            return  # it has no number: for readers that come later the stream begins then
        collected = self._collected.get(stream)
        if collected is None or collected.schema != schema:
            self._send(stream)
            collected = self._collected[stream] = _Collected(schema)
        if rows:
            self.published.reaches(stream, max([ts for _name, ts, _row in rows]))
        for position, row in enumerate(rows):
            collected.add(row, withdrawn=position in withdrawn)
            if collected.size >= MAX_PACK_BYTES:
                self._send(stream)

    def flush(self) -> None:
        """Send what was collected."""
        for stream in list(self._collected):
            self._send(stream)

    def flush_due(self, now: float) -> None:
        """Send what somebody waits for, and the rest once it has waited long enough.

        Args:
            now: Seconds of a clock that only goes forward.
        """
        for stream, collected in list(self._collected.items()):
            if not collected.size:
                continue
            if collected.since is None:
                collected.since = now
            if self.is_waited_for(stream) or now - collected.since >= PATIENT_SECONDS:
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
    def is_kept(self) -> bool:
        """Whether each pack is on disk, or was taken by the broker where the disk refused it."""
        self._unbuffered = [ticket for ticket in self._unbuffered if not ticket.done()]
        return not self._unbuffered

    @property
    def waiting(self) -> int:
        """Number of stored packs that are still to be sent, as history."""
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
        collected = self._collected.get(stream)
        records, withdrawals = ([], ()) if collected is None else collected.taken()
        if not records:
            return
        version, layout = self.stamps.get(stream, (0, 0))
        pack = ObservationPack(
            self.epoch,
            self.sequence,
            tuple(records),
            self.published.next(stream),
            version=version,
            layout=layout,
            d=withdrawals,
        )
        recent = self._recent.setdefault(stream, deque(maxlen=MAX_RECENT))
        times = [microseconds(record.bt) for record in records if record.bt is not None]
        recent.append((self.sequence, min(times, default=0)))
        self.sequence += 1
        payload = self._encoded(stream, pack)
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
            pack = decode_compressed_json(payload, ObservationPack, limit=MAX_PAYLOAD_BYTES)
        except WireError as error:
            log.warning("a stored pack of %s is damaged: %s", stream, error)
            self.published.reaches(stream, LATEST)  # nobody knows of when its readings are
            return payload
        for record in pack.e:
            if record.bt is not None:
                self.published.reaches(stream, microseconds(record.bt))
        life = None if pack.epoch == self.epoch else self.epoch
        number = self.published.next(stream)
        return self._encoded(stream, msgspec.structs.replace(pack, n=number, life=life))

    def _encoded(self, stream: str, pack: ObservationPack) -> bytes:
        encode = encode_json if self.is_waited_for(stream) else encode_compressed_json
        return encode(pack)

    def _publish(self, number: int | None, stream: str, topic: str, payload: bytes) -> bool:
        try:
            ticket = self.client.publish(topic, payload)
        except QueueFull:
            return False
        self.published.add(stream, topic, payload)
        if number is not None:
            self._in_flight.append((number, ticket))
            self._flying.add(number)
        elif self.is_kept or len(self._unbuffered) < MAX_AHEAD:
            self._unbuffered.append(ticket)
        return True
