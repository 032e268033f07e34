"""Which plan is taken: the one asked for, the cheapest, or the one that runs."""

import re
from dataclasses import replace
from time import process_time

import pytest

from federated_optimizer import plan as place_plan
from federated_optimizer.alternatives.method import Method
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives, normalize
from federated_optimizer.search.choosing import COMPARED, MAX_LISTED, PUSHED, Choice, Listed, Search
from federated_optimizer.statistics.default_facts import HOP_MILLISECONDS
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.statistics.speeds import Micros, Speeds
from federated_optimizer.statistics.wires import DEFAULT_WIRES, Wires
from federated_optimizer.testing_bundles import HEAT
from federated_optimizer.testing_bundles import TOPOLOGY as SMALL
from streamsql.algebra.metrics import BY_BYTES, metric_of
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
PAIRS = (
    "SELECT a.rid FROM temp [RANGE 1 MINUTE] a, room b"
    " WHERE a.rid = b.rid AND level > {0} AND b.n > {0}"
)
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
    assert any(each.words.startswith("ship everything: ") for each in found.listed)
    assert any("the query has more than" in each for each in found.refused) == narrowed


@pytest.mark.parametrize(
    ("part", "branches", "left_out"),
    [
        (PAIRS, 5, ""),
        (PAIRS, 14, "joins of rows of other gateways at gateways: the query"),
        (PAIRS, 20, "filters at the base of what gateways have: the query"),
        (f"SELECT rid, COUNT(*) AS n FROM ({PAIRS}) p GROUP BY rid", 30, "plans between the one"),
    ],
)
def test_of_too_many_plans_the_one_that_ships_everything_stays(
    part: str, branches: int, left_out: str
) -> None:
    text = " UNION ALL ".join(part.format(n) for n in range(branches))
    bound = bound_query(text, CATALOG)
    started = process_time()
    search = Search(normalize(bound.plan, TOPOLOGY), TOPOLOGY, Statistics())
    taken = search.taken()
    assert process_time() - started < 5.0
    pushing, shipping = search.plan(PUSHED), search.plan(search.memo.shipping)
    assert taken.cost.bytes <= min(pushing.cost.bytes, shipping.cost.bytes)
    assert set(shipping.methods) == {Method.BASE}
    assert shipping.digest != pushing.digest
    assert search.number_of((0, shipping.digest)) == shipping.number
    said = [each for each in search.memo.refused if "the query has more than" in each]
    assert (left_out in said[0]) if said else not left_out


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
        costs = {each.number: Weighing().order(each.cost) for each in found.listed}
        assert costs[found.chosen] == min(costs.values())


@pytest.mark.parametrize(
    ("sent", "told"),
    [(101.0, "sends about as much"), (106.0, "sends 1.1 times as much"), (120.0, "1.2 times")],
)
def test_small_differences_are_not_told_as_once_as_much(sent: float, told: str) -> None:
    taken = Choice(1, Taken(HEAT), Cost(100.0), "")
    search = Search(HEAT, SMALL, Statistics())
    assert told in search._why(taken, [Listed(1, taken.cost, ""), Listed(2, Cost(sent), "")])


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


LATENCY = metric_of("latency")
FREE = replace(
    DEFAULT_WIRES, message_microseconds=0.0, batch_microseconds=0.0, byte_nanoseconds=0.0
)
"""Messages take no processor."""


def taken(text: str, metric: str, statistics: Statistics) -> Choice:
    ready = normalize(bound_query(text, CATALOG).plan, TOPOLOGY)
    return Search(ready, TOPOLOGY, statistics, metric_of(metric)).taken()


def test_the_metric_decides() -> None:
    # A sum that each reading changes: two rows for one, but at the gateways' processors.
    busy = replace(facts(600, 20), speeds=Speeds(gateway=Micros(group=0.0), base=Micros(group=1e6)))
    by_bytes, by_cpu = (taken(LEVEL_SUM, metric, facts(600, 20)) for metric in ("bytes", "cpu"))
    assert by_bytes.number != PUSHED
    assert by_cpu.cost.cpu <= by_bytes.cost.cpu
    slow = replace(facts(600, 20), wires=replace(DEFAULT_WIRES, message_microseconds=1e6))
    assert taken(MAX, "cpu", slow).number == PUSHED
    assert taken(MAX, "cpu", busy).number == PUSHED
    free = replace(facts(600, 20), wires=FREE)
    assert taken(MAX, "cpu", free).number != PUSHED, "the parts have to be put together"
    assert taken(MAX, "state", facts(600, 20)).number != PUSHED, "the base keeps the parts, too"
    assert taken(MAX, "bytes 1, state 0.00001", facts(600, 20)).number == PUSHED
    assert taken(MAX, "bytes 1, state 1000000", facts(600, 20)).number != PUSHED


def test_of_equals_by_the_metric_the_one_that_sends_least_is_taken() -> None:
    found = alternatives(bound_query(MAX, CATALOG), TOPOLOGY, facts(600, 20), metric=LATENCY)
    merged = [each for each in found.listed if "on their way" in each.words]
    alike = {each.cost.milliseconds for each in found.listed if each not in merged}
    assert len(alike) == 1
    assert all(each.cost.milliseconds > max(alike) for each in merged)
    assert found.chosen == PUSHED
    assert found.why == "plan 2 costs as much by latency, and sends more"
    assert found.metric == LATENCY


def test_a_query_asks_for_its_metric_and_others_have_that_of_the_system() -> None:
    asking = bound_query(f"{MAX} WITH (metric = 'state')", CATALOG)
    saying_nothing = bound_query(MAX, CATALOG)
    known = facts(600, 20)
    for bound, metric, number in (
        (asking, BY_BYTES, 2),
        (saying_nothing, BY_BYTES, PUSHED),
        (saying_nothing, metric_of("state"), 2),
        (replace(asking, metric=BY_BYTES), metric_of("state"), PUSHED),
    ):
        bundle = place_plan(bound, TOPOLOGY, query="q", statistics=known, metric=metric)
        assert bundle.alternative == number
        assert alternatives(bound, TOPOLOGY, known, metric=metric).chosen == number


def test_a_running_plan_stays_unless_it_costs_twice_as_much_by_the_metric() -> None:
    ready = normalize(bound_query(MAX, CATALOG).plan, TOPOLOGY)
    known = replace(facts(600, 20), wires=FREE)
    by_cpu = Search(ready, TOPOLOGY, known, metric_of("cpu"))
    cheap, pushing = by_cpu.taken(), by_cpu.plan(PUSHED)
    assert cheap.cost.cpu < pushing.cost.cpu < 2 * cheap.cost.cpu
    assert by_cpu.taken(running=(PUSHED, pushing.digest)) == pushing
    last = by_cpu.plan(cheap.number)
    by_bytes = Search(ready, TOPOLOGY, known)
    assert by_bytes.taken(running=(last.number, last.digest)).number == PUSHED
    told = by_cpu.alternatives(running=(PUSHED, pushing.digest)).why
    assert (
        told == f"it runs, and plan {cheap.number}, the cheapest, computes more than half as much"
    )


def test_far_gateways_take_energy_and_time_but_no_more_bytes() -> None:
    far = replace(facts(600, 20), wires=Wires(hops={("gw-1", "base"): 7.0}))
    ready = normalize(bound_query(MAX, CATALOG).plan, TOPOLOGY)
    near, away = (
        Search(ready, TOPOLOGY, known).plan(PUSHED).cost for known in (facts(600, 20), far)
    )
    assert away.bytes == near.bytes
    assert away.energy == pytest.approx(near.energy * (7 + 1 + 1) / 3)
    assert away.milliseconds == pytest.approx(near.milliseconds + 6 * HOP_MILLISECONDS.value)
    met = taken(MAX, "energy", far)
    assert Method.TREE in met.methods, "it sends to a gateway that is nearer"
    assert met.cost.energy < away.energy
    assert met.cost.milliseconds > near.milliseconds
