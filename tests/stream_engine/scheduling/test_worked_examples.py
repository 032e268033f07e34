"""The two bursts of the STREAM thesis, section 2.3, in a site.

Batches of n rows arrive at t = 0 to 6, an operator run takes one unit of time, and the figure is
what waits in all queues, in multiples of n, before the run of that unit.
"""

import pytest

from stream_engine.site import SiteEngine
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter, Plan, Scan, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

N = 10
UNIT = 1_000
"""Microseconds: what a run counts for in a site without a stopwatch."""
BURST = 7

LOG = Scan("log", SourceKind.STREAM, Schema.of(("id", DataType.INTEGER), ("v", DataType.INTEGER)))

FIRST, SECOND = (2, 0), (9, 9, 0)
"""How many of n rows each operator lets through."""

FIFO, GREEDY, CHAIN, TURNS = SchedulerKind

TABLE = [
    (FIRST, FIFO, [1.0, 1.2, 2.0, 2.2, 3.0, 3.2, 4.0], 2.4),
    (FIRST, GREEDY, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2], 1.6),
    (FIRST, CHAIN, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2], 1.6),
    (SECOND, FIFO, [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0], 3.2),
    (SECOND, GREEDY, [1.0, 1.9, 2.8, 3.7, 4.6, 5.5, 6.4], 3.7),
    (SECOND, CHAIN, [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0], 3.2),
]


def filters(passing: tuple[int, ...]) -> Plan:
    plan: Plan = LOG
    for most in passing:
        limit = Literal(most, DataType.INTEGER)
        value = Column(1, "v", DataType.INTEGER)
        plan = Filter(plan, Call("<", (value, limit), DataType.BOOLEAN))
    return plan


class Burst:
    """A site that knows its operators, and what waited in it from the burst's first unit on."""

    def __init__(self, passing: tuple[int, ...], scheduler: SchedulerKind) -> None:
        plan = filters(passing)
        fragment = Fragment("f1", Engine.GATEWAY, plan, ("here",))
        self.site = SiteEngine("here", 1)
        self.site.declare(LOG)
        self.site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
        self.ids = 0
        self.now = 0
        self.site.measured = True
        self.unit(arrives=True)
        self.site.measured = False
        self.site.configure(SiteSettings(scheduler=scheduler, slice_ms=1.0))
        meter = self.site.queues
        self.before = (meter.row_ns, meter.ns)

    def unit(self, *, arrives: bool) -> float:
        self.now += UNIT
        if arrives:
            rows = [(self.ids + value, value) for value in range(N)]
            self.site.ingest("log", [SourceEvent(row, self.now) for row in rows])
            self.ids += N
        self.site.step(self.now)
        return self.site.queues.begun_rows / N

    def average(self) -> float:
        meter = self.site.queues
        return (meter.row_ns - self.before[0]) / (meter.ns - self.before[1]) / N


@pytest.mark.parametrize(("passing", "scheduler", "queued", "average"), TABLE)
def test_the_queues_of_the_thesis(
    passing: tuple[int, ...], scheduler: SchedulerKind, queued: list[float], average: float
) -> None:
    burst = Burst(passing, scheduler)
    assert [burst.unit(arrives=True) for _ in range(BURST)] == queued
    assert burst.average() == pytest.approx(sum(queued) / BURST)
    assert round(burst.average(), 1) == average
    assert burst.site.queues.peak_rows == max(queued) * N


@pytest.mark.parametrize("passing", [FIRST, SECOND])
def test_chain_is_as_good_as_the_better_one(passing: tuple[int, ...]) -> None:
    averages = {}
    for scheduler in SchedulerKind:
        burst = Burst(passing, scheduler)
        for _ in range(BURST):
            burst.unit(arrives=True)
        averages[scheduler] = burst.average()
    assert averages[CHAIN] == min(averages[FIFO], averages[GREEDY])


@pytest.mark.parametrize("scheduler", SchedulerKind)
def test_the_queues_are_empty_when_all_work_is_done(scheduler: SchedulerKind) -> None:
    burst = Burst(FIRST, scheduler)
    waiting = [burst.unit(arrives=unit < BURST) for unit in range(2 * BURST + 1)]
    assert all(rows > 0 for rows in waiting[:-1])
    assert waiting[-1] == 0
    assert burst.site.next_wakeup() is None
