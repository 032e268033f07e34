"""Ranks after repairs; the bound at which a repair is given up for a new search."""

import pytest

from stream_engine.recursion.kernels.kernel_graph import Graph
from stream_engine.recursion.kernels.kernel_search import most_repaired
from stream_engine.recursion.kernels.reach import Reach

NODES = 100
SHORTCUT = 20


def ranks_after_a_cut(dropped: int, elastic: float) -> dict[int, int]:
    """Return the ranks along a chain with a shortcut whose last nodes have been cut off.

    A repair leaves a rank that is a proof as it is, though the shortcut would give a lesser one; a
    new search finds distances. So the rank at the end of the shortcut tells which it was.
    """
    graph = Graph()
    graph.make_room(NODES)
    graph.apply([(node, node + 1, 1, 1) for node in range(NODES - 1)])
    ranks = {node: node for node in range(NODES)}
    reach = Reach(graph, elastic)
    _gone, come = graph.apply([(0, SHORTCUT, 1, 1)])
    assert reach.repair(ranks, {0: 0}, [], come, []) == {}
    first = NODES - dropped
    graph.apply([(first - 1, first, 1, -1)])
    touched = reach.repair(ranks, {0: 0}, [first], [], [])
    assert set(ranks) == set(range(first))
    assert {node: rank for node, rank in touched.items() if node not in ranks} == {
        node: node for node in range(first, NODES)
    }
    return ranks


@pytest.mark.parametrize("elastic", [0.0, 0.25, 0.5])
def test_as_many_as_may_be_repaired_are_and_one_more_is_a_new_search(elastic: float) -> None:
    most = int(most_repaired(elastic, NODES))
    if most:
        assert ranks_after_a_cut(most, elastic)[SHORTCUT] == SHORTCUT
    assert ranks_after_a_cut(most + 1, elastic)[SHORTCUT] == 1
