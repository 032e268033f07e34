"""All pending operators of a site, and the slice of time they share."""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, cast

from stream_engine.scheduling.chain import ChainScheduler
from stream_engine.scheduling.patience import Patience
from stream_engine.scheduling.policies import (
    FifoScheduler,
    GreedyScheduler,
    Priority,
    RoundRobinScheduler,
    Scheduler,
)
from stream_engine.scheduling.queue_meter import QueueMeter
from stream_engine.scheduling.tasks import Element, Task
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

if TYPE_CHECKING:  # it comes with the first query, and the channels with it
    from stream_engine.scheduling.query_work import OperatorTask, QueryWork

Stopwatch = Callable[[], int]
"""Returns nanoseconds since any moment; never goes back."""

UNIT = 1_000_000
"""Nanoseconds that every run of an operator counts where no stopwatch is handed in."""

MOST_STALE = 32
"""Max stale entries in the heap, beyond twice the pending operators."""

_SCHEDULERS: dict[SchedulerKind, Callable[[], Scheduler]] = {
    SchedulerKind.FIFO: FifoScheduler,
    SchedulerKind.GREEDY: GreedyScheduler,
    SchedulerKind.CHAIN: ChainScheduler,
    SchedulerKind.ROUND_ROBIN: RoundRobinScheduler,
}

_Entry = tuple[Priority, int, int, "OperatorTask"]
"""A pending operator: its priority, its order, its turn when it was asked, and itself."""


class SiteWork:
    """The queues of all queries of a site that may be left pending, under one scheduler.

    A step begins with `begin`, ingests changes, then runs one operator after the other while `next`
    returns one. Policies and settings may change between two steps; pending changes stay.

    Args:
        stopwatch: Measures runs and slices; None: every run counts one `UNIT`.

    Attributes:
        batch: Number of the current step.
    """

    def __init__(self, stopwatch: Stopwatch | None = None) -> None:
        self.meter = QueueMeter()
        self.batch = 0
        self.settings = SiteSettings()
        self.stopwatch = stopwatch
        self.orders = count()
        self._measured = False
        self._in_order = True
        self._scheduler = _SCHEDULERS[self.settings.scheduler]()
        self._queries: dict[str, QueryWork] = {}
        self._tasks: list[OperatorTask] = []
        self._patience = Patience()
        self._ready: list[_Entry] = []
        self._began = 0
        self._counted = 0
        self._runs = 0

    # --- settings and queries -------------------------------------------------------------------

    def configure(self, settings: SiteSettings) -> None:
        """Use other settings from the next run on."""
        if settings.scheduler != self.settings.scheduler:
            self._scheduler = _SCHEDULERS[settings.scheduler]()
            self._scheduler.begin(self._tasks)
            self._order(sorted(self._waiting(), key=lambda task: task.order))
        self.settings = settings
        self._note_order()

    @property
    def is_measured(self) -> bool:
        """Whether everything is measured, whatever it costs."""
        return self._measured

    @is_measured.setter
    def is_measured(self, wanted: bool) -> None:
        self._measured = wanted
        self._note_order()

    @property
    def is_straight(self) -> bool:
        """Whether each step runs whole, in the order of the plan."""
        return self._in_order and not self.meter.batches

    def _note_order(self) -> None:
        settings = self.settings
        in_order = settings.scheduler == SchedulerKind.FIFO and settings.slice_ms is None
        self._in_order = in_order and not self._measured

    def add(self, query: "QueryWork") -> None:
        """Add the operators of a query."""
        self._queries[query.name] = query
        self._tasks.extend(query.tasks)

    def drop(self, name: str) -> None:
        """Discard the operators of a query, and what is pending there."""
        query = self._queries.pop(name, None)
        if query is None:
            return
        self._tasks = [task for task in self._tasks if task.work is not query]
        self._ready = [entry for entry in self._ready if entry[3].work is not query]
        heapify(self._ready)
        for task in query.tasks:
            self._patience.drop(task)
            self.meter.took(sum(port.rows for port in task.ports), len(task.elements))
            task.elements.clear()

    # --- steps ----------------------------------------------------------------------------------

    def begin(self, now: int) -> None:
        """Begin a step at a time in microseconds since 1970 UTC."""
        self.batch += 1
        self.meter.begin(now)
        self.meter.begun_rows = 0
        if self._scheduler.begin(self._tasks):
            self._order(self._waiting())
        self._began = 0 if self.stopwatch is None else self.stopwatch()
        self._counted = 0
        self._runs = 0

    def ran_through(self, since: int) -> None:
        """Count the time of queries whose operators do not run one by one.

        Args:
            since: What was `used` before they ran.
        """
        if self.stopwatch is not None:
            self.meter.ran(self.meter.rows, self.used - since)

    def admitted(self) -> None:
        """Note that input is in the queues; that of readers of results comes when these are."""
        self.meter.begun_rows = max(self.meter.begun_rows, self.meter.rows)

    def put(self, task: Task, element: Element) -> None:
        """Queue an element at an operator of a query that was added."""
        task.put(element)
        self.meter.put(len(element.delta))
        if not task.waits:
            task.waits = True
            self._patience.begins(task, self.batch)
            heappush(self._ready, self._entry(cast("OperatorTask", task)))  # all of queries are

    def next(self) -> "OperatorTask | None":
        """Return the operator to run now; None if nothing is pending or the slice is used up.

        A slice is exceeded while more rows are pending than the settings allow, and by the first
        operator, which runs even if whole queries have used the slice up.
        """
        ready = self._ready
        while ready and ready[0][2] != ready[0][3].turn:
            heappop(ready)  # stale: it has run since
        if not ready:
            return None
        settings = self.settings
        if self._runs and settings.slice_ms is not None:
            is_over = self.used >= settings.slice_ms * 1e6
            if is_over and self.meter.rows <= settings.queue_rows:
                return None
        if self._scheduler.may_starve:
            overdue = self._patience.overdue(self.batch)
            if overdue is not None:
                return cast("OperatorTask", overdue)
        return ready[0][3]

    @property
    def used(self) -> int:
        """Nanoseconds since the step began; units of runs without stopwatch."""
        return self._counted if self.stopwatch is None else self.stopwatch() - self._began

    def run(self, task: "OperatorTask") -> None:
        """Let the operator that `next` has returned take its oldest element.

        Whatever it raises, its query is of no more use and has to be dropped.
        """
        self._runs += 1
        if task is self._ready[0][3]:
            heappop(self._ready)
        meter, stopwatch = self.meter, self.stopwatch
        before = meter.rows
        rows = len(task.elements[0].delta)
        meter.took(rows)
        began = 0 if stopwatch is None else stopwatch()
        delta = task.work.run(task)
        time = UNIT if stopwatch is None else stopwatch() - began
        self._counted += time
        meter.ran(before, time)
        task.profile.add(rows, meter.rows - before + rows, time)
        wiring = task.node.wiring
        if self._measured:
            wiring.ran(delta, time)
        else:
            wiring.runs += 1
            wiring.busy_ns += time
        self._patience.ran(task, self.batch)
        if task.elements:
            heappush(self._ready, self._entry(task))
        else:
            task.waits = False
        if len(self._ready) > 2 * len(self._patience) + MOST_STALE:
            self._ready = [entry for entry in self._ready if entry[2] == entry[3].turn]
            heapify(self._ready)

    def _entry(self, task: "OperatorTask") -> _Entry:
        return (self._scheduler.priority(task), task.order, task.turn, task)

    def _waiting(self) -> list["OperatorTask"]:
        return [task for _priority, _order, turn, task in self._ready if turn == task.turn]

    def _order(self, tasks: Iterable["OperatorTask"]) -> None:
        self._ready = [self._entry(task) for task in tasks]
        heapify(self._ready)
