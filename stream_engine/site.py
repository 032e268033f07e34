"""An engine site: sources, queries and channels of one gateway or base station.

Pure and synchronous. Whoever embeds it owns clock and network: it hands in events and batches,
calls `step` with the time, and sends what comes out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from stream_engine.installed_query import InstalledQuery
from stream_engine.introspection.measured import Measured, Report
from stream_engine.introspection.operators import RunningOperator
from stream_engine.introspection.site_report import SiteParts, measured_site, operators_of
from stream_engine.properties import Property
from stream_engine.query_exchange import FragmentStatistics, SourceChanges
from stream_engine.scheduling.measures import QueueMeasures
from stream_engine.scheduling.queue_meter import QueueMeter
from stream_engine.scheduling.site_work import SiteWork, Stopwatch
from stream_engine.sharing.synopses import Synopses
from stream_engine.site_sources import SiteSources
from stream_engine.state.watermark import HERE
from streamsql.algebra.operators import Scan
from streamsql.catalog.system import is_site_source
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import (
    FederationError,
    InternalError,
    RecursionInterruptedError,
)
from streamsql.wire.channels import Reception
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport
from streamsql.wire.site_settings import SiteSettings

MAX_REMEMBERED = 1_000
"""Stopped recursive queries whose lives are remembered."""

_STOPPING = (
    FederationError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
)
"""What a query may fail with."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A batch to send; destination "" is the query's result.

    Attributes:
        snapshot: It belongs to a snapshot of its channel.
    """

    query: str
    destination: str
    batch: DeltaBatch
    snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """What a sender of a query need not remember for this site; see `SiteEngine.forget`."""

    query: str
    sender: str
    version: int
    watermark: int
    bounds: dict[str, int]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step produced.

    Attributes:
        outgoing: Batches in the order in which each channel must carry them.
        resyncs: (query, sender) pairs: ask that sender for a snapshot of its channel to here.
        forgets: What senders need not remember any more; such a message may get lost.
        failures: Queries that were stopped at this site, with the reason.
    """

    outgoing: list[Outgoing] = field(default_factory=list)
    resyncs: list[tuple[str, str]] = field(default_factory=list)
    forgets: list[Forget] = field(default_factory=list)
    failures: list[tuple[str, FederationError]] = field(default_factory=list)


class SiteEngine:
    """All that one site of the federation computes.

    Everything between two steps is one change: a step applies all events, batches and losses since
    the last one and runs every affected query to local quiescence, so that a channel carries at
    most one change per port and step. With settings that bound a step's time, or another scheduler
    than FIFO, operators run one by one instead, and what is left waits for the next step.

    Attributes:
        synopses: Windows and join sides, and which of them are kept together.
    """

    def __init__(self, site: str, epoch: int, *, stopwatch: Stopwatch | None = None) -> None:
        """Create a site without sources and queries.

        Args:
            site: Its id.
            epoch: Grows with every restart; receivers recognize a new life by it.
            stopwatch: Gives nanoseconds, to measure how long operators run; None: every run of an
                operator counts one millisecond.
        """
        self._work = SiteWork(stopwatch)
        self.synopses = Synopses()
        self._newcomers: list[str] = []
        self.site = site
        self.epoch = epoch
        self._now = 0
        self._sources = SiteSources(site)
        self._queries: dict[str, InstalledQuery] = {}
        self._failed: dict[str, FragmentBundle] = {}
        self._lives: dict[str, tuple[int, int]] = {}
        self._interrupted: set[str] = set()
        self._resyncs: dict[tuple[str, str], None] = {}
        self._forgets: list[Forget] = []
        self._floor = 0
        self._steps = 0
        self._report = Report()
        self._told: frozenset[str] = frozenset()

    def declare(self, scan: Scan) -> None:
        """Keep a source's rows from now on, so that queries installed later see what is there.

        Another definition of the same source replaces the first; it starts empty.
        """
        self._sources.declare(scan, self._now)
        self._drop_unused()

    def install(self, bundle: FragmentBundle) -> None:
        """Run the fragments of a query that name this site, in place of an older version.

        The next step sends a snapshot on every channel and asks every sender for one, because
        either side may be the first to run. An older version is ignored, and so is the same bundle
        again; another one of the same version comes from a new catalog, and is run.

        Raises:
            DeploymentError: It reads a source that has other columns here.
            InternalError: The bundle contradicts itself.
            In both cases what ran before still runs.
        """
        running = self._queries.get(bundle.query)
        known = self._failed.get(bundle.query) if running is None else running.bundle
        if known is not None and (known.version > bundle.version or known == bundle):
            return
        query = InstalledQuery(
            bundle,
            site=self.site,
            epoch=self.epoch,
            first=self._floor if running is None else max(self._floor, running.last_sequence()),
            first_life=self._next_life(bundle),
            interrupted=partial(self._interrupted.__contains__, bundle.query),
        )
        self._interrupted.discard(bundle.query)
        for scan in query.scans:
            self._sources.check_columns(scan)
        self._forget(bundle.query)
        if bundle.at(self.site):
            self._queries[bundle.query] = query
            self._newcomers.append(bundle.query)
            for scan in query.scans:
                self._sources.relation(scan, self._now)
            for sender in query.senders:
                self._resyncs[(bundle.query, sender)] = None
        self._drop_unused()  # last: a source that only the old version read keeps its rows

    def interrupt(self, query: str) -> None:
        """Let a step end early that works on a recursion of a query; `uninstall` has to follow.

        Unlike everything else here this may be called by another thread while `step` runs.
        """
        if query in self._queries:
            self._interrupted.add(query)

    def uninstall(self, query: str) -> None:
        """Stop a query; nothing happens if it does not run here."""
        self._interrupted.discard(query)
        self._forget(query)
        self._drop_unused()

    def ingest(self, source: str, events: Sequence[SourceEvent], origin: str = HERE) -> None:
        """Take in what happened to a source; it is worked on in the next step.

        Args:
            source: Its name.
            events: In order of arrival.
            origin: The gateway that had taken them in before; its readings have a watermark of
                their own.

        Raises:
            DeploymentError: The source is unknown here, a row has the wrong width, or too many
                events wait for a step.
        """
        self._sources.ingest(source, events, origin)

    def receive(self, query: str, sender: str, batch: DeltaBatch) -> None:
        """Take in a batch from another site; it is worked on in the next step.

        A batch for a query that does not run here is dropped: whoever is installed later asks for
        a snapshot. After a gap the next step's `resyncs` names the sender.

        Raises:
            WireError: The batch does not fit the plan.
        """
        installed = self._queries.get(query)
        if installed is None:
            return
        if installed.receive(sender, batch) == Reception.GAP:
            self._resyncs[(query, sender)] = None

    def resync(self, query: str, destination: str) -> bool:
        """Send a snapshot of a channel in the next step ("" is the result).

        Returns:
            Whether there is such a channel; a query that is not here yet will send one anyway.
        """
        installed = self._queries.get(query)
        return installed is not None and installed.request_snapshot(destination)

    def forgettable(self) -> list[Forget]:
        """Return what senders need not remember, if what this site knows now is never lost."""
        known = [(name, query, query.forgetting.known()) for name, query in self._queries.items()]
        return [
            Forget(
                name,
                sender,
                query.bundle.version,
                forgotten.watermark,
                {port: bound for port, (_column, bound) in forgotten.bounds.items()},
            )
            for name, query, forgotten in known
            if forgotten.watermark is not None
            for sender in query.forgetting.senders
        ]

    def kept(self, forgettable: Sequence[Forget]) -> None:
        """Take in that what the site knew when it was asked what is `forgettable` is on disk.

        The next step tells the senders.
        """
        self._forgets = list(forgettable)

    def forget(self, destination: str, told: Forget) -> None:
        """Forget, of a channel from here, rows that end in windows which have closed there.

        Args:
            destination: The receiver.
            told: What it has said; of another version of the query's plan it means nothing.
        """
        installed = self._queries.get(told.query)
        if installed is not None and installed.bundle.version == told.version:
            installed.forgetting.forget(destination, told.watermark, told.bounds)

    def resync_all(self) -> None:
        """Send a snapshot of every channel in the next step, after the network was away."""
        for installed in self._queries.values():
            installed.request_all_snapshots()

    def senders(self) -> set[tuple[str, str]]:
        """Return (query, sending site) of every incoming channel."""
        return {(name, site) for name, q in self._queries.items() for site in q.senders}

    def unsynchronised(self) -> set[tuple[str, str]]:
        """Return (query, sending site) of the incoming channels that wait for a snapshot."""
        return {(name, site) for name, q in self._queries.items() for site in q.unsynchronised()}

    def site_lost(self, site: str, epoch: int | None = None, query: str = "") -> None:
        """Retract in the next step, as one change, everything another site has sent.

        A later snapshot of the site, of the same or a newer epoch, brings it back.

        Args:
            site: The other site.
            epoch: Its epoch, from its will: a will of an earlier life than the one heard since is
                ignored, and recursions can tell that life's provenance from the next one's.
            query: One that was installed after the site was lost; empty: all of them.
        """
        for name, installed in self._queries.items():
            if query in {"", name}:
                installed.lose(site, epoch)

    # --- settings and measures ------------------------------------------------------------------

    def configure(self, settings: SiteSettings) -> None:
        """Use other settings from the next step on; what waits between operators waits on."""
        self._work.configure(settings)
        self.synopses.switch(on=settings.sharing)

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

    # --- steps ----------------------------------------------------------------------------------

    def step(self, now: int) -> StepResult:
        """Work on everything that came in, and on the passage of time.

        Args:
            now: Microseconds since 1970 UTC; a time before the last step's counts as that one.
        """
        now = self._now = max(now, self._now)
        self._steps += 1
        result = StepResult()
        if self._newcomers:
            self._share_newcomers()
        sources = self._sources.advance(now)
        if self._work.is_straight:
            self._run_through(list(self._queries), sources, now, result)
        else:
            self._run_scheduled(sources, now, result)
        self.synopses.settle()
        result.resyncs.extend(self._resyncs)
        self._resyncs = {}
        result.forgets.extend(self._forgets)
        self._forgets = []
        return result

    def _share_newcomers(self) -> None:
        """Let the synopses of queries that are about to start be shared; saved state is in them."""
        names = dict.fromkeys(self._newcomers)
        self._newcomers = []
        self.synopses.add({n: self._queries[n].parts[0] for n in names if n in self._queries})

    def _run_through(
        self,
        names: Sequence[str],
        sources: SourceChanges,
        now: int,
        result: StepResult,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        """Work on queries until nothing waits between their operators."""
        for name in names:
            query = self._queries[name]
            if not query.has_work(sources, now):
                continue
            try:
                batches = query.step(sources, now, stopwatch)
            except _STOPPING as error:
                self._stopped(name, error, result)
            else:
                self._give(name, query, batches, result)

    def _run_scheduled(self, sources: SourceChanges, now: int, result: StepResult) -> None:
        """Let all that came in wait, then run one operator after the other.

        Queries in which nothing may be left waiting come first, as a whole.
        """
        work = self._work
        work.begin(now)
        through = [name for name, query in self._queries.items() if query.runs_through]
        self._run_through(
            through, sources, now, result, work.stopwatch if work.is_measured else None
        )
        work.ran_through()
        active: list[str] = []
        for name, query in list(self._queries.items()):
            if query.runs_through or not query.has_work(sources, now):
                continue
            active.append(name)
            try:
                query.admit(sources, now, work)
            except _STOPPING as error:
                self._stopped(name, error, result)
        work.admitted()
        while (task := work.next()) is not None:
            try:
                work.run(task)
            except _STOPPING as error:
                self._stopped(task.work.name, error, result)
        for name in active:
            installed = self._queries.get(name)
            if installed is not None:
                self._give(name, installed, installed.flush(now), result)

    def _give(
        self,
        name: str,
        query: InstalledQuery,
        batches: list[tuple[str, DeltaBatch]],
        result: StepResult,
    ) -> None:
        """Add what a query gives to the result of the step."""
        if batches:
            again = query.repeated
            result.outgoing.extend(
                [Outgoing(name, to, batch, to in again) for to, batch in batches]
            )
        for sender in query.take_replays_wanted():
            self._resyncs[(name, sender)] = None

    def _stopped(self, name: str, error: Exception, result: StepResult) -> None:
        """Stop a query that cannot go on; its defect must not stop the others."""
        if isinstance(error, RecursionInterruptedError):
            self._forget(name)
            self._drop_unused()
        elif isinstance(error, FederationError):
            self._fail(name, error, result)
        else:
            reason = f"query {name} failed at site {self.site}: {error!r:.300}"
            self._fail(name, InternalError(reason), result)

    def next_wakeup(self) -> int | None:
        """Return when a step is needed although nothing comes in, or None.

        That is at once if changes wait between operators, else as `next_change`.
        """
        return self._now if self._work.meter.batches else self.next_change()

    def next_change(self) -> int | None:
        """Return when time alone changes something: the earliest expiry or window boundary."""
        times = [query.next_wakeup() for query in self._queries.values()]
        times.append(self._sources.next_expiry())
        return min((time for time in times if time is not None), default=None)

    def source_rows(self, source: str) -> list[Row]:
        """Return the current rows of a declared source as of the last step.

        A log (a bag without ttl) keeps none.
        """
        return self._sources.rows(source)

    def flow(self, query: str) -> FlowReport | None:
        """Return the counts of a query's channels, or None if it does not run here."""
        installed = self._queries.get(query)
        return None if installed is None else installed.flow()

    def statistics(self) -> list[FragmentStatistics]:
        """Return what the operators of every query have done."""
        return [entry for query in self._queries.values() for entry in query.statistics()]

    @property
    def told(self) -> frozenset[str]:
        """The sources that tell of sites and that a query here reads, in lower case.

        Only while there are some it makes sense to measure, and to give them rows.
        """
        return self._told

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

    @property
    def queries(self) -> dict[str, int]:
        """Running queries with their versions."""
        return {name: query.bundle.version for name, query in self._queries.items()}

    def _fail(self, name: str, error: FederationError, result: StepResult) -> None:
        """Stop a query here; its version stays known, so that it is not started again."""
        bundle = self._queries[name].bundle
        self._forget(name)
        self._failed[name] = bundle
        self._drop_unused()
        result.failures.append((name, error))

    def _forget(self, name: str) -> None:
        """Drop a query, running or failed."""
        self._failed.pop(name, None)
        stopped = self._queries.pop(name, None)
        if stopped is not None:
            self._work.drop(name)
            self.synopses.release(name)
            self._floor = max(self._floor, stopped.last_sequence())
            self._remember_life(stopped)
        self._resyncs = {key: None for key in self._resyncs if key[0] != name}

    def _remember_life(self, stopped: InstalledQuery) -> None:
        """Note how many lives the recursions of a query have had, for if it comes back."""
        life = stopped.next_life()
        if life:
            self._lives.pop(stopped.bundle.query, None)
            self._lives[stopped.bundle.query] = (stopped.bundle.version, life)
            if len(self._lives) > MAX_REMEMBERED:
                del self._lives[next(iter(self._lives))]

    def _next_life(self, bundle: FragmentBundle) -> int:
        """Return the first life of a bundle's recursions that peers of its version do not know."""
        running = self._queries.get(bundle.query)
        if running is not None and running.bundle.version == bundle.version:
            return running.next_life()
        version, life = self._lives.get(bundle.query, (0, 0))
        return life if version == bundle.version else 0

    def _drop_unused(self) -> None:
        """Forget the relations that are neither declared nor read."""
        used: set[Scan] = set()
        told: set[str] = set()
        for query in self._queries.values():
            used.update(query.scans)
            told.update(s.source.lower() for s in query.scans if is_site_source(s.source))
        self._told = frozenset(told)
        if not told:
            self._report = Report()
        self._sources.keep(used)
