"""When windows closed: EMIT ON WINDOW CLOSE gives what they held at that moment, for good."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from streamsql.algebra.operators import OnClose, Scan, SourceKind, walk_plan
from streamsql.data.types import Row
from streamsql.reference.database import Database


@dataclass(frozen=True, slots=True)
class Closing:
    """A moment at which windows closed: those that end after `after`, up to `upto`.

    Attributes:
        database: What had happened by then.
        after: The watermark before, None at first.
        upto: The watermark then.
    """

    database: Database
    after: int | None
    upto: int

    def rows(self, end: int, rows: list[Row]) -> list[Row]:
        """Return the rows whose window, by the column at `end`, closed then.

        Examples:
            >>> Closing(Database(), 4, 5).rows(0, [(4,), (5,), (6,), (None,)])
            [(5,)]
        """
        ends: list[tuple[Any, Row]] = [(row[end], row) for row in rows]
        return [
            row
            for time, row in ends
            if time is not None and time <= self.upto and (self.after is None or time > self.after)
        ]


def closings(
    plan: OnClose, database: Database, progress: Callable[[Database], list[Row]]
) -> Iterator[Closing]:
    """Yield the moments at which windows closed, in order; every append to the database is one.

    The least watermark of all sites closes windows, and what has closed stays so. Without stored
    tables the last moment stands for all: accepted events are never older than the watermark.

    Args:
        plan: Of the query.
        database: Everything that happened.
        progress: Returns (site, watermark) rows as of a database.
    """
    moments: Iterator[Database] = iter((database,))
    if any(isinstance(n, Scan) and n.kind == SourceKind.TABLE for n in walk_plan(plan)):
        moments = (database.upto(count) for count in range(1, database.appends + 1))
    closed: int | None = None
    for moment in moments:
        marks: list[Any] = [watermark for _site, watermark in progress(moment)]
        least = min(marks, default=None)
        if least is not None and (closed is None or least > closed):
            yield Closing(moment, closed, least)
            closed = least
