"""One site: after every settle the view is the least fixpoint, and changes sum up to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_programs import cheapest_path, reachable, region, two_ways
from streamsql.algebra.choices import Annotations, Shipping
from streamsql.algebra.operators import Fixpoint, Plan, Scan
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.stream_engine.recursion.row_explanations import explain_row

NODES = st.sampled_from("abcd")
LINK_ROWS = st.tuples(NODES, NODES, st.integers(1, 4))
SENSOR_ROWS = st.tuples(st.integers(0, 4), st.integers(0, 3).map(float), st.just(0.0))
ID_ROWS = st.tuples(st.integers(0, 4))
SEED_ROWS = st.tuples(st.integers(0, 1), st.integers(0, 4))
LINK_BATCHES = st.lists(st.lists(st.tuples(st.just("link"), LINK_ROWS), max_size=4), max_size=12)
REGION_EVENT = st.one_of(
    st.tuples(st.just("sensor"), SENSOR_ROWS),
    st.tuples(st.just("triggered"), ID_ROWS),
    st.tuples(st.just("seed"), SEED_ROWS),
)
REGION_BATCHES = st.lists(st.lists(REGION_EVENT, max_size=5), max_size=10)

OPTIONS = [
    RecursionOptions(),
    RecursionOptions(width=1),
    RecursionOptions(shipping=Shipping.EAGER),
    RecursionOptions(shipping=Shipping.EAGER, width=2),
    RecursionOptions(shipping=Shipping.WITNESS),
    RecursionOptions(annotations=Annotations.BDD, width=1),
    RecursionOptions(annotations=Annotations.BDD, shipping=Shipping.EAGER),
]
HALF = settings(max_examples=max(settings().max_examples // 2, 1))
LINK_VIEWS = [reachable(), cheapest_path(), cheapest_path(via=True), two_ways()]
Batches = list[list[tuple[str, Row]]]


def describe(value: RecursionOptions | Fixpoint) -> str:
    if isinstance(value, Fixpoint):
        return value.name
    return f"{value.shipping}-{value.annotations}-{value.width}"


class Toggled:
    """Base relations whose rows are inserted when absent and deleted when present."""

    def __init__(self) -> None:
        self.relations: dict[str, set[Row]] = {}

    def toggle(self, name: str, row: Row) -> int:
        """Insert or delete a row; return the change of its weight."""
        relation = self.relations.setdefault(name, set())
        if row in relation:
            relation.remove(row)
            return -1
        relation.add(row)
        return 1

    def evaluate(self, node: Fixpoint) -> Delta:
        """Return the least fixpoint from scratch."""
        return evaluate(node, self.database(), now=0)

    def database(self) -> Database:
        database = Database()
        for name, rows in self.relations.items():
            database.append(name, [SourceEvent(row, ts=0) for row in rows])
        return database


def leaf_delta(leaf: Plan, before: Database, after: Database) -> Delta:
    """Return the change of a leaf, from scratch."""
    return difference(evaluate(leaf, after, 0), evaluate(leaf, before, 0))


def check(node: Fixpoint, batches: Batches, options: RecursionOptions) -> None:
    operator = FixpointOperator(node, site="one", sites=("one",), epoch=1, options=options)
    base, total = Toggled(), dict[Row, int]()
    for batch in batches:
        before = base.database()
        for name, row in batch:
            base.toggle(name, row)
        for port, leaf in enumerate(operator.leaves):
            operator.apply(port, leaf_delta(leaf, before, base.database()))
        accumulate(total, operator.settle())
        assert total == base.evaluate(node)
        assert set(operator.state_rows()) == set(total)
        assert operator.is_settled
        assert operator.drain() == []


@pytest.mark.parametrize("options", OPTIONS, ids=describe)
@pytest.mark.parametrize(
    "node",
    [reachable(), cheapest_path(), cheapest_path(via=True), two_ways()],
    ids=lambda n: n.name,
)
@HALF
@given(batches=LINK_BATCHES)
def test_views_over_links(node: Fixpoint, options: RecursionOptions, batches: Batches) -> None:
    check(node, batches, options)


@pytest.mark.parametrize("options", OPTIONS, ids=describe)
@HALF
@given(batches=REGION_BATCHES)
def test_region_by_distance(options: RecursionOptions, batches: Batches) -> None:
    check(region(1.5), batches, options)


def test_base_and_step_share_the_leaf() -> None:
    operator = FixpointOperator(reachable(), site="one", sites=("one",), epoch=1)
    assert len(operator.leaves) == 1
    assert isinstance(operator.leaves[0], Scan)


@pytest.mark.parametrize(
    "options",
    [
        RecursionOptions(),
        RecursionOptions(annotations=Annotations.BDD),
        RecursionOptions(shipping=Shipping.WITNESS),
    ],
    ids=describe,
)
def test_explanations_name_the_leaf_rows(options: RecursionOptions) -> None:
    operator = FixpointOperator(reachable(), site="one", sites=("one",), epoch=1, options=options)
    links = [("a", "b", 1), ("b", "d", 1), ("a", "c", 1), ("c", "d", 1), ("x", "y", 1)]
    operator.apply(0, dict.fromkeys(links, 1))
    operator.settle()
    explanation = explain_row(operator, ("a", "d"))
    assert explanation is not None
    named = {frozenset(explanation.rows[t] for t in s) for s in explanation.supports}
    assert named == {
        frozenset({(0, ("a", "b")), (0, ("b", "d"))}),
        frozenset({(0, ("a", "c")), (0, ("c", "d"))}),
    }
    operator.apply(0, {("b", "d", 1): -1})
    assert operator.settle() == {("b", "d"): -1}
    explanation = explain_row(operator, ("a", "d"))
    assert explanation is not None
    assert len(explanation.supports) == 1
    assert explain_row(operator, ("d", "a")) is None
    assert operator.counters.kills == 1


def test_rows_of_a_site_declared_dead_go_even_when_it_is_alone() -> None:
    operator = FixpointOperator(reachable(), site="one", sites=("one",), epoch=1)
    operator.apply(0, {("a", "b", 1): 1})
    operator.settle()
    operator.kill_site("one", 1)
    assert operator.settle() == {("a", "b"): -1}
    assert operator.is_settled
