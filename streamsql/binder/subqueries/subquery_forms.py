"""How subqueries are written in expressions; nothing is bound here."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.binder.aggregation.aggregate_binder import has_aggregate
from streamsql.binder.names.environment import Environment


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
