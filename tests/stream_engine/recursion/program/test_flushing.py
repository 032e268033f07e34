"""Alternatives that were held back are sent after an interval, or when there are many."""

import pytest
from msgspec.structs import replace

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.flushing import Flushing
from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import Network
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import reachable
from streamsql.algebra.choices import Shipping, Strategy, Way
from streamsql.algebra.operators import RecursionChoice, Scan, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from tests.stream_engine.recursion.row_explanations import explain_row

INTERVAL = 250_000
SITES = ("A", "B", "C")
LINKS: list[Row] = [("A", "B", 1), ("B", "C", 1), ("C", "A", 1), ("C", "B", 1)]
ALL_SUPPORTS = 12  # of the nine rows of the worked example


def owner(key: Row, _sites: tuple[str, ...]) -> str:
    return str(key[0])


def loaded(interval: int | None = None, capacity: int | None = None) -> Ensemble:
    chosen = RecursionOptions(
        strategy=Strategy.ABSORPTION,
        shipping=Shipping.LAZY,
        owner=owner,
        interval=interval,
        capacity=capacity,
    )
    ensemble = Ensemble(reachable(), SITES, chosen)
    for row in LINKS:
        ensemble.apply(str(row[0]), 0, {row: 1})
    return ensemble


def supports(ensemble: Ensemble) -> int:
    """Return how many supports the owners of all rows know."""
    total = 0
    for operator in ensemble.operators.values():
        assert isinstance(operator, FixpointOperator)
        for row in operator.state_rows():
            explanation = explain_row(operator, row)
            assert explanation is not None
            total += len(explanation.supports)
    return total


def tick(ensemble: Ensemble, now: int) -> int:
    """Tell all sites the time and let them work; return the number of rows sent."""
    for operator in ensemble.operators.values():
        assert isinstance(operator, FixpointOperator)
        operator.advance(now)
    return sum(ensemble.rounds())


def wakeups(ensemble: Ensemble) -> set[int | None]:
    operators = ensemble.operators.values()
    return {o.next_wakeup() for o in operators if isinstance(o, FixpointOperator)}


def test_lazy_never_sends_alternatives_unasked() -> None:
    ensemble = loaded()
    assert tick(ensemble, 0) == 16
    assert wakeups(ensemble) == {None}
    assert tick(ensemble, 10**12) == 0


def test_after_the_interval_alternatives_are_sent() -> None:
    ensemble = loaded(interval=INTERVAL)
    assert tick(ensemble, 0) == 16
    assert supports(ensemble) < ALL_SUPPORTS
    assert INTERVAL in wakeups(ensemble)
    assert tick(ensemble, INTERVAL - 1) == 0
    now = INTERVAL
    sent = 0
    while wakeups(ensemble) != {None}:
        sent += tick(ensemble, now)
        now += INTERVAL
        assert now < 20 * INTERVAL
    assert (
        2 <= sent <= 4
    )  # what eager shipping sends more than lazy shipping, less what was absorbed
    assert supports(ensemble) == ALL_SUPPORTS
    ensemble.apply("C", 0, {("C", "B", 1): -1})
    assert sum(ensemble.rounds()) == 2  # as with eager shipping: the kill is enough
    assert len(ensemble.rows()) == 9


def test_a_site_without_the_time_waits() -> None:
    ensemble = loaded(interval=INTERVAL)
    assert sum(ensemble.rounds()) == 16
    assert wakeups(ensemble) == {None}


def test_capacity_sends_at_once() -> None:
    assert sum(loaded(capacity=1).rounds()) > 16
    ensemble = loaded(capacity=100)
    assert sum(ensemble.rounds()) == 16


def test_a_query_chooses_the_capacity() -> None:
    lazy = RecursionChoice(way=Way.ANNOTATIONS, capacity=1)
    node = replace(reachable(), choice=lazy)
    ensemble = Ensemble(node, SITES, RecursionOptions(owner=owner))
    for row in LINKS:
        ensemble.apply(str(row[0]), 0, {row: 1})
    assert sum(ensemble.rounds()) == sum(loaded(capacity=1).rounds())


def test_what_does_not_fit_causes_no_further_sending() -> None:
    flushing = Flushing(interval=10, capacity=5)
    flushing.advance(0)
    flushing.note(3)
    assert flushing.next_wakeup == 10
    flushing.advance(10)
    assert flushing.is_due(3)
    flushing.flushed(2)
    flushing.note(2)
    assert flushing.next_wakeup is None
    assert not flushing.is_due(2)
    assert not flushing.is_due(6)
    assert flushing.is_due(7)


@pytest.mark.parametrize("ship", ["lazy", "250000"])
def test_sites_wake_up_to_send(ship: str) -> None:
    """In the engine as shipped: the interval of the query is a timer of its circuits."""
    node = replace(
        reachable(),
        choice=RecursionChoice(strategy=Strategy.ABSORPTION, way=Way.ANNOTATIONS, ship=ship),
    )
    link = next(plan for plan in walk_plan(node) if isinstance(plan, Scan))
    sites = ("gw-1", "gw-2", "base")
    network = Network(sites, seed=1)
    for site in sites:
        network.declare(site, link)
    network.install(everywhere(node, sites))
    nodes = [f"n{number}" for number in range(6)]
    for number, source in enumerate(nodes):
        for target in nodes[number + 1 :]:
            event = SourceEvent((source, target, 1), 0)
            network.ingest(sites[number % 3], "link", [event])
    network.settle()
    before = network.traffic.total_messages
    due = [engine.next_wakeup() for engine in network.sites.values()]
    if ship == "lazy":
        assert due == [None] * 3
        return
    first = min(time for time in due if time is not None)
    assert 0 < first <= INTERVAL
    network.advance(first)
    network.settle()
    assert network.traffic.total_messages > before
    assert len(network.result("q")) == 15
