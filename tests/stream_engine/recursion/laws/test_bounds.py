"""Nothing grows without bound, and bounds never make the view wrong."""

import random

import pytest

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import cheapest_path, reachable
from streamsql.algebra.choices import Annotations, RecursionChoice, Shipping, Strategy
from streamsql.algebra.operators import Fixpoint, walk_plan
from streamsql.data.delta import Delta
from streamsql.data.types import Row, Value
from streamsql.errors import RecursionLimitError, WireError
from streamsql.wire.codec import decode_packed, encode_packed
from tests.stream_engine.recursion.row_explanations import explain_row
from tests.streamsql.from_text import bound_query, catalog_of

RING: Delta = {(f"n{i}", f"n{(i + 1) % 20}", 1): 1 for i in range(20)}


def alone(node: Fixpoint, options: RecursionOptions | None = None) -> FixpointOperator:
    return FixpointOperator(node, site="one", sites=("one",), epoch=1, options=options)


def closure(links: set[Row]) -> set[Row]:
    """Return the pairs connected by links, by searching from every node."""
    after: dict[Value, list[Value]] = {}
    for source, target, _ in links:
        after.setdefault(source, []).append(target)
    found: set[Row] = set()
    for start, targets in after.items():
        seen, todo = set(), list(targets)
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(after.get(node, ()))
        found |= {(start, node) for node in seen}
    return found


def test_a_view_above_its_limit_is_stopped_with_advice() -> None:
    operator = alone(reachable(limit=399))
    operator.apply(0, RING)
    with pytest.raises(RecursionLimitError, match="reachable has more than 399 rows") as stopped:
        operator.settle()
    assert "LIMIT" in stopped.value.hint
    assert list(operator.state_rows()) == []
    operator.apply(0, {("x", "y", 1): 1})
    with pytest.raises(RecursionLimitError, match="399"):
        operator.settle()


def test_a_view_at_its_limit_is_not() -> None:
    operator = alone(reachable(limit=400))
    operator.apply(0, RING)
    assert len(operator.settle()) == 400


def test_a_cycle_of_negative_cost_is_stopped() -> None:
    operator = alone(cheapest_path())
    operator.apply(0, {("a", "b", 1): 1, ("b", "a", -2): 1, ("b", "c", 1): 1})
    with pytest.raises(RecursionLimitError, match="negative"):
        operator.settle()


def test_a_cycle_of_negative_cost_across_sites_is_stopped() -> None:
    ensemble = Ensemble(cheapest_path(limit=100), ("s0", "s1", "s2"))
    ensemble.apply("s0", 0, {("a", "b", 1): 1})
    ensemble.apply("s1", 0, {("b", "a", -2): 1})
    for site in ensemble.operators:
        ensemble.step(site)
    with pytest.raises(RecursionLimitError, match="more than 200 candidate rows"):
        ensemble.run()


def test_cycles_of_no_cost_end() -> None:
    operator = alone(cheapest_path(via=True))
    operator.apply(0, {("a", "b", 0): 1, ("b", "a", 0): 1})
    assert ("a", "b", 0, "b") in operator.settle()


def test_too_many_derivations_are_stopped() -> None:
    operator = alone(reachable(), RecursionOptions(max_derivations=50))
    operator.apply(0, RING)
    with pytest.raises(RecursionLimitError, match="50 derivations"):
        operator.settle()


@pytest.mark.parametrize("annotations", [Annotations.DNF, Annotations.BDD])
@pytest.mark.parametrize("shipping", list(Shipping))
def test_dropped_alternatives_are_found_again(shipping: Shipping, annotations: Annotations) -> None:
    """With room for one alternative the view stays right, because rows are derived again."""
    options = RecursionOptions(shipping=shipping, annotations=annotations, width=1)
    operator = alone(reachable(), options)
    choice = random.Random(4)
    nodes = [f"n{i}" for i in range(9)]
    live: set[Row] = {(a, b, 1) for a in nodes for b in nodes if a != b}
    operator.apply(0, dict.fromkeys(sorted(live), 1))
    operator.settle()
    for link in choice.sample(sorted(live), 68):
        live.remove(link)
        operator.apply(0, {link: -1})
        operator.settle()
        assert set(operator.state_rows()) == closure(live)
    if annotations == Annotations.DNF:
        assert operator.counters.rederived > 0


def test_buffers_are_bounded_by_the_width() -> None:
    operator = alone(reachable(), RecursionOptions(width=3))
    nodes = [f"n{i}" for i in range(12)]
    operator.apply(0, {(a, b, 1): 1 for a in nodes for b in nodes if a != b})
    operator.settle()
    explanation = explain_row(operator, ("n0", "n1"), limit=100)
    assert explanation is not None
    assert len(explanation.supports) <= 4


def test_long_churn_leaves_nothing_behind() -> None:
    """Links that come and go in thousands leave neither index entries nor buffers behind."""
    operator = alone(reachable(), RecursionOptions())
    operator.apply(0, RING)
    operator.settle()
    for i in range(6_000):
        link = ("n0", f"n{2 + i % 17}", 1)
        operator.apply(0, {link: 1})
        operator.settle()
        operator.apply(0, {link: -1})
        assert operator.settle() == {}
    view = operator._view
    assert len(view.tokens()) < 5_000
    assert sum(map(len, view._holders.values())) <= 120_000
    operator._partition.sweep()
    view._rebuild_holders()
    assert view.tokens() == set(operator._leaf_rows.arrived[0].by_token)


@pytest.mark.parametrize("field", ["strategy", "way"])
def test_a_plan_with_an_unknown_choice_is_refused_where_it_arrives(field: str) -> None:
    sent = encode_packed({"strategy": "ranked", "way": "flood", field: "guessing"})
    with pytest.raises(WireError, match="guessing"):
        decode_packed(sent, RecursionChoice)


FREE_CYCLE: Delta = {("a", "b", 0): 1, ("b", "a", 0): 1, ("b", "c", 1): 1}


@pytest.mark.parametrize("strategy", ["auto", "ranked", "absorption", "dred", "recompute", "set"])
def test_a_cycle_that_costs_nothing_while_a_path_grows_is_named_as_the_cause(strategy: str) -> None:
    text = """WITH RECURSIVE (LIMIT 2000) p (src, dst, cost, nodes) AS (
      SELECT src, dst, cost, src || dst FROM link
      UNION SELECT l.src, p.dst, l.cost + p.cost, l.src || p.nodes
      FROM link l JOIN p ON l.dst = p.src)
    SELECT src, dst, MIN(cost) AS cost, ARG_MIN(nodes, cost) AS nodes FROM p GROUP BY src, dst"""
    catalog = catalog_of("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER)")
    plan = bound_query(text, catalog).plan
    (node,) = (n for n in walk_plan(plan) if isinstance(n, Fixpoint))
    options = RecursionOptions(strategy=Strategy(strategy))
    operator = recursive_operator(node, site="s", sites=("s",), epoch=1, options=options)
    operator.apply(0, FREE_CYCLE)
    with pytest.raises(RecursionLimitError, match="recursion p") as stopped:
        operator.settle()
    assert "on a cycle of cost 0, rows of equal cost repeat for ever" in stopped.value.hint
    assert "WHERE cost > 0" in stopped.value.hint


@pytest.mark.parametrize("strategy", ["ranked", "absorption", "recompute"])
def test_it_is_not_where_no_other_column_can_grow(strategy: str) -> None:
    options = RecursionOptions(strategy=Strategy(strategy))
    operator = recursive_operator(
        reachable(limit=10), site="s", sites=("s",), epoch=1, options=options
    )
    operator.apply(0, RING)
    with pytest.raises(RecursionLimitError) as stopped:
        operator.settle()
    assert "on a cycle of cost 0, rows of equal cost repeat for ever" not in stopped.value.hint
