"""EXISTS, IN, ANY, ALL and scalar subqueries, each with the three-valued logic of SQL.

As a condition of its own, EXISTS is a semi join, NOT EXISTS an anti join and so on. As a part of a
larger expression it is a value: what a group of the subquery's rows counts, holds at least and at
most tells which.
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
    Project,
)
from streamsql.binder.aggregates import has_aggregate
from streamsql.binder.coercion import comparable, converted
from streamsql.binder.conditions import COMPARISONS
from streamsql.binder.environment import Environment
from streamsql.binder.expressions import ExpressionBinder
from streamsql.binder.outer import from_outside, inner_columns
from streamsql.binder.queries import Block, Joins
from streamsql.binder.uniqueness import determined, exactly_one
from streamsql.data.types import DataType

_BOOLEAN = DataType.BOOLEAN
_TRUE, _FALSE = Literal(True, _BOOLEAN), Literal(False, _BOOLEAN)
_UNKNOWN = Literal(None, _BOOLEAN)
_LESS, _MORE = ("<", "<="), (">", ">=")


@dataclass(frozen=True, slots=True)
class _Comparison:
    """`needle operator ANY (query)`, or ALL where it must hold for `every` row."""

    node: exp.Expr
    needle: exp.Expr
    query: exp.Expr
    operator: str
    every: bool


def bind_filter(joins: Joins, binder: ExpressionBinder, node: exp.Expr) -> list[Expression] | None:
    """Bind a condition of its own that is a subquery's, or return None for any other.

    Returns:
        What must hold beside the join it became.
    """
    positive, tree = True, node
    while isinstance(tree, exp.Paren | exp.Not):
        positive = positive != isinstance(tree, exp.Not)
        tree = tree.this
    if isinstance(tree, exp.Exists):
        if _always(tree.this, joins.environment):
            return None
        block = joins.block(_existing(tree.this), lift=True)
        if block.empty is not None:
            return None
        joins.join(node, block, block.plan, JoinKind.SEMI if positive else JoinKind.ANTI)
        return []
    found = _membership(tree)
    if found is None:
        return None
    needle, query, negated = found
    block = joins.block(query, lift=True)
    if block.empty is not None:
        return None
    needles = _needles(joins, binder, needle, block, tree)
    if positive != negated:
        joins.join(
            node, block, block.plan, JoinKind.SEMI, lambda own: _equal(needles, own, tree, joins)
        )
        return []
    if block.correlated or len(needles) > 1:
        joins.join(
            node, block, block.plan, JoinKind.ANTI, lambda own: _maybe(needles, own, tree, joins)
        )
        return []
    joins.join(
        node, block, block.plan, JoinKind.ANTI, lambda own: _equal(needles, own, tree, joins)
    )
    return [_not_in_flags(joins, node, block, needles[0])]


def bind_value(joins: Joins, binder: ExpressionBinder, node: exp.Expr) -> Expression | None:
    """Bind a subquery that is a value, or return None for any other node."""
    match node:
        case exp.Exists():
            return _exists(joins, node)
        case exp.Subquery() | exp.Select() | exp.SetOperation() | exp.Values():
            return _scalar(joins, node, joins.block(node, lift=True))
        case exp.In() if (inside := _query(node)) is not None:
            return _quantified(joins, binder, _Comparison(node, node.this, inside, "=", False))
        case _ if type(node) in COMPARISONS and isinstance(node.expression, exp.Any | exp.All):
            every = isinstance(node.expression, exp.All)
            query = node.expression.this
            _check_query(joins, query)
            comparison = _Comparison(node, node.this, query, COMPARISONS[type(node)], every)
            return _quantified(joins, binder, comparison)
        case _:
            return None


# --- what was written ------------------------------------------------------------------------


def _membership(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, bool] | None:
    """Return needle and query of IN, `= ANY` and `<> ALL`, and whether it is negated."""
    if isinstance(node, exp.In):
        query = _query(node)
        return None if query is None else (node.this, query, False)
    kinds = ((exp.EQ, exp.Any, False), (exp.NEQ, exp.All, True))
    for comparison, quantifier, negated in kinds:
        if type(node) is comparison and isinstance(node.expression, quantifier):
            query = node.expression.this
            return (node.this, query, negated) if _is_query(query) else None
    return None


def _query(node: exp.In) -> exp.Expr | None:
    query = node.args.get("query")
    if query is None and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        query = node.expressions[0]
    return query if isinstance(query, exp.Expr) else None


def _is_query(node: exp.Expr) -> bool:
    node = node.unnest() if isinstance(node, exp.Paren | exp.Subquery) else node
    return isinstance(node, exp.Query | exp.Values)


def _check_query(joins: Joins, node: exp.Expr) -> None:
    if not _is_query(node):
        raise joins.environment.unsupported(
            node, "ANY and ALL take a query here", hint="x IN ('a', 'b') takes a list of values"
        )


def _existing(tree: exp.Expr) -> exp.Expr:
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


def _always(tree: exp.Expr, environment: Environment) -> bool:
    """Whether a query is an aggregate without GROUP BY and HAVING, which gives a row always."""
    inner = tree.unnest() if isinstance(tree, exp.Subquery | exp.Paren) else tree
    if not isinstance(inner, exp.Select) or inner.args.get("group") or inner.args.get("having"):
        return False
    if inner.args.get("limit") or inner.args.get("offset"):
        return False
    items = (item for item in inner.expressions if not isinstance(item, exp.Query))
    return any(has_aggregate(item, environment) for item in items)


def _needles(
    joins: Joins,
    binder: ExpressionBinder,
    needle: exp.Expr,
    block: Block,
    node: exp.Expr,
) -> list[Expression]:
    needle = needle.unnest() if isinstance(needle, exp.Paren) else needle
    parts = list(needle.expressions) if isinstance(needle, exp.Tuple) else [needle]
    width = len(block.plan.schema) - block.prefix
    if len(parts) != width:
        raise joins.environment.error(
            node,
            f"{len(parts)} value{'s' * (len(parts) > 1)} on the left, but the query gives {width} "
            f"column{'s' * (width > 1)}",
            hint="x IN (SELECT y …), or (a, b) IN (SELECT c, d …)",
        )
    return [binder.bind(part) for part in parts]


# --- semi and anti joins ---------------------------------------------------------------------


def _equal(
    needles: list[Expression], own: list[Column], node: exp.Expr, joins: Joins
) -> list[Expression]:
    sides = [comparable(a, b, node, joins.environment) for a, b in zip(needles, own, strict=True)]
    return [Call("=", pair, _BOOLEAN) for pair in sides]


def _maybe(
    needles: list[Expression], own: list[Column], node: exp.Expr, joins: Joins
) -> list[Expression]:
    """Return conditions under which values are equal or not known to differ."""
    return [
        _or(equal, *(_missing(side) for side in equal.arguments))
        for equal in _equal(needles, own, node, joins)
        if isinstance(equal, Call)
    ]


def _not_in_flags(joins: Joins, node: exp.Expr, block: Block, needle: Expression) -> Expression:
    """Return what NOT IN asks for beside that no value is equal: no NULL is involved."""
    plan = _statistics(block, ("COUNT(*)", "COUNT"))
    rows, values = (Column(n, f.name, f.dtype) for n, f in enumerate(plan.schema.fields))
    nothing = Call("=", (rows, Literal(0, DataType.INTEGER)), _BOOLEAN)
    complete = Call("=", (rows, values), _BOOLEAN)
    flags = Project(plan, (nothing, complete), ("nothing", "complete"))
    empty, known = joins.join(node, block, flags, JoinKind.INNER)
    present = Call("IS NOT NULL", (needle,), _BOOLEAN)
    return _or(empty, Call("AND", (present, known), _BOOLEAN))


# --- values ----------------------------------------------------------------------------------


def _scalar(joins: Joins, node: exp.Expr, block: Block) -> Expression:
    """Bind a query that stands for the one value it gives, or NULL for none."""
    environment = joins.environment
    width = len(block.plan.schema) - block.prefix
    if width != 1:
        raise environment.error(
            node, f"a query used as a value gives one column, this one {width}", hint="(SELECT x …)"
        )
    if block.empty is None and not block.correlated and exactly_one(block.plan):
        return joins.join(node, block, block.plan, JoinKind.INNER)[0]
    if block.empty is None and not determined(block.plan, _equated(block)):
        raise environment.unsupported(
            node,
            "this query used as a value could give more than one row",
            hint="aggregate it (SELECT MAX(x) …), add ORDER BY … LIMIT 1, or select by the whole "
            "key; IN and EXISTS take any number of rows",
        )
    own = joins.join(node, block, block.plan, JoinKind.LEFT)
    value = own[block.prefix]
    if block.empty is None:
        return value
    otherwise = from_outside(block.empty[0])
    if isinstance(otherwise, Literal) and otherwise.value is None:
        return value
    other = converted(otherwise, value.dtype)
    return Call("CASE", (_missing(own[0]), other, value), value.dtype)


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


def _exists(joins: Joins, node: exp.Exists) -> Expression:
    if _always(node.this, joins.environment):
        joins.block(node.this, lift=False)
        return _TRUE
    block = joins.block(_existing(node.this), lift=False)
    plan = _statistics(block, ("COUNT(*)",))
    if block.empty is not None:
        return Call("IS NOT NULL", (_scalar(joins, node, block),), _BOOLEAN)
    own = joins.join(node, block, plan, JoinKind.LEFT if block.correlated else JoinKind.INNER)
    return Call("NOT", (_none(own[block.prefix], block),), _BOOLEAN)


def _quantified(joins: Joins, binder: ExpressionBinder, written: _Comparison) -> Expression:
    """Bind `x operator ANY (query)` or, with `every`, ALL; IN is `= ANY`."""
    node, operator, every = written.node, written.operator, written.every
    block = joins.block(written.query, lift=False)
    needles = _needles(joins, binder, written.needle, block, node)
    if len(needles) > 1:
        raise joins.environment.unsupported(
            node,
            "rows are compared with a query only as a condition of its own, as in WHERE … AND "
            "(a, b) IN (SELECT …)",
            hint="write EXISTS (SELECT 1 … WHERE c = a AND d = b)",
        )
    (value,) = needles
    if block.empty is not None or (not block.correlated and exactly_one(block.plan)):
        only = _scalar(joins, node, block)
        return Call(operator, comparable(value, only, node, joins.environment), _BOOLEAN)
    calls = ("COUNT(*)", "COUNT", "MIN", "MAX")
    kind = JoinKind.LEFT if block.correlated else JoinKind.INNER
    own = joins.join(node, block, _statistics(block, calls), kind)[block.prefix :]
    rows, values, low, high = own
    none = _none(rows, block)
    unsure = _or(_missing(value), Call("<", (values, rows), _BOOLEAN))

    def compared(other: Expression, symbol: str = operator) -> Expression:
        return Call(symbol, comparable(value, other, node, joins.environment), _BOOLEAN)

    if operator in _LESS + _MORE:
        decisive = compared(low if (operator in _MORE) != every else high)
    elif operator == "<>" and not every:
        decisive = _or(compared(low), compared(high))
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
        lambda columns: _equal([value], columns, node, joins),
    )
    word = "IS NOT NULL" if operator == "=" else "IS NULL"
    return Call(word, (own[block.prefix],), _BOOLEAN)


def _statistics(block: Block, functions: tuple[str, ...]) -> Plan:
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
        return _missing(rows)
    return Call("=", (rows, Literal(0, DataType.INTEGER)), _BOOLEAN)


def _missing(value: Expression) -> Expression:
    return Call("IS NULL", (value,), _BOOLEAN)


def _or(*parts: Expression) -> Expression:
    result = parts[0]
    for part in parts[1:]:
        result = Call("OR", (result, part), _BOOLEAN)
    return result
