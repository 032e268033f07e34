"""The network of runs that benchmarks and laws use."""

import msgspec

from federated_optimizer.registering.registration_terms import Planning
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
