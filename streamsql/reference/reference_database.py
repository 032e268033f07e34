"""The history of all sources, and what each contains at a time."""

from dataclasses import dataclass, field

from streamsql.algebra.operators import (
    Scan,
    ScanPart,
    StreamWindow,
    Window,
    WindowBounds,
    WindowKind,
)
from streamsql.algebra.past_times import History
from streamsql.data.delta import sort_key
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row

TimedRow = tuple[int, Row]
_BEGINNING = -(2**62)


class Database:
    """All events of all sources in order of arrival, by the site that ingested them.

    What is appended together happens at one moment.

    Examples:
        >>> database = Database()
        >>> database.append("s", [SourceEvent(("a",), ts=1)])
        >>> len(database.events("s"))
        1
    """

    def __init__(self, known_to: int | None = None) -> None:
        """Begin without events.

        Args:
            known_to: All events that count up to this instant will be here; None: not known.
        """
        self.known_to = known_to
        self._events: dict[str, list[tuple[str, SourceEvent]]] = {}
        self._clocks: dict[str, list[int]] = {}
        self._appends: list[tuple[str, list[SourceEvent], str, int]] = []

    def append(
        self, source: str, events: list[SourceEvent], site: str = "", clock: int = _BEGINNING
    ) -> None:
        """Record events of a source that a site has ingested.

        Args:
            source: Its name.
            events: In order of arrival.
            site: Which has ingested them.
            clock: The site's clock before, which only sources without a watermark look at.
        """
        self._events.setdefault(source, []).extend((site, event) for event in events)
        self._clocks.setdefault(source, []).extend([clock] * len(events))
        self._appends.append((source, events, site, clock))

    def clocks(self, source: str) -> list[int]:
        """Return the clock before each event, in order of arrival."""
        return self._clocks.get(source, [])

    @property
    def appends(self) -> int:
        """How many moments there were."""
        return len(self._appends)

    def upto(self, count: int) -> "Database":
        """Return the database after its first moments."""
        result = Database(self.known_to)
        for append in self._appends[:count]:
            result.append(*append)
        return result

    def events(self, source: str) -> list[SourceEvent]:
        """Return a source's events in order of arrival."""
        return [event for _site, event in self._events.get(source, [])]

    def sited(self, source: str) -> list[tuple[str, SourceEvent]]:
        """Return a source's events in order of arrival, each with the site that ingested it."""
        return list(self._events.get(source, []))

    def judged(self, scan: Scan) -> "Judged":
        """Return which events of a scan's source count, and which came too late."""
        judged = Judged()
        for site, event in self._events.get(scan.source, []):
            watermark = judged.watermarks.get(site)
            if scan.lateness is not None and watermark is not None and event.ts < watermark:
                judged.late.append(event)
                continue
            judged.accepted.append(event)
            reached = event.ts - (scan.lateness or 0)
            judged.watermarks[site] = reached if watermark is None else max(watermark, reached)
        return judged


@dataclass(slots=True)
class Judged:
    """The events of a source after the watermark of every site has judged them.

    Attributes:
        accepted: In order of arrival.
        late: Likewise.
        watermarks: By site that has ingested an event.
    """

    accepted: list[SourceEvent] = field(default_factory=list)
    late: list[SourceEvent] = field(default_factory=list)
    watermarks: dict[str, int] = field(default_factory=dict)


def contents(scan: Scan, database: Database, now: int) -> list[TimedRow]:
    """Return the rows a scan gives at time `now`, with their event times.

    A scan of the past counts its times from `now`, where they move with the start of the query.
    Keyed: the newest row per key. A row with a ttl is there while ts + ttl > now.
    """
    if scan.history is not None:
        return _past(scan, scan.history, database, now)
    judged = database.judged(scan)
    if scan.part == ScanPart.EVENTS:
        return _counted(scan, judged.accepted, database)
    if scan.part == ScanPart.PROGRESS and scan.lateness is None:
        return [(now, ("", now))]  # of a site's clock there is one here
    if scan.part == ScanPart.PROGRESS:
        return [(mark, (site, mark)) for site, mark in judged.watermarks.items()]
    if scan.part == ScanPart.LATE:
        return [(event.ts, event.row) for event in judged.late if not event.delete]
    rows = _newest_per_key(scan, judged.accepted) if scan.key else _bag(judged.accepted)
    if scan.ttl is None:
        return rows
    return [(ts, row) for ts, row in rows if ts + scan.ttl > now]


def _past(scan: Scan, history: History, database: Database, now: int) -> list[TimedRow]:
    """Return what a scan reads of the past; sites withdraw only what they have sent themselves."""
    since, until = history.interval(now)
    kept = [
        (number, site, event)
        for number, (site, event) in enumerate(database.sited(scan.source))
        if (since is None or event.ts >= since) and (until is None or event.ts < until)
    ]
    if scan.part == ScanPart.KEPT:
        return [
            (e.ts, (*e.row, site, 0, number, 0, e.ts, e.delete, number)) for number, site, e in kept
        ]
    if not history.is_as_of:
        return [(event.ts, event.row) for _, _, event in kept if not event.delete]
    of_sites: dict[str, list[SourceEvent]] = {}
    for _, site, event in kept:
        of_sites.setdefault(site, []).append(event)
    order = {id(event): number for number, _, event in kept}
    if scan.key:
        left = [event for events in of_sites.values() for event in _surviving(scan, events)]
        newest = _newest_per_key(scan, sorted(left, key=lambda event: order[id(event)]))
    else:
        newest = [timed for events in of_sites.values() for timed in _bag(events)]
    instant = history.instant(now)
    return [(ts, row) for ts, row in newest if scan.ttl is None or ts + scan.ttl > instant]


def _surviving(scan: Scan, events: list[SourceEvent]) -> list[SourceEvent]:
    """Return the events of a site behind the last withdrawal of their key."""
    left: list[SourceEvent] = []
    for event in events:
        if event.delete:
            key = [event.row[position] for position in scan.key]
            left = [e for e in left if [e.row[position] for position in scan.key] != key]
        else:
            left.append(event)
    return left


def _counted(scan: Scan, events: list[SourceEvent], database: Database) -> list[TimedRow]:
    """Return when and in which order each event counts, behind it its time and its row."""
    if scan.lateness is not None:
        return [(e.ts, (e.ts, 0, e.delete, e.ts, *e.row)) for e in events]
    rows: list[TimedRow] = []
    instant = _BEGINNING
    for number, (clock, event) in enumerate(
        zip(database.clocks(scan.source), events, strict=True), start=1
    ):
        instant = max(instant, clock, event.ts)
        rows.append((instant, (instant, number, event.delete, event.ts, *event.row)))
    return rows


def _newest_per_key(scan: Scan, events: list[SourceEvent]) -> list[TimedRow]:
    newest: dict[Row, TimedRow] = {}
    for event in events:
        key = tuple(event.row[position] for position in scan.key)
        if event.delete:
            newest.pop(key, None)
        elif key not in newest or event.ts >= newest[key][0]:
            newest[key] = (event.ts, event.row)
    return list(newest.values())


def _bag(events: list[SourceEvent]) -> list[TimedRow]:
    """Withdrawals take away the copy of their event time, else the oldest."""
    rows: list[TimedRow] = []
    for event in events:
        if event.delete:
            copies = [timed for timed in rows if timed[1] == event.row]
            if copies:
                named = (event.ts, event.row)
                rows.remove(named if named in copies else min(copies))
        else:
            rows.append((event.ts, event.row))
    return rows


def windowed(window: Window, database: Database, now: int) -> list[Row]:
    """Return the rows a window holds at time `now`."""
    rows = contents(window.input, database, now)
    past = window.input.history
    return in_window(window, rows, now if past is None else past.instant(now))


def in_window(window: Window | StreamWindow, rows: list[TimedRow], now: int) -> list[Row]:
    """Return those of some rows that a window over them holds at time `now`."""
    match window.kind:
        case WindowKind.UNBOUNDED:
            return [row for _, row in rows]
        case WindowKind.NOW:
            second = now // MICROSECONDS
            return [row for ts, row in rows if ts // MICROSECONDS == second]
        case WindowKind.RANGE:
            return _in_range(window, rows, now)
        case WindowKind.ROWS:
            kept = _last_rows(window, rows)
            since = None if window.range is None else now - window.range
            return [row for ts, row in kept if since is None or ts > since]


def _in_range(window: Window | StreamWindow, rows: list[TimedRow], now: int) -> list[Row]:
    size = window.size or 0
    if window.slide is None:
        return [row for ts, row in rows if ts > now - size]
    boundary = now // window.slide * window.slide
    return [row for ts, row in rows if boundary - size < ts <= boundary]


def _last_rows(window: Window | StreamWindow, rows: list[TimedRow]) -> list[TimedRow]:
    partitions: dict[Row, list[TimedRow]] = {}
    for ts, row in rows:
        key = tuple(row[position] for position in window.partition)
        partitions.setdefault(key, []).append((ts, row))
    size = window.size or 0
    kept: list[TimedRow] = []
    for members in partitions.values():
        members.sort(key=_time_then_row)
        kept.extend(members[-size:])
    return kept


def _time_then_row(timed: TimedRow) -> tuple[int, object]:
    return (timed[0], sort_key(timed[1]))


def bounds_at(window: WindowBounds, now: int) -> Row:
    """Return after which event time a window holds rows at time `now`, and until which if any."""
    if window.kind == WindowKind.NOW:
        second = now // MICROSECONDS * MICROSECONDS
        return (second - 1, second + MICROSECONDS - 1)
    size = window.size or 0
    if window.slide is None:
        return (now - size, None)
    boundary = now // window.slide * window.slide
    return (boundary - size, boundary)
