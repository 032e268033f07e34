"""Slices, bounds, failures and measures of operators that run one by one."""

from collections.abc import Iterator
from itertools import count

import pytest

from stream_engine.circuit.nodes import Node, OperatorNode
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.histories import COLUMNS, SECOND
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    OnClose,
    Plan,
    Project,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
    walk_plan,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch
from streamsql.wire.site_settings import SchedulerKind, SiteSettings
from tests.streamsql.from_text import bound_query, catalog_of

KEYED = Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0,))
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "c")
K, N = Column(0, "k", DataType.TEXT), Column(1, "n", DataType.INTEGER)
ONE_RUN = SiteSettings(slice_ms=1.0)


def one(number: int) -> SourceEvent:
    return SourceEvent((f"k{number}", number, 0.5), SECOND)


def several(plan: Plan = KEYED, depth: int = 3) -> Plan:
    """Return an operator behind the other."""
    for limit in range(100, 100 + depth):
        bound = Literal(limit, DataType.INTEGER)
        plan = Filter(plan, Call("<", (N, bound), DataType.BOOLEAN))
    return plan


def installed(site: SiteEngine, plan: Plan, query: str = "q") -> FragmentBundle:
    bundle = FragmentBundle(
        query, 1, (Fragment("f1", Engine.GATEWAY, plan, (site.site,)),), plan.schema
    )
    site.install(bundle)
    return bundle


@pytest.fixture
def site() -> SiteEngine:
    engine = SiteEngine("here", 1)
    engine.declare(KEYED)
    return engine


def results(site: SiteEngine, now: int, query: str = "q") -> list[DeltaBatch]:
    done = site.step(now)
    return [outgoing.batch for outgoing in done.outgoing if outgoing.query == query]


def test_a_step_ends_with_its_slice_and_the_rest_waits(site: SiteEngine) -> None:
    installed(site, several())
    site.step(0)
    site.configure(ONE_RUN)
    site.ingest("keyed", [one(1)])
    for _ in range(2):
        assert results(site, SECOND) == []
        flow = site.flow("q")
        assert flow is not None
        assert flow.busy
        assert site.next_wakeup() == SECOND
        assert site.queues.rows == 1
    assert [len(batch.deltas) for batch in results(site, SECOND)] == [1]
    flow = site.flow("q")
    assert flow is not None
    assert not flow.busy
    assert site.next_wakeup() is None


def test_the_time_of_the_oldest_reading_goes_with_a_change(site: SiteEngine) -> None:
    installed(site, several())
    site.step(0)
    site.configure(ONE_RUN)
    for number in (3, 5):
        site.ingest("keyed", [SourceEvent((f"k{number}", 1, 0.5), number)])
        site.step(SECOND)
    batches = [batch for _ in range(6) for batch in results(site, SECOND)]
    assert [batch.ts for batch in batches] == [3, 5]


def test_more_rows_than_may_wait_are_worked_on_beyond_the_slice(site: SiteEngine) -> None:
    installed(site, several())
    site.step(0)
    site.configure(SiteSettings(slice_ms=1.0, queue_rows=4))
    for number in range(40):
        site.ingest("keyed", [one(number), one(number + 100)])
        site.step(SECOND)
        assert site.queues.rows <= 4
    assert site.queues.peak_rows <= 6


def test_a_stopwatch_measures_the_slice() -> None:
    ticks = count(0, 400_000)
    site = SiteEngine("here", 1, stopwatch=lambda: next(ticks))
    site.declare(KEYED)
    installed(site, several(depth=8))
    site.step(0)
    site.configure(SiteSettings(slice_ms=3.0))
    site.ingest("keyed", [one(1)])
    site.step(SECOND)
    busy = [node.wiring.busy_ns for node in nodes(site)]
    assert 0 < sum(map(bool, busy)) < 8
    assert set(busy) <= {0, 400_000}


def nodes(site: SiteEngine, query: str = "q") -> Iterator[Node]:
    """Yield the nodes of a query's only circuit."""
    circuits, _inbox, _outbox = site._queries[query].parts
    yield from circuits["f1"].nodes


@pytest.mark.parametrize("settings", [SiteSettings(scheduler=SchedulerKind.CHAIN), ONE_RUN])
def test_uninstalling_drops_what_waits(site: SiteEngine, settings: SiteSettings) -> None:
    installed(site, several())
    other = several(depth=5)
    installed(site, other, "other")
    site.step(0)
    site.configure(ONE_RUN)
    site.ingest("keyed", [one(1)])
    site.step(SECOND)
    assert site.queues.batches == 2
    site.configure(settings)
    site.uninstall("q")
    assert site.queues.batches == 1
    assert {queue.query for queue in site.queue_measures()} == {"other"}
    given = [batch for _ in range(6) for batch in results(site, SECOND, "other")]
    assert [len(batch.deltas) for batch in given] == [1]
    assert (site.queues.rows, site.queues.batches) == (0, 0)


def test_a_new_version_begins_anew(site: SiteEngine) -> None:
    bundle = installed(site, several())
    site.step(0)
    site.configure(ONE_RUN)
    site.ingest("keyed", [one(1), one(2)])
    site.step(SECOND)
    assert site.queues.batches
    site.install(FragmentBundle("q", 2, bundle.fragments, bundle.schema))
    assert site.queues.batches == 0
    answer = ReceivingChannel(version=2)
    for _ in range(6):
        for batch in results(site, SECOND):
            answer.accept(batch)
    assert len(answer.contents["f1"]) == 2


class Failing:
    """An operator with a defect."""

    def initial(self) -> Delta:
        return {}

    def apply(self, _port: int, _delta: Delta) -> Delta:
        raise ValueError("a defect")

    def state_rows(self) -> int:
        return 0


def test_a_query_that_fails_leaves_the_others_alone(site: SiteEngine) -> None:
    installed(site, several(), "well")
    installed(site, several())
    site.step(0)
    site.configure(SiteSettings(scheduler=SchedulerKind.GREEDY))
    broken = list(nodes(site))[2]
    assert isinstance(broken, OperatorNode)
    broken.operator = Failing()
    site.ingest("keyed", [one(1)])
    done = site.step(SECOND)
    assert [name for name, _error in done.failures] == ["q"]
    assert [outgoing.query for outgoing in done.outgoing] == ["well"]
    assert site.queues.batches == 0
    assert list(site.queries) == ["well"]


LATE = Scan(
    "late",
    SourceKind.STREAM,
    Schema.of(("k", DataType.TEXT), ("w", DataType.INTEGER)),
    ttl=3 * SECOND,
    lateness=SECOND,
)
PROGRESS = Scan(
    "late", SourceKind.STREAM, LATE.columns, ttl=LATE.ttl, lateness=SECOND, part=ScanPart.PROGRESS
)


def test_where_progress_closes_windows_nothing_is_left_waiting_at_any_site() -> None:
    """At the gateway rows would be overtaken by the progress that another fragment sends."""
    closing = OnClose(
        Aggregate(RemoteSource("rows", LATE.schema), (1,), (COUNT,)),
        RemoteSource("progress", PROGRESS.schema),
        0,
    )
    fragments = (
        Fragment("rows", Engine.GATEWAY, LATE, ("gw",), "closed", ("base",)),
        Fragment("progress", Engine.GATEWAY, PROGRESS, ("gw",), "closed", ("base",)),
        Fragment("closed", Engine.GATEWAY, closing, ("base",)),
    )
    bundle = FragmentBundle("q", 1, fragments, closing.schema)
    for name in ("gw", "base"):
        site = SiteEngine(name, 1)
        site.configure(ONE_RUN)
        site.install(bundle)
        assert site._queries["q"].runs_through


def test_everything_is_measured_if_it_is_wanted(site: SiteEngine) -> None:
    installed(site, Distinct(Project(KEYED, (K,), ("k",))))
    site.step(0)
    site.ingest("keyed", [one(1)])
    site.step(SECOND)
    assert [node.wiring.runs for node in nodes(site)] == [0, 0, 0]
    site.measured = True
    site.ingest("keyed", [one(1), one(2)])
    site.step(SECOND)
    site.ingest("keyed", [SourceEvent(("k2", 2, 0.5), SECOND, delete=True)])
    site.step(SECOND)
    source, project, distinct = (node.wiring for node in nodes(site))
    assert (project.runs, distinct.runs) == (2, 2)
    assert (project.retractions, distinct.retractions) == (1, 1)
    assert project.busy_ns == 2_000_000
    assert source.busy_ns == 0
    queues = {queue.entity: queue for queue in site.queue_measures()}
    assert {name: queue.rows for name, queue in queues.items()} == {"f1/0-1.0": 0, "f1/1-2.0": 0}
    assert all(queue.peak_rows for queue in queues.values())
    assert site.queues.peak_rows


def test_the_average_is_over_time(site: SiteEngine) -> None:
    """Two rows wait for a run of 1 ms, one for another; nothing waits for the rest of 10 ms."""
    installed(site, several(depth=1))
    site.step(0)
    site.configure(SiteSettings(slice_ms=10.0))
    site.step(0)
    meter = site.queues
    before = (meter.row_ns, meter.ns)
    site.ingest("keyed", [one(1), one(2)])
    site.step(0)
    site.step(10_000)
    assert (meter.row_ns - before[0], meter.ns - before[1]) == (2_000_000, 10_000_000)
    assert meter.average_rows == pytest.approx(meter.row_ns / meter.ns)


def test_round_robin_lets_each_query_have_its_turn(site: SiteEngine) -> None:
    installed(site, several(depth=30), "long")
    installed(site, several(depth=1))
    site.step(0)
    site.configure(SiteSettings(scheduler=SchedulerKind.ROUND_ROBIN, slice_ms=2.0))
    site.ingest("keyed", [one(1)])
    assert len(results(site, SECOND)) == 1
    assert site.queues.batches == 1


HOP = "CREATE LINK SOURCE hop (src INTEGER, dst INTEGER)"
PATHS = """WITH RECURSIVE paths (src, dst) AS (
  SELECT src, dst FROM hop
  UNION
  SELECT p.src, h.dst FROM paths p JOIN hop h ON h.src = p.dst)
SELECT src, dst FROM paths"""


@pytest.mark.parametrize("scheduler", SchedulerKind)
def test_a_recursion_runs_through_while_other_queries_wait(scheduler: SchedulerKind) -> None:
    plan = bound_query(PATHS, catalog_of(HOP)).plan
    hop = next(node for node in walk_plan(plan) if isinstance(node, Scan))
    site = SiteEngine("here", 1)
    site.declare(KEYED)
    installed(site, several(), "waiting")
    installed(site, plan)
    site.step(0)
    site.configure(SiteSettings(scheduler=scheduler, slice_ms=1.0))
    site.ingest("keyed", [one(1)])
    site.ingest(hop.source, [SourceEvent((n, n + 1), SECOND) for n in range(3)])
    given = results(site, SECOND)
    assert sum(len(batch.deltas) for batch in given) == 6
    assert site.queues.batches == 1
    flow = site.flow("q")
    assert flow is not None
    assert not flow.busy
