"""Ways of a recursion as plans to choose from."""

from dataclasses import replace

import pytest

from federated_optimizer import plan as place_plan
from federated_optimizer.costs.recursion_prices import TRUST, WAYS
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives
from federated_optimizer.search.choosing import Listed
from federated_optimizer.statistics.planning_statistics import Placed, RecursionFacts, Statistics
from streamsql.algebra.choices import Way
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst)) "
    "WITH (ttl = '90 s');"
    "CREATE SOURCE hot (sensor TEXT, value INTEGER) WITH (ttl = '10 s');",
    library=True,
)
GATEWAYS = Topology({f"gw-{i}": frozenset({"link", "hot"}) for i in range(4)})
REACHABLE = "SELECT * FROM reachable"


def by_way(listed: tuple[Listed, ...]) -> dict[str, Listed]:
    return {each.words.rsplit(" ", 1)[-1]: each for each in listed}


def key_of(text: str) -> str:
    return place_plan(bound_query(text, CATALOG), GATEWAYS, query="q").recursions[0].key


def test_each_way_is_a_plan_with_its_price_and_can_be_asked_for() -> None:
    bound = bound_query(REACHABLE, CATALOG)
    facts = Statistics(recursions={key_of(REACHABLE): RecursionFacts(50.0, 600.0, 3.0, 2.0)})
    found = alternatives(bound, GATEWAYS, facts)
    plans = by_way(found.listed)
    assert set(plans) == {way.value for way in WAYS}
    assert found.refused == ()
    for way, listed in plans.items():
        asked = replace(bound, asked=listed.number)
        (made,) = place_plan(asked, GATEWAYS, query="q", statistics=facts).recursions
        assert (made.way, made.forced) == (way, False)
        (price,) = [each for each in made.prices if each.way == way]
        assert listed.cost.bytes == pytest.approx(price.bytes_per_second, abs=0.1)
        assert listed.cost.high == pytest.approx(listed.cost.bytes * TRUST)
        assert listed.cost.low == pytest.approx(listed.cost.bytes / TRUST)
        cheapest = "is cheapest" if listed.number == found.chosen else "the chosen plan takes it"
        assert cheapest in made.why


def test_a_price_without_measurements_has_a_wider_range() -> None:
    for each in alternatives(bound_query(REACHABLE, CATALOG), GATEWAYS).listed:
        assert each.cost.high > TRUST * each.cost.bytes


@pytest.mark.parametrize(
    ("options", "ways", "told"),
    [
        ("strategy = 'ranked'", {"flood", "centre"}, "'ranked' computes from base rows only"),
        ("strategy = 'dred'", {"flood", "centre"}, "only if the query sets the way"),
        ("ship = 'eager'", {"witness", "annotations", "centre"}, "it ships base rows"),
    ],
)
def test_ways_that_do_not_fit_are_refused_in_words(options: str, ways: set[str], told: str) -> None:
    found = alternatives(bound_query(f"{REACHABLE} WITH ({options})", CATALOG), GATEWAYS)
    assert set(by_way(found.listed)) == ways
    (refusal,) = found.refused
    assert refusal.startswith("reachable by ")
    assert told in refusal


@pytest.mark.parametrize(
    ("topology", "text", "told"),
    [
        (GATEWAYS, f"{REACHABLE} WITH (way = 'witness')", "the query sets it"),
        (Topology({"gw-1": frozenset({"link"})}), REACHABLE, "fewer than two gateways"),
        (Topology(GATEWAYS.gateways, bases=("b1", "b2")), REACHABLE, "share the work"),
    ],
)
def test_of_one_way_there_is_one_plan(topology: Topology, text: str, told: str) -> None:
    found = alternatives(bound_query(text, CATALOG), topology)
    assert len(found.listed) == 1
    assert told in found.refused[0]


def test_two_recursions_have_the_product_of_their_ways() -> None:
    other = (
        "WITH RECURSIVE up (sensor, value) AS (SELECT sensor, value FROM hot UNION "
        "SELECT h.sensor, u.value FROM up u JOIN hot h ON h.value = u.value) "
    )
    text = f"{other} SELECT u.sensor FROM up u JOIN reachable r ON r.src = u.sensor"
    bound = bound_query(text, CATALOG)
    found = alternatives(bound, GATEWAYS)
    assert len(found.listed) + found.left_out == len(WAYS) ** 2
    ways = set()
    for number in range(1, len(WAYS) ** 2 + 1):
        made = place_plan(replace(bound, asked=number), GATEWAYS, query="q").recursions
        ways.add(tuple(recursion.way for recursion in made))
    assert len(ways) == len(WAYS) ** 2


def test_the_way_that_runs_is_kept_until_another_costs_half() -> None:
    bound = bound_query(REACHABLE, CATALOG)
    near = Topology({f"gw-{i}": frozenset({"link"}) for i in range(3)})
    key = key_of(REACHABLE)
    slow = {key: RecursionFacts(400.0, 10_000.0, 1.0, 0.01)}
    placed = {key: Placed(Way.FLOOD, ("gw-0", "gw-1", "gw-2"))}
    found = alternatives(bound, near, Statistics(recursions=slow, placed=placed))
    assert by_way(found.listed)["flood"].number == found.chosen
    assert found.listed[0].number != found.chosen
    assert found.why.startswith("it runs, and plan")
    free = alternatives(bound, near, Statistics(recursions=slow))
    assert free.listed[0].number == free.chosen
