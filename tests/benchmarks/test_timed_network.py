"""Virtual time of a simulated network: ticks of sites, and links on the way."""

import pytest

from benchmarks._optimizer.timed_network import STEP, TimedNetwork
from federated_optimizer import Topology, plan
from federated_optimizer.statistics.default_facts import HOP_MILLISECONDS
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE reading (device TEXT, v INTEGER, KEY (device));")
SITES = ("gw-1", "gw-2", "base")
WAYS = {("gw-1", "base"): 1.0, ("gw-2", "base"): 5.0}


@pytest.fixture
def net() -> TimedNetwork:
    found = TimedNetwork(SITES, lambda a, b: WAYS.get((a, b), 1.0))
    topology = Topology({gateway: frozenset({"reading"}) for gateway in SITES[:2]})
    source = CATALOG.find("reading")
    assert isinstance(source, SourceDefinition)
    for gateway in SITES[:2]:
        found.declare(gateway, source.scan())
    text = "SELECT device, v FROM reading WHERE v > 0"
    found.install(plan(bound_query(text, CATALOG), topology, query="q"))
    found.settle()
    return found


@pytest.mark.parametrize("gateway", SITES[:2])
def test_an_answer_takes_a_tick_a_site_and_its_links(net: TimedNetwork, gateway: str) -> None:
    net.begin()
    net.ingest(gateway, "reading", [SourceEvent(("d", 1), 1)])
    net.settle()
    assert net.answered == 2 * STEP + WAYS[gateway, "base"] * HOP_MILLISECONDS.value
    assert net.result("q") == {("d", 1): 1}


def test_two_readings_share_the_tick_of_the_first_to_come(net: TimedNetwork) -> None:
    net.begin()
    for gateway in SITES[:2]:
        net.ingest(gateway, "reading", [SourceEvent((gateway, 1), 1)])
    net.settle()
    # The second comes while the base waits for its tick.
    assert net.answered == 2 * STEP + 1.0 * HOP_MILLISECONDS.value
    assert len(net.result("q")) == 2


def test_a_reading_that_changes_nothing_has_no_answer(net: TimedNetwork) -> None:
    net.begin()
    net.ingest("gw-1", "reading", [SourceEvent(("d", 0), 1)])
    net.settle()
    assert net.answered is None
