"""No operator starves, however much comes in, and bursts are scheduled as if nobody cared."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._schedulers.worked_examples import LOG
from stream_engine.scheduling import patience
from stream_engine.scheduling.patience import LONGEST_WAIT, Patience
from stream_engine.scheduling.query_work import OperatorTask
from stream_engine.scheduling.tasks import Task
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter, Plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

ROWS = 10
MANY = 10_000_000
V = Column(1, "v", DataType.INTEGER)

queries = st.lists(st.lists(st.integers(0, ROWS), min_size=1, max_size=4), min_size=1, max_size=3)
"""For each query, how many of ten rows pass each of its operators, one behind the other."""


def filters(passing: list[int]) -> Plan:
    plan: Plan = LOG
    for limit in passing:
        plan = Filter(plan, Call("<", (V, Literal(limit, DataType.INTEGER)), DataType.BOOLEAN))
    return plan


@dataclass
class Overload:
    """A site where a batch comes in every slice, which is enough for a run or few.

    Attributes:
        longest: The most slices in which any operator had rows and did not run.
    """

    passing: list[list[int]]
    settings: SiteSettings
    longest: int = 0
    _waits: dict[Task, int] = field(default_factory=dict)
    _now: int = 0
    _ids: int = 0

    def __post_init__(self) -> None:
        self.site = SiteEngine("here", 1)
        self.site.declare(LOG)
        for number, limits in enumerate(self.passing):
            plan = filters(limits)
            fragment = Fragment("f1", Engine.GATEWAY, plan, ("here",))
            self.site.install(FragmentBundle(f"q{number}", 1, (fragment,), plan.schema))
        self.site.step(0)
        self.site.configure(self.settings)

    @property
    def operators(self) -> int:
        return sum(map(len, self.passing))

    def slices(self, count: int) -> None:
        for _ in range(count):
            self._now += 1_000
            rows = [(self._ids + value, value) for value in range(ROWS)]
            self._ids += ROWS
            self.site.ingest("log", [SourceEvent(row, self._now) for row in rows])
            before = {task: task.turn for task in self.tasks}
            self.site.step(self._now)
            for task in self.tasks:
                idle = task.elements and task.turn == before.get(task, 0)
                self._waits[task] = self._waits.get(task, 0) + 1 if idle else 0
                self.longest = max(self.longest, self._waits[task])

    @property
    def tasks(self) -> list[OperatorTask]:
        return list(self.site._work._tasks)


@given(queries, st.sampled_from(list(SchedulerKind)[1:3]), st.sampled_from((1.0, 2.0)))
def test_every_operator_with_rows_runs_within_the_bound(
    passing: list[list[int]], scheduler: SchedulerKind, slice_ms: float
) -> None:
    overload = Overload(
        passing, SiteSettings(scheduler=scheduler, slice_ms=slice_ms, queue_rows=MANY)
    )
    overload.slices(3 * LONGEST_WAIT)
    assert overload.longest <= LONGEST_WAIT + overload.operators


@pytest.mark.parametrize("scheduler", [SchedulerKind.GREEDY, SchedulerKind.CHAIN])
def test_without_patience_an_operator_would_starve(
    scheduler: SchedulerKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the law above says something: the first operator takes every slice."""
    settings = SiteSettings(scheduler=scheduler, slice_ms=1.0, queue_rows=MANY)
    waits = []
    for longest in (LONGEST_WAIT, MANY):
        monkeypatch.setattr(patience, "LONGEST_WAIT", longest)
        overload = Overload([[2, 0]], settings)
        overload.slices(4 * LONGEST_WAIT)
        waits.append(overload.longest)
    assert waits[0] <= LONGEST_WAIT + 2
    assert waits[1] > 3 * LONGEST_WAIT


@pytest.mark.parametrize("scheduler", [SchedulerKind.GREEDY, SchedulerKind.CHAIN])
def test_what_a_scheduler_has_not_chosen_is_a_small_share(scheduler: SchedulerKind) -> None:
    overload = Overload([[2, 0]], SiteSettings(scheduler=scheduler, slice_ms=1.0, queue_rows=MANY))
    overload.slices(20 * LONGEST_WAIT)
    first, second = (task.turn for task in overload.tasks)
    assert first + second >= 20 * LONGEST_WAIT
    assert 18 <= second <= 22


def test_a_query_that_runs_through_does_not_use_up_the_slices_of_others() -> None:
    """Here half of a slice is over before anything of the queues could run, and half in a run."""
    ticks = iter(range(0, 10**12, 5_000_000))
    site = SiteEngine("here", 1, stopwatch=lambda: next(ticks))
    site.declare(LOG)
    plan = filters([5, 5])
    site.install(
        FragmentBundle("q", 1, (Fragment("f1", Engine.GATEWAY, plan, ("here",)),), plan.schema)
    )
    site.step(0)
    site.configure(SiteSettings(slice_ms=1.0))
    site.ingest("log", [SourceEvent((1, 1), 1)])
    site.step(1)
    given_out = [outgoing for now in range(2, 4) for outgoing in site.step(now).outgoing]
    assert len(given_out) == 1


def test_an_operator_that_is_gone_does_not_wait_any_more() -> None:
    gone, other = Task(0), Task(1)
    waiting = Patience()
    waiting.drop(gone)  # it does not wait
    waiting.begins(gone, 0)
    waiting.begins(other, 5)
    waiting.drop(gone)
    assert len(waiting) == 1
    assert waiting.overdue(LONGEST_WAIT + 4) is None
    assert waiting.overdue(LONGEST_WAIT + 5) is other


@given(st.lists(st.integers(0, 4), max_size=100))
def test_whoever_is_overdue_has_waited_longest(moves: list[int]) -> None:
    tasks = [Task(order) for order in range(5)]
    waiting, since = Patience(), dict.fromkeys(range(5), -1)
    for now, number in enumerate(moves):
        if since[number] < 0:
            waiting.begins(tasks[number], now)
            since[number] = now
        else:
            waiting.ran(tasks[number], now)  # nothing is left
            since[number] = -1
        alive = [order for order in since if since[order] >= 0]
        found = waiting.overdue(now + LONGEST_WAIT)
        assert len(waiting) == len(alive)
        assert (found is None) == (not alive)
        if found is not None:
            assert since[found.order] == min(since[order] for order in alive)
