"""Both ends of a channel between two sites of a query: sequence numbers, snapshots, gaps.

Pure state machines, the same in gateways, base sites, the static engine and the coordinator. The
sender keeps what it has sent (per port, integrated), so it can always answer a resynchronisation
with a snapshot; the receiver keeps what it has received, so a snapshot becomes a delta and the loss
of a sender becomes a retraction. Correct whatever the broker loses, repeats or delivers late.
"""

import enum
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from streamsql.data.delta import Delta, accumulate, difference, negated
from streamsql.data.types import Row
from streamsql.wire.batch_parts import chunks, is_small, weighted
from streamsql.wire.messages import DeltaBatch, WeightedRow

STREAM_ROWS = 10_000
"""Latest rows of a stream that are kept to be resent; a receiver that missed more loses them."""


class SendingChannel:
    """The sending end of one channel (query, from, to).

    State: the integrated contents of every port, as large as what the receiver holds; of a stream,
    to which rows are only added, its latest rows.

    Attributes:
        forgotten: Rows that the receiver no longer needs; snapshots omit them, and report their
            watermark.
    """

    def __init__(
        self,
        *,
        version: int,
        epoch: int,
        ports: Iterable[str] = (),
        streams: Collection[str] = (),
    ) -> None:
        """Open the channel.

        Args:
            version: Of the fragment bundle.
            epoch: Of the sender.
            ports: In the order in which they are sent.
            streams: The ports that give streams.
        """
        self._streams = frozenset(streams)
        self.forgotten = Forgotten()
        self.version = version
        self.epoch = epoch
        self.sequence = 0
        self.contents: dict[str, Delta] = {port: {} for port in ports}

    def push(self, port: str, delta: Delta, *, now: int, ts: int | None = None) -> list[DeltaBatch]:
        """Return the batches that carry a delta; none for an empty one.

        Args:
            port: The sending fragment.
            delta: What changed.
            now: The sender's time.
            ts: Time of the oldest reading behind the change, or None.
        """
        if not delta:
            return []
        self.note(port, delta)
        if is_small(delta):
            return [self._batch(port, weighted(delta), more=False, now=now, ts=ts)]
        return list(self.carry(port, (delta,), now=now, ts=ts))

    def carry(
        self,
        port: str,
        parts: Iterable[Delta],
        *,
        now: int,
        ts: int | None = None,
        reset: bool = False,
    ) -> Iterator[DeltaBatch]:
        """Yield the batches of one change, given in parts, which is noted nowhere.

        A batch has rows of as many parts as fit it. At most two batches are held at a time.

        Args:
            port: The sending fragment.
            parts: Their sum is the change.
            now: The sender's time.
            ts: Time of the oldest reading behind the change, or None.
            reset: Whether it replaces everything the receiver has of the port.
        """
        last: tuple[WeightedRow, ...] | None = () if reset else None
        for chunk in chunks(parts):
            if last:
                yield self._batch(port, last, reset=reset, more=True, now=now, ts=ts)
                reset = False
            last = chunk
        if last is not None:
            yield self._batch(port, last, reset=reset, more=False, now=now, ts=ts)

    def note(self, port: str, delta: Delta) -> None:
        """Add a change to what a snapshot of the channel will hold."""
        contents = self.contents.setdefault(port, {})
        accumulate(contents, delta)
        if port in self._streams:
            forget_oldest(contents, STREAM_ROWS)

    def forget(self, forgotten: "Forgotten") -> None:
        """Discard the rows below bounds that the receiver has named, permanently."""
        self.forgotten.raise_to(forgotten)
        for port in forgotten.bounds:
            contents = self.contents.get(port, {})
            for row in list(self.forgotten.below(port, contents)):
                del contents[row]

    def snapshot(self, *, now: int) -> Iterator[DeltaBatch]:
        """Yield batches that replace everything the receiver has of this channel."""
        for port, contents in self.contents.items():
            yield from self.carry(port, (contents,), now=now, reset=True)

    def _batch(  # noqa: PLR0913  (the parts of a batch)
        self,
        port: str,
        rows: tuple[WeightedRow, ...],
        *,
        more: bool,
        now: int,
        reset: bool = False,
        ts: int | None = None,
    ) -> DeltaBatch:
        batch = DeltaBatch(
            version=self.version,
            epoch=self.epoch,
            seq=self.sequence,
            port=port,
            deltas=rows,
            reset=reset,
            more=more,
            now=now,
            ts=ts,
            watermark=self.forgotten.watermark if reset else None,
        )
        self.sequence += 1
        return batch


@dataclass(slots=True)
class Forgotten:
    """Rows of a channel that both ends discard, because no window that they feed is open.

    The receiver decides, and drops such rows from then on. It informs the sender only when its
    decision is saved. So the sender never has discarded more than the receiver, and the difference
    between both is exact.

    Attributes:
        watermark: Windows that ended by then have closed, or None.
        bounds: Column and bound by port: a row with a lower value there is discarded.
    """

    watermark: int | None = None
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)

    def raise_to(self, other: "Forgotten") -> None:
        """Include what another one includes."""
        if other.watermark is not None:
            self.watermark = max(self.watermark or other.watermark, other.watermark)
        for port, (column, bound) in other.bounds.items():
            _column, before = self.bounds.get(port, (column, bound))
            self.bounds[port] = (column, max(bound, before))

    def below(self, port: str, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of a port that are discarded."""
        place = self.bounds.get(port)
        if place is None:
            return
        column, bound = place
        for row in rows:
            value = row[column]
            if isinstance(value, int) and value < bound:
                yield row


class Reception(enum.Enum):
    """Outcome of a batch at its receiver."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    STALE = "stale"
    GAP = "gap"


@dataclass(slots=True)
class _Unfinished:
    """A change whose last batch has not come yet."""

    port: str
    reset: bool
    rows: Delta


class ReceivingChannel:
    """The receiving end of one channel.

    After GAP the receiver asks the sender to resynchronise and drops everything until the snapshot.
    What takes several batches counts only as a whole: half a snapshot would look as if all other
    rows were gone.

    A snapshot of several ports is several batches. Out of sequence only its beginning may be
    accepted, or the loss of the beginning would go unnoticed. So the receiver of such a channel
    names the port that the sender opened first.

    Rows of a stream stay emitted, whatever becomes of the sender; of its snapshot, and of rows of a
    new incarnation of the sender, only what is new counts.

    Attributes:
        forgotten: Rows that are discarded here, also when they arrive.
        sender_forgot: The greatest watermark up to which the sender has discarded closed windows,
            by its snapshots.
    """

    def __init__(
        self, *, version: int, first_port: str | None = None, streams: Collection[str] = ()
    ) -> None:
        """Open the channel.

        Args:
            version: Of the fragment bundle.
            first_port: The sender's first port.
            streams: The ports that give streams.
        """
        self._streams = frozenset(streams)
        self.forgotten = Forgotten()
        self.sender_forgot: int | None = None
        self.version = version
        self.first_port = first_port
        self.epoch: int | None = None
        self.expected = 0
        self.synchronised = False
        self.contents: dict[str, Delta] = {}
        self.duplicates = 0
        self.gaps = 0
        self._unfinished: _Unfinished | None = None
        self._repeated: dict[str, Delta] = {}

    def copy(self) -> "ReceivingChannel":
        """Return another receiver of the same batches that has received what this one has."""
        twin = ReceivingChannel(
            version=self.version, first_port=self.first_port, streams=self._streams
        )
        twin.forgotten.raise_to(self.forgotten)
        twin.sender_forgot, twin.epoch = self.sender_forgot, self.epoch
        twin.expected, twin.synchronised = self.expected, self.synchronised
        twin.contents = {port: dict(rows) for port, rows in self.contents.items()}
        twin._repeated = {port: dict(rows) for port, rows in self._repeated.items()}
        change = self._unfinished
        if change is not None:
            twin._unfinished = _Unfinished(change.port, change.reset, dict(change.rows))
        return twin

    @property
    def size(self) -> int:
        """How many different rows are kept here."""
        unfinished = len(self._unfinished.rows) if self._unfinished is not None else 0
        return unfinished + sum(map(len, self.contents.values()))

    def accept(self, batch: DeltaBatch) -> tuple[Reception, Delta]:
        """Judge a batch; return what became of it and the delta to apply at its port."""
        if batch.version != self.version:
            return (Reception.STALE, {})
        if self.epoch is not None and batch.epoch < self.epoch:
            return (Reception.STALE, {})
        if self.epoch is None or batch.epoch > self.epoch:
            self.epoch, self.expected, self.synchronised = batch.epoch, batch.seq, False
            self._repeated = {port: {} for port, rows in self.contents.items() if rows}
        if batch.seq < self.expected:
            self.duplicates += 1
            return (Reception.DUPLICATE, {})
        if not self._fits(batch):
            self.gaps += self.synchronised
            self.synchronised = False
            self._unfinished = None
            return (Reception.GAP, {})
        self.expected = batch.seq + 1
        self.synchronised = True
        if batch.reset and batch.watermark is not None:
            self.sender_forgot = max(self.sender_forgot or batch.watermark, batch.watermark)
        return (Reception.ACCEPTED, self._taken(batch))

    def forget(self, forgotten: Forgotten) -> dict[str, Delta]:
        """Discard rows below bounds; return per port the delta that retracts them."""
        self.forgotten.raise_to(forgotten)
        retractions: dict[str, Delta] = {}
        for port in forgotten.bounds:
            contents = self.contents.get(port, {})
            gone = {row: -contents[row] for row in self.forgotten.below(port, contents)}
            for row in gone:
                del contents[row]
            if gone:
                retractions[port] = gone
        return retractions

    def lose_sender(self) -> dict[str, Delta]:
        """Discard what the sender has sent; return per port the delta that retracts it."""
        streams = {port: rows for port, rows in self.contents.items() if port in self._streams}
        retractions = {
            port: negated(rows)
            for port, rows in self.contents.items()
            if rows and port not in streams
        }
        self.contents = streams
        self.synchronised = False
        self._unfinished = None
        return retractions

    def drop_ports(self, ports: Collection[str]) -> None:
        """Discard all that was received of ports that nobody reads any more."""
        for port in ports:
            self.contents.pop(port, None)
            self._repeated.pop(port, None)

    def _fits(self, batch: DeltaBatch) -> bool:
        """Whether a batch can be accepted without what is missing before it."""
        in_sequence = self.synchronised and batch.seq == self.expected
        if batch.reset:
            return in_sequence or self.first_port in (None, batch.port)
        unfinished = self._unfinished
        return in_sequence and (unfinished is None or unfinished.port == batch.port)

    def _taken(self, batch: DeltaBatch) -> Delta:
        """Add a batch to what it belongs to; return the change if it is whole now."""
        rows = {row.row: row.weight for row in batch.deltas}
        change = self._unfinished
        if change is None or batch.reset:
            change = self._unfinished = _Unfinished(batch.port, batch.reset, rows)
        else:
            accumulate(change.rows, rows)
        if batch.more:
            return {}
        self._unfinished = None
        for row in list(self.forgotten.below(batch.port, change.rows)):
            del change.rows[row]
        if batch.port in self._streams:
            return self._added(change)
        if change.reset:
            delta = difference(change.rows, self.contents.get(batch.port, {}))
            self.contents[batch.port] = change.rows
            return delta
        accumulate(self.contents.setdefault(batch.port, {}), change.rows)
        return change.rows

    def _added(self, change: _Unfinished) -> Delta:
        """Add to a stream what is new, and keep twice of what its sender keeps."""
        contents = self.contents.setdefault(change.port, {})
        delta = change.rows
        if change.port in self._repeated:
            delta = self._beyond(change, contents)
        elif change.reset:
            known = {row: contents[row] for row in delta if row in contents}
            delta = {row: w for row, w in difference(delta, known).items() if w > 0}
        accumulate(contents, delta)
        forget_oldest(contents, 2 * STREAM_ROWS)
        return delta

    def _beyond(self, change: _Unfinished, contents: Delta) -> Delta:
        """Return the rows that a new incarnation of the sender has emitted beyond all before it.

        It may have to emit again what the earlier one had emitted since it was last saved.
        """
        given = {} if change.reset else self._repeated[change.port]
        accumulate(given, change.rows)
        self._repeated[change.port] = given
        if len(given) > STREAM_ROWS:
            del self._repeated[change.port]  # it has long caught up
        more = {row: given[row] - contents.get(row, 0) for row in change.rows}
        return {row: weight for row, weight in more.items() if weight > 0}


def forget_oldest(contents: Delta, least: int) -> int:
    """Keep the rows added last, `least` to twice as many; return how many are discarded."""
    if len(contents) <= 2 * least:
        return 0
    oldest = list(islice(contents, len(contents) - least))
    for row in oldest:
        del contents[row]
    return len(oldest)
