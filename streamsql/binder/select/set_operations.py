"""UNION, INTERSECT and EXCEPT [ALL], with ORDER BY and LIMIT over the whole."""

from collections.abc import Callable

from sqlglot import exp

from streamsql.algebra.operators import Distinct, Plan, SetKind, SetOperation, UnionAll
from streamsql.binder.aggregation.order_and_limit import extent, output_order, topped
from streamsql.binder.names.environment import Environment
from streamsql.binder.names.refused_clauses import only
from streamsql.binder.select.unions import aligned

QueryBinder = Callable[[exp.Expr, Environment], Plan]
_CLAUSES = ("this", "expression", "distinct", "with_", "limit", "offset")


def bind_set_operation(tree: exp.Expr, environment: Environment, bind: QueryBinder) -> Plan:
    """Return the plan of a set operation.

    INTERSECT binds stronger than UNION and EXCEPT, which are taken from left to right; the parser
    has seen to that.

    Raises:
        BindingError: The queries have different numbers of columns, or types.
    """
    has_extent = tree.args.get("limit") is not None or tree.args.get("offset") is not None
    only(tree, environment, *_CLAUSES, *(("order",) if has_extent else ()))
    branches = [bind(tree.this, environment), bind(tree.expression, environment)]
    plan = with_extent(_combined(branches, tree, environment), tree, environment)
    environment.binding.note_doubled(plan, environment.binding.doubled_of(branches[0]))
    return plan


def _combined(branches: list[Plan], tree: exp.Expr, environment: Environment) -> Plan:
    distinct = bool(tree.args.get("distinct"))
    if isinstance(tree, exp.Union):
        return _union(branches, tree, environment, distinct=distinct)
    kind = SetKind.INTERSECT if isinstance(tree, exp.Intersect) else SetKind.EXCEPT
    left, right = aligned(branches, tree, environment, kind.value)
    return SetOperation(left, right, kind, not distinct)


def with_extent(plan: Plan, tree: exp.Expr, environment: Environment) -> Plan:
    """Return the rows that ORDER BY, LIMIT and OFFSET behind a whole query leave."""
    window = extent(tree, environment)
    if window is None:
        if tree.args.get("order") is not None:
            only(tree, environment, "this", "expression", "distinct", "with_", "alias")
        return plan
    return topped(plan, output_order(tree, plan.schema, environment), window)


def _union(
    branches: list[Plan], tree: exp.Union, environment: Environment, *, distinct: bool
) -> Plan:
    flat: list[Plan] = []
    for branch in branches:
        flat += _absorbed(branch, distinct=distinct)
    union = UnionAll(tuple(aligned(flat, tree, environment, "UNION")))
    return Distinct(union) if distinct else union


def _absorbed(plan: Plan, *, distinct: bool) -> list[Plan]:
    """Merge a union below a union where that does not change the answer."""
    if distinct and isinstance(plan, Distinct) and isinstance(plan.input, UnionAll):
        return list(plan.input.branches)
    return list(plan.branches) if isinstance(plan, UnionAll) else [plan]
