"""The steps of a site: queries run through as a whole, or operators run one by one."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stream_engine.scheduling.site_work import Stopwatch
from stream_engine.site.measured_values import Report
from stream_engine.site.step_budget import StepBudget, StepBudgetExceeded, Unlimited
from stream_engine.site.step_result import Forget, Outgoing, StepResult
from stream_engine.site.visible_site import VisibleSite
from stream_engine.state.source_relation import SourceChanges
from streamsql.algebra.operators import Scan
from streamsql.errors import (
    FederationError,
    InternalError,
    RecursionInterruptedError,
    StepBudgetError,
)
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch

if TYPE_CHECKING:
    from stream_engine.exchange.local_feeds import LocalFeeds
    from stream_engine.site.installed_query import InstalledQuery

STOPPING = (
    StepBudgetExceeded,
    FederationError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
)
"""Errors that stop the query in which they occur, not the site."""

MAX_REMEMBERED = 1_000
"""Stopped recursive queries whose incarnations are remembered."""


class SteppingSite(VisibleSite):
    """Applies all pending input in steps, and stops queries that fail.

    A defect of one query does not stop the others. State of stopped queries: the bundles that
    failed; the incarnations of the last recursions with peers, which may know them if the query
    comes back.
    """

    def __init__(
        self, site: str, epoch: int, stopwatch: Stopwatch | None, budget: StepBudget | None
    ) -> None:
        super().__init__(site, epoch, stopwatch)
        self._budget = budget or Unlimited()
        self._feeds: LocalFeeds | None = None
        self._handed: dict[int, set[str]] = {}  # to run in this step, by rank
        self._newcomers: list[str] = []
        self._failed: dict[str, FragmentBundle] = {}
        self._lives: dict[str, tuple[int, int]] = {}
        self._resyncs: dict[tuple[str, str], None] = {}
        self._forgets: list[Forget] = []
        self._floor = 0

    def step(self, now: int) -> StepResult:
        """Apply all pending input and the passage of time.

        Args:
            now: Microseconds since 1970 UTC; a time before the last step's counts as that one.
        """
        now = self._now = max(now, self._now)
        self._steps += 1
        result = StepResult()
        if self._newcomers:
            self._share_newcomers()
        if self._feeds is not None:
            self._feeds.connect()
        sources = self._sources.advance(now)
        names = self._pending.take(self._queries, sources, now)
        # Operators one by one with FIFO and no slice take 1.9 to 2.7 times as long for steps of one
        # event, 1.5 to 1.9 times of 10, 1.06 to 1.11 times of 500 (docs/decisions/0024).
        if not self._work.is_straight:
            self._run_scheduled(names, sources, now, result)
        elif self._feeds is None:
            self._run_through(names, sources, now, result)
        else:
            for level in self._levels(names):
                self._run_through(level, sources, now, result)
        self.synopses.settle()
        result.resyncs.extend(self._resyncs)
        self._resyncs = {}
        result.forgets.extend(self._forgets)
        self._forgets = []
        return result

    def _share_newcomers(self) -> None:
        """Share the synopses of queries that are about to start; saved state is in them."""
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
        """Run queries until no work is pending between their operators."""
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
                self._emit(name, query, batches, result)

    def _run_scheduled(
        self, names: Sequence[str], sources: SourceChanges, now: int, result: StepResult
    ) -> None:
        """Queue all input, then run one operator after the other.

        Queries between whose operators nothing may be pending run first, as a whole.
        """
        self._work.begin(now)
        for level in self._levels(names):
            self._run_level(level, sources, now, result)

    def _run_level(
        self, names: Sequence[str], sources: SourceChanges, now: int, result: StepResult
    ) -> None:
        """Run queries of which none reads the result of another."""
        work = self._work
        through = [name for name in names if self._queries[name].runs_through]
        active = [name for name in names if not self._queries[name].runs_through]
        stopwatch, began = work.stopwatch if work.is_measured else None, work.used
        self._run_through(through, sources, now, result, stopwatch)
        work.ran_through(began)
        for name in active:
            with self._guarded(name, result):
                self._queries[name].admit(sources, now, work)
        work.admitted()
        while (task := work.next()) is not None:
            with self._guarded(task.work.name, result):
                work.run(task)
        for name in active:
            installed = self._queries.get(name)
            if installed is None:
                continue
            batches = None
            with self._guarded(name, result):
                batches = installed.flush(now)
            if batches is not None:
                self._emit(name, installed, batches, result)

    @contextmanager
    def _guarded(self, name: str, result: StepResult) -> Iterator[None]:
        """Count what a query spends; stop it if it fails."""
        try:
            try:
                self._budget.begin(name)
                yield
            finally:
                self._budget.end()
        except STOPPING as error:
            self._stopped(name, error, result)

    def _emit(
        self,
        name: str,
        query: "InstalledQuery",
        batches: list[tuple[str, DeltaBatch]],
        result: StepResult,
    ) -> None:
        """Add a query's output to the result of the step."""
        if batches:
            again = query.repeated
            result.outgoing.extend(
                [Outgoing(name, to, batch, to in again) for to, batch in batches]
            )
        for sender in query.take_replays_wanted():
            self._resyncs[(name, sender)] = None
        self._pending.stepped(name, query)
        if self._feeds is not None:
            for reader in self._feeds.stepped(name):  # those that it has given rows
                self._pending.changed(reader)
                self._handed.setdefault(self._queries[reader].rank, set()).add(reader)

    def _levels(self, names: Iterable[str]) -> Iterator[list[str]]:
        """Yield the queries to run, feeders before their readers, in lists to run in between.

        While a list runs, its queries may give rows to readers, which are in a later list.
        """
        waiting = self._handed
        for name in names:
            waiting.setdefault(self._queries[name].rank, set()).add(name)
        while waiting:
            yield sorted(waiting.pop(min(waiting)), key=self._pending.place)

    def _stopped(self, name: str, error: BaseException, result: StepResult) -> None:
        """Stop a query that cannot go on; a version that failed stays stopped."""
        self._budget.end()  # the budget may have run out while it was being ended
        bundle = self._queries[name].bundle
        scans = self._discard(name)
        self._drop_unused(scans)
        if isinstance(error, RecursionInterruptedError):
            return
        self._failed[name] = bundle
        failure = as_failure(name, self.site, error)
        if isinstance(failure, StepBudgetError):
            self._budget.exceeded(bundle, failure)
        result.failures.append((name, failure))

    def _discard(self, name: str) -> tuple[Scan, ...]:
        """Drop a query, running or failed; return the scans that it has read."""
        self._failed.pop(name, None)
        stopped = self._queries.pop(name, None)
        if stopped is not None:
            if self._feeds is not None:
                self._feeds.discarded(name, stopped)
            self._pending.drop(name, stopped)
            for level in self._handed.values():
                level.discard(name)
            self._sources.clocks.drop(stopped.scans)
            self._out_of_step.pop(name, None)
            self._work.drop(name)
            self.synopses.release(name)
            self._floor = max(self._floor, stopped.last_sequence())
            self._remember_lives(stopped.bundle, stopped.next_life())
        self._resyncs = {key: None for key in self._resyncs if key[0] != name}
        return () if stopped is None else stopped.scans

    def _remember_lives(self, bundle: FragmentBundle, lives: int) -> None:
        if lives:
            self._lives.pop(bundle.query, None)
            self._lives[bundle.query] = (bundle.version, lives)
            if len(self._lives) > MAX_REMEMBERED:
                del self._lives[next(iter(self._lives))]

    def _first_life(self, bundle: FragmentBundle) -> int:
        """Return the first incarnation of recursions that peers of a bundle's version lack."""
        running = self._queries.get(bundle.query)
        if running is not None and running.bundle.version == bundle.version:
            return running.next_life()
        version, lives = self._lives.get(bundle.query, (0, 0))
        return lives if version == bundle.version else 0

    def _drop_unused(self, scans: Iterable[Scan]) -> None:
        """Discard, of the sources of some scans, what is neither declared nor read any more."""
        if not self._pending.told:
            self._report = Report()
        self._sources.keep({scan.source for scan in scans}, self._pending.readers)


def as_failure(query: str, site: str, error: BaseException) -> FederationError:
    """Return one of the `STOPPING` errors of a query in an operator's words."""
    if isinstance(error, FederationError):
        return error
    if isinstance(error, StepBudgetExceeded):
        return StepBudgetError(
            f"query {query} is stopped at site {site}: it {error}",
            hint="read fewer rows: a window, a stricter condition, a key in every join; then "
            "DROP QUERY and start it again",
        )
    return InternalError(f"query {query} failed at site {site}: {error!r:.300}")
