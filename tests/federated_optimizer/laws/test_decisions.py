"""The driver of rules, and single decisions of the placement that random plans rarely meet."""

import pytest

from federated_optimizer.cutting.placing import direct_scans, place
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import Rule, run_rules
from federated_optimizer.rules.prune_columns import prune_columns
from federated_optimizer.rules.push_filters import push_filters
from federated_optimizer.search.joins.joins_by_place import group_joins
from federated_optimizer.testing_bundles import HEAT, MACHINES, NOISE, NOW, ROOM, SEAT, TOPOLOGY
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Window,
    WindowKind,
    walk_plan,
)
from streamsql.data.types import DataType
from streamsql.errors import InternalError
from streamsql.wire.fragments import Engine

COUNT = (AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),)


def test_a_rule_that_changes_the_schema_is_named() -> None:
    def drop_column(plan: Plan) -> Plan:
        return Project(plan, (Column(0, "mid", DataType.TEXT),), ("mid",))

    with pytest.raises(InternalError, match="rule careless changed the schema"):
        run_rules(SEAT, [Rule("careless", drop_column)])


def test_rules_that_never_rest_are_named(caplog: pytest.LogCaptureFixture) -> None:
    def depth(plan: Plan) -> int:
        return sum(isinstance(node, Distinct) for node in walk_plan(plan))

    def grow(plan: Plan) -> Plan:
        return Distinct(plan) if depth(plan) in (0, 2) else plan

    def turn(plan: Plan) -> Plan:
        return Distinct(plan) if depth(plan) == 1 else SEAT if depth(plan) == 3 else plan

    plan = run_rules(SEAT, [Rule("one", grow), Rule("other", turn)])
    assert plan.schema == SEAT.schema
    assert "rules one, other still change the plan after 20 passes" in caplog.text


def engine_of(plan: Plan, kind: type[Plan], topology: Topology = TOPOLOGY) -> Engine:
    """Where the operator of a kind was placed."""
    for fragment in place(plan, topology, query="q").fragments:
        if any(isinstance(node, kind) for node in walk_plan(fragment.plan)):
            return fragment.engine
    raise AssertionError(f"no {kind.__name__} anywhere")


@pytest.mark.parametrize(
    ("kind", "group", "expected"),
    [
        (JoinKind.INNER, 3, Engine.GATEWAY),
        (JoinKind.INNER, 1, Engine.GATEWAY),
        (JoinKind.LEFT, 1, Engine.GATEWAY),
        # Padding makes NULLs at every gateway, so the right column no longer tells one.
        (JoinKind.LEFT, 3, Engine.BASE),
    ],
)
def test_groups_of_a_join(kind: JoinKind, group: int, expected: Engine) -> None:
    joined = Join(SEAT, ROOM, kind, ((1, 0),))
    assert engine_of(Aggregate(joined, (group,), COUNT), Aggregate) == expected


@pytest.mark.parametrize(
    ("plan", "kind", "expected"),
    [
        (Aggregate(HEAT, (1,), COUNT), Aggregate, Engine.GATEWAY),
        (Aggregate(HEAT, (0,), COUNT), Aggregate, Engine.BASE),
        (Aggregate(HEAT, (), COUNT), Aggregate, Engine.BASE),
        (Aggregate(SEAT, (0,), COUNT), Aggregate, Engine.GATEWAY),
        (Distinct(HEAT), Distinct, Engine.GATEWAY),
        (Distinct(NOISE), Distinct, Engine.BASE),
        (Join(SEAT, ROOM, JoinKind.INNER), Join, Engine.BASE),
        (Join(SEAT, NOISE, JoinKind.INNER, ((1, 0),)), Join, Engine.BASE),
        (Join(SEAT, SEAT, JoinKind.INNER, ((0, 0),)), Join, Engine.GATEWAY),
        (Join(SEAT, MACHINES, JoinKind.INNER, ((0, 0),)), Join, Engine.BASE),
        (Join(MACHINES, MACHINES, JoinKind.INNER, ((0, 0),)), Join, Engine.STATIC),
        (Join(MACHINES, MACHINES, JoinKind.INNER), Join, Engine.BASE),
        # One gateway lacks the right side.
        (Join(HEAT, ROOM, JoinKind.LEFT, ((1, 0),)), Join, Engine.BASE),
        (Join(HEAT, ROOM, JoinKind.INNER, ((1, 0),)), Join, Engine.GATEWAY),
        (Window(HEAT, WindowKind.ROWS, 3), Window, Engine.BASE),
        (Window(HEAT, WindowKind.ROWS, 3, partition=(1,)), Window, Engine.GATEWAY),
        (Window(HEAT, WindowKind.RANGE, NOW), Window, Engine.GATEWAY),
    ],
)
def test_where_an_operator_runs(plan: Plan, kind: type[Plan], expected: Engine) -> None:
    assert engine_of(plan, kind) == expected


def test_everything_stateful_may_run_at_the_only_gateway() -> None:
    alone = Topology({"gw-1": frozenset({"heat", "noise"})})
    assert engine_of(Window(HEAT, WindowKind.ROWS, 3), Window, alone) == Engine.GATEWAY
    assert engine_of(Distinct(NOISE), Distinct, alone) == Engine.GATEWAY


def test_a_scan_at_the_base_is_announced() -> None:
    bundle = place(Window(HEAT, WindowKind.ROWS, 3), TOPOLOGY, query="q")
    assert direct_scans(bundle) == {"heat": ("base",)}
    assert direct_scans(place(HEAT, TOPOLOGY, query="q")) == {}


def test_inputs_that_equal_a_third_are_joined_directly() -> None:
    # seat.rid = machines.rid and room.rid = machines.rid, so seat and room meet in the network.
    first = Join(SEAT, MACHINES, JoinKind.INNER, ((1, 1),))
    plan = Join(first, ROOM, JoinKind.INNER, ((4, 0),))
    grouped = group_joins(plan, TOPOLOGY)
    assert grouped.schema == plan.schema
    fragments = place(grouped, TOPOLOGY, query="q").fragments
    (network,) = [f for f in fragments if f.engine == Engine.GATEWAY]
    assert network.sites == ("gw-1", "gw-2")
    assert isinstance(network.plan, Join)


def test_a_federation_needs_a_base() -> None:
    with pytest.raises(ValueError, match="at least one base"):
        Topology({}, bases=())


def test_a_constant_filter_stays_above_a_total() -> None:
    """A total has a row even of nothing; filtered away below, it would come back as zero."""
    one, two = (Literal(value, DataType.INTEGER) for value in (1, 2))
    never = Call("=", (one, two), DataType.BOOLEAN)
    plan = Filter(Aggregate(HEAT, (), COUNT), never)
    assert push_filters(plan) == plan


def test_pruning_reaches_below_distinct() -> None:
    joined = Join(SEAT, ROOM, JoinKind.INNER, ((1, 0),))
    plan = Distinct(Project(joined, (Column(0, "mid", DataType.TEXT),), ("mid",)))
    pruned = prune_columns(plan)
    (join,) = [node for node in walk_plan(pruned) if isinstance(node, Join)]
    assert join.schema.names == ("mid", "rid", "rid")


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("group", [(0,), (1,), (2,), (0, 2)])
def test_each_copy_of_a_column_tells_the_gateway(column: int, group: tuple[int, ...]) -> None:
    """The device or its room, projected twice: groups by either copy stay at the gateways."""
    kept = Column(column, SEAT.schema.names[column], SEAT.schema.dtypes[column])
    weight = Call("length", (kept,), DataType.INTEGER)
    doubled = Project(SEAT, (kept, weight, kept), ("a", "n", "b"))
    chosen = Aggregate(doubled, group, COUNT)
    expected = Engine.BASE if group == (1,) else Engine.GATEWAY
    assert engine_of(chosen, Aggregate) == expected
    by_both = Aggregate(Aggregate(doubled, (0, 2), COUNT), (group[0] // 2,), COUNT)
    if group != (1,):
        assert engine_of(by_both, Aggregate) == Engine.GATEWAY


def test_followed_copies_are_bounded() -> None:
    column = Column(0, SEAT.schema.names[0], SEAT.schema.dtypes[0])
    names = tuple(f"c{number}" for number in range(200))
    copied = Project(SEAT, (column,) * 200, names)
    assert engine_of(Aggregate(copied, (3,), COUNT), Aggregate) == Engine.GATEWAY
