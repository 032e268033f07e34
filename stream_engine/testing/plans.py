"""Random expressions and plans without recursion."""

from collections.abc import Sequence

from hypothesis import strategies as st

from stream_engine.testing.histories import SECOND, SOURCES, rows, values
from stream_engine.testing.shapes import (
    aggregate_calls,
    as_of_joins,
    grouped_sessions,
    orders,
    set_operations,
    timed,
)
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    Scan,
    UnionAll,
    Values,
    Window,
    WindowKind,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

_SHAPES = (
    "filter",
    "project",
    "join",
    "as_of",
    "group",
    "distinct",
    "materialize",
    "union",
    "set",
    "top",
    "timed",
    "sessions",
)


def columns_of_type(schema: Schema, dtype: DataType) -> list[Column]:
    """Return the columns of a schema that have a type."""
    return [
        Column(position, field.name, dtype)
        for position, field in enumerate(schema.fields)
        if field.dtype == dtype
    ]


@st.composite
def predicates(draw: st.DrawFn, schema: Schema) -> Expression:
    """Return a comparison, or two of them joined by AND or OR."""
    first = draw(_comparisons(schema))
    if draw(st.booleans()):
        return first
    function = draw(st.sampled_from(("AND", "OR")))
    return Call(function, (first, draw(_comparisons(schema))), DataType.BOOLEAN)


@st.composite
def _comparisons(draw: st.DrawFn, schema: Schema) -> Expression:
    position = draw(st.integers(0, len(schema) - 1))
    field = schema.fields[position]
    column = Column(position, field.name, field.dtype)
    if draw(st.integers(0, 5)) == 0:
        return Call("IS NULL", (column,), DataType.BOOLEAN)
    others: list[Expression] = list(columns_of_type(schema, field.dtype))
    others.append(Literal(draw(values(field.dtype)), field.dtype))
    function = draw(st.sampled_from(("<>", ">=", "=", "<")))
    return Call(function, (column, draw(st.sampled_from(others))), DataType.BOOLEAN)


@st.composite
def windows(draw: st.DrawFn, scan: Scan) -> Plan:
    """Return a scan or any window on it."""
    kind = draw(st.sampled_from((None, *WindowKind)))
    if kind is None:
        return scan
    match kind:
        case WindowKind.RANGE:
            size = draw(st.sampled_from((SECOND, 2 * SECOND, 3 * SECOND // 2)))
            slide = draw(st.sampled_from((None, SECOND, 3 * SECOND)))
            return Window(scan, kind, size, slide)
        case WindowKind.ROWS:
            partition = draw(st.sampled_from(((), (0,), (1, 0))))
            within = draw(st.sampled_from((None, SECOND, 5 * SECOND // 2)))
            size = draw(st.integers(1, 3))
            return Window(scan, kind, size, partition=partition, range=within)
        case _:
            return Window(scan, kind)


@st.composite
def plans(draw: st.DrawFn, sources: Sequence[Scan] = SOURCES, *, depth: int = 3) -> Plan:
    """Return a random plan without recursion."""
    if depth == 0:
        scan = draw(st.sampled_from(sources))
        if draw(st.integers(0, 9)) == 0:
            constants = tuple(draw(st.lists(rows(scan.columns), max_size=2)))
            return Values(constants, scan.columns)
        return draw(windows(scan))
    child = draw(plans(sources, depth=depth - 1))
    schema = child.schema
    match draw(st.sampled_from(_SHAPES)):
        case "filter":
            return Filter(child, draw(predicates(schema)))
        case "project":
            return draw(projections(child))
        case "join":
            return draw(joins(child, draw(plans(sources, depth=min(depth - 1, 1)))))
        case "as_of":
            return draw(as_of_joins(child, draw(plans(sources, depth=0))))
        case "group":
            positions = st.lists(st.integers(0, len(schema) - 1), max_size=2, unique=True)
            calls = draw(st.lists(aggregate_calls(schema), min_size=1, max_size=2))
            return Aggregate(child, tuple(draw(positions)), tuple(calls))
        case "distinct":
            return Distinct(child)
        case "materialize":
            return _read_twice(draw, child)
        case "union":
            return UnionAll((child, draw(_of_same_type(child))))
        case "set":
            return draw(set_operations(child, draw(_of_same_type(child))))
        case "top":
            return draw(orders(child))
        case "sessions":
            return draw(grouped_sessions(child))
        case _:
            return draw(timed(child))


def _read_twice(draw: st.DrawFn, child: Plan) -> Plan:
    """Return the union of two readings of a materialized plan, each under its own filter."""
    kept = Materialize(child, "t")
    schema = child.schema
    return UnionAll(
        (Filter(kept, draw(predicates(schema))), Filter(kept, draw(predicates(schema))))
    )


@st.composite
def projections(draw: st.DrawFn, child: Plan) -> Plan:
    """Return a projection to some columns, one of them possibly computed."""
    schema = child.schema
    positions = draw(st.lists(st.integers(0, len(schema) - 1), min_size=1, max_size=4))
    expressions: list[Expression] = [
        Column(p, schema.fields[p].name, schema.fields[p].dtype) for p in positions
    ]
    integers = columns_of_type(schema, DataType.INTEGER)
    computed = draw(st.booleans())
    if integers and computed:
        one = Literal(1, DataType.INTEGER)
        number = draw(st.sampled_from(integers))
        expressions.append(Call("+", (number, one), DataType.INTEGER))
    names = tuple(f"c{position}" for position in range(len(expressions)))
    return Project(child, tuple(expressions), names)


@st.composite
def joins(draw: st.DrawFn, left: Plan, right: Plan) -> Plan:
    """Return a join of any kind, with or without keys and residual."""
    pairs = [
        (i, j)
        for i, a in enumerate(left.schema.fields)
        for j, b in enumerate(right.schema.fields)
        if a.dtype == b.dtype
    ]
    keys = draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)) if pairs else []
    residual = draw(st.none() | predicates(left.schema + right.schema))
    return Join(left, right, draw(st.sampled_from(tuple(JoinKind))), tuple(keys), residual)


@st.composite
def _of_same_type(draw: st.DrawFn, plan: Plan) -> Plan:
    choice = draw(st.sampled_from(("same", "filtered", "constant")))
    if choice == "same":
        return plan
    if choice == "filtered":
        return Filter(plan, draw(predicates(plan.schema)))
    return Values(tuple(draw(st.lists(rows(plan.schema), max_size=2))), plan.schema)
