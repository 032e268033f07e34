"""What the sites of a distributed delete-and-rederive tell each other.

Everything travels on one port, one item per row, so that a replay keeps the order. The annotation
of an item's row holds (varints) its number on the channel, its kind, and the kind's numbers.
"""

import enum
from dataclasses import dataclass

from stream_engine.provenance.varint import VarintReader, write_varint
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.messages import AnnotatedRow

PORT = "dred:items"
MAX_NUMBERS = 1_024
_MAX_NUMBER = (1 << 64) - 1


class Kind(enum.IntEnum):
    """Kinds of items; those from `LEAF_IN` on do the work, the others coordinate.

    JOIN: life of the sender; first on every channel. START: a generation begins; its number, then
    site and life of every member. MARK: generation and step of what follows on this channel.
    WANT: the sender has deletions. CLOSE: take in no more leaf rows. REPORT: per member how many
    working items were sent there and how many from there were worked on. ADVANCE: the step is over.
    LEAF_IN, LEAF_OUT: a leaf row (its leaf's number) joins or leaves. INSERT: a row was derived.
    DELETE: one of its derivations is gone. ASK: is it derivable by what is left?
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


def encode(item: Item, sequence: int) -> bytes:
    """Return the annotation of an item's row.

    Examples:
        >>> decode(AnnotatedRow(("a",), encode(Item(Kind.LEAF_IN, ("a",), (2,)), 300)))
        (300, Item(kind=<Kind.LEAF_IN: 7>, row=('a',), numbers=(2,)))
    """
    out = bytearray()
    write_varint(out, sequence)
    write_varint(out, item.kind)
    if item.kind not in _COUNTS:
        write_varint(out, len(item.numbers))
    for number in item.numbers:
        write_varint(out, number)
    return bytes(out)


def decode(row: AnnotatedRow) -> tuple[int, Item]:
    """Return an item and its number on the channel.

    Raises:
        WireError: It is malformed.
    """
    reader = VarintReader(row.annotation)
    sequence = reader.read(_MAX_NUMBER)
    kind = Kind(reader.read(max(Kind)))
    count = _COUNTS[kind] if kind in _COUNTS else reader.read(MAX_NUMBERS)
    numbers = tuple([reader.read(_MAX_NUMBER) for _ in range(count)])
    reader.finish()
    if row.row and not kind.works:
        raise WireError(f"a {kind.name} of a recursion has no row")
    return sequence, Item(kind, row.row, numbers)
