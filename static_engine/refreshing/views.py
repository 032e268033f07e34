"""Views of `REFRESH AT`: when each is computed, and with which result.

The rows of a refresh are a stored table to everybody else, one version each: they are on disk
before anybody sees them, and a refresh that fails leaves the old ones. Times are handed in.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from static_engine.evaluation.static_executor import EngineLostError, StaticExecutor, tables_of
from static_engine.refreshing.rows_file import Header, KeptRows, RowsFolder
from static_engine.sources.table_errors import TableError
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import next_refresh, zone_of
from streamsql.errors import FederationError, InternalError
from streamsql.wire.site_messages import RefreshState
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder

log = logging.getLogger(__name__)

MICROSECONDS = 1_000_000
FIRST_PAUSE = 30
LONGEST_PAUSE = 3_600
"""Seconds before a refresh that failed is tried again: doubled each time, at most this."""


@dataclass(slots=True)
class _View:
    """One view. Times are microseconds since 1970 UTC.

    Attributes:
        last: When its rows were computed, or None.
        due: When it is computed next.
        failures: Refreshes that have failed since.
    """

    order: RefreshOrder
    last: int | None = None
    due: int = 0
    seconds: float | None = None
    rows: int = 0
    problem: FederationError | None = None
    failed: int | None = None
    failures: int = 0

    @property
    def tables(self) -> frozenset[str]:
        """Names of what its query reads, views of this kind among them."""
        return frozenset() if self.order.plan is None else tables_of(self.order.plan)


class RefreshedViews:
    """Keeps the rows of views in a `TableStore`.

    `adopt` and `refresh` belong to the one thread that reads tables; the rest to the event loop.
    Only `define` and `ask` may come while that thread works.

    Args:
        store: Where queries find the rows.
        folder: Where they outlive the process.
        clock: Wall-clock microseconds.
    """

    def __init__(self, store: TableStore, folder: RowsFolder, clock: Callable[[], int]) -> None:
        self._store = store
        self._folder = folder
        self._clock = clock
        self._views: dict[str, _View] = {}
        self._orders: tuple[RefreshOrder, ...] | None = None
        self._defined: frozenset[str] = frozenset()
        self._asked: set[str] = set()  # views to be refreshed at once

    def define(self, orders: Iterable[RefreshOrder]) -> None:
        """Set the views; `adopt` puts them into effect."""
        self._orders = tuple(orders)
        self._defined = frozenset(order.definition.name for order in self._orders)
        self._asked &= self._defined

    @property
    def has_new(self) -> bool:
        """Whether `adopt` has something to do."""
        return self._orders is not None

    def adopt(self) -> None:
        """Put the defined views into effect, with the rows of the last refresh if there are any."""
        orders, self._orders = self._orders, None
        if orders is None:
            return
        before, self._views = self._views, {}
        for given in orders:
            order = _checked(given)
            name = order.definition.name
            known = before.pop(name, None)
            if known is not None and known.order.definition == order.definition:
                if known.order.zone != order.zone and known.last is not None:
                    known.due = self._next(order, known.last)
                if known.order.problem and not order.problem and known.failures:
                    self._asked.add(name)  # what was in the way is gone
                known.order = order
                self._views[name] = known
                continue
            self._store.discard(name)
            self._views[name] = self._restored(order)
        for name in before:
            self._store.discard(name)
        self._folder.keep_only(self._views)

    @property
    def names(self) -> frozenset[str]:
        """Names of all views."""
        return frozenset(self._views)

    def ask(self, name: str) -> bool:
        """Make a view due now, even before `adopt`; return whether there is such a view."""
        if name in self._defined:
            self._asked.add(name)
        return name in self._defined

    def due(self) -> tuple[str, ...]:
        """Return the views to be computed now, each behind those it reads."""
        now = self._clock()
        waiting = {n: v for n, v in self._views.items() if n in self._asked or v.due <= now}
        found: list[str] = []
        while waiting:
            free = [n for n, v in waiting.items() if not v.tables & (waiting.keys() - {n})]
            for name in free or list(waiting):
                found.append(name)
                del waiting[name]
        return tuple(found)

    def seconds_to_next(self) -> float:
        """Return when the next view becomes due that is not yet."""
        now = self._clock()
        due = min((view.due for view in self._views.values() if view.due > now), default=None)
        return float("inf") if due is None else (due - now) / MICROSECONDS

    def plan(self, name: str) -> Plan:
        """Return what computes a view.

        Raises:
            TableError: It cannot be computed now: what it reads has changed, or has no rows yet.
        """
        view = self._views[name]
        if view.order.plan is None:
            hint = "DROP the view and create it again"
            raise TableError(f"view {name}: {view.order.problem}", hint=hint)
        for read in sorted(view.tables & self.names):
            if self._views[read].last is None:
                raise TableError(f"view {name} reads view {read}, which has no rows yet")
        return view.order.plan

    def reads(self, name: str) -> frozenset[str]:
        """Return the other views that a view reads."""
        return self._views[name].tables & self.names

    def tables(self, names: Iterable[str]) -> frozenset[str]:
        """Return the stored tables that views read, without other views."""
        return frozenset().union(*(self._views[name].tables for name in names)) - self.names

    def problem(self, name: str) -> FederationError | None:
        """Return why the last refresh of a view has failed, or None."""
        view = self._views.get(name)
        return view.problem if view is not None else None

    def begin(self, name: str) -> None:
        """Note that a view is computed now; a later request counts again."""
        self._asked.discard(name)

    def refresh(self, name: str, plan: Plan, executor: StaticExecutor) -> None:
        """Compute a view by its plan and replace its rows.

        Raises:
            EngineLostError: The engine is gone; it counts as a failed refresh.
        """
        view = self._views[name]
        began, ticks = self._clock(), time.perf_counter()
        try:
            batches = executor.batches(plan, self._folder.scratch)
            seconds = time.perf_counter() - ticks
            rows = self._with_room(view.order.definition, batches)
            kept = self._folder.write(Header(view.order.definition, began, seconds), rows)
            self._take(view, kept)
        except EngineLostError as error:
            self.fail(name, error)
            raise
        except FederationError as error:
            self.fail(name, error)
        except Exception as error:  # one view must not stop the others
            log.exception("a defect interrupted the refresh of view %s", name)
            self.fail(name, InternalError(f"refresh failed: {type(error).__name__}: {error}"))
        else:
            view.problem, view.failed, view.failures = None, None, 0

    def fail(self, name: str, error: FederationError) -> None:
        """Note that a refresh has failed; the old rows stay, and the refresh is retried."""
        view, now = self._views[name], self._clock()
        pause = min(FIRST_PAUSE * 2 ** min(view.failures, 10), LONGEST_PAUSE)
        view.due = min(now + pause * MICROSECONDS, self._next(view.order, now))
        view.problem, view.failed = error, now
        view.failures += 1
        log.warning("view %s is not refreshed: %s", name, error.message)

    def states(self) -> tuple[RefreshState, ...]:
        """Return how all views are doing."""
        return tuple(
            RefreshState(
                name,
                last=view.last,
                next=view.due if view.last is not None or view.failures else None,
                seconds=view.seconds,
                rows=view.rows,
                problem=_words(view.problem),
                failed=view.failed,
            )
            for name, view in self._views.items()
        )

    def _restored(self, order: RefreshOrder) -> _View:
        view = _View(order)
        try:
            kept = self._folder.read(order.definition)
            if kept is not None:
                self._take(view, kept)
        except TableError as error:
            log.warning("%s; it is recomputed", error.message)
        return view

    def _with_room(
        self, definition: SourceDefinition, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches while their rows may be kept.

        Raises:
            TableError: They may not.
        """
        count = 0
        for batch in batches:
            count += batch.num_rows
            self._store.check_room(definition, count)
            yield batch

    def _take(self, view: _View, kept: KeptRows) -> None:
        self._store.put(view.order.definition, kept.path)
        view.last, view.seconds = kept.header.last, kept.header.seconds
        view.rows = kept.rows
        # Where the clock was ahead when the rows were computed, times count from now.
        view.due = self._next(view.order, min(view.last, self._clock()))

    def _next(self, order: RefreshOrder, after: int) -> int:
        schedule = order.definition.refresh
        if schedule is None:
            raise InternalError(f"{order.definition.name} is not refreshed")
        return next_refresh(after, schedule.times, zone_of(order.zone))


def _checked(order: RefreshOrder) -> RefreshOrder:
    """Return the order, or one that only keeps the rows there are if this host lacks its zone."""
    try:
        zone_of(order.zone)
    except ValueError as error:
        return RefreshOrder(order.definition, None, problem=f"{error} on this host")
    return order


def _words(problem: FederationError | None) -> str:
    return "" if problem is None else problem.message[:500]
