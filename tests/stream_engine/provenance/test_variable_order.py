"""The depth-first labeller, and decision diagrams that follow it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.provenance.bdd import BddEncoding
from stream_engine.provenance.variable_order import (
    DepthFirstOrder,
    Edge,
    RebuiltOrder,
    VariableOrder,
    depth_first,
    order_named,
)
from tests.stream_engine.provenance.formulas import annotation_of

# The example of figures 9 and 10: f = p0 (p1 + p2 p3) + (p4 + p6 p7) p5.
EXAMPLE = ((0, 1), (0, 2, 3), (4, 5), (6, 7, 5))


def is_depth_first(vector: list[int], edges: dict[int, Edge]) -> bool:
    """Whether the vector of a forest's links can come from a depth-first traversal."""
    path: list[object] = []
    started: set[object] = set()
    for token in vector:
        edge = edges[token]
        while path and path[-1] != edge.source:
            path.pop()
        if not path and edge.source in started:
            return False
        path.append(edge.target)
        started |= {edge.source, edge.target}
        if len(path) == 1:
            path.insert(0, edge.source)
    return True


def random_tree(chooser: random.Random) -> dict[int, Edge]:
    nodes = chooser.randint(2, 15)
    return {node: Edge(chooser.randrange(node), node) for node in range(1, nodes)}


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_links_of_a_tree_are_always_in_depth_first_order(seed: int, shuffled: bool) -> None:
    chooser = random.Random(seed)
    edges = random_tree(chooser)
    arrival = list(edges)
    if shuffled:
        chooser.shuffle(arrival)
    order = DepthFirstOrder()
    for number, token in enumerate(arrival, start=1):
        order.insert(token, edges[token])
        assert sorted(order.vector) == sorted(arrival[:number])
        assert is_depth_first(order.vector, edges)


def test_a_vector_that_is_not_depth_first_is_recognised() -> None:
    edges = {1: Edge("a", "b"), 2: Edge("a", "c"), 3: Edge("b", "d")}
    assert is_depth_first([1, 3, 2], edges)
    assert not is_depth_first([1, 2, 3], edges)


@given(st.lists(st.integers(0, 11), max_size=80), st.randoms(use_true_random=False))
@pytest.mark.parametrize("name", ["dfs", "arrival", "rebuild"])
def test_the_vector_has_exactly_the_live_tokens(
    name: str, toggles: list[int], chooser: random.Random
) -> None:
    edges = {t: Edge(chooser.randrange(5), chooser.randrange(5)) for t in range(11)}
    order: VariableOrder = order_named(name)
    live: set[int] = set()
    for token in toggles:
        if token in live:
            order.delete(token)
        else:
            order.insert(token, edges.get(token))
        live ^= {token}
        assert sorted(order.vector) == sorted(live)


def test_orphaned_links_move_behind_the_next_link_that_leads_to_them() -> None:
    order = DepthFirstOrder()
    links = [("r", "x"), ("x", "y"), ("r", "z"), ("z", "x")]
    for token, (source, target) in enumerate(links):
        order.insert(token, Edge(source, target))
    assert order.vector == [0, 1, 2, 3]
    order.delete(0)
    assert order.vector == [2, 3, 1]


def test_deleting_an_unknown_token_changes_nothing() -> None:
    for name in ("dfs", "arrival", "rebuild"):
        order = order_named(name)
        order.insert(1, Edge("a", "b"))
        order.delete(9)
        assert order.vector == [1]


def test_rebuilding_gives_the_order_from_scratch() -> None:
    chooser = random.Random(5)
    edges = {t: Edge(chooser.randrange(20), chooser.randrange(20)) for t in range(16)}
    order = RebuiltOrder()
    for token, edge in edges.items():
        order.insert(token, edge)
    assert order.vector == depth_first(edges, edges)


@pytest.mark.parametrize(
    ("vector", "nodes"), [((0, 1, 2, 3, 4, 5, 6, 7), 9), ((0, 4, 6, 1, 2, 5, 7, 3), 18)]
)
def test_the_example_of_the_paper(vector: tuple[int, ...], nodes: int) -> None:
    encoding = BddEncoding()
    encoding.arrange(vector)
    assert encoding.size(annotation_of(encoding, EXAMPLE)) == nodes


def test_annotations_follow_a_new_order() -> None:
    encoding = BddEncoding()
    encoding.arrange((0, 4, 6, 1, 2, 5, 7, 3))
    annotation = annotation_of(encoding, EXAMPLE)
    assert encoding.arrange((0, 1, 2, 3, 4, 5, 6, 7))
    moved = encoding.rewritten(annotation)
    assert encoding.size(moved) == 9
    assert moved == annotation_of(encoding, EXAMPLE)
    assert encoding.supports(moved, 10) == sorted(
        map(frozenset, EXAMPLE), key=lambda s: (len(s), sorted(s))
    )


def test_new_tokens_go_between_old_ones_without_moving_them() -> None:
    encoding = BddEncoding()
    encoding.arrange((1, 9))
    annotation = annotation_of(encoding, ((1, 9),))
    assert not encoding.arrange((1, 5, 9, 11))
    assert encoding.supports(annotation, 2) == [frozenset({1, 9})]
    order = [t for t, _, _ in encoding.nodes(annotation_of(encoding, ((1, 5, 9, 11),)))]
    assert order == [11, 9, 5, 1]


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=6), st.integers(0, 2**12))
def test_meaning_survives_any_reordering(orders: list[list[int]], seed: int) -> None:
    chooser = random.Random(seed)
    encoding = BddEncoding()
    supports = tuple(
        tuple(chooser.sample(range(6), chooser.randint(1, 3))) for _ in range(chooser.randint(1, 5))
    )
    annotation = annotation_of(encoding, supports)
    before = encoding.supports(annotation, 50)
    for vector in orders:
        chosen = vector[: chooser.randint(1, 6)]
        if encoding.arrange(chosen):
            annotation = encoding.rewritten(annotation)
        assert encoding.supports(annotation, 50) == before
        assert annotation == annotation_of(encoding, supports)
