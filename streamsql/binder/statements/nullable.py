"""Aggregated values of a recursion that may be NULL, for EXPLAIN of pushed aggregates.

A MIN or MAX that is pushed into a recursion follows rows with a value only. A group all of whose
values are NULL is therefore not in the answer, where an aggregate above all rows would show NULL.
"""

from collections.abc import Callable

from streamsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    RecursiveReference,
    UnionAll,
    Values,
    Window,
    walk_plan,
)

_STRICT = ("+", "-", "*", "NEGATE", "GREATEST", "LEAST", "CAST", "||")
"""Functions whose result is NULL only where an argument is (or a sum leaves its type's range)."""

_NULL_FAILS = ("=", "<>", "<", "<=", ">", ">=", "IS NOT NULL")
"""Predicates that do not hold for a NULL among their arguments."""


def left_out(plan: Plan) -> tuple[str, ...]:
    """Return, per recursion with pushed aggregates whose values may be NULL, what is left out."""
    found: dict[str, None] = {}
    for node in walk_plan(plan):
        if not isinstance(node, Fixpoint) or node.selection is None:
            continue
        values = [best.value for best in node.selection.bests]
        if all(value_may_be_null(node, value) for value in values):
            what = " and ".join(node.columns.names[value] for value in values)
            found[
                f"recursion {node.name} keeps only the best rows: it skips rows without "
                f"{what}, and groups that have no other rows"
            ] = None
    return tuple(found)


def value_may_be_null(fixpoint: Fixpoint, column: int) -> bool:
    """Whether a row of a recursion may have NULL in a column.

    The recursion's own values count as not NULL: the first NULL must come from elsewhere.
    """

    def in_plan(plan: Plan, at: int) -> bool:
        match plan:
            case Project(input=child, expressions=expressions):
                return _expression(expressions[at], lambda position: in_plan(child, position))
            case Filter(input=child, predicate=predicate):
                return not _rejects(predicate, at) and in_plan(child, at)
            case Distinct(input=child) | Window(input=child) | Materialize(input=child):
                return in_plan(child, at)
            case Join(kind=JoinKind.INNER, left=left, right=right):
                width = len(left.schema)
                keys = {pair[0] for pair in plan.keys} | {width + pair[1] for pair in plan.keys}
                if at in keys or _rejects(plan.residual, at):
                    return False
                return in_plan(left, at) if at < width else in_plan(right, at - width)
            case UnionAll(branches=branches):
                return any(in_plan(branch, at) for branch in branches)
            case Values(rows=rows):
                return any(row[at] is None for row in rows)
            case RecursiveReference(name=name):
                return name != fixpoint.name or at != column
            case _:
                return True

    return any(in_plan(branch, column) for branch in (*fixpoint.base, *fixpoint.step))


def _expression(expression: Expression, column_is: Callable[[int], bool]) -> bool:
    match expression:
        case Literal(value=value):
            return value is None
        case Column(position=position):
            return column_is(position)
        case Call(function="COALESCE", arguments=arguments):
            return all(_expression(argument, column_is) for argument in arguments)
        case Call(function=name, arguments=arguments) if name in _STRICT:
            return any(_expression(argument, column_is) for argument in arguments)
        case _:
            return True


def _rejects(predicate: Expression | None, column: int) -> bool:
    """Whether a predicate holds for no row with NULL in a column."""
    return predicate is not None and any(
        isinstance(part, Call)
        and part.function in _NULL_FAILS
        and any(isinstance(a, Column) and a.position == column for a in part.arguments)
        for part in conjuncts(predicate)
    )
