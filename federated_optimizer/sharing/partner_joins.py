"""Joins in the place of semi joins, where it does not matter how often a row is there.

A semi join has a row of one side once, however many partners it has; the join once for each. Below
DISTINCT and set operations, on the right side of semi and anti joins, and below groups whose
aggregates are MIN, MAX or of DISTINCT values, both come to the same; see `rules.unread_sides`,
which makes semi joins there. Further conditions on both sides can only be checked on the join.
"""

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.rules.unread_sides import ignores_copies
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    SetOperation,
    UnionAll,
    identity_columns,
    is_open,
    walk_plan,
    with_inputs,
)


@exactly_cached(512)
def with_joins(plan: Plan) -> Plan:
    """Return a plan with joins in the place of semi joins; that itself if there are none.

    Examples:
        `Except(SemiJoin(a, b), c)` becomes `Except(Project a.* (InnerJoin(a, b)), c)`; the semi
        join of `ExceptAll(SemiJoin(a, b), c)` stays.
    """
    if any(isinstance(node, Join) and node.kind == JoinKind.SEMI for node in walk_plan(plan)):
        return _joined(plan, copies=True)
    return plan


def _joined(plan: Plan, *, copies: bool) -> Plan:
    """Return a plan with joins; `copies`: it matters how often it has a row."""
    match plan:
        case Join(kind=JoinKind.SEMI) if not copies and not is_open(plan):
            left, right = (_joined(side, copies=False) for side in plan.inputs)
            pairs = Join(left, right, JoinKind.INNER, plan.keys, plan.residual)
            return Project(pairs, identity_columns(left.schema), left.schema.names)
        case Join(kind=kind):
            counted = copies, copies and not kind.is_filter
            sides = zip(plan.inputs, counted, strict=True)
            inputs = tuple(_joined(side, copies=matters) for side, matters in sides)
        case Filter() | Project() | UnionAll():
            inputs = tuple(_joined(child, copies=copies) for child in plan.inputs)
        case Distinct():
            inputs = (_joined(plan.input, copies=False),)
        case SetOperation(all=counted_too):
            inputs = tuple(_joined(side, copies=counted_too) for side in plan.inputs)
        case Aggregate(aggregates=calls):
            inputs = (_joined(plan.input, copies=not all(map(ignores_copies, calls))),)
        case _:
            inputs = tuple(_joined(child, copies=True) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)
