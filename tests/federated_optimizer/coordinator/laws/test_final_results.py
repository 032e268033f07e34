"""Results whose rows are final: windows that have closed stay, whatever becomes of their site."""

from federated_optimizer.coordinator.queries.answers.results import QueryResult
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    HopWindow,
    OnClose,
    Scan,
    ScanPart,
    SourceKind,
)
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.channel_protocol import STREAM_ROWS, SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

COLUMNS = Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP))


def scan(part: ScanPart = ScanPart.ROWS) -> Scan:
    return Scan("s", SourceKind.STREAM, COLUMNS, (), 1, None, 5, part)


COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
PLAN = OnClose(Aggregate(HopWindow(scan(), 1, 10, 10), (3,), (COUNT,)), scan(ScanPart.PROGRESS), 0)


def bundle(version: int = 1) -> FragmentBundle:
    fragment = Fragment("f1", Engine.BASE, PLAN, ("base",))
    return FragmentBundle("q", version, (fragment,), PLAN.schema)


class Base:
    """A base site that gives closed windows, in one life after another."""

    def __init__(self) -> None:
        self.result = QueryResult(bundle(), clock=lambda: 0, max_behind=10)
        self.seen: list[tuple[Row, int]] = []
        self.result.follow(lambda delta: self.seen.extend(delta.items()))
        self.begin(1)

    def begin(self, epoch: int, version: int = 1, known: Delta | None = None) -> None:
        self.channel = SendingChannel(
            version=version, epoch=epoch, ports=("f1",), streams=bundle().streams
        )
        self.channel.note("f1", known or {})
        for batch in self.channel.snapshot(now=0):
            self.result.accept("base", batch)

    def give(self, *ends: int) -> None:
        for batch in self.channel.push("f1", {(end, 1): 1 for end in ends}, now=0):
            self.result.accept("base", batch)


def test_a_base_that_comes_back_with_less_takes_nothing_back_and_gives_nothing_twice() -> None:
    base = Base()
    base.give(10, 20)
    base.give(30)
    base.begin(2, known={(10, 1): 1})  # from a snapshot of before
    base.result.release()
    base.give(20, 30, 40)
    assert base.result.rows() == ((10, 1), (20, 1), (30, 1), (40, 1))
    assert base.seen == [((end, 1), 1) for end in (10, 20, 30, 40)]


def test_a_plan_that_is_laid_anew_takes_nothing_back() -> None:
    base = Base()
    base.give(10, 20)
    base.result.redeploy(bundle(version=2))
    base.begin(1, version=2)
    base.result.release()
    base.give(30)
    assert base.result.rows() == ((10, 1), (20, 1), (30, 1))
    assert all(weight > 0 for _, weight in base.seen)


def test_a_query_that_runs_for_long_lists_its_latest_windows_and_says_so() -> None:
    base = Base()
    assert base.result.notices() == ()
    total = 9 * STREAM_ROWS
    for start in range(0, total, 1_000):
        base.give(*range(start, start + 1_000))
    rows = base.result.rows()
    assert 2 * STREAM_ROWS <= len(rows) <= 4 * STREAM_ROWS
    assert rows[-1] == (total - 1, 1)
    assert base.result.size <= 4 * STREAM_ROWS < 200_000
    assert len(base.seen) == total  # all were given
    (notice,) = base.result.notices()
    assert notice.startswith(f"{total - len(rows)} rows of windows that closed long ago")
