"""The sources of a site: their rows, their watermarks, and the events that wait for a step."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from stream_engine.site.changed_sources import carried_over, conversion, present
from stream_engine.site.column_counts import ColumnCounts
from stream_engine.state.clock_sources import ClockSources
from stream_engine.state.event_log import as_events, source_relation
from stream_engine.state.source_relation import (
    SourceChanges,
    SourceRelation,
    TimedDelta,
    without_times,
)
from stream_engine.state.wakeups import Wakeups
from stream_engine.state.watermark import Judged, Run, Watermark, site_of
from streamsql.algebra.operators import Scan, ScanPart
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import DeploymentError
from streamsql.wire.source_shapes import (
    DIFFERENCE_CODE,
    DIFFERENCE_HINT,
    differences,
    shape_of,
)

MAX_PENDING_EVENTS = 1_000_000
"""Max events pending for a step; more means that no host steps the site."""


class SiteSources:
    """The sources that are declared at a site or read by a query, by name.

    Attributes:
        declared: Sources that are kept whether a query reads them or not.
        defined: Sources as they are defined now: queries that read them otherwise are refused.
        relations: Their rows, by name and scan.
        watermarks: By name and lateness.
        taken: Number of ingested events.
        changed: Number of rows that came or went, of declared sources.
        columns: What is in the columns of declared sources.
        pending: Number of events pending for a step.
        clocks: Callers report to it what queries read.
        now: Time of the last step.
        heard: When each origin last had readings.
        tell_time: Whether all clocks move in the next step.
    """

    def __init__(self, site: str) -> None:
        self.declared: dict[str, Scan] = {}
        self.defined: dict[str, Scan] = {}
        self.relations: dict[str, dict[Scan, SourceRelation]] = {}
        self.watermarks: dict[str, dict[int | None, Watermark]] = {}
        self.taken: dict[str, int] = {}
        self.changed: dict[str, int] = {}
        self.columns = ColumnCounts()
        self.pending = 0
        self.clocks = ClockSources()
        self.now = 0
        self.heard: dict[str, dict[str, int]] = {}
        self.tell_time = False
        self._gone: dict[str, dict[str, bool]] = {}  # by name and origin: whether for good
        self._events: dict[str, list[tuple[str, list[SourceEvent]]]] = {}
        self._expiring: set[str] = set()  # sources whose rows may go by themselves
        self._expiries: Wakeups[str] = Wakeups()
        self._site = site
        self._units_unknown: dict[str, Scan] = {}  # declared with units, which a snapshot left out

    def take_units_as_declared(self) -> None:
        """Expect rows that an earlier version has saved without their units.

        They are in the units of the present definition, if the two differ in nothing else.
        """
        self._units_unknown = {name: scan for name, scan in self.declared.items() if scan.units}

    def declare(self, scan: Scan, now: int) -> None:
        """Keep a source's rows from now on; the last definition of a source counts.

        See `changed_sources` for the rows and the pending events of the one before.
        """
        before = self.declared.get(scan.source)
        self.defined[scan.source] = self.declared[scan.source] = scan
        is_new = scan not in self.relations.get(scan.source, {})
        relation = self.relation(scan, now)
        if before is None or before == scan:
            return
        meant = before
        if self._units_unknown.get(scan.source) == scan and before == replace(scan, units=()):
            meant = self._units_unknown.pop(scan.source)
        if (meant.columns, meant.units) != (scan.columns, scan.units):
            convert = conversion(meant, scan)
            for _origin, events in self._events.get(scan.source, ()):
                self.pending -= len(events)
                events[:] = present(map(convert, events))
                self.pending += len(events)
        if is_new:
            rows = self.relations[scan.source][before].snapshot()
            relation.apply(carried_over(meant, scan, rows), now)
            self._know(scan.source)

    def undeclare(self, source: str) -> Scan | None:
        """Keep a source's rows no more, but for queries that read them; return what was declared.

        They read no new ones: its pending events are dropped.
        """
        self.defined.pop(source, None)
        declared = self.declared.pop(source, None)
        if declared is not None:
            self.pending -= sum(len(events) for _origin, events in self._events.pop(source, ()))
            self.columns.forget(source)
        return declared

    def check_columns(self, scan: Scan) -> None:
        """Refuse a source that is declared with other columns than it is read with.

        Raises:
            DeploymentError: It is; says how.
        """
        defined = self.defined.get(scan.source)
        difference = "" if defined is None else differences(shape_of(scan), shape_of(defined))
        if difference:
            raise DeploymentError(
                f"source {scan.source} is defined differently at site {self._site} than in "
                f"the catalog: {difference}",
                hint=DIFFERENCE_HINT,
                code=DIFFERENCE_CODE,
            )

    def relation(self, scan: Scan, now: int) -> SourceRelation:
        """Return the rows of a scan, which are kept from now on."""
        relations = self.relations.setdefault(scan.source, {})
        if scan not in relations:
            relation = relations[scan] = source_relation(scan)
            marks = self.watermarks.setdefault(scan.source, {})
            mark = marks.setdefault(scan.lateness, Watermark(scan.lateness))
            if scan.part == ScanPart.PROGRESS and scan.lateness is not None:
                heard = self.heard.get(scan.source, {})
                relation.begin(mark.so_far().reached, heard, self._site, now)
            else:
                relation.take(mark.so_far(), self._site, now)  # the progress so far
            self._know(scan.source)
        return relations[scan]

    def ingest(self, source: str, events: Sequence[SourceEvent], origin: str) -> None:
        """Make events pending for the next step; raises as `SiteEngine.ingest`."""
        relations = self.relations.get(source)
        if relations is None:
            raise DeploymentError(
                f"source {source!r} is not declared at site {self._site}",
                hint="declare it, or install a query that reads it, before sending readings",
            )
        width = len(next(iter(relations)).columns)
        for event in events:
            if len(event.row) != width:
                raise DeploymentError(
                    f"source {source}: a row has {len(event.row)} columns instead of {width}"
                )
        if self.pending + len(events) > MAX_PENDING_EVENTS:
            raise DeploymentError(
                f"{self.pending} events wait for a step of site {self._site}",
                hint="step the site more often, or send it fewer readings",
            )
        gone = self._gone.get(source)
        if gone is not None and events:
            gone.pop(origin, None)  # it is back
        self.pending += len(events)
        self.taken[source] = self.taken.get(source, 0) + len(events)
        runs = self._events.setdefault(source, [])
        if runs and runs[-1][0] == origin:
            runs[-1][1].extend(events)
        else:
            runs.append((origin, list(events)))

    @property
    def has_news(self) -> bool:
        """Whether input is pending for the next step."""
        return bool(self.pending or self._gone or self.tell_time)

    def origins(self) -> set[str]:
        """Return the sites whose readings have been read here, in any incarnation."""
        return {site_of(origin) for heard in self.heard.values() for origin in heard if origin}

    def lose(self, site: str, *, for_good: bool) -> None:
        """Stop waiting for a site's readings in the next step; `for_good` drops its marks too."""
        for source in self.relations:
            waiting = (origin for origin, _events in self._events.get(source, ()))
            for origin in {*self.heard.get(source, ()), *waiting}:
                if origin and site_of(origin) == site:
                    gone = self._gone.setdefault(source, {})
                    gone[origin] = for_good or gone.get(origin, False)

    def advance(self, now: int) -> SourceChanges:
        """Apply the waiting events and the passage of time.

        Work: that of the sources that have events, or rows whose time is over, and of those whose
        clock has to move with them.

        Args:
            now: Microseconds since 1970 UTC.
        """
        deltas: dict[Scan, TimedDelta] = {}
        oldest: dict[Scan, int] = {}
        for source in self._due(now):
            self._take(source, now, deltas, oldest)
        self._events = {}
        self._gone = {}
        self.tell_time = False
        self.pending = 0
        self.now = now

        def current(scan: Scan) -> TimedDelta:
            relations = self.relations[scan.source]
            if scan.part == ScanPart.EVENTS:
                declared = relations.get(self.declared.get(scan.source, scan))
                if declared is not None and not declared.is_log:
                    return as_events(declared.snapshot())
            relation = relations[scan]
            return deltas.get(scan, {}) if relation.is_log else relation.snapshot()

        return SourceChanges(deltas, oldest, current)

    def next_expiry(self) -> int | None:
        """Return when the first row's time is over, or None."""
        return self._expiries.earliest

    def restored(self) -> None:
        """Look at every source again, after its relations were filled from outside."""
        for source in self._expiring:
            self._look_at(source)

    def _due(self, now: int) -> Iterable[str]:
        """Return the sources that a step at this time may change."""
        due = [*self._gone, *self._expiries.take_due(now)]
        if self.tell_time:
            due += self.clocks.all()
        if self.clocks:
            return self.clocks.with_clocks((*self._events, *due))
        return dict.fromkeys((*self._events, *due)) if due else self._events

    def _take(
        self, source: str, now: int, deltas: dict[Scan, TimedDelta], oldest: dict[Scan, int]
    ) -> None:
        """Apply a source's pending events, and the passage of time, to its relations."""
        runs, gone = self._events.get(source, ()), self._gone.get(source)
        judged: dict[int | None, Judged] = {}
        first: int | None = None
        for scan, relation in self.relations[source].items():
            if runs:
                relation.not_before(self.now)
            elif not (relation.follows_clock or gone):
                expiry = relation.next_expiry()
                if expiry is None or expiry > now:
                    continue
            if not judged:
                judged = self._judge(source, runs, gone)
            delta = relation.take(judged[scan.lateness], self._site, now)
            if delta:
                deltas[scan] = delta
                if scan == self.declared.get(source):
                    self.changed[source] = self.changed.get(source, 0) + len(delta)
                    self.columns.note(scan, delta)
                if runs:
                    oldest[scan] = first = _oldest(runs) if first is None else first
        if source in self._expiring:
            self._look_at(source)
        for origin, events in runs:
            if events:
                self.heard.setdefault(source, {})[origin] = now
        for origin in (origin for origin, for_good in (gone or {}).items() if for_good):
            self.heard.get(source, {}).pop(origin, None)

    def _judge(
        self, source: str, runs: Sequence[Run], gone: Mapping[str, bool] | None
    ) -> dict[int | None, Judged]:
        """Return what each watermark accepts, and the origins given up after their readings."""
        marks = self.watermarks[source]
        judged = {lateness: mark.judge(runs) for lateness, mark in marks.items()}
        if gone:
            for lateness, mark in marks.items():
                judged[lateness].gone = tuple(gone)
                for origin in (origin for origin, for_good in gone.items() if for_good):
                    mark.forget(origin)
        return judged

    def _know(self, source: str) -> None:
        """Find out whether a source changes without input, and when next."""
        relations = self.relations.get(source, {}).values()
        if any(relation.may_expire for relation in relations):
            self._expiring.add(source)
            self._look_at(source)
        else:
            self._expiring.discard(source)
            self._expiries.set(source, None)

    def _look_at(self, source: str) -> None:
        """Note when a source's next row has to go."""
        times = [relation.next_expiry() for relation in self.relations[source].values()]
        self._expiries.set(source, min([t for t in times if t is not None], default=None))

    def rows(self, source: str) -> list[Row]:
        """Return the current rows of a declared source as of the last step."""
        scan = self.declared.get(source)
        if scan is None:
            return []
        return list(expand(without_times(self.relations[source][scan].snapshot())))

    def known_events(self, source: str) -> Iterator[SourceEvent]:
        """Yield the rows of a declared source as of the last step, then its waiting events."""
        scan = self.declared.get(source)
        if scan is None:
            return
        for ts, row in self.relations[source][scan].snapshot():
            yield SourceEvent(row, ts)
        for _origin, events in self._events.get(source, ()):
            yield from events

    def keep(self, sources: Iterable[str], read: Container[Scan]) -> None:
        """Discard, of some sources, the relations that are neither declared nor `read`."""
        for source in sources:
            relations, declared = self.relations.get(source), self.declared.get(source)
            if relations is None:
                continue
            kept = {scan: r for scan, r in relations.items() if scan == declared or scan in read}
            if kept:
                self.relations[source] = kept
            else:
                del self.relations[source], self.watermarks[source]
                self.taken.pop(source, None)
                self.changed.pop(source, None)
                self._events.pop(source, None)
                self.heard.pop(source, None)
                self._gone.pop(source, None)
            self._know(source)


def _oldest(runs: Sequence[tuple[str, list[SourceEvent]]]) -> int:
    """Return the time of the oldest event."""
    times = [event.ts for _, events in runs for event in events]
    return times[0] if len(times) == 1 else min(times)
