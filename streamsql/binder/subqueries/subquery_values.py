"""Subqueries that are values: EXISTS, IN, ANY, ALL and scalar ones inside larger expressions.

Count, minimum and maximum of the subquery's rows, per correlation value, decide the value.
"""

from dataclasses import dataclass

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
from streamsql.binder.aggregation.aggregate_binder import has_aggregate
from streamsql.binder.expressions.coercion import comparable, converted
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment
from streamsql.binder.names.outer_names import from_outside, inner_columns
from streamsql.binder.subqueries.nested_queries import Block, Joins
from streamsql.binder.subqueries.uniqueness import determined, exactly_one
from streamsql.data.types import DataType


@dataclass(frozen=True, slots=True)
class Comparison:
    """`needle operator ANY (query)`, or ALL where it must hold for `every` row."""

    node: exp.Expr
    needle: exp.Expr
    query: exp.Expr
    operator: str
    every: bool


def membership(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, bool] | None:
    """Return needle and query of IN, `= ANY` and `<> ALL`, and whether it is negated."""
    if isinstance(node, exp.In):
        query = query_of(node)
        return None if query is None else (node.this, query, False)
    kinds = ((exp.EQ, exp.Any, False), (exp.NEQ, exp.All, True))
    for comparison, quantifier, negated in kinds:
        if type(node) is comparison and isinstance(node.expression, quantifier):
            query = node.expression.this
            return (node.this, query, negated) if is_query(query) else None
    return None


def query_of(node: exp.In) -> exp.Expr | None:
    """Return the query or VALUES of an IN, or None for a list of values."""
    query = node.args.get("query")
    if query is None and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        query = node.expressions[0]
    return query if isinstance(query, exp.Expr) else None


def is_query(node: exp.Expr) -> bool:
    """Whether a node is a query or VALUES, perhaps in parentheses."""
    node = node.unnest() if isinstance(node, exp.Paren | exp.Subquery) else node
    return isinstance(node, exp.Query | exp.Values)


def without_idle_parts(tree: exp.Expr) -> exp.Expr:
    """Leave out of the query of an EXISTS what cannot change whether there is a row."""
    inner = tree.unnest() if isinstance(tree, exp.Subquery | exp.Paren) else tree
    if not isinstance(inner, exp.Select) or inner.args.get("distinct") is None:
        select = inner
    else:
        select = inner.copy()
        select.parent = inner.parent
        if not select.args["distinct"].args.get("on"):
            select.set("distinct", None)
    if not isinstance(select, exp.Select):
        return tree
    limited = select.args.get("limit") or select.args.get("offset")
    plain = all(isinstance(item, exp.Star | exp.Literal | exp.Null) for item in select.expressions)
    if limited or not (plain or select.args.get("order")) or select.args.get("group"):
        return select
    copied = select.copy()
    copied.parent = select.parent
    copied.set("order", None)
    if plain and select.args.get("from_") is not None:
        copied.set("expressions", [exp.Boolean(this=True)])
    return copied


def always_a_row(tree: exp.Expr, environment: Environment) -> bool:
    """Whether a query is an aggregate without GROUP BY and HAVING, which gives a row always."""
    inner = tree.unnest() if isinstance(tree, exp.Subquery | exp.Paren) else tree
    if not isinstance(inner, exp.Select) or inner.args.get("group") or inner.args.get("having"):
        return False
    if inner.args.get("limit") or inner.args.get("offset"):
        return False
    return any(has_aggregate(item, environment) for item in inner.expressions)


_BOOLEAN = DataType.BOOLEAN
_TRUE, _FALSE = Literal(True, _BOOLEAN), Literal(False, _BOOLEAN)
_UNKNOWN = Literal(None, _BOOLEAN)
_LESS, _MORE = ("<", "<="), (">", ">=")


def bind_needles(
    joins: Joins, binder: ExpressionBinder, needle: exp.Expr, block: Block, node: exp.Expr
) -> list[Expression]:
    """Bind what is compared with the rows of a subquery: a value, or a row of them."""
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

    It is None where an aggregate always has a row, and where a NULL means that there is none.
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
