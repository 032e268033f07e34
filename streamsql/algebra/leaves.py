"""The leaves of plans: sources, other fragments, the relation being defined, constants, windows."""

import enum

import msgspec

from streamsql.algebra.expressions import Expression
from streamsql.algebra.past_times import KEPT_COLUMNS, History
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError


def require(condition: bool, message: str) -> None:
    """Refuse an ill-formed plan.

    Raises:
        InternalError: The condition does not hold.
    """
    if not condition:
        raise InternalError(message)


class SourceKind(enum.StrEnum):
    """Kinds of sources."""

    STREAM = "stream"
    LINK = "link"
    TABLE = "table"


class WindowKind(enum.StrEnum):
    """CQL windows."""

    RANGE = "RANGE"
    ROWS = "ROWS"
    NOW = "NOW"
    UNBOUNDED = "UNBOUNDED"


class ScanPart(enum.StrEnum):
    """Parts of a source that a scan may read.

    ROWS: its contents. LATE: the events that came after their time had passed, as a log. PROGRESS:
    one row per site with readings, (site, watermark): no accepted event will be older. There a ttl
    is for how long a site may be idle, by its clock, before its row names no site (NULL). Such a
    row holds back nobody; where there are no others, the greatest of them counts.
    EVENTS: every accepted event, as a log, with when and in which order it counts (see
    `EVENT_COLUMNS`).
    KEPT: the rows that the lake keeps of an interval of its history, withdrawals too, each with
    what the lake keeps of it (see `KEPT_COLUMNS`); only the static engine has these.

    Without a lateness PROGRESS and EVENTS go by the site's clock: an event counts at its event
    time, or at the clock of the step before if that, or an earlier event's, was later already.
    """

    ROWS = "rows"
    LATE = "late"
    PROGRESS = "progress"
    EVENTS = "events"
    KEPT = "kept"


PROGRESS_COLUMNS = Schema.of(("site", DataType.TEXT), ("watermark", DataType.TIMESTAMP))
EVENT_COLUMNS = Schema.of(
    ("instant", DataType.TIMESTAMP),
    ("sequence", DataType.INTEGER),
    ("withdrawn", DataType.BOOLEAN),
    ("event_time", DataType.TIMESTAMP),
)
"""What stands before the columns of a source in its EVENTS: when an event counts, which of its site
it is at that (0 where arrival says nothing), whether it is a withdrawal, and its event time."""


BOUNDS_COLUMNS = Schema.of(("after", DataType.TIMESTAMP), ("until", DataType.TIMESTAMP))
"""The bounds of a window by time: its rows have an event time after the first, and not after the
second where there is one (NULL: none)."""


class _Leaf(msgspec.Struct, frozen=True):
    """An operator without inputs."""

    @property
    def inputs(self) -> tuple[()]:
        """Nothing: a leaf."""
        return ()


class Scan(_Leaf, frozen=True, tag="scan"):
    """The current contents of a source or table.

    A keyed stream keeps the newest row per key (an older one that arrives late is ignored); a row
    leaves `ttl` microseconds after its event time. Without key and ttl a stream is the bag of all
    its rows.

    With a lateness every site keeps a watermark: the greatest event time it has ingested, less the
    lateness. What arrives with an older event time is late: it is no part of the contents. A
    withdrawal is judged in the same way.

    Attributes:
        columns: As declared.
        time_column: Position of the event time, or None when rows are stamped on arrival.
        ttl: Lifetime in microseconds, or None.
        key: Positions of the upsert key; empty for a bag.
        lateness: How far behind the newest event time one may be, in microseconds; None: no
            event is late.
        part: What of the source is read.
        units: Of the columns, "" for none; empty where no column has one. Values in another unit
            are of another source.
        history: The past that is read, of a source that the lake keeps; such a scan is of kind
            TABLE, whatever the source is. None: its present.
    """

    source: str
    kind: SourceKind
    columns: Schema
    key: tuple[int, ...] = ()
    time_column: int | None = None
    ttl: int | None = None
    lateness: int | None = None
    part: ScanPart = ScanPart.ROWS
    units: tuple[str, ...] = ()
    history: History | None = None

    def __post_init__(self) -> None:
        width = len(self.columns)
        named = self.key if self.time_column is None else (*self.key, self.time_column)
        require(all(0 <= position < width for position in named), "key or event time of a scan")

    @property
    def schema(self) -> Schema:
        """The declared columns, behind those of its part."""
        match self.part:
            case ScanPart.PROGRESS:
                return PROGRESS_COLUMNS
            case ScanPart.EVENTS:
                return EVENT_COLUMNS + self.columns
            case ScanPart.KEPT:
                return self.columns + KEPT_COLUMNS
            case _:
                return self.columns

    @property
    def is_log(self) -> bool:
        """Whether what arrives is passed on and not kept."""
        bag = self.kind == SourceKind.STREAM and not self.key and self.ttl is None
        logged = self.part in (ScanPart.LATE, ScanPart.EVENTS)
        return logged or (bag and self.part == ScanPart.ROWS)


class RemoteSource(_Leaf, frozen=True, tag="remote"):
    """Rows from another fragment."""

    fragment: str
    columns: Schema

    @property
    def schema(self) -> Schema:
        """The other fragment's output columns."""
        return self.columns


class RecursiveReference(_Leaf, frozen=True, tag="recursive"):
    """The relation that the enclosing fixpoint defines."""

    name: str
    columns: Schema

    @property
    def schema(self) -> Schema:
        """The recursive relation's columns."""
        return self.columns


class Values(_Leaf, frozen=True, tag="values"):
    """Constant rows."""

    rows: tuple[tuple[bool | int | float | str | None, ...], ...]
    columns: Schema

    @property
    def schema(self) -> Schema:
        """The rows' columns."""
        return self.columns


def check_window(kind: WindowKind, size: int | None, slide: int | None, within: int | None) -> None:
    """Refuse sizes of a CQL window that make no sense.

    Raises:
        InternalError: A size is missing or not positive, or the kind has none.
    """
    require(within is None or (within > 0 and kind == WindowKind.ROWS), "range")
    sized = kind in (WindowKind.RANGE, WindowKind.ROWS)
    require(sized == (size is not None and size > 0), "window size")
    require(slide is None or slide > 0, "window slide")


class Window(msgspec.Struct, frozen=True, tag="window"):
    """The part of a source that a CQL window holds at time `now`.

    RANGE: event time > now - size (with slide: now rounded down to a multiple of the slide).
    ROWS: the last `size` rows by event time, ties by row value; per partition if there is one. With
    `range` those of them with event time > now - range.
    NOW: the rows of the current second of event time.
    UNBOUNDED: all rows so far; the source's own ttl still holds.

    Windows stand directly on scans only, never on derived relations.
    """

    input: Scan
    kind: WindowKind
    size: int | None = None
    slide: int | None = None
    partition: tuple[int, ...] = ()
    range: int | None = None

    def __post_init__(self) -> None:
        check_window(self.kind, self.size, self.slide, self.range)

    @property
    def schema(self) -> Schema:
        """The source's columns."""
        return self.input.schema

    @property
    def inputs(self) -> tuple[Scan]:
        """The scan."""
        return (self.input,)


class WindowBounds(msgspec.Struct, frozen=True, tag="window_bounds"):
    """The bounds of a window by time at a site: one row that says which event times it holds.

    Of the rows of the source that satisfy `predicate`, these bounds hold exactly those that the
    window holds now. They change only when such a row enters or leaves the window by time, or comes
    when its time is over: so between two changes of them no clock is needed to tell which rows are
    in. Whoever evaluates from scratch may as well take the bounds of now.

    Attributes:
        input: A source whose rows are kept, or a log.
        kind: RANGE or NOW.
        size: In microseconds, of RANGE.
        slide: In microseconds, of RANGE, or None.
        predicate: Over the source's columns; None: all rows.
    """

    input: Scan
    kind: WindowKind
    size: int | None = None
    slide: int | None = None
    predicate: Expression | None = None

    def __post_init__(self) -> None:
        check_bounds(self.kind, self.size, self.slide)

    @property
    def schema(self) -> Schema:
        """The bounds; see `BOUNDS_COLUMNS`."""
        return BOUNDS_COLUMNS

    @property
    def inputs(self) -> tuple[Scan]:
        """The scan."""
        return (self.input,)


def check_bounds(kind: WindowKind, size: int | None, slide: int | None) -> None:
    """Refuse a window that is not by time, or sizes that make no sense.

    Raises:
        InternalError: It is one.
    """
    require(kind in (WindowKind.RANGE, WindowKind.NOW), "bounds of a window by time")
    check_window(kind, size, slide, None)
