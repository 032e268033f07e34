"""Windows over a column with the time, and windows over a stream that a query gives."""

from streamsql.algebra.leaves import (
    BOUNDS_COLUMNS,
    WindowKind,
    check_bounds,
    check_window,
    require,
)
from streamsql.algebra.operators.relational import Binary, Unary
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType

WINDOW_COLUMNS = ("window_start", "window_end")
_WINDOW_BOUNDS = Schema(tuple(Field(name, DataType.TIMESTAMP) for name in WINDOW_COLUMNS))


class HopWindow(Unary, frozen=True, tag="hop_window"):
    """Each row once per window that holds its time, with the window's bounds as two more columns.

    Windows are [start, start + size), where start is a multiple of `hop` since 1970 plus `offset`.
    TUMBLE has hop = size. A row whose time is NULL is in no window.

    Attributes:
        time: Position of a TIMESTAMP column.
        size: Of a window in microseconds.
        hop: From one window to the next, in microseconds.
        offset: Of the first window, in microseconds.
    """

    time: int
    size: int
    hop: int
    offset: int = 0

    def __post_init__(self) -> None:
        require(0 <= self.time < len(self.input.schema), "window time out of range")
        require(self.size > 0 and self.hop > 0, "window size")

    @property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`."""
        return self.input.schema + _WINDOW_BOUNDS


class SessionWindow(Unary, frozen=True, tag="session_window"):
    """Each row with the bounds of its session as two more columns.

    A session of a partition is a longest sequence of rows whose neighbours in time are less than
    `gap` apart; it lasts from its first time to its last plus the gap. Rows that arrive, leave or
    expire merge and split sessions. A row is in no session if its time is NULL, or the time and the
    gap do not fit 64 bits.

    Attributes:
        time: Position of a TIMESTAMP column.
        gap: In microseconds.
        partition: Positions of the columns that identify a partition; NULLs are equal.
    """

    time: int
    gap: int
    partition: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        width = len(self.input.schema)
        require(all(0 <= p < width for p in (self.time, *self.partition)), "session columns")
        require(self.gap > 0, "session gap")

    @property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`."""
        return self.input.schema + _WINDOW_BOUNDS


class StreamWindow(Unary, frozen=True, tag="stream_window"):
    """A CQL window over a stream that a query gives; means what `Window` means over a scan.

    Attributes:
        input: A stream: rows are only added to it.
        time: Position of the event time.
        kind: RANGE, ROWS or NOW.
    """

    time: int
    kind: WindowKind
    size: int | None = None
    slide: int | None = None
    partition: tuple[int, ...] = ()
    range: int | None = None

    def __post_init__(self) -> None:
        width = len(self.input.schema)
        require(all(0 <= p < width for p in (self.time, *self.partition)), "window columns")
        check_window(self.kind, self.size, self.slide, self.range)


class Younger(Binary, frozen=True, tag="younger"):
    """The rows of a longer window that a shorter one over the same source holds.

    Every site that sends rows sends the bounds of the shorter window there, too (`WindowBounds`).
    A row counts while its time is within the bounds of the site that has sent it; of a site whose
    bounds are not there none does. No clock of this site is asked.

    Attributes:
        left: The rows, as sites send them: a fragment of theirs, perhaps filtered. An engine runs
            it only so; elsewhere, as in estimates, it may be what the fragment computes.
        right: The bounds: another fragment of the same sites, likewise.
        time: Position of the event time in the rows.
        kind: Of the shorter window: RANGE or NOW.
        size: In microseconds, of RANGE.
        slide: In microseconds, of RANGE, or None.
    """

    time: int
    kind: WindowKind
    size: int | None = None
    slide: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.time < len(self.left.schema), "time of younger rows")
        require(self.right.schema == BOUNDS_COLUMNS, "bounds of a window")
        check_bounds(self.kind, self.size, self.slide)

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""
        return self.left.schema
