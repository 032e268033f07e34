"""Estimates of fragments: they add up to the price of the plan, and follow the facts."""

import pytest

from federated_optimizer import plan as place_plan
from federated_optimizer.costs.fragment_estimates import FragmentEstimate, fragment_estimates
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE temp (rid TEXT, celsius DOUBLE, level INTEGER);
    CREATE SOURCE room (rid TEXT, open BOOLEAN, n INTEGER, PRIMARY KEY (rid));
    CREATE LINK SOURCE link (src TEXT, dst TEXT, PRIMARY KEY (src, dst));
    CREATE TABLE lab (rid TEXT PRIMARY KEY, name TEXT) WITH (source = 'csv', path = 'lab.csv');"""
)
NAMES = frozenset({"temp", "room", "link"})
GATEWAYS = dict.fromkeys(("gw-1", "gw-2", "gw-3"), NAMES)
TOPOLOGY = Topology(GATEWAYS, bases=("base",), coordinator="host")
TWO_BASES = Topology(GATEWAYS, bases=("base-1", "base-2"), coordinator="host")
MAX = "SELECT MAX(celsius) AS m FROM temp [RANGE 1 MINUTE]"
REACH = """WITH RECURSIVE reach (src, dst) AS (SELECT src, dst FROM link UNION
    SELECT r.src, l.dst FROM reach r JOIN link l ON l.src = r.dst)
    SELECT src, dst FROM reach"""
UNKNOWN = 0.5
QUERIES = [
    MAX,
    "SELECT rid, celsius FROM temp [RANGE 1 MINUTE] WHERE celsius > 30.0",
    "SELECT DISTINCT level FROM temp [RANGE 1 MINUTE]",
    "SELECT level, COUNT(DISTINCT rid) AS n FROM temp [RANGE 1 MINUTE] GROUP BY level",
    "SELECT * FROM temp [RANGE 1 MINUTE] ORDER BY celsius LIMIT 3",
    "SELECT r.rid, celsius FROM temp [RANGE 1 MINUTE] t JOIN room r ON t.rid = r.rid WHERE open",
    "SELECT r.rid, l.name FROM room r JOIN lab l ON l.rid = r.rid",
    "SELECT open, COUNT(*) AS n FROM room GROUP BY open UNION ALL"
    " SELECT TRUE AS open, COUNT(*) AS n FROM temp [RANGE 1 MINUTE]",
]


def facts(changes: float = 20.0) -> Statistics:
    sources = dict.fromkeys(NAMES, SourceFacts(600, changes))
    return Statistics(sources={**sources, "lab": SourceFacts(50, 0)})


def estimates(
    text: str, statistics: Statistics, topology: Topology = TOPOLOGY
) -> dict[str, FragmentEstimate]:
    bundle = place_plan(bound_query(text, CATALOG), topology, query="q", statistics=statistics)
    return fragment_estimates(bundle, statistics, "host")


@pytest.mark.parametrize("topology", [TOPOLOGY, TWO_BASES], ids=["one-base", "two-bases"])
@pytest.mark.parametrize("text", QUERIES)
def test_fragments_add_up_to_the_price_of_the_plan(text: str, topology: Topology) -> None:
    """The price of a plan is that of all that travels, without the result."""
    statistics = facts()
    for each in alternatives(bound_query(text, CATALOG), topology, statistics).listed:
        found = estimates(f"{text} WITH (plan = {each.number})", statistics, topology)
        parts = [estimate.cost for name, estimate in found.items() if name != "f0"]
        # The search prices questions for keys, and their answers, by a rule of its own.
        near = UNKNOWN if "asked for keys" in each.words else 1e-6
        assert sum(part.bytes for part in parts) == pytest.approx(each.cost.bytes, near), each.words
        assert sum(part.messages for part in parts) == pytest.approx(each.cost.messages, near)


def test_rows_that_are_sent_follow_the_rate_of_their_source() -> None:
    text = "SELECT rid, n FROM room"
    slow, fast = (estimates(text, facts(changes))["f1"] for changes in (2.0, 8.0))
    assert slow.rows == pytest.approx(2.0)
    assert fast.rows == pytest.approx(8.0)
    assert slow.cost.bytes < fast.cost.bytes


def test_rows_that_stay_at_their_site_are_not_sent() -> None:
    topology = Topology({"gw-1": NAMES}, bases=("gw-1",), coordinator="gw-1")
    bound = bound_query(MAX, CATALOG)
    bundle = place_plan(bound, topology, query="q", statistics=facts())
    for estimate in fragment_estimates(bundle, facts(), "gw-1").values():
        assert (estimate.rows, estimate.cost.bytes) == (0.0, 0.0)


def test_a_later_fragment_is_later() -> None:
    found = estimates(MAX, facts())
    assert 0 < found["f1"].cost.milliseconds < found["f0"].cost.milliseconds


def test_nobody_knows_the_rows_of_a_recursion_that_gateways_compute() -> None:
    bundle = place_plan(
        bound_query(f"{REACH} WITH (way = 'witness')", CATALOG), TOPOLOGY, query="q"
    )
    together = [f.id for f in bundle.fragments if f.homes or len(f.sites) > 1]
    found = fragment_estimates(bundle, Statistics(), "host")
    assert any(found[name].rows is None and found[name].cost.bytes > 0 for name in together)
