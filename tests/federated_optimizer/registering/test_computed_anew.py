"""A query reads a part or computes it anew: facts decide, in doubt for reading."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.effort import takes_less_effort
from federated_optimizer.costs.fragment_estimates import fragment_estimates
from federated_optimizer.costs.run_costs import RunCosts
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.network.topology import Topology
from federated_optimizer.registering import computed_anew, registration
from federated_optimizer.registering.computed_anew import Choosing, PlannedWay
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.statistics.planning_statistics import ColumnFacts, SourceFacts, Statistics
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS
from federated_optimizer.testing_network import Network
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE room (rid TEXT, status TEXT, j INTEGER, KEY (rid));
    CREATE SOURCE seat (mid TEXT, rid TEXT, k INTEGER, KEY (mid));"""
)
TOPOLOGY = Topology(dict.fromkeys(("gw-1", "gw-2"), frozenset({"seat", "room"})))
WIDE = "SELECT s.mid, s.rid, s.k, r.status, r.j FROM seat s JOIN room r ON s.rid = r.rid"
NARROW = f"{WIDE} WHERE s.k = r.j"
COUNTS = f"SELECT p.status, COUNT(*) AS n FROM ({WIDE}) p GROUP BY p.status"
FEW_COUNTS = f"SELECT p.status, COUNT(*) AS n FROM ({NARROW}) p GROUP BY p.status"


def facts(rooms: float = 20.0, fan: float = 1_000.0, changes: float = 100.0) -> Statistics:
    """Return facts: each room has so many seats with different k, of which j is one."""
    seats = rooms * fan
    of_room = ColumnFacts(rooms, rooms)
    columns = {
        ("room", "rid"): of_room,
        ("seat", "rid"): of_room,
        ("room", "status"): ColumnFacts(2.0, 2.0, same=0.0),
        ("room", "j"): ColumnFacts(fan, fan, same=0.0),
        ("seat", "k"): ColumnFacts(fan, fan, same=0.0),
    }
    sources = {"room": SourceFacts(rooms, changes), "seat": SourceFacts(seats, 0.01)}
    return Statistics(sources=sources, columns=columns)


class Sites:
    """A network by some facts."""

    def __init__(
        self,
        statistics: Statistics,
        strategy: Strategy = Strategy.ALL,
        materialize: Materialize = Materialize.WANTED_TWICE,
    ) -> None:
        self.sharing = Sharing(ComputationIndex(), strategy, materialize)
        self.statistics = statistics
        self.network = Network(Planning(TOPOLOGY, statistics), self.sharing)

    def register(self, *texts: str) -> FragmentBundle:
        """Register queries, and return what runs for the last."""
        made = [self.network.register(bound_query(text, CATALOG)) for text in texts]
        return self.network.result(made[-1].query)

    def cost(self, bundle: FragmentBundle) -> Cost:
        """Return the price of a bundle as a move sees it."""
        sent = fragment_estimates(bundle, self.statistics, TOPOLOGY.coordinator)
        costs = RunCosts(bundle, self.statistics, sent)
        fed = {feed.fragment for feed in bundle.feeds}
        own = (f.id for f in bundle.own if f.id not in fed)
        return sum((costs.of(name, with_result=False) for name in own), NOTHING)


def reads_result(bundle: FragmentBundle) -> bool:
    return any(bundle.fragment(feed.fragment).engine == "base" for feed in bundle.feeds)


def told(bundle: FragmentBundle) -> list[str]:
    return [note for note in bundle.fragments[0].notes if note.startswith("computes it anew")]


def test_few_rows_of_many_are_computed_anew_over_what_arrives_anyway() -> None:
    made = Sites(facts()).register(WIDE, NARROW)
    assert not reads_result(made)
    assert {(feed.run, made.fragment(feed.fragment).engine) for feed in made.feeds} == {
        ("q1", "gateway")
    }, "both sources come from the older query's gateways"
    (note,) = told(made)
    assert note == (
        "computes it anew: node 1 would hand on 20,000 rows of which 32 are wanted, "
        "and 100,000 changes a second"
    )


@pytest.mark.parametrize(
    ("statistics", "why"),
    [
        (facts(changes=0.1), "little is handed on"),
        (facts(fan=20.0), "few rows"),
        (Statistics(), "nobody has counted"),
        (replace(facts(), columns={}), "nobody knows what is wanted of it"),
        (replace(facts(), sources={"room": SourceFacts(20.0, 10.0)}), "seats are not counted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_in_doubt_a_node_is_read(statistics: Statistics, why: str) -> None:
    made = Sites(statistics).register(WIDE, NARROW)
    assert reads_result(made), why
    assert not told(made)


def test_memory_that_is_not_worth_it_is_not_taken() -> None:
    # 200,000 rows of seats would be kept, to look at 100,000 rows a second less.
    assert reads_result(Sites(facts(fan=10_000.0, changes=10.0)).register(WIDE, NARROW))
    assert not reads_result(Sites(facts(fan=10_000.0, changes=100.0)).register(WIDE, NARROW))


def test_a_query_of_all_rows_reads_them() -> None:
    sites = Sites(facts())
    fewer_columns = sites.register(WIDE, f"SELECT p.mid, p.status FROM ({WIDE}) p")
    assert reads_result(fewer_columns)


LOOKED_UP = [f"{WIDE} WHERE s.k = {k}" for k in range(12)]


def test_looking_rows_up_by_a_constant_is_not_for_nothing() -> None:
    assert not reads_result(Sites(facts()).register(WIDE, LOOKED_UP[0]))
    assert reads_result(Sites(facts(changes=1.0)).register(WIDE, LOOKED_UP[0])), "little is"


def test_rows_are_looked_up_once_for_all_readers() -> None:
    sites = Sites(facts(changes=1.0))
    assert reads_result(sites.register(WIDE, LOOKED_UP[0]))
    sites.network._planning = Planning(TOPOLOGY, facts())
    assert reads_result(sites.register(LOOKED_UP[1])), "they are looked up by k for the first"
    assert not reads_result(sites.register(f"{WIDE} WHERE r.j = 2")), "not by j"
    sites.network.deregister("q2")
    sites.network.deregister("q3")
    assert not reads_result(sites.register(LOOKED_UP[2])), "nobody is looked up any more"


def test_variations_of_a_constant_read_before_all_of_them_compute_anew() -> None:
    sites = Sites(facts())
    sites.register(WIDE)
    reads = [reads_result(sites.register(text)) for text in LOOKED_UP]
    assert reads == sorted(reads), "once one reads, all do"
    assert not reads[0]
    assert reads[6], "six that differ in a constant alone foretell more"


def test_a_shared_join_of_very_many_rows_is_grouped_before_it_is_made() -> None:
    made = Sites(facts()).register(WIDE, COUNTS)
    assert not reads_result(made)
    (note,) = told(made)
    assert "node 1 would hand on 20,000 rows, and 100,000 changes a second" in note


def test_a_nearer_node_is_read_in_the_place_of_a_weaker_one() -> None:
    sites = Sites(facts())
    sites.register(WIDE, NARROW)
    made = sites.register(FEW_COUNTS)
    assert [feed.run for feed in made.feeds] == ["q2"]
    assert not told(made)


@pytest.mark.parametrize("strategy", [s for s in Strategy if s.matches_plan])
def test_match_plan_reads_what_it_finds(strategy: Strategy) -> None:
    sites = Sites(facts(), strategy)
    made = sites.register(WIDE, NARROW)
    assert reads_result(made)
    assert not told(made)


def test_a_query_goes_on_to_read_what_it_reads() -> None:
    sites = Sites(facts(changes=0.1))
    read = sites.register(WIDE, NARROW)
    assert reads_result(read)
    sites.network._planning = Planning(TOPOLOGY, facts())
    (again,) = sites.network._replanned_after("q1")
    assert again.runs_as(read)
    assert not reads_result(Sites(facts()).register(WIDE, NARROW)), "a new one would not read it"


def test_a_query_that_asks_for_a_plan_is_not_compared() -> None:
    sites = Sites(facts())
    sites.register(WIDE)
    bound = replace(bound_query(NARROW, CATALOG), asked=1)
    assert reads_result(sites.network.register(bound).deploy[-1])


def test_a_new_node_is_charged_to_all_who_compute_its_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those who compute it inside may move to it; a query that reads it pays its share alone."""
    seen: list[tuple[PlannedWay, Choosing]] = []

    def noted(way: PlannedWay, choosing: Choosing) -> PlannedWay:
        seen.append((way, choosing))
        return way

    monkeypatch.setattr(registration, "cheaper_way", noted)
    sites = Sites(facts())
    sites.register(f"SELECT p.rid, SUM(p.k) AS k FROM ({WIDE}) p GROUP BY p.rid", NARROW)
    way, choosing = seen[-1]
    (node,) = choosing.nodes
    assert choosing.wanted(node) == 2
    whole = replace(choosing, wanted=lambda _node: 1)
    halved, alone = (computed_anew.Prices(each).added(way) for each in (choosing, whole))
    assert 0 < alone.cpu - halved.cpu == pytest.approx(sites.cost(node.bundle).cpu / 2)
    assert alone.state - halved.state == pytest.approx(sites.cost(node.bundle).state / 2)


def test_the_number_of_ways_that_are_planned_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = 0
    whole = computed_anew.Prices.cheapest

    def counted(*args: object) -> object:
        nonlocal planned
        planned += 1
        return whole(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(computed_anew.Prices, "cheapest", counted)
    monkeypatch.setattr(computed_anew, "takes_less_effort", lambda *_: False)
    sites = Sites(facts())
    sites.register(WIDE)
    for _ in range(3):
        sites.register(NARROW)
    assert planned == 1, "equal queries read the first one's result"


WORLDS: tuple[tuple[float, float, float], ...] = tuple(
    (rooms, fan, changes)
    for rooms in (5.0, 50.0)
    for fan in (10.0, 300.0, 3_000.0)
    for changes in (0.01, 2.0, 40.0)
)


@pytest.mark.parametrize("text", [NARROW, COUNTS, FEW_COUNTS])
def test_a_move_would_not_undo_a_registration(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way that was not taken takes not clearly less work by the price of moves."""
    chosen = {True: 0, False: 0}
    for world in WORLDS:
        made = registered(text, world)
        with monkeypatch.context() as forced:
            forced.setattr(computed_anew, "takes_less_effort", lambda *_: True)
            forced.setattr(computed_anew, "MANY_ROWS", 0)
            forced.setattr(computed_anew, "MUCH_HANDED", 0.0 if reads_result(made) else 1e9)
            other = registered(text, world)
        assert reads_result(other) != reads_result(made), world
        chosen[reads_result(made)] += 1
        sites = Sites(facts(*world))
        taken, left = sites.cost(made), sites.cost(other)
        if not reads_result(made):
            assert takes_less_effort(Weighing(), DEFAULT_SPEEDS, taken, left), world
        else:
            rooms, fan, changes = world
            is_compared = rooms * fan >= 1_000 and fan * changes > 2_500
            assert not (
                is_compared and takes_less_effort(Weighing(), DEFAULT_SPEEDS, left, taken)
            ), world
    assert all(chosen.values()), chosen


def registered(text: str, world: tuple[float, float, float]) -> FragmentBundle:
    return Sites(facts(*world)).register(WIDE, text)


def test_the_more_is_handed_on_the_sooner_it_is_computed_anew() -> None:
    def computes(of: Callable[[float], Statistics], values: tuple[float, ...]) -> list[bool]:
        return [not reads_result(Sites(of(value)).register(WIDE, NARROW)) for value in values]

    by_fan = computes(lambda fan: facts(fan=fan), (10.0, 100.0, 1_000.0, 10_000.0))
    by_changes = computes(lambda changes: facts(changes=changes), (0.01, 1.0, 10.0, 100.0))
    for found in (by_fan, by_changes):
        assert all(one <= next_ for one, next_ in pairwise(found)), found
        assert (found[0], found[-1]) == (False, True)
