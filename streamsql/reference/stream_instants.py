"""Evaluation instant by instant: ISTREAM, DSTREAM and RSTREAM, and windows that close."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from streamsql.algebra.operators import (
    OnClose,
    Plan,
    Scan,
    SourceKind,
    StreamKind,
    StreamWindow,
    ToStream,
    Window,
    WindowKind,
    walk_plan,
    walk_relation,
)
from streamsql.data.delta import Delta, difference, expand, sort_key
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from streamsql.reference.reference_database import Database

Evaluate = Callable[[Plan, Database, int], Delta]

TABLE_TIME = 0
"""The event time of every row of a stored table."""


def stream_rows(
    plan: ToStream,
    feeds: list[list[Row]],
    final: int | None,
    evaluate: Evaluate,
) -> list[Row]:
    """Return the rows of a stream up to an instant.

    Args:
        plan: The operator.
        feeds: Per scan of the query its EVENTS, or a table's rows.
        final: The first instant that is not final; None: none is.
        evaluate: Returns a plan's relation over a database at a time.
    """
    result: list[Row] = []
    for instant, before, after in changes(plan, feeds, final, evaluate):
        shown = _shown(plan.kind, before, after)
        result.extend((*row, instant) for row in expand(shown))
    return result


def _shown(kind: StreamKind, before: Delta, after: Delta) -> Delta:
    match kind:
        case StreamKind.ISTREAM:
            return _positive(difference(after, before))
        case StreamKind.DSTREAM:
            return _positive(difference(before, after))
        case StreamKind.RSTREAM:
            return after


def changes(
    plan: ToStream, feeds: list[list[Row]], final: int | None, evaluate: Evaluate
) -> Iterator[tuple[int, Delta, Delta]]:
    """Yield each instant at which the relation changes, with the relation before and at it."""
    relations = databases(plan, feeds, final)
    _never, database, time = next(relations)
    before = evaluate(plan.query, database, time)
    for instant, database, time in relations:
        after = evaluate(plan.query, database, time)
        if after != before:
            yield instant, before, after
        before = after


def first_open(progress: list[list[Row]], database: Database) -> int | None:
    """Return the first instant that is not final, or None: none is.

    Args:
        progress: Per stream (site, watermark) of every site.
        database: Where all is known up to an instant, watermarks say nothing.
    """
    if database.known_to is not None:
        return database.known_to + 1
    marks: list[list[Any]] = [[row[1] for row in rows] for rows in progress]
    return min(map(min, marks)) if marks and all(marks) else None


def databases(
    plan: ToStream, feeds: list[list[Row]], final: int | None
) -> Iterator[tuple[int, Database, int]]:
    """Yield the instants at which the relation may change, with the events known by then.

    The first one is before all events.
    """
    events: list[tuple[Scan, list[Row]]] = []
    tables: list[tuple[str, list[SourceEvent]]] = []
    for scan, rows in zip(plan.scans, feeds, strict=True):
        if scan.kind == SourceKind.TABLE:
            tables.append((scan.source, [SourceEvent(row, TABLE_TIME) for row in rows]))
        else:
            events.append((scan, sorted(rows, key=sort_key)))
    instants = _instants(plan, events, final)
    for instant in [min(instants, default=0) - 1, *instants]:
        database = Database(known_to=instant)
        for source, stored in tables:
            database.append(source, stored)
        for scan, rows in events:
            for row in rows:
                _append(database, scan, row, instant)
        yield instant, database, instant


def _append(database: Database, scan: Scan, row: Row, until: int) -> None:
    at, _sequence, withdrawn, ts, *values = row
    if not isinstance(at, int) or not isinstance(ts, int) or at > until:
        return
    event = SourceEvent(tuple(values), ts, delete=bool(withdrawn))
    database.append(scan.source, [event], clock=at)


def _instants(plan: ToStream, events: list[tuple[Scan, list[Row]]], final: int | None) -> list[int]:
    """Return the instants before `final` at which the relation may change, in order.

    They begin with the first event: windows over tables, too, move from then on.
    """
    times: list[tuple[Any, Any]] = [(row[0], row[3]) for _scan, rows in events for row in rows]
    if not times or final is None:
        return []
    first = min(instant for instant, _ts in times)
    found = {TABLE_TIME, *(time for pair in times for time in pair)}
    nodes = list(walk_relation(plan.query))
    moves = [move for node in nodes for move in _moves(node)]
    depth = 1 + sum(isinstance(node, StreamWindow) for node in nodes)
    for _ in range(depth):
        found |= {move(instant) for move in moves for instant in found}
    return sorted(instant for instant in found if first <= instant < final)


def _moves(node: Plan) -> list[Callable[[int], int]]:
    """Return when a node may change after an event at a time: its own instant is among them."""
    match node:
        case Scan(ttl=int(ttl)):
            return [lambda ts: ts + ttl]
        case Window() | StreamWindow():
            return _window_moves(node)
        case _:
            return []


def _window_moves(node: Window | StreamWindow) -> list[Callable[[int], int]]:
    size, slide, within = node.size or 0, node.slide, node.range
    match node.kind:
        case WindowKind.RANGE if slide is not None:
            return [
                lambda ts: -(-ts // slide) * slide,
                lambda ts: -(-(ts + size) // slide) * slide,
            ]
        case WindowKind.RANGE:
            return [lambda ts: ts + size]
        case WindowKind.NOW:
            return [lambda ts: (ts // MICROSECONDS + 1) * MICROSECONDS]
        case WindowKind.ROWS if within is not None:
            return [lambda ts: ts + within]
        case _:
            return []


def _positive(delta: Delta) -> Delta:
    return {row: weight for row, weight in delta.items() if weight > 0}


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
