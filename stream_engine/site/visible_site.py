"""What can be seen of a site from outside, between two steps and without changing anything."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stream_engine.scheduling.measures import QueueMeasures
from stream_engine.scheduling.queue_meter import QueueMeter
from stream_engine.scheduling.site_work import SiteWork, Stopwatch
from stream_engine.sharing.synopses import Synopses
from stream_engine.site.measured_properties import Property
from stream_engine.site.measured_values import Measured, Report
from stream_engine.site.operator_rows import RunningOperator
from stream_engine.site.pending_queries import QueryNews
from stream_engine.site.query_exchange import FragmentStatistics
from stream_engine.site.site_report import SiteParts, measured_site, operators_of
from stream_engine.site.site_sources import SiteSources
from streamsql.data.types import Row
from streamsql.wire.messages import FlowReport
from streamsql.wire.site_settings import SiteSettings

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


class VisibleSite:
    """The parts of a site, and what they tell.

    Attributes:
        site: Its id.
        epoch: Of this life.
        synopses: Windows and join sides, and which of them are kept together.
    """

    def __init__(self, site: str, epoch: int, stopwatch: Stopwatch | None) -> None:
        self.site = site
        self.epoch = epoch
        self.synopses = Synopses()
        self._work = SiteWork(stopwatch)
        self._sources = SiteSources(site)
        self._queries: dict[str, InstalledQuery] = {}
        self._news = QueryNews()
        self._out_of_step: dict[str, list[str]] = {}
        self._looked_at = 0
        self._now = 0
        self._steps = 0
        self._report = Report()

    # --- queries and channels -------------------------------------------------------------------

    @property
    def queries(self) -> dict[str, int]:
        """Running queries with their versions."""
        return {name: query.bundle.version for name, query in self._queries.items()}

    def runs(self, query: str) -> bool:
        """Whether a query runs here; O(1), as opposed to a look into `queries`."""
        return query in self._queries

    def senders(self) -> set[tuple[str, str]]:
        """Return (query, sending site) of every incoming channel."""
        return {(name, site) for name, q in self._queries.items() for site in q.senders}

    def unsynchronised(self) -> set[tuple[str, str]]:
        """Return (query, sending site) of the incoming channels that wait for a snapshot."""
        waiting = self._out_of_step
        for name in self._news.changed_since(self._looked_at):
            waiting[name] = self._queries[name].unsynchronised()
            if not waiting[name]:
                del waiting[name]
        self._looked_at = self._news.change
        return {(name, site) for name, sites in waiting.items() for site in sites}

    def changed_since(self, change: int) -> tuple[list[str], int]:
        """Return the queries here whose `flow` may be another one, and what to ask with next time.

        Args:
            change: What the last call has returned; 0 names all queries.
        """
        return (self._news.changed_since(change), self._news.change)

    def flow(self, query: str) -> FlowReport | None:
        """Return the counts of a query's channels, or None if it does not run here."""
        installed = self._queries.get(query)
        return None if installed is None else installed.flow(self._now)

    def origins(self) -> set[str]:
        """Return the other sites whose readings have been read here and that are not removed."""
        return self._sources.origins()

    # --- time and sources -----------------------------------------------------------------------

    def next_wakeup(self) -> int | None:
        """Return when a step is needed although nothing comes in, or None.

        That is at once if changes wait between operators, else as `next_change`.
        """
        return self._now if self._work.meter.batches else self.next_change()

    def next_change(self) -> int | None:
        """Return when time alone changes something: the earliest expiry or window boundary."""
        query, source = self._news.earliest, self._sources.next_expiry()
        if query is None or source is None:
            return source if query is None else query
        return min(query, source)

    def source_rows(self, source: str) -> list[Row]:
        """Return the current rows of a declared source as of the last step.

        A log (a bag without ttl) keeps none.
        """
        return self._sources.rows(source)

    # --- settings and measures ------------------------------------------------------------------

    @property
    def settings(self) -> SiteSettings:
        """The settings in use."""
        return self._work.settings

    @property
    def measured(self) -> bool:
        """Whether runs, times and retractions of all operators and all queues are measured.

        Off to begin with: then only what runs by a scheduler or in slices is, without retractions.
        """
        return self._work.is_measured

    @measured.setter
    def measured(self, wanted: bool) -> None:
        self._work.is_measured = wanted

    @property
    def queues(self) -> QueueMeter:
        """How much waits between the operators of all queries."""
        return self._work.meter

    def queue_measures(self) -> list[QueueMeasures]:
        """Return what waits between any two operators."""
        return [entry for query in self._queries.values() for entry in query.queue_measures()]

    def statistics(self) -> list[FragmentStatistics]:
        """Return what the operators of every query have done."""
        return [entry for query in self._queries.values() for entry in query.statistics()]

    @property
    def told(self) -> frozenset[str]:
        """The sources that tell of sites and that a query here reads, in lower case.

        Only while there are some it makes sense to measure, and to give them rows.
        """
        return self._news.told

    def readers_of(self, source: str) -> frozenset[str]:
        """Return the queries that read a source."""
        readers = self._news.readers
        return frozenset(q for scan in readers if scan.source == source for q in readers[scan])

    def properties(self, now: int, more: Iterable[Measured] = ()) -> list[Property]:
        """Return what the parts of the site measure; rates are those since the last call.

        Where nothing is `told` between two calls, the second is a first one again.

        Args:
            now: Microseconds since 1970 UTC.
            more: What the host has counted.
        """
        return self._report.properties([*measured_site(self._parts(), now), *more], now)

    def operators(self) -> list[RunningOperator]:
        """Return the operators of all queries."""
        return operators_of(self._parts())

    def _parts(self) -> SiteParts:
        return SiteParts(
            site=self.site,
            queries=self._queries,
            relations=self._sources.relations,
            watermarks=self._sources.watermarks,
            events=self._sources.taken,
            waiting=self._sources.pending,
            steps=self._steps,
            settings=self.settings,
            meter=self.queues,
            queues=self.queue_measures(),
            synopses=self.synopses,
        )
