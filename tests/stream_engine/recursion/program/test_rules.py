"""Branches become rules over shared, narrowed leaves; what is not linear is refused."""

import pytest

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.placement import LeafRoute, Router, placement_of
from stream_engine.recursion.program.rules import RECURSIVE, narrowed, rules_of
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import (
    LINK,
    cheapest_path,
    column,
    project,
    reachable,
    region,
    two_ways,
)
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    RecursiveReference,
    UnionAll,
    Window,
    WindowKind,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import UnsupportedError

TEXT = DataType.TEXT
PAIR = Schema.of(("src", TEXT), ("dst", TEXT))
REFERENCE = RecursiveReference("r", PAIR)
LINK_PAIR = project(LINK, src=column(LINK, "src"), dst=column(LINK, "dst"))


def dear(plan: Plan) -> Filter:
    cost = Column(2, "cost", DataType.INTEGER)
    return Filter(plan, Call(">", (cost, Literal(5, DataType.INTEGER)), DataType.BOOLEAN))


def fixpoint(step: Plan, base: Plan = LINK_PAIR) -> Fixpoint:
    return Fixpoint("r", PAIR, (base,), (step,))


def forward(link: Plan = LINK_PAIR) -> Plan:
    width = len(link.schema)
    joined = Join(link, REFERENCE, JoinKind.INNER, ((1, 0),))
    return project(joined, src=Column(0, "src", TEXT), dst=Column(width + 1, "dst", TEXT))


def test_base_and_step_read_one_leaf() -> None:
    rules = rules_of(reachable())
    assert rules.leaves == (LINK,)
    base, step = rules.rules
    assert base.atoms == (0,)
    assert step.atoms == (0, RECURSIVE)


def test_a_joined_base_branch_is_a_leaf() -> None:
    leaves = rules_of(region(1.0)).leaves
    assert sum(isinstance(leaf, Join) for leaf in leaves) == 1
    assert len(leaves) == 3


def test_unions_are_taken_apart() -> None:
    union = UnionAll((LINK_PAIR, LINK_PAIR))
    rules = rules_of(fixpoint(Distinct(UnionAll((forward(), LINK_PAIR))), union))
    assert rules.leaves == (LINK,)
    assert len(rules.rules) == 2


def test_a_union_below_a_join_adds_a_rule_over_leaves() -> None:
    both = UnionAll((REFERENCE, LINK_PAIR))
    joined = Join(both, LINK_PAIR, JoinKind.INNER, ((1, 0),))
    node = fixpoint(project(joined, src=Column(0, "src", TEXT), dst=Column(3, "dst", TEXT)))
    links = [("a", "b", 1), ("b", "c", 1), ("c", "d", 1)]
    expected = {("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b", "d"), ("a", "d")}
    ensemble = Ensemble(node, ("s0", "s1", "s2"))
    for site, link in zip(ensemble.operators, links, strict=True):
        ensemble.apply(site, 0, {link: 1})
        ensemble.step(site)
    ensemble.run()
    assert ensemble.rows() == expected
    assert [rule.atoms for rule in rules_of(node).rules] == [(0,), (RECURSIVE, 0), (0, 0)]


def test_columns_nobody_reads_are_cut_away() -> None:
    uses, _ = narrowed(rules_of(reachable()))
    assert uses[0].columns == (0, 1)
    operator = FixpointOperator(reachable(), site="s", sites=("s",), epoch=1)
    operator.apply(0, {("a", "b", 1): 1})
    assert operator.settle() == {("a", "b"): 1}
    operator.apply(0, {("a", "b", 1): -1, ("a", "b", 2): 1})
    assert operator.settle() == {}
    assert operator.counters.kills == 0


def test_a_filter_of_every_use_is_applied_before_tokens_are_given() -> None:
    both = fixpoint(forward(dear(LINK)), project(dear(LINK), a=PAIR_COLUMNS[0], b=PAIR_COLUMNS[1]))
    uses, rules = narrowed(rules_of(both))
    assert len(uses[0].filter) == 1
    assert uses[0].columns == (0, 1)
    one = fixpoint(forward(dear(LINK)))
    uses, rules = narrowed(rules_of(one))
    assert uses[0].filter == ()
    assert uses[0].columns == (0, 1, 2)
    operator = FixpointOperator(one, site="s", sites=("s",), epoch=1)
    operator.apply(0, {("a", "b", 1): 1, ("b", "c", 1): 1, ("c", "d", 9): 1, ("d", "e", 9): 1})
    assert set(operator.settle()) == {("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("c", "e")}
    assert len(rules) == 2


PAIR_COLUMNS = (column(LINK, "src"), column(LINK, "dst"))


def test_windows_are_leaves_of_their_own() -> None:
    window = Window(LINK, WindowKind.RANGE, size=5)
    pairs = project(window, src=column(LINK, "src"), dst=column(LINK, "dst"))
    assert rules_of(fixpoint(forward(pairs))).leaves == (LINK, window)


def test_nulls_never_join() -> None:
    operator = FixpointOperator(reachable(), site="s", sites=("s",), epoch=1)
    operator.apply(0, {("a", None, 1): 1, (None, "b", 1): 1})
    assert set(operator.settle()) == {("a", None), (None, "b")}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            project(
                Join(REFERENCE, LINK_PAIR, JoinKind.LEFT, ((1, 0),)),
                src=Column(0, "src", TEXT),
                dst=Column(1, "dst", TEXT),
            ),
            "LEFT JOIN",
        ),
        (Aggregate(REFERENCE, (0, 1), ()), "AGGREGATE"),
    ],
)
def test_what_is_not_monotone_is_refused(step: Plan, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as refused:
        rules_of(fixpoint(step))
    assert refused.value.hint


def test_partitioning_by_the_join_key() -> None:
    _, rules = narrowed(rules_of(cheapest_path()))
    placement = placement_of(rules, 1)
    assert placement.columns == (0,)
    assert placement.routes == ((LeafRoute((1,)),),)
    router = Router(placement, ("x", "y", "z"))
    for node in "abcdefgh":
        (destination,) = router.leaf_destinations(0, ("q", node, 3))
        assert destination == router.owner_of((node, "q", 3))


def test_steps_over_different_leaf_columns_route_rows_to_both() -> None:
    _, rules = narrowed(rules_of(two_ways()))
    placement = placement_of(rules, 1)
    assert placement.columns == (1,)
    assert set(placement.routes[0]) == {LeafRoute((0,)), LeafRoute((1,))}


def test_leaves_without_a_key_go_everywhere() -> None:
    _, rules = narrowed(rules_of(region(1.0)))
    placement = placement_of(rules, 3)
    router = Router(placement, ("x", "y"))
    sensor = [leaf for leaf in range(3) if LeafRoute(None) in placement.routes[leaf]]
    assert sensor
    assert router.leaf_destinations(sensor[0], (1, 0.0, 0.0)) == ("x", "y")


def test_keys_are_routed_by_value_not_by_spelling() -> None:
    _, rules = narrowed(rules_of(reachable()))
    router = Router(placement_of(rules, 1), ("x", "y", "z", "u", "v"))
    assert router.owner_of((0.0, "a")) == router.owner_of((-0.0, "b"))


def test_a_branch_may_read_the_relation_twice() -> None:
    step = project(
        Join(REFERENCE, REFERENCE, JoinKind.INNER, ((1, 0),)),
        src=Column(0, "src", TEXT),
        dst=Column(3, "dst", TEXT),
    )
    rule = next(rule for rule in rules_of(fixpoint(step)).rules if rule.is_step)
    assert rule.atoms == (RECURSIVE, RECURSIVE)
    assert not rule.is_linear
