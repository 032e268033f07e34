"""What a new life of a sender has sent is missed although its former life had sent as much."""

import pytest

from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import CONSOLE
from stream_engine.simulation.recorded_network import RecordedNetwork
from stream_engine.testing.histories import COLUMNS, SECOND
from streamsql.algebra.operators import (
    Join,
    JoinKind,
    RemoteSource,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

LOG = Scan("log", SourceKind.STREAM, COLUMNS)
KEYED = Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0, 1), ttl=4 * SECOND)
JOIN = Join(
    Window(LOG, WindowKind.RANGE, 3 * SECOND),
    Window(KEYED, WindowKind.ROWS, 3),
    JoinKind.LEFT,
    ((0, 0),),
)
ROW = ("b", 2, 0.1)
WAYS = (
    SiteSettings(),
    SiteSettings(share_synopses=False),
    SiteSettings(scheduler=SchedulerKind.ROUND_ROBIN, slice_ms=1.0),
)


def at_base(query: str) -> FragmentBundle:
    """Return a join whose rows a gateway sends to the base."""
    part = Fragment("f0", Engine.GATEWAY, JOIN, ("g1",), "top", ("base",))
    top = Fragment("top", Engine.BASE, RemoteSource("f0", JOIN.schema), ("base",))
    return FragmentBundle(query, 1, (part, top), JOIN.schema)


def at_gateway(query: str) -> FragmentBundle:
    return everywhere(JOIN, ("g1",), query=query)


def settled(network: RecordedNetwork, way: SiteSettings) -> None:
    network.recorded("g1").configure(way)
    network.settle()


@pytest.mark.parametrize("way", WAYS, ids=["fifo", "private", "sliced"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("to", ["base", CONSOLE])
def test_a_row_taken_in_before_a_crash_arrives(
    to: str, lost: bool, saved: bool, count: int, way: SiteSettings
) -> None:
    """Every life sends one snapshot more than it has lived through: the counts are the same."""
    network = RecordedNetwork(("base", "g1"))
    for scan in (LOG, KEYED):
        network.declare("g1", scan)
    network.now = 10 * SECOND
    queries = [f"q{number}" for number in range(count)]  # two share their windows
    for query in queries:
        network.install((at_base if to == "base" else at_gateway)(query))
    settled(network, way)
    if saved:
        network.save("g1")
        settled(network, way)
    network.crash("g1")
    settled(network, way)
    network.ingest("g1", "log", [SourceEvent(ROW, network.now)])
    network.crash("g1")  # before the step
    network.recorded("g1").configure(way)
    while lost and "g1" in network._to_step:
        del network._to_step["g1"]
        network._collect("g1", network.step("g1"))
        network._channels[("g1", to)].clear()
    network.settle()
    for query in queries:
        assert network.result(query) == {(*ROW, None, None, None): 1}
