"""Hops between gateways, against networkx."""

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.statistics.link_hops import LinkHops
from federated_optimizer.statistics.wires import MOST_PAIRS, Wires

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=15).map(
    lambda pairs: [(f"gw-{a}", f"gw-{b}") for a, b in pairs if a != b]
)


@given(PAIRS)
def test_hops_are_those_of_the_shortest_way(pairs: list[tuple[str, str]]) -> None:
    hops = LinkHops(pairs)
    wanted = dict(nx.all_pairs_shortest_path_length(nx.Graph(pairs)))
    assert dict(hops) == {(a, b): n for a, to in wanted.items() for b, n in to.items() if n}
    assert bool(hops) == bool(pairs)
    wires = Wires(hops=hops)
    assert wires.between("gw-1", "base") == 1.0, "nobody knows better"
    for a, b in hops:
        assert wires.between(a, b) == wires.between(b, a)


def test_of_very_many_pairs_some_stand_for_all() -> None:
    line = LinkHops((f"gw-{n}", f"gw-{n + 1}") for n in range(400))
    sites = tuple(f"gw-{n}" for n in range(400))
    mean, most = Wires(hops=line).distances(sites, (*sites, "base"))
    assert len(sites) ** 2 > MOST_PAIRS
    assert 120 < mean < 146
    assert 390 < most < 400
