"""Queries registered one after the other: nodes, widened nodes, the example of two transfers."""

from dataclasses import replace
from itertools import count

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_bundles import Readings
from federated_optimizer.testing_network import Network, answers
from streamsql.algebra.expressions import conjuncts
from streamsql.algebra.operators import Aggregate, Filter, Join, JoinKind, Project, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE Fed (
  tran_id INTEGER, type_code INTEGER, tran_date INTEGER, amount DOUBLE, sbank_aba INTEGER,
  orig_account INTEGER, rbank_aba INTEGER, benef_account INTEGER
) WITH (ttl = '30 days');
CREATE SOURCE Bank (aba INTEGER, city TEXT, KEY (aba)) WITH (ttl = '30 days');
"""
)
TOPOLOGY = Topology({"gw-1": frozenset({"fed", "bank"}), "gw-2": frozenset({"fed", "bank"})})
NOW = 1_000
SHOWN = (
    "a.tran_id AS i1, a.tran_date AS d1, a.amount AS m1, b.tran_id AS i2, b.tran_date AS d2, "
    "b.amount AS m2, c.tran_id AS i3, c.tran_date AS d3, c.amount AS m3"
)


def transfers(days: int, shown: str = SHOWN) -> str:
    return f"""
SELECT {shown} FROM Fed a, Fed b, Fed c
WHERE a.type_code = 1000 AND b.type_code = 1000 AND c.type_code = 1000 AND a.amount > 1000000
  AND a.rbank_aba = b.sbank_aba AND a.benef_account = b.orig_account AND b.amount > 0.5 * a.amount
  AND a.tran_date <= b.tran_date AND b.tran_date - a.tran_date <= {days}
  AND b.rbank_aba = c.sbank_aba AND b.benef_account = c.orig_account AND b.amount = c.amount
  AND b.tran_date <= c.tran_date AND c.tran_date - b.tran_date <= {days}"""


PAIRS = (
    "SELECT a.tran_id AS i1, a.amount AS m1, b.tran_id AS i2, b.amount AS m2, a.tran_date AS d1 "
    "FROM Fed a, Fed b WHERE a.rbank_aba = b.sbank_aba AND a.benef_account = b.orig_account"
)


def readings() -> Readings:
    rows = []
    ids = count(1)
    for first, amount in enumerate((2_000_000.0, 1_500_000.0, 900_000.0)):
        for gap in (5, 15, 25):
            chain = 10 * (first * 3 + gap // 10)
            for step in range(3):
                paid = amount if step == 0 else amount * 0.75
                bank, account = chain + step, chain + step
                rows.append(
                    (next(ids), 1000, gap * step, paid, bank, account, bank + 1, account + 1)
                )
    whole, other = Database(), Database()
    events = [SourceEvent(row, NOW) for row in rows]
    banks = [SourceEvent((number, "x" if number % 2 else "y"), NOW) for number in range(60)]
    for database, part in ((whole, events), (other, events[1::2])):
        database.append("fed", part)
    whole.append("bank", banks)
    first_gateway = Database()
    first_gateway.append("fed", events[::2])
    first_gateway.append("bank", banks)
    return Readings(whole, {"gw-1": first_gateway, "gw-2": other})


READINGS = readings()


def network_of(
    *texts: str,
    materialize: Materialize = Materialize.WANTED_TWICE,
    strategy: Strategy = Strategy.ALL,
    topology: Topology = TOPOLOGY,
) -> Network:
    sharing = Sharing(ComputationIndex(), strategy, materialize)
    network = Network(Planning(topology), sharing)
    for text in texts:
        network.register(bound_query(text, CATALOG))
        check(network)
    return network


def check(network: Network) -> None:
    """Every query has the rows of evaluating it from scratch; runs offer what they receive."""
    for name, run in network.runs.items():
        own = {fragment.id for fragment in run.bundle.own}
        offered = {each.fragment for each in network.sharing.index.of_run(name)}
        assert offered - {""} <= own, f"{name} offers what another run receives for it"
    found = answers(network, READINGS, NOW)
    for query, rows in found.items():
        run = network.runs[network.reads[query]]
        assert rows == evaluate(run.bound.plan, READINGS.whole, NOW), query


@pytest.mark.parametrize("materialize", list(Materialize))
def test_the_second_of_two_transfers_is_a_selection_on_the_first(materialize: Materialize) -> None:
    network = network_of(transfers(20), materialize=materialize)
    before = set(network.runs)
    change = network.register(bound_query(transfers(10), CATALOG))
    check(network)
    assert set(network.runs) - before == {change.query}
    (bundle,) = change.deploy
    first = network.reads[next(iter(network.reads))]
    assert [feed.run for feed in bundle.feeds] == [first]
    top = bundle.fragments[0].plan
    kept = top.input if isinstance(top, Project) else top
    assert isinstance(kept, Filter)
    assert len(conjuncts(kept.predicate)) == 2, "the two bounds of ten days"
    assert not any(isinstance(node, Join) for node in walk_plan(top))
    assert answers(network, READINGS, NOW)[change.query], "some transfers take ten days"


def test_windows_around_event_times_contain_shorter_ones_as_the_thesis_writes_them() -> None:
    catalog = catalog_of(
        """
CREATE SOURCE Fed (
  tran_id INTEGER, type_code INTEGER, tran_date TIMESTAMP, amount DOUBLE, sbank_aba INTEGER,
  orig_account INTEGER, rbank_aba INTEGER, benef_account INTEGER,
  WATERMARK FOR tran_date AS tran_date - INTERVAL '1 s'
) WITH (ttl = '30 days');
"""
    )
    network = Network(Planning(TOPOLOGY))
    deployed: list[FragmentBundle] = []
    for days in (20, 10):
        text = transfers(days)
        for one, other in (("a", "b"), ("b", "c")):
            gap = f"{other}.tran_date - {one}.tran_date <= {days}"
            assert gap in text
            end = f"{other}.tran_date <= {one}.tran_date + INTERVAL '{days} days'"
            text = text.replace(gap, end)
        deployed += network.register(bound_query(text, catalog)).deploy
    _, bundle = deployed
    assert [feed.run for feed in bundle.feeds] == ["q1"]
    kept = bundle.fragments[0].plan
    assert isinstance(kept, Filter)
    assert len(conjuncts(kept.predicate)) == 2


def test_the_large_transfers_are_read_from_all_transfers() -> None:
    """S2 = P1 is computed from S1 = P2 = P3: one fragment of gateways feeds all three readings."""
    network = Network(Planning(TOPOLOGY))
    bound = bound_query(transfers(20), CATALOG)
    network.register(replace(bound, whole_changes=True))  # no gateway joins rows of others
    check(network)
    (run,) = network.runs.values()
    sent = [f for f in run.bundle.fragments if f.engine == Engine.GATEWAY]
    assert len(sent) == 1
    assert len(run.bundle.readers(sent[0].id)) == 3


def test_eager_nodes_are_those_of_the_thesis() -> None:
    network = network_of(transfers(20), materialize=Materialize.EAGER)
    nodes = [run for run in network.runs.values() if run.is_node]
    assert len(nodes) == 1, "J1; J2 is the query's own"
    assert sum(isinstance(n, Join) for n in walk_plan(nodes[0].logical)) == 1


def test_a_node_is_made_when_a_second_query_wants_it() -> None:
    first = f"SELECT p.i1, COUNT(*) AS n FROM ({PAIRS}) p GROUP BY p.i1"
    second = f"SELECT p.i2, MAX(p.m1) AS m FROM ({PAIRS} AND a.amount > 1000000) p GROUP BY p.i2"
    network = network_of(first)
    assert not any(run.is_node for run in network.runs.values())
    change = network.register(bound_query(second, CATALOG))
    check(network)
    (node, bundle) = change.deploy
    assert network.runs[node.query].is_node
    assert [feed.run for feed in bundle.feeds] == [node.query]


def test_eager_nodes_show_what_their_conditions_read() -> None:
    """So narrower windows over them are filters, and no node is made or widened for these."""
    chain = "SELECT p.i1, c.tran_id AS i3 FROM ({}) p JOIN Fed c ON c.tran_id = p.i2"
    first, second = (
        chain.format(f"{PAIRS} AND a.tran_date <= b.tran_date AND b.tran_date - a.tran_date <= {n}")
        for n in (20, 10)
    )
    network = network_of(first, materialize=Materialize.EAGER)
    pairs, triples = (run for run in network.runs.values() if run.is_node)
    assert len(pairs.bundle.schema) == 4, "both ids, which join further, and both dates"
    assert len(triples.bundle.schema) == 4, "the last join, too"
    change = network.register(bound_query(second, CATALOG))
    check(network)
    (bundle,) = change.deploy
    assert bundle.feeds[0].run == triples.bundle.query
    (kept,) = (n for n in walk_plan(bundle.fragments[0].plan) if isinstance(n, Filter))
    assert len(conjuncts(kept.predicate)) == 1, "ten days"


def test_eager_joins_of_gateways_are_nodes_that_gateways_compute() -> None:
    """Both sides of EXCEPT are read from one join, though gateways could join for each."""
    joined = "SELECT b.city AS city FROM Bank a, Bank b WHERE a.aba = b.aba + 1 AND a.city = b.city"
    text = f"{joined} EXCEPT {joined} AND a.aba < 5"
    topology = Topology({"gw-1": frozenset({"fed", "bank"})})
    network = network_of(text, materialize=Materialize.EAGER, topology=topology)
    node, query = network.runs.values()
    assert node.is_node
    assert any(isinstance(n, Join) and n.kind == JoinKind.INNER for n in walk_plan(node.logical))
    assert {feed.run for feed in query.bundle.feeds} == {node.bundle.query}
    assert not any(isinstance(n, Join) for f in query.bundle.own for n in walk_plan(f.plan))


def test_no_nodes_are_made_that_the_strategy_does_not_read() -> None:
    network = network_of(transfers(20), strategy=Strategy.NO_JOINS, materialize=Materialize.EAGER)
    assert not any(run.is_node for run in network.runs.values())


def test_groups_over_rows_that_are_there_become_a_node_for_the_second_query() -> None:
    """The rows of the join can be read, but both would group them."""
    narrow = f"{PAIRS} AND a.amount > 1000000"
    grouped = f"SELECT p.i1, COUNT(*) AS n FROM ({narrow}) p GROUP BY p.i1 HAVING COUNT(*) > {{}}"
    network = network_of(PAIRS, grouped.format(2), grouped.format(1))
    (node,) = (run for run in network.runs.values() if run.is_node)
    assert any(isinstance(n, Aggregate) for n in walk_plan(node.logical))
    (bundle,) = network.register(bound_query(grouped.format(0), CATALOG)).deploy
    check(network)
    operators = [n for f in bundle.own for n in walk_plan(f.plan)]
    assert not any(isinstance(n, Aggregate) for n in operators)


SUMS = "SELECT {} FROM Fed GROUP BY {} HAVING SUM(amount) > {}"
FINE, COARSE = "rbank_aba AS bank, tran_date AS day", "rbank_aba AS bank"


@pytest.mark.parametrize("materialize", list(Materialize))
def test_each_further_bound_of_a_sum_adds_one_filter(materialize: Materialize) -> None:
    """Groups by fewer columns are one aggregate, without HAVING, over the groups by more."""
    texts = [
        SUMS.format(f"{shown}, SUM(amount) AS s, COUNT(*) AS n", keys, bound)
        for bound in (5e6, 4e6, 3e6, 2e6, 1e5)  # results of greater ones have not all rows
        for shown, keys in ((FINE, "rbank_aba, tran_date"), (COARSE, "rbank_aba"))
    ]
    first, others = texts[:4], texts[4:]
    network = network_of(*first, materialize=materialize)
    assert all(network.readers(name) for name, run in network.runs.items() if run.is_node)
    for text in others:
        (bundle,) = network.register(bound_query(text, CATALOG)).deploy
        operators = [n for f in bundle.own for n in walk_plan(f.plan)]
        assert sum(isinstance(n, Filter) for n in operators) == 1
        assert not any(isinstance(n, Aggregate) for n in operators)
        (feed,) = bundle.feeds
        assert network.runs[feed.run].is_node
    check(network)
    nodes = [run.bundle for run in network.runs.values() if run.is_node]
    inside = [n for node in nodes for f in node.own for n in walk_plan(f.plan)]
    assert sum(isinstance(n, Aggregate) for n in inside) == 2


def test_a_node_that_lacks_columns_is_widened_in_its_place() -> None:
    first = f"SELECT p.i1, COUNT(*) AS n FROM ({PAIRS}) p GROUP BY p.i1"
    second = f"SELECT p.i2, COUNT(*) AS n FROM ({PAIRS}) p GROUP BY p.i2"
    third = f"SELECT p.d1, SUM(p.m2) AS m FROM ({PAIRS}) p GROUP BY p.d1"
    network = network_of(first, second)
    (name,) = (name for name, run in network.runs.items() if run.is_node)
    before = network.runs[name]
    change = network.register(bound_query(third, CATALOG))
    check(network)
    node = network.runs[name]
    assert [bundle.query for bundle in change.deploy] == [name, network.reads["q3"], change.query]
    assert node.bundle.version == before.bundle.version + 1
    old = before.bundle.schema.names
    assert node.bundle.schema.names[: len(old)] == old
    assert len(node.bundle.schema) > len(old)


def test_equal_queries_read_one_run() -> None:
    network = network_of(transfers(20))
    change = network.register(bound_query(transfers(20), CATALOG))
    check(network)
    assert not change.deploy
    assert network.reads[change.query] == "q1"


def test_the_last_reader_takes_the_nodes_along() -> None:
    texts = (transfers(20), transfers(10), PAIRS, f"{PAIRS} AND a.amount > 1000000")
    for materialize in Materialize:
        network = network_of(*texts, materialize=materialize)
        for query in list(network.reads):
            network.deregister(query)
            check(network)
        assert not network.runs
        assert not len(network.sharing.index)


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_configuration_keeps_the_rows(strategy: Strategy) -> None:
    texts = (PAIRS, transfers(20), transfers(10), f"{PAIRS} AND a.amount > 1000000")
    network_of(*texts, strategy=strategy)


def test_a_selection_reads_the_rows_of_a_weaker_one() -> None:
    network = network_of("SELECT tran_id, amount FROM Fed WHERE amount > 1000")
    change = network.register(bound_query("SELECT tran_id FROM Fed WHERE amount > 9000", CATALOG))
    check(network)
    assert {feed.run for feed in change.deploy[0].feeds} == {"q1"}
    assert all(f.engine == Engine.BASE for f in change.deploy[0].fragments[:1])


def test_parts_that_rest_on_when_a_query_began_are_no_nodes() -> None:
    catalog = catalog_of(
        "CREATE SOURCE Log (room TEXT, celsius DOUBLE);"
        "CREATE SOURCE Room (room TEXT, name TEXT, KEY (room)) WITH (ttl = '1 h');"
    )
    both = frozenset({"log", "room"})
    sharing = Sharing(ComputationIndex(), materialize=Materialize.EAGER)
    network = Network(Planning(Topology({"gw-1": both, "gw-2": both})), sharing)
    text = (
        "SELECT r.name, g.n FROM Room r JOIN "
        "(SELECT l.room, COUNT(*) AS n FROM Log l JOIN Log m ON l.room = m.room GROUP BY l.room) g "
        "ON g.room = r.room"
    )
    network.register(bound_query(text, catalog))
    assert not any(run.is_node for run in network.runs.values())
    assert not len(sharing.index)


def test_a_recursion_whose_way_is_asked_for_is_not_read_from_others() -> None:
    reach = (
        "WITH RECURSIVE r(a, b) AS (SELECT sbank_aba, rbank_aba FROM Fed UNION "
        "SELECT r.a, f.rbank_aba FROM r, Fed f WHERE f.sbank_aba = r.b) SELECT a, b FROM r"
    )
    network = Network(Planning(TOPOLOGY), Sharing(ComputationIndex()))
    network.register(bound_query(reach, CATALOG))
    asked = network.register(bound_query(f"{reach} WITH (way = 'centre')", CATALOG)).registration
    free = network.register(bound_query(f"{reach} WHERE a = 1", CATALOG)).registration
    assert asked is not None
    assert not (asked.used)
    assert not (asked.equal)
    assert free is not None
    assert free.used


def test_variations_of_a_bound_are_no_chain() -> None:
    """Each could read the one before, and a bundle has copies of all that it rests on."""
    network = Network(Planning(TOPOLOGY))
    text = "SELECT tran_id, amount FROM Fed WHERE amount > {} AND type_code = 1000"
    for number in range(100):
        (bundle,) = network.register(bound_query(text.format(1_000_000 + number), CATALOG)).deploy
        assert len(bundle.fragments) - len(bundle.own) <= 6, f"variation {number}"
    check(network)


@pytest.mark.parametrize("shown", ["tran_id, amount", "amount, tran_id"])
def test_an_equal_query_reads_a_run_that_reads_another_one(shown: str) -> None:
    """Nothing is delivered again for it: its run has been a filter over other rows before."""
    text = "SELECT {} FROM Fed WHERE amount > {} AND type_code = 1000"
    network = network_of(text.format("tran_id, amount", 10), text.format("tran_id, amount", 20))
    change = network.register(bound_query(text.format(shown, 20), CATALOG))
    check(network)
    sent = [f for b in change.deploy for f in b.own if f.engine == Engine.GATEWAY]
    assert not sent
    first = [feed.run for b in change.deploy for feed in b.feeds] or [network.reads[change.query]]
    assert first == ["q2"]


def test_of_equal_rows_those_are_read_that_sites_deliver() -> None:
    """The result of the first query has the same rows, and ends with it."""
    text = "SELECT tran_id, amount FROM Fed WHERE amount > {} AND type_code = 1000"
    network = network_of(text.format(10))
    (bundle,) = network.register(bound_query(text.format(20), CATALOG)).deploy
    assert [(feed.run, feed.source) for feed in bundle.feeds] == [("q1", "f1")]


def test_a_run_does_not_offer_what_it_is_fed() -> None:
    """Gateways deliver large transfers once, for the first query, whoever joins them."""
    large = "SELECT tran_id, sbank_aba FROM Fed WHERE amount > 10"
    joined = f"SELECT l.tran_id, k.city FROM ({large}) l JOIN Bank k ON l.sbank_aba = k.aba + 1"
    network = network_of(large, joined, f"{large} AND tran_id > 3")
    feeds = {(feed.run, feed.source) for feed in network.runs["q2"].bundle.feeds}
    assert feeds & {("q1", "f0"), ("q1", "f1")}
    assert {feed.run for feed in network.runs["q3"].bundle.feeds} == {"q1"}
