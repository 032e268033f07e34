"""Which plan is taken: the one asked for, the cheapest, or the one that runs."""

import re
from dataclasses import replace

import pytest

from federated_optimizer import plan as place_plan
from federated_optimizer.costs.cost import Cost
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives, normalize
from federated_optimizer.search.choosing import COMPARED, MAX_LISTED, PUSHED, Choice, Listed, Search
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.testing_bundles import HEAT
from federated_optimizer.testing_bundles import TOPOLOGY as SMALL
from streamsql.algebra.operators import Distinct, Plan, SortKey, TopN
from streamsql.errors import UnsupportedError
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE temp (rid TEXT, celsius DOUBLE, level INTEGER);
    CREATE SOURCE room (rid TEXT, open BOOLEAN, n INTEGER, PRIMARY KEY (rid));"""
)
NAMES = frozenset({"temp", "room"})
TOPOLOGY = Topology(dict.fromkeys(("gw-1", "gw-2", "gw-3"), NAMES))
MAX = "SELECT MAX(celsius) AS m FROM temp [RANGE 1 MINUTE]"
LEVEL_SUM = "SELECT level, SUM(level) AS s FROM temp [RANGE 1 MINUTE] GROUP BY level"


def facts(rows: float, changes: float) -> Statistics:
    return Statistics(sources=dict.fromkeys(NAMES, SourceFacts(rows, changes)))


def pushed(text: str, statistics: Statistics) -> str:
    bundle = place_plan(bound_query(text, CATALOG), TOPOLOGY, query="q", statistics=statistics)
    (part,) = [f for f in bundle.fragments if f.engine == Engine.GATEWAY]
    return type(part.plan).__name__


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (MAX, "Aggregate"),
        ("SELECT DISTINCT level FROM temp [RANGE 1 MINUTE]", "Distinct"),
        ("SELECT * FROM temp [RANGE 1 MINUTE] ORDER BY celsius LIMIT 3", "TopN"),
        # A room that opens changes two groups.
        ("SELECT open, COUNT(*) AS n FROM room GROUP BY open", "Project"),
        ("SELECT COUNT(*) AS n FROM room", "Aggregate"),
        # Every reading is a group of its own, whose part is wider than it is.
        ("SELECT celsius, SUM(level) AS s FROM temp [RANGE 1 MINUTE] GROUP BY celsius", "Project"),
        # Every reading changes its group, by a row that goes and one that comes.
        (LEVEL_SUM, "Project"),
    ],
)
def test_parts_are_taken_where_less_travels(text: str, part: str) -> None:
    assert pushed(text, facts(600, 20)) == part


@pytest.mark.parametrize(
    "call",
    [
        "AVG(celsius)",
        "SUM(celsius)",
        "STRING_AGG(rid, ',')",
        "MEDIAN(level)",
        "COUNT(DISTINCT rid)",
    ],
)
def test_what_has_no_parts_is_computed_of_all_rows(call: str) -> None:
    text = f"SELECT {call} AS v, MAX(level) AS m FROM temp [RANGE 1 MINUTE]"
    found = alternatives(bound_query(text, CATALOG), TOPOLOGY, facts(600, 20))
    assert not any("part of every gateway" in each.words for each in found.listed)


def test_the_plan_asked_for_is_taken_and_another_is_refused() -> None:
    bound = bound_query(MAX, CATALOG)
    count = Search(normalize(bound.plan, TOPOLOGY), TOPOLOGY, Statistics()).memo.count()
    bundles = [
        place_plan(replace(bound, asked=number), TOPOLOGY, query="q")
        for number in range(1, count + 1)
    ]
    assert [bundle.alternative for bundle in bundles] == list(range(1, count + 1))
    assert len({bundle.fragments for bundle in bundles}) == count
    told = f"this query has {count} plans; there is no plan {count + 1}"
    with pytest.raises(UnsupportedError, match=re.escape(told)):
        place_plan(replace(bound, asked=count + 1), TOPOLOGY, query="q")


def test_a_running_query_changes_for_a_much_cheaper_plan_only() -> None:
    ready = normalize(bound_query(LEVEL_SUM, CATALOG).plan, TOPOLOGY)
    search = Search(ready, TOPOLOGY, facts(600, 20))
    cheap, pushing = search.taken(), search.plan(PUSHED)
    assert cheap.number != PUSHED
    assert cheap.cost.bytes < pushing.cost.bytes < 2 * cheap.cost.bytes
    assert search.taken(running=(PUSHED, pushing.digest)) == pushing
    dear = Search(normalize(bound_query(MAX, CATALOG).plan, TOPOLOGY), TOPOLOGY, facts(600, 20))
    last = dear.memo.count()
    assert dear.taken(running=(last, dear.plan(last).digest)).number != last


def test_a_running_plan_is_known_by_what_was_chosen_and_not_by_its_number() -> None:
    ready = normalize(bound_query(LEVEL_SUM, CATALOG).plan, TOPOLOGY)
    search = Search(ready, TOPOLOGY, facts(600, 20))
    cheap, pushing = search.taken(), search.plan(PUSHED)
    for number in (0, cheap.number, search.memo.count() + 1):
        assert search.taken(running=(number, pushing.digest)) == pushing, "numbered otherwise"
        shown = search.alternatives(running=(number, pushing.digest))
        told = f"it runs, and plan {cheap.number}, the cheapest, sends more than half as much"
        assert (shown.chosen, shown.why) == (PUSHED, told)
    assert search.taken(running=(PUSHED, "of no plan here")) == cheap
    digests = [search.plan(n).digest for n in range(1, search.memo.count() + 1)]
    assert len(set(digests)) == len(digests)


def test_few_plans_are_listed_of_many() -> None:
    names = "abcdef"
    sources = ", ".join(f"temp [RANGE 1 MINUTE] {name}" for name in names)
    keys = " AND ".join(f"a.rid = {name}.rid" for name in names[1:])
    text = f"SELECT a.rid FROM {sources} WHERE {keys} AND a.level < b.level"
    found = alternatives(bound_query(text, CATALOG), TOPOLOGY)
    assert len(found.listed) <= MAX_LISTED
    assert found.left_out > 0
    assert found.chosen in {each.number for each in found.listed}
    words = [each.words for each in found.listed]
    assert any(text.startswith("push everything") for text in words)
    assert any(text.startswith("ship everything") for text in words)


@pytest.mark.parametrize(("branches", "narrowed"), [(20, False), (40, True), (90, True)])
def test_queries_of_very_many_plans_are_planned(branches: int, narrowed: bool) -> None:
    parts = (f"SELECT level FROM temp WHERE celsius > {n}" for n in range(branches))
    bound = bound_query(" UNION ALL ".join(parts), CATALOG)
    bundle = place_plan(bound, TOPOLOGY, query="q")
    assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
    found = alternatives(bound, TOPOLOGY)
    assert found.chosen in {each.number for each in found.listed}
    filters_are_fixed = not any("all of temp sent" in each.words for each in found.listed)
    assert filters_are_fixed == narrowed


def test_deep_plans_are_pushed_as_far_as_they_go() -> None:
    plan: Plan = HEAT
    for number in range(300):
        plan = Distinct(plan) if number % 2 else TopN(plan, (SortKey(0),), number + 1)
    search = Search(plan, SMALL, Statistics())
    assert (search.memo.count(), search.taken().number) == (1, PUSHED)
    assert search.taken().cost.bytes > 0


def test_the_plan_taken_is_listed_once_under_the_number_that_is_told() -> None:
    one = "SELECT rid, COUNT(*) AS n FROM room GROUP BY rid"
    bound = bound_query(f"{one} UNION ALL {one}", CATALOG)
    for number in range(1, Search(bound.plan, TOPOLOGY, Statistics()).memo.count() + 1):
        found = alternatives(replace(bound, asked=number), TOPOLOGY)
        assert [each.number for each in found.listed].count(number) == 1
        words = [each.words.split(":")[0] for each in found.listed]
        assert (words.count("push everything"), words.count("ship everything")) == (1, 1)


def test_of_large_queries_over_several_bases_few_plans_are_compared() -> None:
    topology = Topology(TOPOLOGY.gateways, bases=("b1", "b2", "b3"))
    for branches, least, most in ((3, COMPARED, COMPARED + 3), (40, 2, 3)):
        part = "SELECT level, MAX(celsius) FROM temp WHERE celsius > {} GROUP BY level"
        bound = bound_query(" UNION ALL ".join(map(part.format, range(branches))), CATALOG)
        found = alternatives(bound, topology)
        assert least <= len(found.listed) <= most
        costs = {each.number: each.cost.order for each in found.listed}
        assert costs[found.chosen] == min(costs.values())


@pytest.mark.parametrize(
    ("sent", "told"),
    [(101.0, "sends about as much"), (106.0, "sends 1.1 times as much"), (120.0, "1.2 times")],
)
def test_small_differences_are_not_told_as_once_as_much(sent: float, told: str) -> None:
    taken = Choice(1, {}, Cost(100.0), "")
    assert told in Search._why(taken, [Listed(1, taken.cost, ""), Listed(2, Cost(sent), "")])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM temp [ROWS 100]",
        "SELECT DISTINCT level FROM temp [RANGE 1 MINUTE]",
        "SELECT t.level, COUNT(*) AS n FROM temp t JOIN room r ON t.rid = r.rid GROUP BY t.level",
    ],
)
@pytest.mark.parametrize("gateways", [0, 1])
@pytest.mark.parametrize("bases", [("base",), ("base", "base-2")])
def test_a_query_is_planned_while_no_gateway_has_its_source(
    text: str, gateways: int, bases: tuple[str, ...]
) -> None:
    others = {f"gw-{n}": frozenset({"other"}) for n in range(gateways)}
    bound = bound_query(text, CATALOG)
    bundle = place_plan(bound, Topology(others, bases), query="q", statistics=facts(600, 20))
    assert bundle.schema == bound.plan.schema
    assert alternatives(bound, Topology(others, bases), facts(600, 20)).listed
