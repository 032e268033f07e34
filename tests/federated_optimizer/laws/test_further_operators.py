"""Where joins by filter and time, orders, set operations and time windows are computed."""

import pytest

from federated_optimizer import normalize
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules.prune_columns import prune_columns
from federated_optimizer.rules.push_filters import push_filters
from federated_optimizer.testing_bundles import HEAT, NOISE, ROOM, SEAT, SPREAD_TOPOLOGY, TOPOLOGY
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    AsOfJoin,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    Plan,
    Project,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    TopN,
    walk_plan,
)
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, FragmentBundle

TEXT, INTEGER = DataType.TEXT, DataType.INTEGER


def is_one(plan: Plan, position: int) -> Expression:
    field = plan.schema.fields[position]
    value = 1 if field.dtype != TEXT else "a"
    column = Column(position, field.name, field.dtype)
    return Call("=", (column, Literal(value, field.dtype)), DataType.BOOLEAN)


def placed(plan: Plan, topology: Topology = TOPOLOGY) -> FragmentBundle:
    return place(normalize(plan, topology), topology, query="q")


def at_gateways(bundle: FragmentBundle, kind: type) -> list[Plan]:
    return [
        node
        for fragment in bundle.fragments
        if fragment.engine == Engine.GATEWAY
        for node in walk_plan(fragment.plan)
        if isinstance(node, kind)
    ]


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD_TOPOLOGY])
def test_every_part_sends_only_rows_that_may_be_first(topology: Topology) -> None:
    plan = TopN(NOISE, (SortKey(1, descending=True),), 3, 2)
    bundle = placed(plan, topology)
    (local,) = at_gateways(bundle, TopN)
    assert isinstance(local, TopN)
    assert (local.limit, local.offset, local.order) == (5, 0, plan.order)
    (result,) = [f for f in bundle.fragments if not f.consumer]
    assert isinstance(result.plan, TopN)
    assert (result.plan.limit, result.plan.offset) == (3, 2)


def test_the_first_of_each_device_are_found_where_the_device_is() -> None:
    bundle = placed(TopN(SEAT, (SortKey(2),), 1, partition=(0,)))
    (local,) = at_gateways(bundle, TopN)
    assert isinstance(local, TopN)
    assert local.limit == 1
    assert not any(isinstance(f.plan, TopN) for f in bundle.fragments if f.engine == Engine.BASE)


def test_first_rows_that_are_not_found_at_gateways_say_why() -> None:
    order = (SortKey(1),)
    for plan, reason in (
        (TopN(NOISE, order, 1, partition=(1,)), "rows of one partition may come from several"),
        (TopN(NOISE, order, 1), "it orders the rows of all gateways"),
    ):
        bundle = placed(plan, SPREAD_TOPOLOGY)
        assert any(reason in text for f in bundle.fragments for text in f.reasons), bundle


def test_an_order_without_limit_is_not_taken_of_parts() -> None:
    assert not at_gateways(placed(TopN(NOISE, (SortKey(1),), None, 2)), TopN)


@pytest.mark.parametrize("kind", list(JoinKind))
def test_joins_of_what_is_at_one_gateway_run_there(kind: JoinKind) -> None:
    join = Join(SEAT, ROOM, kind, ((1, 0),))
    assert at_gateways(placed(join), Join)
    assert not at_gateways(placed(Join(SEAT, NOISE, kind, ((1, 0),))), Join)


def test_rows_that_miss_a_partner_need_both_sources_everywhere() -> None:
    # HEAT is at a gateway that has no ROOM.
    for kind, local in ((JoinKind.SEMI, True), (JoinKind.ANTI, False), (JoinKind.FULL, False)):
        assert bool(at_gateways(placed(Join(HEAT, ROOM, kind, ((1, 0),))), Join)) == local
    beyond = placed(Join(ROOM, HEAT, JoinKind.FULL, ((0, 1),)))
    assert not at_gateways(beyond, Join)


def test_windows_and_sessions() -> None:
    assert at_gateways(placed(HopWindow(NOISE, 1, 2, 1)), HopWindow)
    assert at_gateways(placed(SessionWindow(SEAT, 2, 2, (0,))), SessionWindow)
    assert not at_gateways(placed(SessionWindow(NOISE, 1, 2, (0,))), SessionWindow)


def test_set_operations_and_as_of_joins_meet_where_equal_rows_are() -> None:
    same = SetOperation(ROOM, ROOM, SetKind.EXCEPT)
    assert at_gateways(placed(same), SetOperation)
    assert not at_gateways(placed(SetOperation(NOISE, NOISE, SetKind.INTERSECT)), SetOperation)
    as_of = AsOfJoin(SEAT, ROOM, JoinKind.LEFT, 2, 1, keys=((1, 0),))
    assert at_gateways(placed(as_of), AsOfJoin)
    assert not at_gateways(placed(AsOfJoin(SEAT, ROOM, JoinKind.LEFT, 2, 1)), AsOfJoin)


SEATS = len(SEAT.schema)


@pytest.mark.parametrize(
    ("below", "position", "pushed"),
    [
        (Join(SEAT, ROOM, JoinKind.FULL, ((1, 0),)), 0, False),
        (Join(SEAT, ROOM, JoinKind.FULL, ((1, 0),)), SEATS, False),
        (Join(SEAT, ROOM, JoinKind.SEMI, ((1, 0),)), 0, True),
        (Join(SEAT, ROOM, JoinKind.ANTI, ((1, 0),)), 2, True),
        (AsOfJoin(SEAT, ROOM, JoinKind.LEFT, 2, 1, keys=((1, 0),)), 0, True),
        (AsOfJoin(SEAT, ROOM, JoinKind.INNER, 2, 1, keys=((1, 0),)), SEATS + 1, False),
        (TopN(SEAT, (SortKey(2),), 1), 2, False),
        (TopN(SEAT, (SortKey(2),), 1, partition=(0,)), 0, True),
        (HopWindow(SEAT, 2, 2, 1), 0, True),
        (HopWindow(SEAT, 2, 2, 1), SEATS, False),
        (SessionWindow(SEAT, 2, 2, (0,)), 0, True),
        (SessionWindow(SEAT, 2, 2, (0,)), 1, False),
        (SetOperation(SEAT, SEAT, SetKind.EXCEPT, all=True), 1, True),
    ],
)
def test_filters_go_down_where_rows_above_do_not_hang_on_it(
    below: Plan, position: int, pushed: bool
) -> None:
    rewritten = push_filters(Filter(below, is_one(below, position)))
    assert isinstance(rewritten, Filter) != pushed


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [(JoinKind.SEMI, True, True), (JoinKind.ANTI, False, True), (JoinKind.FULL, False, False)],
)
def test_what_decides_who_matches(kind: JoinKind, left: bool, right: bool) -> None:
    both = Join(SEAT, ROOM, JoinKind.INNER)
    for position, pushed in ((2, left), (SEATS + 1, right)):
        rewritten = push_filters(Join(SEAT, ROOM, kind, ((1, 0),), is_one(both, position)))
        assert isinstance(rewritten, Join)
        assert (rewritten.residual is None) == pushed


def columns_read(plan: Plan, *positions: int) -> Plan:
    fields = plan.schema.fields
    columns = tuple(Column(p, fields[p].name, fields[p].dtype) for p in positions)
    return prune_columns(Project(plan, columns, tuple(c.name for c in columns)))


def test_columns_that_decide_ties_stay() -> None:
    first = columns_read(TopN(SEAT, (), 1), 1)
    (top,) = (node for node in walk_plan(first) if isinstance(node, TopN))
    assert top.input.schema.names == ("mid", "rid")  # weight stands behind what is read
    ordered = columns_read(TopN(SEAT, (SortKey(2),), 1), 0)
    (top,) = (node for node in walk_plan(ordered) if isinstance(node, TopN))
    assert top.input.schema.names == ("mid", "weight")  # between equal weights the device decides
    last = columns_read(TopN(SEAT, (SortKey(0),), 1), 2)
    (top,) = (node for node in walk_plan(last) if isinstance(node, TopN))
    assert top.input == SEAT


def test_a_semi_join_needs_only_keys_of_its_right_side() -> None:
    pruned = prune_columns(Join(ROOM, SEAT, JoinKind.SEMI, ((0, 1),)))
    assert isinstance(pruned, Join)
    assert pruned.right.schema.names == ("rid",)
