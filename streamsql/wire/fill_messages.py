"""Messages between an engine site and the static engine about windows that are to start full.

A site asks for what the lake has kept of a source, piece by piece: each answer says after which row
the next piece begins. The site knows which packs it has read itself, and leaves their rows out.
"""

from typing import Annotated

import msgspec

from streamsql.data.types import DataType
from streamsql.wire.bounds import MANY, Count, Epoch, Name, Text, Time, WireRow

MAX_FILL_ROWS = 10_000
"""Rows of an answer; more only where so many have one event time."""

MAX_AWAITED = 256
"""Packs that a request names."""

PackName = tuple[Name, Epoch, Count]
"""Gateway, epoch and number of a pack."""

Cursor = tuple[Time, Name, Epoch, Count, Count]
"""Event time, gateway, epoch, number of the pack and place in it: of the last row that was sent."""


class Cut(msgspec.Struct, frozen=True):
    """The end of what a gateway had published of a source when a query began.

    Attributes:
        epoch: Packs of it from `number` on, and of later epochs, came here.
        number: See there.
        awaited: The last packs before the cut.
        since: The first event time in these, in microseconds.
    """

    epoch: int
    number: int
    awaited: tuple[PackName, ...] = ()
    since: int = 0


class FillColumn(msgspec.Struct, frozen=True, array_like=True):
    """A column of the source as the site reads it."""

    name: Name
    type: DataType
    unit: Name = ""


class FillWanted(msgspec.Struct, frozen=True):
    """Asks for the next piece.

    Attributes:
        id: Of the request; an answer has the same.
        gateway: Whose readings; empty: those of all gateways, for base sites.
        since: First event time.
        awaited: Packs that the lake should have before it answers: what was published before them
            is there then, too.
        awaited_since: The first event time of the readings in them.
        after: The last row that the site has; None: from the beginning.
        lateness: Readings that came later than this after others of their gateway are left out:
            they were late. In microseconds; None: none was.
    """

    id: Name
    query: Name
    source: Name
    columns: Annotated[tuple[FillColumn, ...], MANY]
    gateway: Name
    since: Time
    awaited: Annotated[tuple[PackName, ...], MANY] = ()
    awaited_since: Time = 0
    after: Cursor | None = None
    lateness: Count | None = None


class FillRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of the lake; `pack` is its pack's place in the answer's packs."""

    pack: Count
    ts: Time
    row: WireRow
    withdrawn: bool = False


class FillRows(msgspec.Struct, frozen=True):
    """A piece.

    Attributes:
        rows: By event time.
        after: The last row; None: there is none.
        done: Nothing follows.
        expected: About how many rows there are in all.
        missing: Packs of the request that the lake does not have yet; then there are no rows.
        problem: Why there will be none, or empty.
        kept: Whether the lake keeps the source at all.
    """

    id: Name
    packs: Annotated[tuple[PackName, ...], MANY] = ()
    rows: Annotated[tuple[FillRow, ...], MANY] = ()
    after: Cursor | None = None
    done: bool = False
    expected: Count = 0
    missing: Count = 0
    problem: Text = ""
    kept: bool = True
