"""Refreshing: which tables views need now, and the views that are due computed in their turn.

A view must show what its tables held when it became due, or when somebody asked for it. Tables are
read in turns, so one read just before is not good enough, nor is a file that is being written.
Everything here belongs to the event loop; a worker reads files and evaluates.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from host.clocks import wall_clock
from static_engine.evaluation.static_executor import StaticExecutor
from static_engine.refreshing.views import RefreshedViews
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan
from streamsql.errors import FederationError
from streamsql.history.past_plans import fixed

LONGEST_WAIT = 60.0
"""Seconds a view waits for files that keep changing; then it is computed from what was read."""
ExecutorFor = Callable[[Plan], StaticExecutor | None]
"""What evaluates a plan now, or None: nothing does yet."""
Compute = Callable[[Callable[[], None]], Awaitable[bool]]
"""Runs an evaluation where it stops nobody; returns whether the engine has survived it."""


class Readiness:
    """Remembers for which due views the tables were read. Belongs to the event loop.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._read: set[str] = set()

    def due(self, views: Iterable[str]) -> frozenset[str]:
        """Set the views that are due; return those whose tables have yet to be read."""
        now = self._clock()
        self._since = {view: self._since.get(view, now) for view in views}
        self._read &= self._since.keys()
        return frozenset(self._since.keys() - self._read)

    def reading(self, views: Iterable[str]) -> None:
        """Note that the tables of due views are read from now on."""
        self._read |= self._since.keys() & set(views)

    def unsettled(self, view: str) -> None:
        """Note that a table of a view was changing while it was read."""
        if self._clock() - self._since.get(view, self._clock()) < LONGEST_WAIT:
            self._read.discard(view)

    def asked(self, view: str) -> None:
        """Note that a refresh is wanted from tables as they are now, whatever was read before."""
        self._read.discard(view)

    def is_ready(self, view: str) -> bool:
        """Return whether a view may be computed."""
        return view in self._read

    def done(self, view: str) -> None:
        """Note that a view is computed now; a later request counts again."""
        self._since.pop(view, None)
        self._read.discard(view)


class Refresher:
    """Computes views from tables that were read since the views became due.

    Args:
        store: The tables.
        watch: Reads the tables.
        views: What is refreshed, and when.
        clock: Seconds, monotonic.
        wall: Wall-clock microseconds, from which a refresh counts times of the past.
    """

    def __init__(
        self,
        store: TableStore,
        watch: TableWatch,
        views: RefreshedViews,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = wall_clock,
    ) -> None:
        self._wall = wall
        self._store = store
        self._watch = watch
        self._views = views
        self._readiness = Readiness(clock)
        self._unread: frozenset[str] = frozenset()

    def ask(self, view: str) -> bool:
        """Make a view due now, from tables as they are now; return whether there is such a view."""
        self._readiness.asked(view)
        return self._views.ask(view)

    @property
    def waits_for_tables(self) -> bool:
        """Whether some view is due whose tables have yet to be read."""
        return bool(self._readiness.due(self._views.due()))

    def tables(self) -> frozenset[str]:
        """Return the tables that views are computed from now.

        Tables whose changes nothing reports are read again, once for every view that is due.
        A view that becomes due later is none of those that `reading` is about.
        """
        due = self._views.due()
        self._unread = self._readiness.due(due)
        for name in self._views.tables(self._unread):
            table = self._store.find(name)
            if table is not None and table.fingerprint is None:  # a server does not report changes
                self._watch.read_again(name)
        return self._views.tables(due)

    def reading(self) -> None:
        """Note that the tables which `tables` has returned are read from now on."""
        self._readiness.reading(self._unread)

    async def refresh(self, executor_for: ExecutorFor, compute: Compute) -> None:
        """Compute the views that are due, as far as what they read and the engine are there."""
        waiting: set[str] = set()
        for name in self._views.due():
            if not self._may_be_computed(name) or self._views.reads(name) & waiting:
                waiting.add(name)
                continue
            tables = self._views.tables((name,))
            try:
                plan = fixed(self._views.plan(name), self._wall())
                for problem in filter(None, map(self._watch.problem, sorted(tables))):
                    raise problem
            except FederationError as error:
                self._begin(name)
                self._views.fail(name, error)
                continue
            executor = executor_for(plan)
            if executor is None or any(self._store.find(table) is None for table in tables):
                waiting.add(name)
                continue
            self._begin(name)
            if not await compute(partial(self._views.refresh, name, plan, executor)):
                return

    def _may_be_computed(self, name: str) -> bool:
        """Whether a view's tables were read since it became due, none while it was changing."""
        if any(map(self._watch.is_unsettled, self._views.tables((name,)))):
            self._readiness.unsettled(name)
        return self._readiness.is_ready(name)

    def _begin(self, name: str) -> None:
        """Note that a view is computed now; a later request counts again."""
        self._readiness.done(name)
        self._views.begin(name)
