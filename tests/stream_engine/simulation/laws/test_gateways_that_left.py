"""A gateway that left for good holds no windows back, and until then it is known who does."""

import pytest

from stream_engine.simulation.network import Network
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    HopWindow,
    OnClose,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import SlowSite

SECOND = 1_000_000
COLUMNS = Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP))
GATEWAYS = ("g1", "g2", "g3")
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
SIZE = 10 * SECOND


def scan(part: ScanPart = ScanPart.ROWS) -> Scan:
    """Return a source that knows no idle time: nobody is ever left out for being silent."""
    return Scan("s", SourceKind.STREAM, COLUMNS, (), 1, None, 0, part)


def bundle(version: int, gateways: tuple[str, ...]) -> FragmentBundle:
    windows = HopWindow(scan(), 1, size=SIZE, hop=SIZE)
    progress = scan(ScanPart.PROGRESS)
    rows = RemoteSource("f1", windows.schema)
    plan = OnClose(Aggregate(rows, (3,), (COUNT,)), RemoteSource("f2", progress.schema), 0)
    return FragmentBundle(
        "q",
        version,
        (
            Fragment("f1", Engine.GATEWAY, windows, gateways, "f3", ("base",)),
            Fragment("f2", Engine.GATEWAY, progress, gateways, "f3", ("base",)),
            Fragment("f3", Engine.BASE, plan, ("base",)),
        ),
        plan.schema,
    )


@pytest.fixture
def net() -> Network:
    """Return sites of which g2 has stopped after four seconds, while the others are at 41."""
    made = Network(("base", *GATEWAYS), seed=1)
    for gateway in GATEWAYS:
        made.declare(gateway, scan())
    made.install(bundle(1, GATEWAYS))
    for gateway, seconds in (("g1", (3, 18, 41)), ("g2", (4,)), ("g3", (5, 12, 43))):
        for second in seconds:
            read(made, gateway, second)
    made.settle()
    made.advance(50 * SECOND)
    made.settle()
    return made


def read(net: Network, gateway: str, second: int) -> None:
    net.ingest(gateway, "s", [SourceEvent((gateway, second * SECOND), second * SECOND)])


def slow(net: Network) -> tuple[SlowSite, ...]:
    flow = net.sites["base"].flow("q")
    assert flow is not None
    return flow.slow


def test_who_holds_windows_back_is_told_with_since_when(net: Network) -> None:
    assert net.result("q") == {}
    assert slow(net) == (SlowSite("g2", 30, 0),), "it was looked at first before time went on"
    read(net, "g1", 72)
    net.settle()
    net.advance(60 * SECOND)
    net.settle()
    assert slow(net) == (SlowSite("g2", 60, 0), SlowSite("g3", 20, 50 * SECOND))
    read(net, "g2", 72)
    read(net, "g3", 71)
    net.settle()
    assert slow(net) == ()
    assert net.result("q")[10 * SECOND, 3] == 1


def test_a_plan_without_it_does_not_wait_for_it(net: Network) -> None:
    net.install(bundle(2, ("g1", "g3")))
    net.settle()
    for gateway, second in (("g1", 55), ("g3", 58), ("g1", 72), ("g3", 71)):
        read(net, gateway, second)
    net.settle()
    assert net.result("q") == {(60 * SECOND, 2): 1}
    assert slow(net) == ()


def test_one_that_is_given_up_holds_nobody_back(net: Network) -> None:
    net.kill("g2")
    net.settle()
    assert net.result("q") == {(10 * SECOND, 2): 1, (20 * SECOND, 2): 1}
    assert slow(net) == ()


def test_what_it_sends_when_it_is_back_changes_no_window_that_has_closed(net: Network) -> None:
    net.sites["base"].site_lost("g2")
    net._collect("base", net.step("base"))  # before g2, which is alive, has repeated what it sent
    closed = {(10 * SECOND, 2): 1, (20 * SECOND, 2): 1}
    for second in (9, 15, 42):
        read(net, "g2", second)
    for site in ("g1", "g3"):
        read(net, site, 55)
    net.sites["g2"].resync_all()
    net.settle()
    read(net, "g2", 56)
    net.settle()
    assert closed.items() <= net.result("q").items()
    assert (20 * SECOND, 3) not in net.result("q")
