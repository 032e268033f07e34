"""Random orders, set operations, as-of joins, windows and aggregates, for tests of the engine."""

from hypothesis import strategies as st

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    AsOfJoin,
    HopWindow,
    JoinKind,
    Plan,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    TopN,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

_OF_ANY_TYPE = frozenset(
    (
        "COUNT(*)",
        "COUNT",
        "MIN",
        "MAX",
        "ARG_MIN",
        "ARG_MAX",
        "ARRAY_AGG",
        "MODE",
        "PERCENTILE_DISC",
    )
)  # the others are of numbers, or of truth values


@st.composite
def aggregate_calls(draw: st.DrawFn, schema: Schema) -> AggregateCall:
    """Return an aggregate over the columns of a schema."""
    functions = [f for f in AggregateFunction if f != AggregateFunction.USER]
    function = draw(st.sampled_from(functions))
    columns: list[Column] = [Column(i, f.name, f.dtype) for i, f in enumerate(schema.fields)]
    if function in (AggregateFunction.BOOL_AND, AggregateFunction.BOOL_OR):
        columns = [column for column in columns if column.dtype == DataType.BOOLEAN]
    elif function == AggregateFunction.STRING_AGG:
        columns = [column for column in columns if column.dtype == DataType.TEXT]
    elif function not in _OF_ANY_TYPE:
        columns = [column for column in columns if column.dtype.is_numeric]
    if function == AggregateFunction.COUNT_ALL or not columns:
        return AggregateCall(AggregateFunction.COUNT_ALL, (), "c")
    first = draw(st.sampled_from(columns))
    if function in (AggregateFunction.ARG_MIN, AggregateFunction.ARG_MAX):
        return AggregateCall(function, (first, draw(st.sampled_from(columns))), "c")
    fraction = None
    if function in (AggregateFunction.PERCENTILE_CONT, AggregateFunction.PERCENTILE_DISC):
        fraction = draw(st.sampled_from((0.0, 0.3, 0.5, 1.0)))
    distinct = draw(st.booleans())
    return AggregateCall(
        function,
        (first,),
        "c",
        distinct=distinct,
        parameter=fraction,
        descending=function == AggregateFunction.PERCENTILE_DISC and draw(st.booleans()),
        separator=", " if function == AggregateFunction.STRING_AGG else "",
    )


@st.composite
def orders(draw: st.DrawFn, child: Plan) -> Plan:
    """Return the first rows of a relation, in all or per partition."""
    positions = st.integers(0, len(child.schema) - 1)
    keys = draw(st.lists(st.builds(SortKey, positions, st.booleans(), st.booleans()), max_size=2))
    partition = draw(st.lists(positions, max_size=1))
    limit, offset = draw(st.sampled_from((None, 1, 2, 3))), draw(st.sampled_from((0, 0, 1)))
    return TopN(child, tuple(keys), limit, offset, tuple(partition))


@st.composite
def timed(draw: st.DrawFn, child: Plan) -> Plan:
    """Return hopping or session windows over a relation's numbers; itself where it has none."""
    types = (DataType.INTEGER, DataType.TIMESTAMP)
    times = [i for i, dtype in enumerate(child.schema.dtypes) if dtype in types]
    if not times or len(child.schema) > _MOST_COLUMNS:
        return child
    time, size = draw(st.sampled_from(times)), draw(st.integers(1, 3))
    if draw(st.booleans()):
        return HopWindow(child, time, size, draw(st.integers(1, 2)), draw(st.integers(0, 1)))
    partition = draw(st.lists(st.integers(0, len(child.schema) - 1), max_size=1))
    return SessionWindow(child, time, size, tuple(partition))


@st.composite
def grouped_sessions(draw: st.DrawFn, child: Plan) -> Plan:
    """Return groups of a relation's sessions, by their bounds; itself where it has no times."""
    types = (DataType.INTEGER, DataType.TIMESTAMP)
    times = [i for i, dtype in enumerate(child.schema.dtypes) if dtype in types]
    width = len(child.schema)
    if not times or width > _MOST_COLUMNS:
        return child
    partition = tuple(draw(st.lists(st.integers(0, width - 1), max_size=1)))
    window = SessionWindow(child, draw(st.sampled_from(times)), draw(st.integers(1, 2)), partition)
    bounds = draw(st.sampled_from(((width,), (width + 1,), (width, width + 1))))
    inner = draw(st.lists(st.integers(0, width - 1), max_size=1))
    calls = draw(st.lists(aggregate_calls(child.schema), min_size=1, max_size=2))
    group = draw(st.permutations((*partition, *bounds, *inner)))
    return Aggregate(window, tuple(group), tuple(calls))


@st.composite
def set_operations(draw: st.DrawFn, left: Plan, right: Plan) -> Plan:
    """Return INTERSECT or EXCEPT of two relations of equal types."""
    return SetOperation(left, right, draw(st.sampled_from(tuple(SetKind))), draw(st.booleans()))


@st.composite
def as_of_joins(draw: st.DrawFn, left: Plan, right: Plan) -> Plan:
    """Return an as-of join by any columns of one type, or the left side if there are none."""
    pairs = [
        (i, j)
        for i, a in enumerate(left.schema.fields)
        for j, b in enumerate(right.schema.fields)
        if a.dtype == b.dtype
    ]
    if not pairs:
        return left
    keys = draw(st.lists(st.sampled_from(pairs), max_size=1))
    left_time, right_time = draw(st.sampled_from(pairs))
    kind = draw(st.sampled_from((JoinKind.INNER, JoinKind.LEFT)))
    strict = draw(st.booleans())
    return AsOfJoin(left, right, kind, left_time, right_time, strict, tuple(keys))


_MOST_COLUMNS = 8
"""Windows add two columns; windows over windows would make plans hard to read."""
