"""Restrict a plan to one row of its result, by moving the row's values towards the leaves.

The restricted plan contains that row exactly when the original does, derived in the same ways.
Values go through projections of plain columns, joins (across their keys), unions, groups, and into
a recursion where every step keeps a column of the relation (the constant of a magic set): of all
pairs of connected nodes only those with the given end are then computed.
"""

import msgspec

from stream_engine.recursion.program.rules import RECURSIVE, Rule, rules_of
from streamsql.algebra.expressions import Call, Column, Expression, Literal, conjunction
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    UnionAll,
    with_inputs,
)
from streamsql.data.types import DataType, Row, Value

Bindings = dict[int, Value]
"""Values that columns of a relation must have."""


def restricted(plan: Plan, row: Row) -> Plan:
    """Return the part of a plan that can produce a row."""
    return _restrict(plan, dict(enumerate(row)))


def _restrict(plan: Plan, bound: Bindings) -> Plan:
    if not bound:
        return plan
    match plan:
        case Filter(input=child) | Distinct(input=child) | Materialize(input=child):
            return with_inputs(plan, (_restrict(child, bound),))
        case Project(input=child, expressions=expressions):
            inner = {
                expression.position: bound[position]
                for position, expression in enumerate(expressions)
                if isinstance(expression, Column) and position in bound
            }
            return with_inputs(plan, (_restrict(child, inner),))
        case Join(kind=JoinKind.FULL):
            return _filtered(plan, bound)  # who has no partner is told by all rows of both sides
        case Join():
            return _restrict_join(plan, bound)
        case UnionAll(branches=branches):
            return UnionAll(tuple(_restrict(branch, bound) for branch in branches))
        case Aggregate(input=child, group=group):
            # Without groups there is a row even of nothing; nothing is bound then.
            inner = {group[p]: value for p, value in bound.items() if p < len(group)}
            return with_inputs(plan, (_restrict(child, inner),))
        case Fixpoint():
            return _restrict_fixpoint(plan, bound)
        case _:
            return _filtered(plan, bound)


def _restrict_join(plan: Join, bound: Bindings) -> Plan:
    width = len(plan.left.schema)
    left = {p: value for p, value in bound.items() if p < width}
    inner = plan.kind == JoinKind.INNER
    # Of a left join the right side says who has a partner: only keys narrow it.
    right = {p - width: value for p, value in bound.items() if p >= width and inner}
    for mine, theirs in plan.keys:
        if mine in left:
            right.setdefault(theirs, left[mine])
        elif theirs in right:
            left[mine] = right[theirs]
    return with_inputs(plan, (_restrict(plan.left, left), _restrict(plan.right, right)))


def _restrict_fixpoint(plan: Fixpoint, bound: Bindings) -> Plan:
    kept = {p: value for p, value in bound.items() if p in invariant_columns(plan)}
    if not kept:
        return plan
    base = tuple(_filtered(branch, kept) for branch in plan.base)
    return msgspec.structs.replace(plan, base=base)


def invariant_columns(plan: Fixpoint) -> frozenset[int]:
    """Return the columns whose values come unchanged from the base branches.

    With an aggregate selection only columns of its group: others decide which rows are best.
    """
    kept = set(range(len(plan.schema)))
    if plan.selection is not None:
        kept &= set(plan.selection.group)
    for rule in rules_of(plan).rules:
        if rule.is_step:
            kept &= _handed_on(rule)
    return frozenset(kept)


def _handed_on(rule: Rule) -> set[int]:
    """Return the columns that a step takes over from the only row of the relation it reads."""
    if not rule.is_linear:
        return set()
    offset = rule.offsets[rule.atoms.index(RECURSIVE)]
    return {
        position
        for position, expression in enumerate(rule.head)
        if isinstance(expression, Column) and expression.position == offset + position
    }


def _filtered(plan: Plan, bound: Bindings) -> Plan:
    fields = plan.schema.fields
    parts: list[Expression] = []
    for position, value in sorted(bound.items()):
        column = Column(position, fields[position].name, fields[position].dtype)
        if value is None:
            parts.append(Call("IS NULL", (column,), DataType.BOOLEAN))
        else:
            same = (column, Literal(value, column.dtype))
            parts.append(Call("=", same, DataType.BOOLEAN))
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)
