"""Both ends of a channel between two sites of a query: sequence numbers, snapshots, gaps.

Pure state machines, the same in gateways, base sites, the static engine and the coordinator. The
sender keeps what it has sent (per port, integrated), so it can always answer a resynchronisation
with a snapshot; the receiver keeps what it has received, so a snapshot becomes a delta and the loss
of a sender becomes a retraction. Correct whatever the broker loses, repeats or delivers late.
"""

import enum
from collections.abc import Iterable, Iterator

from streamsql.data.delta import Delta, accumulate, difference, negated
from streamsql.wire.messages import MAX_PAYLOAD_BYTES, MAX_ROWS_PER_BATCH, DeltaBatch, WeightedRow

CHUNK_ROWS = 20_000
CHUNK_BYTES = MAX_PAYLOAD_BYTES // 2
_TEXT_BYTES = 4  # most bytes a character of UTF-8 takes
assert CHUNK_ROWS <= MAX_ROWS_PER_BATCH  # noqa: S101  (a constant of this file)


class SendingChannel:
    """The sending end of one channel (query, from, to).

    State: the integrated contents of every port, as large as what the receiver holds.
    """

    def __init__(self, *, version: int, epoch: int, ports: Iterable[str] = ()) -> None:
        self.version = version
        self.epoch = epoch
        self.sequence = 0
        self.contents: dict[str, Delta] = {port: {} for port in ports}

    def push(
        self, port: str, delta: Delta, *, now: int, ts: int | None = None
    ) -> Iterator[DeltaBatch]:
        """Yield the batches that carry a delta; none for an empty one.

        Args:
            port: The sending fragment.
            delta: What changed.
            now: The sender's time.
            ts: Time of the oldest reading behind the change, or None.
        """
        if not delta:
            return
        accumulate(self.contents.setdefault(port, {}), delta)
        for chunk in _chunks(delta):
            yield self._batch(port, chunk, reset=False, now=now, ts=ts)

    def snapshot(self, *, now: int) -> Iterator[DeltaBatch]:
        """Yield batches that replace everything the receiver has of this channel."""
        for port, contents in self.contents.items():
            reset = True
            for chunk in _chunks(contents) if contents else ((),):
                yield self._batch(port, chunk, reset=reset, now=now, ts=None)
                reset = False

    def _batch(
        self, port: str, rows: tuple[WeightedRow, ...], *, reset: bool, now: int, ts: int | None
    ) -> DeltaBatch:
        batch = DeltaBatch(
            version=self.version,
            epoch=self.epoch,
            seq=self.sequence,
            port=port,
            deltas=rows,
            reset=reset,
            now=now,
            ts=ts,
        )
        self.sequence += 1
        return batch


class Reception(enum.Enum):
    """What became of a batch."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    STALE = "stale"
    GAP = "gap"


class ReceivingChannel:
    """The receiving end of one channel.

    After GAP the receiver asks the sender to resynchronise and drops everything until the snapshot.

    A snapshot of several ports is several batches. Out of sequence only its beginning may be taken
    in, or the loss of the beginning would go unnoticed: the receiver of such a channel names the
    port that the sender opened first.
    """

    def __init__(self, *, version: int, first_port: str | None = None) -> None:
        self.version = version
        self.first_port = first_port
        self.epoch: int | None = None
        self.expected = 0
        self.synchronised = False
        self.contents: dict[str, Delta] = {}
        self.duplicates = 0
        self.gaps = 0

    def accept(self, batch: DeltaBatch) -> tuple[Reception, Delta]:
        """Judge a batch; return what became of it and the delta to apply at its port."""
        if batch.version != self.version:
            return (Reception.STALE, {})
        if self.epoch is not None and batch.epoch < self.epoch:
            return (Reception.STALE, {})
        new_session = self.epoch is None or batch.epoch > self.epoch
        if new_session:
            self.epoch, self.expected, self.synchronised = batch.epoch, batch.seq, False
        if batch.seq < self.expected:
            self.duplicates += 1
            return (Reception.DUPLICATE, {})
        in_sequence = self.synchronised and batch.seq == self.expected
        if batch.reset and (in_sequence or self.first_port in (None, batch.port)):
            return (Reception.ACCEPTED, self._replace(batch))
        if not in_sequence:
            self.gaps += self.synchronised
            self.synchronised = False
            return (Reception.GAP, {})
        self.expected = batch.seq + 1
        delta = {row.row: row.weight for row in batch.deltas}
        accumulate(self.contents.setdefault(batch.port, {}), delta)
        return (Reception.ACCEPTED, delta)

    def lose_sender(self) -> dict[str, Delta]:
        """Forget the sender; return per port the delta that retracts all it had sent."""
        retractions = {port: negated(rows) for port, rows in self.contents.items() if rows}
        self.contents = {}
        self.synchronised = False
        return retractions

    def _replace(self, batch: DeltaBatch) -> Delta:
        self.expected = batch.seq + 1
        self.synchronised = True
        new = {row.row: row.weight for row in batch.deltas}
        delta = difference(new, self.contents.get(batch.port, {}))
        self.contents[batch.port] = new
        return delta


def _chunks(delta: Delta) -> Iterator[tuple[WeightedRow, ...]]:
    chunk: list[WeightedRow] = []
    size = 0
    for row, weight in delta.items():
        chunk.append(WeightedRow(row, weight))
        size += sum(_TEXT_BYTES * len(v) + 16 if isinstance(v, str) else 16 for v in row)
        if len(chunk) == CHUNK_ROWS or size >= CHUNK_BYTES:
            yield tuple(chunk)
            chunk = []
            size = 0
    if chunk:
        yield tuple(chunk)
