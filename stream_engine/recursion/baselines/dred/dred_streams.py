"""Channels between the sites of a distributed delete-and-rederive: every item exactly once.

The transport is first in, first out, but may replay everything. Everything travels on one port, so
that a replay keeps the order. Items to one site are packed in groups of rows of one width (see
`packing`), numbered per channel and life of the sender, so those that were seen are skipped. A
group is a blob: its number (varint), then the packed rows, whose annotations are the kinds of the
items and their numbers.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from stream_engine.provenance.parts import MAX_BYTES, MAX_ROWS
from stream_engine.provenance.varint import VarintReader, write_varint
from stream_engine.recursion.absorption.recursion_outbox import RecursiveOutgoing
from stream_engine.recursion.baselines.dred.dred_evaluation import DredCounters
from stream_engine.recursion.program import packing
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.batch_parts import row_bytes
from streamsql.wire.messages import AnnotatedRow

PORT = "dred:items"
MAX_NUMBERS = 1_024
_MAX_NUMBER = (1 << 64) - 1


class Kind(enum.IntEnum):
    """Kinds of items; those from `LEAF_IN` on do the work, the others coordinate.

    JOIN: life of the sender; first on every channel. START: a generation begins; its number, then
    site and life of every member. MARK: generation and step of what follows on this channel.
    WANT: the sender has deletions. CLOSE: ingest no more leaf rows. REPORT: per member how many
    working items were sent there and how many from there were worked on. ADVANCE: the step is over.
    LEAF_IN, LEAF_OUT: a leaf row, or a copy of a view row, joins or leaves (number of the leaf, or
    of the copy behind the leaves). INSERT: a row was derived. DELETE: one of its derivations is
    gone. ASK: is it derivable by what is left?
    """

    JOIN = 0
    START = 1
    MARK = 2
    WANT = 3
    CLOSE = 4
    REPORT = 5
    ADVANCE = 6
    LEAF_IN = 7
    LEAF_OUT = 8
    INSERT = 9
    DELETE = 10
    ASK = 11

    @property
    def works(self) -> bool:
        """Whether such items are counted to find out that a step is over."""
        return self >= Kind.LEAF_IN


_COUNTS = {
    Kind.JOIN: 1,
    Kind.MARK: 4,
    Kind.WANT: 0,
    Kind.CLOSE: 0,
    Kind.ADVANCE: 0,
    Kind.LEAF_IN: 1,
    Kind.LEAF_OUT: 1,
    Kind.INSERT: 0,
    Kind.DELETE: 0,
    Kind.ASK: 0,
}
"""How many numbers a kind has; the others say it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing told to another site."""

    kind: Kind
    row: Row = ()
    numbers: tuple[int, ...] = ()


def pack(items: Sequence[Item], number: int) -> bytes:
    """Return a group of at most `MAX_ROWS` items whose rows have one width.

    Examples:
        >>> unpack(pack([Item(Kind.LEAF_IN, ("a",), (2,)), Item(Kind.ASK, ("b",))], 300))[1][0]
        Item(kind=<Kind.LEAF_IN: 7>, row=('a',), numbers=(2,))
    """
    out = bytearray()
    write_varint(out, number)
    return bytes(out) + packing.pack_encoded([(item.row, _encoded(item)) for item in items])


def unpack(blob: bytes) -> tuple[int, list[Item]]:
    """Return the number of a group and its items.

    Raises:
        WireError: It is malformed.
    """
    reader = VarintReader(blob)
    number = reader.read(_MAX_NUMBER)
    rows, parts = packing.unpack(reader.rest())
    return number, [_decoded(row, part) for row, part in zip(rows, parts, strict=True)]


def _encoded(item: Item) -> bytes:
    out = bytearray()
    write_varint(out, item.kind)
    if item.kind not in _COUNTS:
        write_varint(out, len(item.numbers))
    for number in item.numbers:
        write_varint(out, number)
    return bytes(out)


def _decoded(row: Row, part: object) -> Item:
    if not isinstance(part, bytes):
        raise WireError("an item of a recursion has no kind")
    reader = VarintReader(part)
    kind = Kind(reader.read(max(Kind)))
    count = _COUNTS[kind] if kind in _COUNTS else reader.read(MAX_NUMBERS)
    numbers = tuple([reader.read(_MAX_NUMBER) for _ in range(count)])
    reader.finish()
    if row and not kind.works:
        raise WireError(f"a {kind.name} of a recursion has no row")
    return Item(kind, row, numbers)


T = TypeVar("T")
_EXTRA_BYTES = 16


def bounded_groups(items: Iterable[T], row_of: Callable[[T], Row]) -> Iterator[list[T]]:
    """Yield items in their order, as many together as one packed group may hold."""
    group: list[T] = []
    size = width = 0
    for item in items:
        row = row_of(item)
        added = row_bytes(row) + _EXTRA_BYTES
        is_full = len(group) == MAX_ROWS or size + added > MAX_BYTES
        if group and (is_full or len(row) != width):
            yield group
            group, size = [], 0
        group.append(item)
        size += added
        width = len(row)
    if group:
        yield group


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
        """Return and discard the messages to send."""
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
