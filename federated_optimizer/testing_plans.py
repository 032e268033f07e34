"""For tests: Hypothesis strategies of plans over the small federation of `testing`."""

from collections.abc import Callable
from functools import lru_cache

import msgspec
from hypothesis import strategies as st

from federated_optimizer.costs.recursion_prices import WAYS
from federated_optimizer.testing_bundles import NAMES, NOW, NUMBERS, STREAMS, TABLES
from federated_optimizer.testing_operators import (
    as_of_join_of,
    column,
    key_pairs,
    over_of,
    set_operation_of,
    top_of,
    windows_of,
)
from streamsql.algebra.choices import Way
from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    RecursionChoice,
    RecursiveReference,
    Scan,
    UnionAll,
    Values,
    Window,
    WindowKind,
    transform_up,
)
from streamsql.data.types import DataType

TEXT, INTEGER, BOOLEAN = DataType.TEXT, DataType.INTEGER, DataType.BOOLEAN


def plans(depth: int = 4) -> st.SearchStrategy[Plan]:
    """Return plans over the small federation."""
    return _plan(depth)


@st.composite
def recursions(draw: st.DrawFn) -> Plan:
    """Return plans around a recursion whose way is asked for, over anything."""
    way = draw(st.sampled_from(WAYS))
    plan: Plan = draw(_fixpoint(3))
    for wrapped in draw(st.lists(st.sampled_from([_filtered, _counted, _distinct_of]), max_size=2)):
        plan = wrapped(draw, plan)
    return with_way(plan, way)


def with_way(plan: Plan, way: Way) -> Plan:
    """Return the plan with the way of all its recursions."""

    def chosen(node: Plan) -> Plan:
        if not isinstance(node, Fixpoint):
            return node
        return msgspec.structs.replace(node, choice=RecursionChoice(way=way))

    return transform_up(plan, chosen)


@st.composite
def decisions(draw: st.DrawFn) -> Plan:
    """Return small plans of streams that gateways can do or not, depending on the columns."""
    left = draw(_narrow_leaf())
    shape = draw(st.sampled_from([*_ALONE, "join", "aggregate join", "as of", "set"]))
    if shape in _ALONE:
        return _ALONE[shape](draw, left)
    right = draw(_narrow_leaf())
    if shape in ("as of", "set"):
        return (as_of_join_of if shape == "as of" else set_operation_of)(draw, left, right)
    pairs = key_pairs(left, right)
    if not pairs:
        return Distinct(left)
    keys = tuple(draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True)))
    join = Join(left, right, draw(st.sampled_from(list(JoinKind))), keys)
    return join if shape == "join" else _counted(draw, join)


@st.composite
def _narrow_leaf(draw: st.DrawFn) -> Plan:
    scan: Scan = draw(st.sampled_from(STREAMS))
    everything = list(range(len(scan.schema)))
    kept = draw(st.lists(st.sampled_from(everything), min_size=1, unique=True))
    columns = tuple(column(scan, i) for i in sorted(kept))
    return Project(scan, columns, tuple(c.name for c in columns))


def _counted(draw: st.DrawFn, plan: Plan) -> Plan:
    group = draw(st.lists(st.sampled_from(range(len(plan.schema))), min_size=1, unique=True))
    calls = (AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),)
    return Aggregate(plan, tuple(group[:2]), calls)


@st.composite
def _plan(draw: st.DrawFn, depth: int) -> Plan:
    plan: Plan = draw(_shapes(depth))
    return plan


@lru_cache
def _shapes(depth: int) -> st.SearchStrategy[Plan]:
    """Return the plans of a depth; made once, because making strategies costs more than using."""
    if depth == 0:
        return _leaf()
    joins = [_join(depth), _join(depth), _two_sided(depth)]
    others = [_aggregate(depth), _distinct(depth), _union(depth), _fixpoint(depth)]
    others += [_one_sided(depth), _read_twice(depth)]
    return st.one_of(_leaf(), _filter(depth), _project(depth), *joins, *others)


@st.composite
def _leaf(draw: st.DrawFn) -> Plan:
    scan: Scan = draw(st.sampled_from(STREAMS + TABLES))
    if scan in TABLES:
        return scan
    kind = draw(st.sampled_from([None, WindowKind.RANGE, WindowKind.ROWS, WindowKind.UNBOUNDED]))
    match kind:
        case None:
            return scan
        case WindowKind.RANGE:
            return Window(scan, kind, draw(st.integers(1, NOW)))
        case WindowKind.ROWS:
            columns = st.sampled_from(range(len(scan.schema)))
            partition = tuple(draw(st.lists(columns, max_size=2, unique=True)))
            return Window(scan, kind, draw(st.integers(1, 3)), partition=partition)
        case _:
            return Window(scan, kind)


@st.composite
def _predicate(draw: st.DrawFn, plan: Plan) -> Expression:
    count = draw(st.integers(1, 2))
    parts = [draw(_comparison(plan)) for _ in range(count)]
    if count == 1:
        return parts[0]
    return Call(draw(st.sampled_from(["AND", "AND", "OR"])), tuple(parts), BOOLEAN)


@st.composite
def _comparison(draw: st.DrawFn, plan: Plan) -> Expression:
    left = column(plan, draw(st.integers(0, len(plan.schema) - 1)))
    same = [i for i, f in enumerate(plan.schema.fields) if f.dtype == left.dtype]
    shape = draw(st.sampled_from(["literal", "column", "null", "constant"]))
    match shape:
        case "column":
            right: Expression = column(plan, draw(st.sampled_from(same)))
            return Call(draw(st.sampled_from(["=", "=", "<"])), (left, right), BOOLEAN)
        case "null":
            return Call(draw(st.sampled_from(["IS NULL", "IS NOT NULL"])), (left,), BOOLEAN)
        case "constant":
            one = Literal(1, INTEGER)
            other = Literal(draw(st.sampled_from([1, 2])), INTEGER)
            return Call("=", (one, other), BOOLEAN)
        case _:
            value = "b" if left.dtype == TEXT else 1
            literal = Literal(value, left.dtype)
            return Call(draw(st.sampled_from(["=", "<>", "<"])), (left, literal), BOOLEAN)


@st.composite
def _filter(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    return Filter(child, draw(_predicate(child)))


@st.composite
def _project(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    positions = draw(st.lists(st.integers(0, len(child.schema) - 1), min_size=1, max_size=4))
    expressions: list[Expression] = []
    for position in positions:
        read = column(child, position)
        if read.dtype == INTEGER and draw(st.booleans()):
            expressions.append(Call("+", (read, Literal(1, INTEGER)), INTEGER))
        else:
            expressions.append(read)
    names = tuple(f"c{i}" for i in range(len(expressions)))
    return Project(child, tuple(expressions), names)


@st.composite
def _join(draw: st.DrawFn, depth: int) -> Plan:
    left, right = draw(_plan(depth - 1)), draw(_plan(depth - 1))
    if len(left.schema) + len(right.schema) > 12:
        return left
    pairs = key_pairs(left, right)
    keys = tuple(draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True))) if pairs else ()
    kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.INNER, *JoinKind]))
    join = Join(left, right, kind, keys)
    if draw(st.booleans()):
        both = Join(left, right, JoinKind.INNER)  # what the residual reads, whatever the kind
        return Join(left, right, kind, keys, draw(_predicate(both)))
    return Filter(join, draw(_predicate(join))) if draw(st.booleans()) else join


@st.composite
def _two_sided(draw: st.DrawFn, depth: int) -> Plan:
    left, right = draw(_plan(depth - 1)), draw(_plan(depth - 1))
    if len(left.schema) + len(right.schema) > 12:
        return left
    make = draw(st.sampled_from([as_of_join_of, set_operation_of]))
    return make(draw, left, right)


@st.composite
def _one_sided(draw: st.DrawFn, depth: int) -> Plan:
    make = draw(st.sampled_from([top_of, over_of, windows_of]))
    plan = make(draw, draw(_plan(depth - 1)))
    return Filter(plan, draw(_predicate(plan))) if draw(st.booleans()) else plan


@st.composite
def _aggregate(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    columns = st.sampled_from(range(len(child.schema)))
    group = tuple(draw(st.lists(columns, max_size=2, unique=True)))
    calls = [AggregateCall(AggregateFunction.COUNT_ALL, (), "n")]
    numbers = [i for i, f in enumerate(child.schema.fields) if f.dtype == INTEGER]
    if numbers:
        argument = column(child, draw(st.sampled_from(numbers)))
        function = draw(st.sampled_from([AggregateFunction.SUM, AggregateFunction.MIN]))
        calls.append(AggregateCall(function, (argument,), "v"))
    return Aggregate(child, group, tuple(calls))


def _filtered(draw: st.DrawFn, plan: Plan) -> Plan:
    return Filter(plan, draw(_predicate(plan)))


def _distinct_of(_draw: st.DrawFn, plan: Plan) -> Plan:
    return Distinct(plan)


_ALONE: dict[str, Callable[[st.DrawFn, Plan], Plan]] = {
    "distinct": _distinct_of,
    "aggregate": _counted,
    "top": top_of,
    "over": over_of,
    "windows": windows_of,
}
"""What gateways can do with one stream or not."""


@st.composite
def _distinct(draw: st.DrawFn, depth: int) -> Plan:
    return Distinct(draw(_plan(depth - 1)))


@st.composite
def _read_twice(draw: st.DrawFn, depth: int) -> Plan:
    """Return two readings of a materialized plan, each under a filter of its own."""
    kept = Materialize(draw(_plan(depth - 1)), "t")
    left, right = (_filtered(draw, kept) for _ in range(2))
    if draw(st.booleans()):
        return UnionAll((left, right))
    pairs = key_pairs(left, right)
    keys = tuple(draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True)))
    return Join(left, right, draw(st.sampled_from([JoinKind.INNER, JoinKind.ANTI])), keys)


@st.composite
def _union(draw: st.DrawFn, depth: int) -> Plan:
    child = draw(_plan(depth - 1))
    values = st.tuples(*(NAMES if f.dtype == TEXT else NUMBERS for f in child.schema.fields))
    if any(f.dtype not in (TEXT, INTEGER) for f in child.schema.fields):
        return UnionAll((child, child))
    shape = draw(st.sampled_from(["same", "values", "other"]))
    if shape == "same":
        return UnionAll((child, child))
    if shape == "values":
        rows = tuple(draw(st.lists(values, max_size=2)))
        return UnionAll((child, Values(rows, child.schema)))
    other = draw(_plan(depth - 1))
    picked = [
        next((i for i, g in enumerate(other.schema.fields) if g.dtype == f.dtype), None)
        for f in child.schema.fields
    ]
    expressions = tuple(
        Literal(None, f.dtype) if p is None else column(other, p)
        for p, f in zip(picked, child.schema.fields, strict=True)
    )
    return UnionAll((child, Project(other, expressions, child.schema.names)))


@st.composite
def _fixpoint(draw: st.DrawFn, depth: int) -> Plan:
    """Reachability over the first and the last TEXT column of any plan."""
    child = draw(_plan(min(depth - 1, 2)))
    texts = [i for i, f in enumerate(child.schema.fields) if f.dtype == TEXT]
    if not texts:
        return child
    ends = (column(child, texts[0]), column(child, texts[-1]))
    edges = Project(child, ends, ("src", "dst"))
    columns = edges.schema
    reached = RecursiveReference("reach", columns)
    step = Join(edges, reached, JoinKind.INNER, ((1, 0),))
    made = Project(step, (column(step, 0), column(step, 3)), ("src", "dst"))
    return Fixpoint("reach", columns, (edges,), (made,))
