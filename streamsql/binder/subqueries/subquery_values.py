"""Subqueries that are values: EXISTS, IN, ANY, ALL and scalar ones inside larger expressions.

What a group of the subquery's rows counts, holds at least and at most tells the value.
"""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    JoinKind,
    Plan,
)
from streamsql.binder.expressions.coercion import comparable, converted
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.outer_names import from_outside, inner_columns
from streamsql.binder.subqueries.nested_queries import Block, Joins
from streamsql.binder.subqueries.subquery_forms import Comparison, always_a_row, without_idle_parts
from streamsql.binder.subqueries.uniqueness import determined, exactly_one
from streamsql.data.types import DataType

_BOOLEAN = DataType.BOOLEAN
_TRUE, _FALSE = Literal(True, _BOOLEAN), Literal(False, _BOOLEAN)
_UNKNOWN = Literal(None, _BOOLEAN)
_LESS, _MORE = ("<", "<="), (">", ">=")


def bind_needles(
    joins: Joins,
    binder: ExpressionBinder,
    needle: exp.Expr,
    block: Block,
    node: exp.Expr,
) -> list[Expression]:
    """Bind what is compared with the rows of a subquery: a value, or a row of them.

    Raises:
        BindingError: The subquery gives another number of columns.
    """
    needle = needle.unnest() if isinstance(needle, exp.Paren) else needle
    parts = list(needle.expressions) if isinstance(needle, exp.Tuple) else [needle]
    width = block.width
    if len(parts) != width:
        raise joins.environment.error(
            node,
            f"{len(parts)} value{'s' * (len(parts) > 1)} on the left, but the query has "
            f"{width} column{'s' * (width > 1)}",
            hint="x IN (SELECT y …), or (a, b) IN (SELECT c, d …)",
            code="column_count",
        )
    return [binder.bind(part) for part in parts]


def equal(needles: list[Expression], own: list[Column], node: exp.Expr, joins: Joins) -> list[Call]:
    """Return the equalities of values with the columns of a subquery."""
    sides = [comparable(a, b, node, joins.environment) for a, b in zip(needles, own, strict=True)]
    return [Call("=", pair, _BOOLEAN) for pair in sides]


def scalar(joins: Joins, node: exp.Expr, block: Block) -> Expression:
    """Bind a query that stands for the one value it gives, or NULL for none."""
    environment = joins.environment
    width = block.width
    if width != 1:
        raise environment.error(
            node,
            f"a query used as a value must have one column, but this one has {width}",
            hint="(SELECT x …)",
            code="column_count",
        )
    if block.empty is None and not block.correlated and exactly_one(block.plan):
        return joins.join(node, block, block.plan, JoinKind.INNER)[0]
    if block.empty is None and not determined(block.plan, _equated(block)):
        raise environment.unsupported(
            node,
            "this query is used as a value but could return more than one row",
            hint="aggregate it (SELECT MAX(x) …), add ORDER BY … LIMIT 1, compare the whole "
            "key, or use IN or EXISTS",
            code="subquery_rows",
        )
    return _only_row(joins, node, block)[0]


def _only_row(joins: Joins, node: exp.Expr, block: Block) -> tuple[Expression, Expression | None]:
    """Return the value of a row there may be, and of an aggregate whether there is a row.

    It is None where an aggregate gives a row always, and where NULL says that there is none.
    """
    own = joins.join(node, block, block.plan, JoinKind.LEFT)
    value: Expression = own[block.prefix]
    if block.empty is None:
        return value, None
    (otherwise, *_), present = map(from_outside, block.empty.values), block.empty.present
    if not (isinstance(otherwise, Literal) and otherwise.value is None):
        other = converted(otherwise, value.dtype)
        value = Call("CASE", (missing(own[0]), other, value), value.dtype)
    if present is None:
        return value, None
    return value, Call("CASE", (missing(own[0]), from_outside(present), own[-1]), _BOOLEAN)


def _equated(block: Block) -> frozenset[int]:
    """Return the correlation columns that the query around fixes."""
    found = set()
    for condition in block.joins:
        match condition:
            case Call(function="=", arguments=(Column(position=place), other)) if not (
                inner_columns(other) or place >= block.prefix
            ):
                found.add(place)
            case _:
                pass
    return frozenset(found)


def exists(joins: Joins, node: exp.Exists) -> Expression:
    """Bind an EXISTS that is a part of an expression."""
    if always_a_row(node.this, joins.environment):
        joins.block(node.this, lift=False)
        return _TRUE
    block = joins.block(without_idle_parts(node.this), lift=False)
    if block.empty is not None:
        present = _only_row(joins, node, block)[1]
        return _TRUE if present is None else present
    plan = statistics(block, ("COUNT(*)",))
    own = joins.join(node, block, plan, JoinKind.LEFT if block.correlated else JoinKind.INNER)
    return Call("NOT", (_none(own[block.prefix], block),), _BOOLEAN)


def quantified(joins: Joins, binder: ExpressionBinder, written: Comparison) -> Expression:
    """Bind `x operator ANY (query)` or, with `every`, ALL; IN is `= ANY`."""
    node, operator, every = written.node, written.operator, written.every
    block = joins.block(written.query, lift=False)
    needles = bind_needles(joins, binder, written.needle, block, node)
    if len(needles) > 1:
        raise joins.environment.unsupported(
            node,
            "a comparison of a row with a query must be a separate condition: WHERE … AND "
            "(a, b) IN (SELECT …)",
            hint="write EXISTS (SELECT 1 … WHERE c = a AND d = b)",
            code="unsupported_subquery",
        )
    (value,) = needles
    if block.empty is not None:
        only, present = _only_row(joins, node, block)
        same = Call(operator, comparable(value, only, node, joins.environment), _BOOLEAN)
        otherwise = _TRUE if every else _FALSE
        return same if present is None else Call("CASE", (present, same, otherwise), _BOOLEAN)
    if not block.correlated and exactly_one(block.plan):
        only = scalar(joins, node, block)
        return Call(operator, comparable(value, only, node, joins.environment), _BOOLEAN)
    calls = ("COUNT(*)", "COUNT", "MIN", "MAX")
    kind = JoinKind.LEFT if block.correlated else JoinKind.INNER
    own = joins.join(node, block, statistics(block, calls), kind)[block.prefix :]
    rows, values, low, high = own
    none = _none(rows, block)
    unsure = either(missing(value), Call("<", (values, rows), _BOOLEAN))

    def compared(other: Expression, symbol: str = operator) -> Expression:
        return Call(symbol, comparable(value, other, node, joins.environment), _BOOLEAN)

    if operator in _LESS + _MORE:
        decisive = compared(low if (operator in _MORE) != every else high)
    elif operator == "<>" and not every:
        decisive = either(compared(low), compared(high))
    elif operator == "=" and every:
        decisive = Call("AND", (compared(low), compared(high)), _BOOLEAN)
    else:
        decisive = _member(joins, node, block, value, operator)
    parts: tuple[Expression, ...]
    if every:
        wrong = Call("NOT", (decisive,), _BOOLEAN)
        parts = (none, _TRUE, wrong, _FALSE, unsure, _UNKNOWN, _TRUE)
    else:
        parts = (none, _FALSE, decisive, _TRUE, unsure, _UNKNOWN, _FALSE)
    return Call("CASE", parts, _BOOLEAN)


def _member(
    joins: Joins, node: exp.Expr, block: Block, value: Expression, operator: str
) -> Expression:
    """Return whether a value is among those of the subquery (`=`), or not (`<>`)."""
    own = joins.join(
        node,
        block,
        Distinct(block.plan),
        JoinKind.LEFT,
        lambda columns: equal([value], columns, node, joins),
    )
    word = "IS NOT NULL" if operator == "=" else "IS NULL"
    return Call(word, (own[block.prefix],), _BOOLEAN)


def statistics(block: Block, functions: tuple[str, ...]) -> Plan:
    """Return what aggregates say about the first column of the subquery, per correlation value."""
    position = block.prefix
    field = block.plan.schema.fields[position]
    column = Column(position, field.name, field.dtype)
    calls = tuple(
        AggregateCall(
            AggregateFunction(function),
            () if function == "COUNT(*)" else (column,),
            f"{function.split('(')[0].lower()}_{number + 1}",
        )
        for number, function in enumerate(functions)
    )
    return Aggregate(block.plan, tuple(range(block.prefix)), calls)


def _none(rows: Column, block: Block) -> Expression:
    """Return whether a subquery has no row, given how many it has."""
    if block.correlated:
        return missing(rows)
    return Call("=", (rows, Literal(0, DataType.INTEGER)), _BOOLEAN)


def missing(value: Expression) -> Expression:
    """Return whether a value is NULL."""
    return Call("IS NULL", (value,), _BOOLEAN)


def either(*parts: Expression) -> Expression:
    """Return whether one of several conditions holds."""
    result = parts[0]
    for part in parts[1:]:
        result = Call("OR", (result, part), _BOOLEAN)
    return result
