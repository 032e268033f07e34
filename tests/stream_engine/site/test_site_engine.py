"""One site: sources, installation, results, expiry, failures."""

import pytest

from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_result import StepResult
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Plan,
    RemoteSource,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SEAT = Scan(
    "seat",
    SourceKind.STREAM,
    Schema.of(("desk", DataType.TEXT), ("weight", DataType.DOUBLE)),
    key=(0,),
    ttl=100,
)
WEIGHT = Column(1, "weight", DataType.DOUBLE)
OCCUPIED = Filter(SEAT, Call(">", (WEIGHT, Literal(5.0, DataType.DOUBLE)), DataType.BOOLEAN))
# Text and integers do not compare; a binder would refuse this.
BROKEN = Filter(
    SEAT,
    Call(
        "<",
        (Column(0, "desk", DataType.TEXT), Literal(1, DataType.INTEGER)),
        DataType.BOOLEAN,
    ),
)
COUNTED = Aggregate(OCCUPIED, (), (AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),))


def bundle(plan: Plan, query: str = "q", version: int = 1) -> FragmentBundle:
    fragment = Fragment("f1", Engine.BASE, plan, ("base",))
    return FragmentBundle(query, version, (fragment,), plan.schema)


class Console:
    """The receiver of a query's result."""

    def __init__(self, version: int = 1) -> None:
        self.channel = ReceivingChannel(version=version)

    def take(self, result: StepResult) -> Delta:
        for outgoing in result.outgoing:
            assert outgoing.destination == ""
            self.channel.accept(outgoing.batch)
        return self.channel.contents.get("f1", {})


def seat(desk: str, weight: float, ts: int) -> SourceEvent:
    return SourceEvent((desk, weight), ts)


def test_a_result_follows_inserts_updates_and_expiry() -> None:
    site, console = SiteEngine("base", 1), Console()
    site.declare(SEAT)
    site.install(bundle(OCCUPIED))
    assert console.take(site.step(0)) == {}
    site.ingest("seat", [seat("d1", 9.0, 10), seat("d2", 8.0, 20)])
    assert console.take(site.step(20)) == {("d1", 9.0): 1, ("d2", 8.0): 1}
    assert site.counted() == {"seat": (2, 2)}
    site.ingest("seat", [seat("d1", 0.0, 30)])
    assert console.take(site.step(30)) == {("d2", 8.0): 1}
    assert site.counted() == {"seat": (3, 4)}  # a row went, and one came
    assert site.next_wakeup() == 120
    assert console.take(site.step(119)) == {("d2", 8.0): 1}
    assert console.take(site.step(120)) == {}
    assert site.next_wakeup() == 130


def test_a_query_installed_later_sees_current_rows() -> None:
    site = SiteEngine("base", 1)
    site.declare(SEAT)
    site.ingest("seat", [seat("d1", 9.0, 10)])
    assert site.step(10).outgoing == []
    site.install(bundle(COUNTED))
    assert Console().take(site.step(11)) == {(1,): 1}


def test_a_scalar_aggregate_has_a_row_from_the_start() -> None:
    site, console = SiteEngine("base", 1), Console()
    site.install(bundle(COUNTED))
    assert console.take(site.step(0)) == {(0,): 1}
    site.ingest("seat", [seat("d1", 9.0, 10)])
    assert console.take(site.step(10)) == {(1,): 1}


def test_the_first_batch_is_a_snapshot_and_carries_no_reading_time() -> None:
    site = SiteEngine("base", 3)
    site.install(bundle(COUNTED))
    (first,) = site.step(7).outgoing
    batch = first.batch
    assert (batch.reset, batch.seq, batch.epoch, batch.now) == (True, 0, 3, 7)
    site.ingest("seat", [seat("d1", 9.0, 12), seat("d2", 9.0, 11)])
    (second,) = site.step(15).outgoing
    assert (second.batch.reset, second.batch.seq, second.batch.ts) == (False, 1, 11)


def test_a_step_without_news_sends_nothing() -> None:
    site = SiteEngine("base", 1)
    site.install(bundle(OCCUPIED))
    site.step(0)
    site.ingest("seat", [seat("d1", 1.0, 10)])
    assert site.step(10) == StepResult()
    assert site.step(11) == StepResult()


def test_a_resync_sends_the_whole_result_again() -> None:
    site, console = SiteEngine("base", 1), Console()
    site.install(bundle(OCCUPIED))
    site.step(0)
    site.ingest("seat", [seat("d1", 9.0, 10)])
    site.step(10)
    assert site.resync("q", "")
    (only,) = (result := site.step(11)).outgoing
    assert only.batch.reset
    assert console.take(result) == {("d1", 9.0): 1}
    assert not site.resync("q", "gw-9")
    assert not site.resync("unknown", "")


def test_replacing_a_query_restarts_it_with_current_rows() -> None:
    site, old, new = SiteEngine("base", 1), Console(), Console(version=2)
    site.declare(SEAT)
    site.install(bundle(OCCUPIED))
    site.ingest("seat", [seat("d1", 9.0, 10)])
    old.take(site.step(10))
    site.install(bundle(COUNTED, version=2))
    assert new.take(site.step(11)) == {(1,): 1}
    site.install(bundle(OCCUPIED, version=1))
    assert site.queries == {"q": 2}
    assert site.step(12) == StepResult()


def test_a_new_version_finds_the_rows_of_a_source_only_the_old_one_read() -> None:
    site, new = SiteEngine("base", 1), Console(version=2)
    site.install(bundle(OCCUPIED))
    site.ingest("seat", [seat("d1", 9.0, 10)])
    site.step(10)
    site.install(bundle(COUNTED, version=2))
    assert new.take(site.step(11)) == {(1,): 1}


def test_a_query_installed_again_is_not_taken_for_duplicates() -> None:
    site, console = SiteEngine("base", 1), Console()
    site.declare(SEAT)
    for time in range(5):
        site.install(bundle(OCCUPIED))
        site.ingest("seat", [seat(f"d{time}", 9.0, time)])
        assert len(console.take(site.step(time))) == time + 1
        site.uninstall("q")
    assert site.queries == {}


def test_another_bundle_of_the_same_version_replaces_the_first() -> None:
    """A new catalog begins to number its queries again."""
    site, console = SiteEngine("base", 1), Console()
    site.declare(SEAT)
    site.install(bundle(OCCUPIED))
    site.ingest("seat", [seat("d1", 9.0, 10)])
    assert console.take(site.step(10)) == {("d1", 9.0): 1}
    site.install(bundle(COUNTED))
    assert console.take(site.step(11)) == {(1,): 1}
    site.install(bundle(BROKEN))
    assert [name for name, _ in site.step(12).failures] == ["q"]
    site.install(bundle(BROKEN))
    assert site.queries == {}
    site.install(bundle(OCCUPIED))
    assert console.take(site.step(13)) == {("d1", 9.0): 1}


@pytest.mark.parametrize(
    "columns",
    [
        (("desk", DataType.TEXT), ("weight", DataType.DOUBLE), ("room", DataType.TEXT)),
        (("desk", DataType.TEXT), ("weight", DataType.TEXT)),
    ],
)
def test_a_query_of_other_columns_is_refused_and_harms_nobody(
    columns: tuple[tuple[str, DataType], ...],
) -> None:
    """The catalog may declare a source otherwise than its gateways do."""
    other = Scan("seat", SourceKind.STREAM, Schema.of(*columns), key=(len(columns) - 1,))
    site, console = SiteEngine("base", 1), Console()
    site.declare(SEAT)
    site.install(bundle(OCCUPIED))
    with pytest.raises(DeploymentError, match="seat is defined differently at site base"):
        site.install(bundle(other, query="wrong"))
    with pytest.raises(DeploymentError):
        site.install(bundle(other, version=2))
    site.ingest("seat", [seat("d1", 9.0, 10)])
    assert console.take(site.step(10)) == {("d1", 9.0): 1}
    assert site.queries == {"q": 1}


def test_uninstalled_sources_are_forgotten_unless_declared() -> None:
    site = SiteEngine("base", 1)
    site.install(bundle(OCCUPIED))
    site.uninstall("q")
    with pytest.raises(DeploymentError, match="not declared at site base"):
        site.ingest("seat", [seat("d1", 9.0, 10)])


def test_rows_of_the_wrong_width_are_refused() -> None:
    site = SiteEngine("base", 1)
    site.declare(SEAT)
    with pytest.raises(DeploymentError, match="1 columns instead of 2"):
        site.ingest("seat", [SourceEvent(("d1",), 1)])


def test_source_rows_are_those_alive() -> None:
    site = SiteEngine("base", 1)
    site.declare(SEAT)
    site.ingest("seat", [seat("d1", 9.0, 10), seat("d1", 3.0, 11), seat("d2", 4.0, 5)])
    site.step(11)
    assert sorted(site.source_rows("seat"), key=str) == [("d1", 3.0), ("d2", 4.0)]
    site.step(105)
    assert site.source_rows("seat") == [("d1", 3.0)]


def test_a_failing_query_stops_alone() -> None:
    site, console = SiteEngine("base", 1), Console()
    site.install(bundle(BROKEN, "broken"))
    site.install(bundle(OCCUPIED))
    site.step(0)
    site.ingest("seat", [seat("d1", 9.0, 10)])
    result = site.step(10)
    ((name, error),) = result.failures
    assert name == "broken"
    assert error.code == "internal_error"
    assert "failed at site base" in error.message
    result.outgoing[:] = [o for o in result.outgoing if o.query == "q"]
    assert console.take(result) in ({}, {("d1", 9.0): 1})
    assert site.queries == {"q": 1}
    site.install(bundle(BROKEN, "broken"))
    assert site.queries == {"q": 1}


def test_windows_wake_the_site() -> None:
    plain = Scan("seat", SourceKind.STREAM, SEAT.columns)
    site, console = SiteEngine("base", 1), Console()
    site.install(bundle(Window(plain, WindowKind.RANGE, size=50)))
    site.step(0)
    site.ingest("seat", [seat("d1", 9.0, 10)])
    site.step(10)
    assert site.next_wakeup() == 60
    console.take(site.step(60))
    assert site.next_wakeup() is None


def test_statistics_and_flow_count() -> None:
    site = SiteEngine("base", 1)
    site.install(bundle(OCCUPIED))
    site.step(0)
    site.ingest("seat", [seat("d1", 9.0, 10), seat("d2", 1.0, 10)])
    site.step(10)
    (entry,) = site.statistics()
    assert (entry.query, entry.version, entry.fragment) == ("q", 1, "f1")
    scan, where = entry.operators
    assert (scan.operator, scan.rows_out) == ("Scan stream seat key=(desk) ttl=100 us", 2)
    assert (where.operator, where.rows_in, where.rows_out) == ("Filter weight > 5.0", 2, 1)
    flow = site.flow("q")
    assert flow is not None
    assert (flow.sent, flow.received, flow.busy) == ({"": 2}, {}, False)
    assert site.flow("unknown") is None


def test_a_new_query_asks_every_sender_for_a_snapshot() -> None:
    """Whatever it sent before this site knew the query is gone."""
    pushed = bundle(OCCUPIED).fragments[0]
    top = Aggregate(RemoteSource("f1", OCCUPIED.schema), (), COUNTED.aggregates)
    gateway = Fragment("f1", Engine.GATEWAY, pushed.plan, ("gw-1", "base"), "f2", ("base",))
    base = Fragment("f2", Engine.BASE, top, ("base",))
    site = SiteEngine("base", 1)
    site.install(FragmentBundle("q", 1, (base, gateway), top.schema))
    assert site.senders() == site.unsynchronised() == {("q", "gw-1")}
    assert site.step(0).resyncs == [("q", "gw-1")]
    assert site.step(1).resyncs == []
