"""The read-only view of a site between two steps."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stream_engine.scheduling.queue_meter import QueueMeasures, QueueMeter
from stream_engine.scheduling.site_work import SiteWork, Stopwatch
from stream_engine.sharing.synopses import Synopses
from stream_engine.site.measured_values import Measured, Property, Report
from stream_engine.site.pending_queries import PendingQueries
from stream_engine.site.site_report import RunningOperator, SiteParts, measured_site, operators_of
from stream_engine.site.site_sources import SiteSources
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.messages import FlowReport
from streamsql.wire.site_messages import SourceCount
from streamsql.wire.site_settings import SiteSettings

if TYPE_CHECKING:
    from stream_engine.circuit.circuit import FragmentStatistics
    from stream_engine.site.installed_query import InstalledQuery


class VisibleSite:
    """The parts of a site, and the reports on them."""

    def __init__(self, site: str, epoch: int, stopwatch: Stopwatch | None) -> None:
        self.site = site
        self.epoch = epoch
        self.synopses = Synopses()
        self._work = SiteWork(stopwatch)
        self._sources = SiteSources(site)
        self._queries: dict[str, InstalledQuery] = {}
        self._pending = PendingQueries()
        self._out_of_step: dict[str, list[str]] = {}
        self._looked_at = 0
        self._now = 0
        self._steps = 0
        self._report = Report()

    @property
    def queries(self) -> dict[str, int]:
        """Running queries with their versions."""
        return {name: query.bundle.version for name, query in self._queries.items()}

    def runs(self, query: str) -> bool:
        """Whether a query runs here; O(1), unlike `queries`."""
        return query in self._queries

    def senders(self) -> set[tuple[str, str]]:
        """Return (query, sending site) of every incoming channel."""
        return {(name, site) for name, q in self._queries.items() for site in q.senders}

    def unsynchronised(self) -> set[tuple[str, str]]:
        """Return (query, sending site) of the incoming channels that lack a snapshot."""
        waiting = self._out_of_step
        for name in self._pending.changed_since(self._looked_at):
            waiting[name] = self._queries[name].unsynchronised()
            if not waiting[name]:
                del waiting[name]
        self._looked_at = self._pending.change
        return {(name, site) for name, sites in waiting.items() for site in sites}

    def changed_since(self, change: int) -> tuple[list[str], int]:
        """Return the queries here whose `flow` may have changed, and the `change` of the next call.

        A `change` of 0 names all queries.
        """
        return (self._pending.changed_since(change), self._pending.change)

    def flow(self, query: str) -> FlowReport | None:
        """Return the counts of a query's channels, or None if it does not run here."""
        installed = self._queries.get(query)
        return None if installed is None else installed.flow(self._now)

    def kept_result(self, query: str) -> Delta:
        """Return what a query's result at this site holds as of the last step, sent or not."""
        installed = self._queries.get(query)
        rows: Delta = {}
        for fragment in () if installed is None else installed.bundle.at(self.site):
            if installed is not None and not fragment.consumer:
                accumulate(rows, installed.outbox.total(fragment.id))
        return rows

    def origins(self) -> set[str]:
        """Return the other sites whose readings have been read here and that are not removed."""
        return self._sources.origins()

    def next_wakeup(self) -> int | None:
        """Return when a step is needed without input, or None.

        That is at once if changes are pending between operators, else `next_change`.
        """
        return self._now if self._work.meter.batches else self.next_change()

    @property
    def pending_events(self) -> int:
        """How many events of sources wait for a step."""
        return self._sources.pending

    def next_change(self) -> int | None:
        """Return when time alone changes something: the earliest expiry or window boundary."""
        query, source = self._pending.earliest, self._sources.next_expiry()
        if query is None or source is None:
            return source if query is None else query
        return min(query, source)

    def counted(self) -> dict[str, tuple[int, int]]:
        """Return ingested events, and rows that came or went, of each declared source."""
        taken, changed = self._sources.taken, self._sources.changed
        return {name: (taken.get(name, 0), changed.get(name, 0)) for name in self._sources.declared}

    def column_counts(self, now: int) -> dict[str, SourceCount]:
        """Return what is in the columns of declared sources, if it is news; `now` by the wall."""
        return self._sources.columns.report(now)

    def source_rows(self, source: str) -> list[Row]:
        """Return the current rows of a declared source as of the last step.

        A log (a bag without ttl) keeps none.
        """
        return self._sources.rows(source)

    def known_events(self, source: str) -> Iterator[SourceEvent]:
        """Yield the rows of a declared source as of the last step, then its waiting events."""
        return self._sources.known_events(source)

    @property
    def settings(self) -> SiteSettings:
        """The settings in use."""
        return self._work.settings

    @property
    def measured(self) -> bool:
        """Whether runs, times and retractions of all operators and all queues are measured.

        Initially only what runs by a scheduler or in slices is, without retractions.
        """
        return self._work.is_measured

    @measured.setter
    def measured(self, wanted: bool) -> None:
        self._work.is_measured = wanted

    @property
    def queues(self) -> QueueMeter:
        """The pending changes between the operators of all queries."""
        return self._work.meter

    def queue_measures(self) -> list[QueueMeasures]:
        """Return the measures of all queues."""
        return [entry for query in self._queries.values() for entry in query.queue_measures()]

    def statistics(self) -> "list[FragmentStatistics]":
        """Return the statistics of the operators of every query."""
        return [entry for query in self._queries.values() for entry in query.statistics()]

    @property
    def told(self) -> frozenset[str]:
        """The sources about sites that a query here reads, in lower case; usually none."""
        return self._pending.told

    def readers_of(self, source: str) -> frozenset[str]:
        """Return the queries that read a source."""
        readers = self._pending.readers
        return frozenset(q for scan in readers if scan.source == source for q in readers[scan])

    def properties(self, now: int, more: Iterable[Measured] = ()) -> list[Property]:
        """Return the measures of the site's parts; rates are those since the last call.

        Where nothing is `told` between two calls, the second is a first one again.

        Args:
            now: Microseconds since 1970 UTC.
            more: Counted by the host.
        """
        return self._report.properties([*measured_site(self._parts(), now), *more], now)

    def operators(self) -> list[RunningOperator]:
        """Return the operators of all queries."""
        return operators_of(self._parts())

    def _parts(self) -> SiteParts:
        return SiteParts(
            self.site, self._queries, self._sources, self._steps, self._work, self.synopses
        )
