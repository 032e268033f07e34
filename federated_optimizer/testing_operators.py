"""For tests: Hypothesis draws of operators over any inputs of TEXT and INTEGER columns."""

from hypothesis import strategies as st

from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import (
    AggregateFunction,
    AsOfJoin,
    Distinct,
    HopWindow,
    JoinKind,
    OverWindow,
    Plan,
    Project,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    TopN,
    WindowCall,
    WindowFunction,
)
from streamsql.data.types import DataType


def column(plan: Plan, position: int) -> Column:
    """Return a column of a plan."""
    field = plan.schema.fields[position]
    return Column(position, field.name, field.dtype)


def key_pairs(left: Plan, right: Plan) -> list[tuple[int, int]]:
    """Return the pairs of columns of one type."""
    return [
        (i, j)
        for i, a in enumerate(left.schema.fields)
        for j, b in enumerate(right.schema.fields)
        if a.dtype == b.dtype
    ]


def top_of(draw: st.DrawFn, child: Plan) -> Plan:
    """Return the first rows of a plan, perhaps of every partition."""
    positions = range(len(child.schema))
    order = tuple(
        SortKey(position, draw(st.booleans()), draw(st.booleans()))
        for position in draw(st.lists(st.sampled_from(positions), max_size=2, unique=True))
    )
    limit = draw(st.sampled_from([0, 1, 2, 3, None]))
    partition = draw(st.lists(st.sampled_from(positions), max_size=2, unique=True))
    return TopN(child, order, limit, draw(st.sampled_from([0, 0, 1])), tuple(partition))


def over_of(draw: st.DrawFn, child: Plan) -> Plan:
    """Return window functions over a plan: some that whole rows decide, some that keys do."""
    positions = range(len(child.schema))
    order = tuple(
        SortKey(position, draw(st.booleans()), draw(st.booleans()))
        for position in draw(st.lists(st.sampled_from(positions), max_size=2, unique=True))
    )
    partition = draw(st.lists(st.sampled_from(positions), max_size=2, unique=True))
    value = column(child, draw(st.sampled_from(positions)))
    calls = (
        WindowCall(WindowFunction.RANK, "over_1"),
        WindowCall(WindowFunction.LAG, "over_2", (value,)),
        WindowCall(WindowFunction.AGGREGATE, "over_3", (value,), aggregate=AggregateFunction.COUNT),
    )
    chosen = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=2, unique=True))
    return OverWindow(child, tuple(partition), order, tuple(chosen))


def windows_of(draw: st.DrawFn, child: Plan) -> Plan:
    """Return hopping windows or sessions over a number column; what has none stays."""
    times = [i for i, f in enumerate(child.schema.fields) if f.dtype == DataType.INTEGER]
    if not times:
        return child
    time = draw(st.sampled_from(times))
    if draw(st.booleans()):
        hop = draw(st.integers(1, 2))
        return HopWindow(child, time, draw(st.integers(1, 3)), hop, draw(st.integers(0, 1)))
    positions = range(len(child.schema))
    partition = draw(st.lists(st.sampled_from(positions), max_size=2, unique=True))
    return SessionWindow(child, time, draw(st.integers(1, 2)), tuple(partition))


def as_of_join_of(draw: st.DrawFn, left: Plan, right: Plan) -> Plan:
    """Return an as-of join over columns of one type; what has none stays."""
    pairs = key_pairs(left, right)
    if not pairs:
        return left
    keys = tuple(draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)))
    time = draw(st.sampled_from(pairs))
    kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.LEFT]))
    return AsOfJoin(left, right, kind, *time, draw(st.booleans()), keys)


def set_operation_of(draw: st.DrawFn, left: Plan, right: Plan) -> Plan:
    """Return a set operation of a plan and what fits it of another one."""
    picked = [
        next((i for i, g in enumerate(right.schema.fields) if g.dtype == f.dtype), None)
        for f in left.schema.fields
    ]
    expressions: tuple[Expression, ...] = tuple(
        Literal(None, f.dtype) if p is None else column(right, p)
        for p, f in zip(picked, left.schema.fields, strict=True)
    )
    other = Project(right, expressions, left.schema.names)
    same = draw(st.booleans()) and right.schema.dtypes == left.schema.dtypes
    sides = (left, right if same else Distinct(other) if draw(st.booleans()) else other)
    kind = draw(st.sampled_from(list(SetKind)))
    return SetOperation(*sides, kind, draw(st.booleans()))
