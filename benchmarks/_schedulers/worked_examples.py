"""The two bursts by which the STREAM thesis explains its schedulers (section 2.3), in a site.

Batches of n rows arrive in seven units of time, and a run of an operator takes one unit.
"""

from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter, Plan, Scan, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

N = 10
"""Rows of a batch."""
UNITS = 7
"""Units of time in which batches arrive."""
UNIT = 1_000
"""Microseconds: what a run counts for in a site without a stopwatch."""

EXAMPLES: dict[str, tuple[int, ...]] = {"1": (2, 0), "2": (9, 9, 0)}
"""How many of n rows pass each operator."""

LOG = Scan("log", SourceKind.STREAM, Schema.of(("id", DataType.INTEGER), ("v", DataType.INTEGER)))


class Burst:
    """A site that has measured its operators, before a burst.

    Args:
        example: Of `EXAMPLES`.
        scheduler: Which operator runs next.
    """

    def __init__(self, example: str, scheduler: SchedulerKind) -> None:
        plan: Plan = LOG
        value = Column(1, "v", DataType.INTEGER)
        for passing in EXAMPLES[example]:
            limit = Literal(passing, DataType.INTEGER)
            plan = Filter(plan, Call("<", (value, limit), DataType.BOOLEAN))
        fragment = Fragment("f1", Engine.GATEWAY, plan, ("here",))
        self.site = SiteEngine("here", 1)
        self.site.declare(LOG)
        self.site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
        self._ids = 0
        self._now = 0
        self.site.measured = True
        self.unit(arrives=True)
        self.site.measured = False
        self.site.configure(SiteSettings(scheduler=scheduler, slice_ms=1.0))
        meter = self.site.queues
        self._before = (meter.row_ns, meter.ns)

    def unit(self, *, arrives: bool = True) -> float:
        """Let a unit of time pass; return what waited in it, in multiples of n."""
        self._now += UNIT
        if arrives:
            rows = [(self._ids + value, value) for value in range(N)]
            self.site.ingest("log", [SourceEvent(row, self._now) for row in rows])
            self._ids += N
        self.site.step(self._now)
        return self.site.queues.begun_rows / N

    def average(self) -> float:
        """Return what waited on average since the burst began, as the site has measured it."""
        meter = self.site.queues
        return (meter.row_ns - self._before[0]) / (meter.ns - self._before[1]) / N


def table() -> dict[str, list[float]]:
    """Return what waits in each unit of the burst, and the average, by example and scheduler."""
    found = {}
    for example in EXAMPLES:
        for scheduler in SchedulerKind:
            burst = Burst(example, scheduler)
            waiting = [burst.unit() for _ in range(UNITS)]
            found[f"example {example}, {scheduler.value}"] = [*waiting, burst.average()]
    return found
