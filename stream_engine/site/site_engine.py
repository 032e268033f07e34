"""An engine site: sources, queries and channels of one gateway or base station.

Pure and synchronous. Its host owns clock and network: it hands in events and batches, calls `step`
with the time, and sends the output.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from stream_engine.scheduling.site_work import Stopwatch
from stream_engine.site.site_steps import SteppingSite
from stream_engine.site.step_budget import Refusal, StepBudget
from stream_engine.site.step_result import Forget
from stream_engine.state.source_relation import TimedDelta
from stream_engine.state.watermark import HERE
from streamsql.algebra.operators import Scan
from streamsql.data.events import SourceEvent
from streamsql.errors import DeploymentError
from streamsql.wire.channel_protocol import Reception
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.source_shapes import differences, shape_of

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


class SiteEngine(SteppingSite):
    """All that one site of the federation computes.

    Everything between two steps is one change: a step applies all events, batches and losses since
    the last one and runs every affected query to local quiescence, so that a channel carries at
    most one change per port and step. With settings that bound a step's time, or another scheduler
    than FIFO, operators run one by one instead, and the rest is pending for the next step.

    Args:
        site: Its id.
        epoch: Grows with every restart; receivers recognize a new incarnation by it.
        stopwatch: Gives nanoseconds, to measure how long operators run; None: every run of an
            operator counts one millisecond.
        budget: Ends queries that take too much in one step; None: nothing is counted.
        refusal: Returns why a query must not be run here; None: all are run.
    """

    def __init__(
        self,
        site: str,
        epoch: int,
        *,
        stopwatch: Stopwatch | None = None,
        budget: StepBudget | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(site, epoch, stopwatch, budget)
        self._refusal = refusal
        self._interrupted: set[str] = set()

    def declare(self, scan: Scan) -> list[FragmentBundle]:
        """Keep a source's rows from now on, for queries that are installed later.

        Another definition of the same source replaces the first. If it is keyed, and stays so, its
        rows stay: by the names of columns, NULL in those of another type or unit.

        Returns:
            The queries that are stopped, because they read the source as it was defined before.
        """
        stopped = self._stop_others(scan)
        self._sources.declare(scan, self._now)
        self._drop_unused((scan,))
        return stopped

    def define(self, scan: Scan) -> list[FragmentBundle]:
        """Note how a source is defined whose rows others keep; see `declare`."""
        stopped = self._stop_others(scan)
        self._sources.defined[scan.source] = scan
        return stopped

    @property
    def declared(self) -> frozenset[str]:
        """The sources whose rows are kept here."""
        return frozenset(self._sources.declared)

    def undeclare(self, source: str) -> None:
        """Keep a source's rows no more, and ingest none; nothing happens if it is not declared.

        Queries that read it keep those they have until they are stopped.
        """
        declared = self._sources.undeclare(source)
        if declared is not None:
            self._drop_unused((declared,))

    def _stop_others(self, scan: Scan) -> list[FragmentBundle]:
        """Stop, and return, the queries that read a source otherwise than it is now defined."""
        now = shape_of(scan)
        stopped = [
            query.bundle
            for query in self._queries.values()
            if any(s.source == scan.source and differences(shape_of(s), now) for s in query.scans)
        ]
        unread = [self._discard(bundle.query) for bundle in stopped]
        self._drop_unused(found for scans in unread for found in scans)
        return stopped

    def install(self, bundle: FragmentBundle) -> None:
        """Run the fragments of a query that name this site, in place of an older version.

        The next step sends a snapshot on every channel and asks every sender for one, because
        either side may be the first to run. An older version and an equal bundle are ignored; the
        running one, trimmed, goes on in the middle of its channels; any other bundle of the same
        version comes from a new catalog, and is run.

        Raises:
            DeploymentError: It reads a source that has other columns here.
            InternalError: The bundle contradicts itself.
            StepBudgetError: It took too much here before.
            In all cases what ran before still runs.
        """
        refused = None if self._refusal is None else self._refusal(bundle)
        if refused is not None:
            raise refused
        running = self._queries.get(bundle.query)
        known = self._failed.get(bundle.query) if running is None else running.bundle
        if known is not None and (known.version > bundle.version or known == bundle):
            return
        if running is not None and self._trim(running, bundle):
            return
        # Circuits and channels come with the first query.
        from stream_engine.site.installed_query import InstalledQuery

        query = InstalledQuery(
            bundle,
            site=self.site,
            epoch=self.epoch,
            first=self._floor if running is None else max(self._floor, running.last_sequence()),
            first_life=self._first_life(bundle),
            interrupted=partial(self._interrupted.__contains__, bundle.query),
        )
        self._interrupted.discard(bundle.query)
        for scan in query.scans:
            self._sources.check_columns(scan)
        stopped = self._discard(bundle.query)
        if bundle.at(self.site):
            self._queries[bundle.query] = query
            self._pending.add(bundle.query, query)
            self._sources.clocks.add(query.scans)
            self._newcomers.append(bundle.query)
            self._feed(bundle.query, query)
            for scan in query.scans:
                self._sources.relation(scan, self._now)
            for sender in query.senders:
                self._resyncs[(bundle.query, sender)] = None
        self._drop_unused(stopped)  # last: a source that only the old version read keeps its rows

    def _trim(self, running: "InstalledQuery", bundle: FragmentBundle) -> bool:
        """Go on with what a query sends and receives alone; return whether that is possible."""
        from stream_engine.site.installed_query import InstalledQuery
        from stream_engine.site.trimmed_query import keeps_circuits, may_go_on

        if not (bundle.at(self.site) and may_go_on(running, bundle)):
            return False
        name, first = bundle.query, running.last_sequence()
        query = InstalledQuery(
            bundle, site=self.site, epoch=self.epoch, first=first, former=running
        )
        query.inbox.go_on(running.inbox)
        query.outbox.go_on(running.outbox)
        if self._feeds is not None:
            self._feeds.trimmed(name, running)
        if not keeps_circuits(running, bundle):
            self.synopses.release(name)
        self._pending.drop(name, running)
        self._sources.clocks.drop(running.scans)
        self._queries[name] = query
        self._pending.add(name, query)
        self._sources.clocks.add(query.scans)
        self._drop_unused(running.scans)
        return True

    def _feed(self, name: str, query: "InstalledQuery") -> None:
        """Connect a new query with those that it reads, and with those that read it."""
        if self._feeds is None and query.feeds:
            from stream_engine.exchange.local_feeds import LocalFeeds

            pending = self._pending
            self._feeds = LocalFeeds(self.site, self._queries, pending.touch, pending.changed)
        if self._feeds is not None:
            self._feeds.installed(name, query)

    def interrupt(self, query: str) -> None:
        """End a step early that works on a recursion of a query; `uninstall` has to follow.

        Only this method may be called by another thread while `step` runs.
        """
        if query in self._queries:
            self._interrupted.add(query)

    def check_rounds(self, query: str) -> None:
        """Check that a query's recursions need no more rounds than it allows, once it is settled.

        Raises:
            RecursionRoundsError: One does here.
        """
        if query in self._queries:
            self._queries[query].check_rounds()

    def uninstall(self, query: str) -> None:
        """Stop a query; nothing happens if it does not run here."""
        self._interrupted.discard(query)
        self._drop_unused(self._discard(query))

    def ingest(self, source: str, events: Sequence[SourceEvent], origin: str = HERE) -> None:
        """Ingest the events of a source; the next step applies them.

        Args:
            source: Its name.
            events: In order of arrival.
            origin: The gateway that had ingested them before; its readings have their own
                watermark.

        Raises:
            DeploymentError: The source is unknown here, a row has the wrong width, or too many
                events wait for a step.
        """
        self._sources.ingest(source, events, origin)

    def fill(self, query: str, source: str, events: Sequence[SourceEvent]) -> bool:
        """Give earlier events of a source to a query's windows over it; the next step applies them.

        For sources of which a site keeps no rows: nothing else of the query sees them, nor does any
        other query. The order says nothing; each event is to be handed in once, here or live.

        Returns:
            False if the query does not run here.

        Raises:
            DeploymentError: A row has the wrong width.
        """
        installed = self._queries.get(query)
        if installed is None:
            return False
        rows: TimedDelta = {}
        widths = {len(scan.columns) for scan in installed.scans if scan.source == source}
        for event in events:
            if len(event.row) not in widths:
                raise DeploymentError(
                    f"query {query} does not read {source} with {len(event.row)} columns here"
                )
            timed = (event.ts, event.row)
            rows[timed] = rows.get(timed, 0) + (-1 if event.delete else 1)
        installed.fill(source, {timed: weight for timed, weight in rows.items() if weight})
        self._pending.touch(query)
        return True

    def receive(self, query: str, sender: str, batch: DeltaBatch) -> None:
        """Ingest a batch from another site; the next step applies it.

        A batch for a query that does not run here is dropped: a query installed later asks for a
        snapshot. After a gap the next step's `resyncs` names the sender.

        Raises:
            WireError: The batch does not fit the plan.
        """
        installed = self._queries.get(query)
        if installed is None:
            return
        self._pending.touch(query)
        if installed.receive(sender, batch) == Reception.GAP:
            self._resyncs[(query, sender)] = None

    def resync(self, query: str, destination: str) -> bool:
        """Send a snapshot of a channel ("" is the result) in the next step; False if there is none.

        A query that is not here yet will send one anyway.
        """
        installed = self._queries.get(query)
        if installed is None:
            return False
        self._pending.touch(query)
        return installed.request_snapshot(destination)

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
        """Note that what the site knew when `forgettable` was called is on disk.

        The next step reports it to the senders.
        """
        self._forgets = list(forgettable)

    def forget(self, destination: str, told: Forget) -> bool:
        """Discard, of the channel to a destination, rows that end in windows closed there.

        What the destination has reported of another version of the query's plan is ignored.

        Returns:
            False if the version that runs here has no such channel.
        """
        installed = self._queries.get(told.query)
        if installed is None:
            return False
        if installed.bundle.version != told.version:
            return True
        return installed.forgetting.forget(destination, told.watermark, told.bounds)

    def resync_all(self) -> None:
        """Send a snapshot of every channel in the next step, after the network was away."""
        for installed in self._queries.values():
            installed.request_all_snapshots()
        self._pending.touch_all()

    def site_lost(self, site: str, epoch: int | None = None, query: str = "") -> None:
        """Retract in the next step, as one change, everything another site has sent.

        A later snapshot of the site, of the same or a newer epoch, brings it back. Of readings of
        the site that are read here only its progress goes, so that it holds no other site back; its
        next reading brings that back, and is judged as if the site had not been away.

        Args:
            site: The other site.
            epoch: Its epoch, from its will: a will of an earlier incarnation than the one received
                since is ignored; recursions tell the provenance of incarnations apart by it.
            query: One that was installed after the site was lost; empty: all of them.
        """
        for name, installed in self._queries.items():
            if query in {"", name}:
                installed.lose(site, epoch)
                self._pending.touch(name)
        self._sources.lose(site, for_good=False)

    def site_removed(self, site: str) -> None:
        """Discard the watermark of a permanently removed site; `site_lost` is for its rows.

        If it ever comes back it restarts: its first reading is not late, and windows that have
        closed stay closed.
        """
        self._sources.lose(site, for_good=True)

    def tell_time(self) -> None:
        """Move the clocks of sources without watermark in the next step, not only each second."""
        self._sources.tell_time = True

    def not_before(self, now: int) -> None:
        """Let no pending or later event count before a time, where the clock times events."""
        self._sources.now = max(now, self._sources.now)

    def configure(self, settings: SiteSettings) -> None:
        """Use other settings from the next step on; pending changes stay."""
        self._work.configure(settings)
        self.synopses.switch(on=settings.share_synopses)
