"""The events of a source as rows, for queries that go through them instant by instant."""

from stream_engine.state.source_relation import SourceRelation, TimedDelta
from stream_engine.state.watermark import Judged
from streamsql.algebra.operators import Scan, ScanPart
from streamsql.data.types import MICROSECONDS

_BEGINNING = -(2**62)


def source_relation(scan: Scan) -> SourceRelation:
    """Return the empty relation of a scan at one site."""
    if scan.part == ScanPart.EVENTS:
        return EventLog(scan)
    if scan.part == ScanPart.PROGRESS and scan.lateness is None:
        return ClockProgress(scan)
    return SourceRelation(scan)


def as_events(rows: TimedDelta) -> TimedDelta:
    """Return the rows of a source as events, each at its own time."""
    return {(ts, (ts, 0, False, ts, *row)): weight for (ts, row), weight in rows.items()}


class EventLog(SourceRelation):
    """Every event that counts, with when it does (`streamsql.algebra.leaves.EVENT_COLUMNS`).

    With a watermark an event counts at its event time, and events of one time in the order of
    their values, so that arrival says nothing. Without one it counts when it is handed in: at its
    event time, but not before the clock of the last step, nor before the event before it; and
    events of one instant in the order of arrival.

    State: three numbers. Work: O(1) an event.
    """

    __slots__ = ("_clock", "_number", "_reached")

    def __init__(self, scan: Scan) -> None:
        super().__init__(scan)
        self._clock = _BEGINNING
        self._reached = _BEGINNING
        self._number = 0

    def not_before(self, now: int) -> None:
        """Let nothing count before a time that the site may have reported as reached."""
        self._clock = max(self._clock, now)

    def take(self, judged: Judged, site: str, now: int) -> TimedDelta:  # noqa: ARG002
        """Return the events that a watermark has let pass."""
        delta: TimedDelta = {}
        ordered = self.scan.lateness is None
        for event in judged.accepted:
            ts = instant = event.ts
            if ordered:
                instant = self._reached = max(ts, self._reached, self._clock)
                self._number += 1
            row = (instant, self._number, event.delete, ts, *event.row)
            timed = (instant, row)
            delta[timed] = delta.get(timed, 0) + 1
        self._clock = now
        return delta


class ClockProgress(SourceRelation):
    """The progress of a source without a watermark: the site's clock.

    Events count at the clock of the last step or later (`EventLog`), so instants before it are
    over. It moves when it is polled: in steps with events of a source that a query reads with it,
    right after one with events of its own, to end their instant, and every second.
    State: one row. Work: O(1) a poll.
    """

    __slots__ = ("_clock", "_heard")

    def __init__(self, scan: Scan) -> None:
        super().__init__(scan)
        self.follows_clock = True
        self._clock: int | None = None
        self._heard = False

    def take(self, judged: Judged, site: str, now: int) -> TimedDelta:
        """Move the site's row to its clock."""
        self._heard = bool(judged.accepted)
        self._clock = now
        delta: TimedDelta = {}
        old = self._keyed.get((site,))
        new = (now, (site, now))
        if old != new:
            delta[new] = 1
            if old is not None:
                delta[old] = -1
            self._keyed[(site,)] = new
        return delta

    def next_expiry(self) -> int | None:
        """Return when to poll the clock again."""
        if self._clock is None:
            return None
        if self._heard:
            return self._clock + 1
        return (self._clock // MICROSECONDS + 1) * MICROSECONDS
