"""Channels between the sites of a distributed delete-and-rederive: every item exactly once.

The transport is first in, first out, but may replay everything. Items are numbered per channel and
life of the sender, so those that were seen are skipped.
"""

from dataclasses import dataclass

from stream_engine.recursion.dred.items import PORT, Item, Kind, decode, encode
from stream_engine.recursion.outbox import Parcels, RecursiveOutgoing
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
    sequence: int = 0
    stamp: Stamp | None = None


@dataclass(slots=True)
class _Receiving:
    life: int = -1
    expected: int = 0
    stamp: Stamp | None = None


class Streams:
    """Both ends of this site's channels.

    State: two counters and two stamps per peer, and what was not drained.
    """

    def __init__(self, peers: tuple[str, ...]) -> None:
        self._out = {peer: _Sending() for peer in peers}
        self._in = {peer: _Receiving() for peer in peers}
        self._parcels = Parcels()

    def send(self, site: str, item: Item, stamp: Stamp | None = None) -> None:
        """Put an item on the channel to a site, behind its stamp if that is a new one."""
        channel = self._out[site]
        if stamp is not None and stamp != channel.stamp:
            channel.stamp = stamp
            made = stamp.generation
            self._put(site, Item(Kind.MARK, (), (made.leader, made.life, made.number, stamp.step)))
        self._put(site, item)

    def _put(self, site: str, item: Item) -> None:
        channel = self._out[site]
        self._parcels.add(site, PORT, item.row, encode(item, channel.sequence))
        channel.sequence += 1

    def read(self, sender: str, row: AnnotatedRow) -> tuple[Item, Stamp | None] | None:
        """Return an item that arrived and its stamp; None if there is nothing to do about it.

        Raises:
            WireError: It is malformed, from a stranger, or not the next one.
        """
        channel = self._in.get(sender)
        if channel is None:
            raise WireError(f"site {sender} takes no part in this recursion")
        sequence, item = decode(row)
        if item.kind is Kind.JOIN and sequence == 0 and item.numbers[0] > channel.life:
            channel.life, channel.expected, channel.stamp = item.numbers[0], 0, None
        if sequence < channel.expected:
            return None
        if sequence > channel.expected or channel.life < 0:
            raise WireError(
                f"{sender}: item {sequence} of a recursion where {channel.expected} should come"
            )
        channel.expected += 1
        if item.kind is Kind.MARK:
            leader, life, number, step = item.numbers
            channel.stamp = Stamp(Generation(leader, life, number), step)
            return None
        return item, channel.stamp

    def life_of(self, peer: str) -> int:
        """Return the life in which a peer last joined; -1 if it never did."""
        return self._in[peer].life

    def drain(self) -> list[RecursiveOutgoing]:
        """Return and forget the messages to send."""
        return self._parcels.drain()
