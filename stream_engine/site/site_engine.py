"""An engine site: sources, queries and channels of one gateway or base station.

Pure and synchronous. Whoever embeds it owns clock and network: it hands in events and batches,
calls `step` with the time, and sends what comes out.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from stream_engine.scheduling.site_work import Stopwatch
from stream_engine.site.measured_values import Report
from stream_engine.site.query_exchange import SourceChanges
from stream_engine.site.query_failure import STOPPING, as_failure
from stream_engine.site.recursion_incarnations import RecursionLives
from stream_engine.site.step_budget import Refusal, StepBudget, Unlimited
from stream_engine.site.step_result import Forget, Outgoing, StepResult
from stream_engine.site.visible_site import VisibleSite
from stream_engine.state.watermark import HERE
from streamsql.algebra.operators import Scan
from streamsql.data.events import SourceEvent
from streamsql.errors import (
    FederationError,
    RecursionInterruptedError,
    StepBudgetError,
)
from streamsql.wire.channel_protocol import Reception
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch
from streamsql.wire.site_settings import SiteSettings

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


class SiteEngine(VisibleSite):
    """All that one site of the federation computes.

    Everything between two steps is one change: a step applies all events, batches and losses since
    the last one and runs every affected query to local quiescence, so that a channel carries at
    most one change per port and step. With settings that bound a step's time, or another scheduler
    than FIFO, operators run one by one instead, and what is left waits for the next step.
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
        """Create a site without sources and queries.

        Args:
            site: Its id.
            epoch: Grows with every restart; receivers recognize a new life by it.
            stopwatch: Gives nanoseconds, to measure how long operators run; None: every run of an
                operator counts one millisecond.
            budget: Ends queries that take too much in one step; None: nothing is counted.
            refusal: Tells why a query must not be run here; None: all are run.
        """
        super().__init__(site, epoch, stopwatch)
        self._budget = budget or Unlimited()
        self._refusal = refusal
        self._newcomers: list[str] = []
        self._failed: dict[str, FragmentBundle] = {}
        self._lives = RecursionLives()
        self._interrupted: set[str] = set()
        self._resyncs: dict[tuple[str, str], None] = {}
        self._forgets: list[Forget] = []
        self._floor = 0

    def declare(self, scan: Scan) -> None:
        """Keep a source's rows from now on, so that queries installed later see what is there.

        Another definition of the same source replaces the first; it starts empty.
        """
        self._sources.declare(scan, self._now)
        self._drop_unused((scan,))

    def install(self, bundle: FragmentBundle) -> None:
        """Run the fragments of a query that name this site, in place of an older version.

        The next step sends a snapshot on every channel and asks every sender for one, because
        either side may be the first to run. An older version is ignored, and so is the same bundle
        again; another one of the same version comes from a new catalog, and is run.

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
        life = self._lives.next(bundle)
        if running is not None and running.bundle.version == bundle.version:
            life = running.next_life()
        # Circuits and channels come with the first query.
        from stream_engine.site.installed_query import InstalledQuery

        query = InstalledQuery(
            bundle,
            site=self.site,
            epoch=self.epoch,
            first=self._floor if running is None else max(self._floor, running.last_sequence()),
            first_life=life,
            interrupted=partial(self._interrupted.__contains__, bundle.query),
        )
        self._interrupted.discard(bundle.query)
        for scan in query.scans:
            self._sources.check_columns(scan)
        stopped = self._forget(bundle.query)
        if bundle.at(self.site):
            self._queries[bundle.query] = query
            self._news.add(bundle.query, query)
            self._sources.clocks.add(query.scans)
            self._newcomers.append(bundle.query)
            for scan in query.scans:
                self._sources.relation(scan, self._now)
            for sender in query.senders:
                self._resyncs[(bundle.query, sender)] = None
        self._drop_unused(stopped)  # last: a source that only the old version read keeps its rows

    def interrupt(self, query: str) -> None:
        """Let a step end early that works on a recursion of a query; `uninstall` has to follow.

        Unlike everything else here this may be called by another thread while `step` runs.
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
        self._drop_unused(self._forget(query))

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
        self._news.touch(query)
        if installed.receive(sender, batch) == Reception.GAP:
            self._resyncs[(query, sender)] = None

    def resync(self, query: str, destination: str) -> bool:
        """Send a snapshot of a channel in the next step ("" is the result).

        Returns:
            Whether there is such a channel; a query that is not here yet will send one anyway.
        """
        installed = self._queries.get(query)
        if installed is None:
            return False
        self._news.touch(query)
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
        self._news.touch_all()

    def site_lost(self, site: str, epoch: int | None = None, query: str = "") -> None:
        """Retract in the next step, as one change, everything another site has sent.

        Of readings of the site that are read here only its progress goes, so that it holds nobody
        back; its next reading brings that back, and is judged as if it had not been away.

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
                self._news.touch(name)
        self._sources.lose(site, for_good=False)

    def site_removed(self, site: str) -> None:
        """Forget how far the readings of a site had come that were read here.

        For a site that was removed for good; `site_lost` is for its rows. If it ever comes back it
        begins anew: its first reading is not late, and windows that have closed stay closed.
        """
        self._sources.lose(site, for_good=True)

    def tell_time(self) -> None:
        """Let the clocks of all sources without watermark move in the next step.

        By themselves they do every second: whoever needs an answer as of now asks for more.
        """
        self._sources.tell_time = True

    def not_before(self, now: int) -> None:
        """Let nothing that waits or comes count before a time, where the site's clock says when."""
        self._sources.now = max(now, self._sources.now)

    def configure(self, settings: SiteSettings) -> None:
        """Use other settings from the next step on; what waits between operators waits on."""
        self._work.configure(settings)
        self.synopses.switch(on=settings.sharing)

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
        names = self._news.take(self._queries, sources, now)
        if self._work.is_straight:
            self._run_through(names, sources, now, result)
        else:
            self._run_scheduled(names, sources, now, result)
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
        budget = self._budget
        for name in names:
            query = self._queries[name]
            try:
                try:
                    budget.begin(name)
                    batches = query.step(sources, now, stopwatch)
                finally:
                    budget.end()
            except STOPPING as error:
                self._stopped(name, error, result)
            else:
                self._give(name, query, batches, result)
                self._news.stepped(name, query)

    def _run_scheduled(
        self, names: Sequence[str], sources: SourceChanges, now: int, result: StepResult
    ) -> None:
        """Let all that came in wait, then run one operator after the other.

        Queries in which nothing may be left waiting come first, as a whole.
        """
        work = self._work
        work.begin(now)
        through = [name for name in names if self._queries[name].runs_through]
        active = [name for name in names if not self._queries[name].runs_through]
        self._run_through(
            through, sources, now, result, work.stopwatch if work.is_measured else None
        )
        work.ran_through()
        for name in active:
            try:
                with self._within_budget(name):
                    self._queries[name].admit(sources, now, work)
            except STOPPING as error:
                self._stopped(name, error, result)
        work.admitted()
        while (task := work.next()) is not None:
            try:
                with self._within_budget(task.work.name):
                    work.run(task)
            except STOPPING as error:
                self._stopped(task.work.name, error, result)
        for name in active:
            installed = self._queries.get(name)
            if installed is None:
                continue
            try:
                with self._within_budget(name):
                    batches = installed.flush(now)
            except STOPPING as error:
                self._stopped(name, error, result)
            else:
                self._give(name, installed, batches, result)
                self._news.stepped(name, installed)

    @contextmanager
    def _within_budget(self, query: str) -> Iterator[None]:
        try:
            self._budget.begin(query)
            yield
        finally:
            self._budget.end()

    def _give(
        self,
        name: str,
        query: "InstalledQuery",
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

    def _stopped(self, name: str, error: BaseException, result: StepResult) -> None:
        """Stop a query that cannot go on; its defect must not stop the others."""
        self._budget.end()  # the budget may have run out while it was being ended
        if isinstance(error, RecursionInterruptedError):
            self._drop_unused(self._forget(name))
        else:
            self._fail(name, as_failure(name, self.site, error), result)

    def _fail(self, name: str, error: FederationError, result: StepResult) -> None:
        """Stop a query here; its version stays known, so that it is not started again."""
        bundle = self._queries[name].bundle
        scans = self._forget(name)
        self._failed[name] = bundle
        self._drop_unused(scans)
        if isinstance(error, StepBudgetError):
            self._budget.exceeded(bundle, error)
        result.failures.append((name, error))

    def _forget(self, name: str) -> tuple[Scan, ...]:
        """Drop a query, running or failed; return the scans that it has read."""
        self._failed.pop(name, None)
        stopped = self._queries.pop(name, None)
        if stopped is not None:
            self._news.drop(name, stopped)
            self._sources.clocks.drop(stopped.scans)
            self._out_of_step.pop(name, None)
            self._work.drop(name)
            self.synopses.release(name)
            self._floor = max(self._floor, stopped.last_sequence())
            self._lives.stopped(stopped.bundle, stopped.next_life())
        self._resyncs = {key: None for key in self._resyncs if key[0] != name}
        return () if stopped is None else stopped.scans

    def _drop_unused(self, scans: Iterable[Scan]) -> None:
        """Forget, of the sources of some scans, what is neither declared nor read any more."""
        if not self._news.told:
            self._report = Report()
        self._sources.keep({scan.source for scan in scans}, self._news.readers)
