"""Channels between the sites of a distributed delete-and-rederive: every item exactly once.

The transport is first in, first out, but may replay everything. Groups of items are numbered per
channel and life of the sender, so those that were seen are skipped.
"""

from dataclasses import dataclass, field

from stream_engine.recursion.absorption.recursion_outbox import RecursiveOutgoing
from stream_engine.recursion.baselines.dred.dred_evaluation import DredCounters
from stream_engine.recursion.baselines.dred.dred_items import (
    PORT,
    Item,
    Kind,
    bounded_groups,
    pack,
    unpack,
)
from streamsql.errors import WireError
from streamsql.wire.messages import AnnotatedRow


@dataclass(frozen=True, slots=True, order=True)
class Generation:
    """All sites' work from scratch, as one leader numbers it.

    Attributes:
        leader: Index of the leading site.
        life: Of the leader.
        number: Counted by the leader in that life.
    """

    leader: int
    life: int
    number: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """When an item was sent: in which generation, and in which of its steps."""

    generation: Generation
    step: int


@dataclass(slots=True)
class _Sending:
    number: int = 0
    stamp: Stamp | None = None
    waiting: list[Item] = field(default_factory=list)


@dataclass(slots=True)
class _Receiving:
    life: int = -1
    expected: int = 0
    stamp: Stamp | None = None


class Streams:
    """Both ends of this site's channels.

    State: two counters and two stamps per peer, and what was not drained.
    """

    def __init__(self, peers: tuple[str, ...], counters: DredCounters) -> None:
        self._out = {peer: _Sending() for peer in peers}
        self._in = {peer: _Receiving() for peer in peers}
        self._counters = counters

    def send(self, site: str, item: Item, stamp: Stamp | None = None) -> None:
        """Put an item on the channel to a site, behind its stamp if that is a new one."""
        channel = self._out[site]
        if stamp is not None and stamp != channel.stamp:
            channel.stamp = stamp
            made = stamp.generation
            mark = Item(Kind.MARK, (), (made.leader, made.life, made.number, stamp.step))
            channel.waiting.append(mark)
        channel.waiting.append(item)

    def read(self, sender: str, blob: bytes) -> list[tuple[Item, Stamp | None]]:
        """Return the items of a group that arrived, with their stamps; none if it is a replay.

        Raises:
            WireError: It is malformed, from a stranger, or not the next one.
        """
        channel = self._in.get(sender)
        if channel is None:
            raise WireError(f"site {sender} takes no part in this recursion")
        number, items = unpack(blob)
        first = items[0]
        if first.kind is Kind.JOIN and number == 0 and first.numbers[0] > channel.life:
            channel.life, channel.expected, channel.stamp = first.numbers[0], 0, None
        if number < channel.expected:
            return []
        if number > channel.expected or channel.life < 0:
            raise WireError(
                f"{sender}: group {number} of a recursion where {channel.expected} should come"
            )
        channel.expected += 1
        read: list[tuple[Item, Stamp | None]] = []
        for item in items:
            if item.kind is Kind.MARK:
                leader, life, made, step = item.numbers
                channel.stamp = Stamp(Generation(leader, life, made), step)
            else:
                read.append((item, channel.stamp))
        return read

    def life_of(self, peer: str) -> int:
        """Return the life in which a peer last joined; -1 if it never did."""
        return self._in[peer].life

    def drain(self) -> list[RecursiveOutgoing]:
        """Return and forget the messages to send."""
        messages: list[RecursiveOutgoing] = []
        for site, channel in self._out.items():
            items, channel.waiting = channel.waiting, []
            for group in bounded_groups(items, lambda item: item.row):
                blob = pack(group, channel.number)
                row = AnnotatedRow((), blob)
                messages.append(RecursiveOutgoing(site, PORT, (row,), rows=len(group)))
                channel.number += 1
                self._counters.sent_bytes += len(blob)
            self._counters.sent_rows += len(items)
            self._counters.sent_control += sum(1 for item in items if not item.kind.works)
        return messages
