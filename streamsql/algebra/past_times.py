"""The past that a scan reads: FOR SYSTEM_TIME, asked by event time."""

import enum

import msgspec

from streamsql.data.durations import duration_text
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, timestamp_text


class HistoryKind(enum.StrEnum):
    """Forms of FOR SYSTEM_TIME.

    BETWEEN: the bag of all readings with an event time in an interval; withdrawals take none away.
    AS_OF: the contents of the source at a time, as it would show them with a clock that shows it
    and with every reading up to it there; late readings count.
    VERSION: the rows that a managed table had at a time, by when they were written.
    """

    BETWEEN = "between"
    AS_OF = "as_of"
    VERSION = "version"


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """A time: microseconds since 1970 UTC, or since the moment at which the query started.

    Examples:
        >>> Moment(5).at(100), Moment(-5, from_start=True).at(100)
        (5, 95)
    """

    micros: int
    from_start: bool = False

    def at(self, start: int) -> int:
        """Return the time of a query that started then, in microseconds since 1970 UTC."""
        return self.micros + start if self.from_start else self.micros

    def __str__(self) -> str:
        """Return it as it is written."""
        if not self.from_start:
            return f"TIMESTAMP '{timestamp_text(self.micros)}'"
        if not self.micros:
            return "NOW"
        sign = "-" if self.micros < 0 else "+"
        return f"NOW {sign} {duration_text(abs(self.micros))}"


class History(msgspec.Struct, frozen=True):
    """The interval or the time of a FOR SYSTEM_TIME.

    Attributes:
        since: The first time; None: from the beginning. AS OF has none.
        until: The last time, or the time AS OF which it is; None: no end.
        is_closed: Whether `until` itself counts: not in `FROM a TO b`.
    """

    kind: HistoryKind
    since: Moment | None = None
    until: Moment | None = None
    is_closed: bool = True

    @property
    def is_as_of(self) -> bool:
        """Whether it is the contents at one time."""
        return self.kind != HistoryKind.BETWEEN

    @property
    def follows_start(self) -> bool:
        """Whether it depends on when the query started."""
        return any(moment.from_start for moment in (self.since, self.until) if moment is not None)

    def instant(self, start: int) -> int:
        """Return the last microsecond that counts, for a query that started then."""
        if self.until is None:
            return start
        return self.until.at(start) - (not self.is_closed)

    def interval(self, start: int) -> tuple[int | None, int | None]:
        """Return the first event time and the one behind the last; None: no bound."""
        since = None if self.since is None else self.since.at(start)
        until = None if self.until is None else self.instant(start) + 1
        return since, until

    def fixed(self, start: int) -> "History":
        """Return the history for a query that started then, with times that move no more."""
        since = None if self.since is None else Moment(self.since.at(start))
        until = None if self.until is None else Moment(self.until.at(start))
        return History(self.kind, since, until, self.is_closed)

    def __str__(self) -> str:
        """Return it as it is written behind FOR SYSTEM_TIME."""
        if self.is_as_of:
            return f"AS OF {self.until}"
        if self.since is None or self.until is None:
            return "ALL" if self.until is None else f"UP TO {self.until}"
        first, between = ("BETWEEN", "AND") if self.is_closed else ("FROM", "TO")
        return f"{first} {self.since} {between} {self.until}"


KEPT_COLUMNS = Schema.of(
    ("_gateway", DataType.TEXT),
    ("_epoch", DataType.INTEGER),
    ("_seq", DataType.INTEGER),
    ("_place", DataType.INTEGER),
    ("_event_time", DataType.TIMESTAMP),
    ("_withdrawn", DataType.BOOLEAN),
    ("_arrived", DataType.TIMESTAMP),
)
"""Columns that the lake adds to a row: the gateway that sent it, the epoch and number of its pack,
its place there; its event time; whether it is a withdrawal; when it came to the lake."""
