"""The network of runs that benchmarks and laws use."""

import msgspec

from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_network import Network
from streamsql.wire.fragments import Feed
from tests.federated_optimizer.sharing.readings_shop import CATALOG, TOPOLOGY
from tests.streamsql.from_text import bound_query


def test_rows_are_read_of_the_run_that_receives_them() -> None:
    network = Network(Planning(TOPOLOGY))
    shown = "SELECT a, b FROM r WHERE x > 1"
    first, other = (
        network.register(bound_query(text, CATALOG)).query
        for text in (shown, f"{shown} UNION ALL SELECT a, a FROM q")
    )
    fed = network.runs[other].bundle
    (received,) = (feed for feed in fed.feeds if feed.run == first)
    # A plan names the second run, of which it is known only afterwards that the first one feeds it.
    reading = Feed("f1", other, fed.version, received.fragment)
    third = msgspec.structs.replace(network.runs[first].bundle, query="q9", feeds=(reading,))
    assert network._fed(third).feeds == (Feed("f1", first, received.version, received.source),)


def test_a_query_that_counts_from_its_own_start_reads_no_node_and_makes_none() -> None:
    sharing = Sharing(ComputationIndex(), Strategy.ALL, Materialize.EAGER)
    network = Network(Planning(TOPOLOGY), sharing)
    latest = "SELECT r.a, q.b FROM r [PARTITION BY a ROWS 2], q WHERE r.a = q.a"
    groups = "SELECT a, MAX(x) FROM q WHERE b > 1 GROUP BY a"
    change = network.register(bound_query(f"{latest} UNION {groups}", CATALOG))
    assert change.registration is not None
    assert change.registration.nodes, "else this tests nothing"
    (bundle,) = change.deploy
    assert bundle.query == change.query
    assert not bundle.feeds


def test_queries_move_to_another_run_and_a_result_that_others_read_goes_on() -> None:
    network = Network(Planning(TOPOLOGY))
    shown = "SELECT a, b FROM r WHERE x > 1"
    first, second = (
        network.register(bound_query(text, CATALOG)).query
        for text in (shown, f"{shown} UNION ALL SELECT a, a FROM q")
    )
    left = network.runs[first].bundle
    moved = network.move(first, network.elsewhere(left, first))
    assert network.reads[first] == moved.query not in {first, second}
    assert moved.deploy == (network.runs[moved.query].bundle,)
    assert network.runs[first].bundle == left
    ended = {*network.deregister(second).withdraw, *network.deregister(first).withdraw}
    assert ended == {first, second, moved.query}
    assert network.runs == {}


def test_a_run_that_nobody_reads_ends_when_its_queries_move() -> None:
    network = Network(Planning(TOPOLOGY))
    query = network.register(bound_query("SELECT a, b FROM r WHERE x > 1", CATALOG)).query
    bundle = network.elsewhere(network.runs[query].bundle, query)
    assert bundle.feeds == ()
    assert network.move(query, bundle).withdraw == (query,)
    assert set(network.runs) == {bundle.query} == {network.reads[query]}
