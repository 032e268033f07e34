"""EXISTS, IN, ANY, ALL and scalar subqueries, each with the three-valued logic of SQL.

As a condition of its own, EXISTS is a semi join, NOT EXISTS an anti join and so on. As a part of a
larger expression it is a value; see `streamsql.binder.subqueries.subquery_values`.
"""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import JoinKind, Project
from streamsql.binder.expressions.conditions import COMPARISONS
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.subqueries.nested_queries import Block, Joins
from streamsql.binder.subqueries.subquery_values import (
    Comparison,
    always_a_row,
    bind_needles,
    either,
    equal,
    exists,
    is_query,
    membership,
    missing,
    quantified,
    query_of,
    scalar,
    statistics,
    without_idle_parts,
)
from streamsql.data.types import DataType

_BOOLEAN = DataType.BOOLEAN


def bind_filter(joins: Joins, binder: ExpressionBinder, node: exp.Expr) -> list[Expression] | None:
    """Bind a condition of its own that is a subquery's, or return None for any other.

    Returns:
        What must hold in addition to the join that it became.
    """
    positive, tree = True, node
    while isinstance(tree, exp.Paren | exp.Not):
        positive = positive != isinstance(tree, exp.Not)
        tree = tree.this
    if isinstance(tree, exp.Exists):
        if always_a_row(tree.this, joins.environment):
            return None
        block = joins.block(without_idle_parts(tree.this), lift=True)
        if block.empty is not None:
            return None
        joins.join(node, block, block.plan, JoinKind.SEMI if positive else JoinKind.ANTI)
        return []
    found = membership(tree)
    if found is None:
        return None
    needle, query, negated = found
    block = joins.block(query, lift=True)
    if block.empty is not None:
        return None
    needles = bind_needles(joins, binder, needle, block, tree)
    if positive != negated:
        joins.join(
            node, block, block.plan, JoinKind.SEMI, lambda own: equal(needles, own, tree, joins)
        )
        return []
    if block.correlated or len(needles) > 1:
        joins.join(
            node, block, block.plan, JoinKind.ANTI, lambda own: _maybe(needles, own, tree, joins)
        )
        return []
    joins.join(node, block, block.plan, JoinKind.ANTI, lambda own: equal(needles, own, tree, joins))
    return [_not_in_flags(joins, node, block, needles[0])]


def bind_value(joins: Joins, binder: ExpressionBinder, node: exp.Expr) -> Expression | None:
    """Bind a subquery that is a value, or return None for any other node."""
    match node:
        case exp.Exists():
            return exists(joins, node)
        case exp.Subquery() | exp.Select() | exp.SetOperation() | exp.Values():
            return scalar(joins, node, joins.block(node, lift=True))
        case exp.In() if (inside := query_of(node)) is not None:
            return quantified(joins, binder, Comparison(node, node.this, inside, "=", False))
        case _ if type(node) in COMPARISONS and isinstance(node.expression, exp.Any | exp.All):
            every = isinstance(node.expression, exp.All)
            query = node.expression.this
            _check_query(joins, query)
            comparison = Comparison(node, node.this, query, COMPARISONS[type(node)], every)
            return quantified(joins, binder, comparison)
        case _:
            return None


def _check_query(joins: Joins, node: exp.Expr) -> None:
    if not is_query(node):
        raise joins.environment.unsupported(
            node,
            "ANY and ALL take a query here",
            hint="x IN ('a', 'b') takes a list of values",
            code="unsupported_subquery",
        )


def _maybe(
    needles: list[Expression], own: list[Column], node: exp.Expr, joins: Joins
) -> list[Expression]:
    """Return conditions under which values are equal or not known to differ."""
    return [
        either(same, *(missing(side) for side in same.arguments))
        for same in equal(needles, own, node, joins)
    ]


def _not_in_flags(joins: Joins, node: exp.Expr, block: Block, needle: Expression) -> Expression:
    """Return what NOT IN asks for beside that no value is equal: no NULL is involved."""
    plan = statistics(block, ("COUNT(*)", "COUNT"))
    rows, values = (Column(n, f.name, f.dtype) for n, f in enumerate(plan.schema.fields))
    nothing = Call("=", (rows, Literal(0, DataType.INTEGER)), _BOOLEAN)
    complete = Call("=", (rows, values), _BOOLEAN)
    flags = Project(plan, (nothing, complete), ("nothing", "complete"))
    empty, known = joins.join(node, block, flags, JoinKind.INNER)
    present = Call("IS NOT NULL", (needle,), _BOOLEAN)
    return either(empty, Call("AND", (present, known), _BOOLEAN))
