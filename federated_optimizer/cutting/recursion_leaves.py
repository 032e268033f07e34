"""The parts of a recursion that do not recur, and how its sites agree on the rest."""

from collections.abc import Callable

import msgspec

from federated_optimizer.alternatives.recursions import Chosen
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Fixpoint,
    Join,
    Plan,
    Project,
    RecursiveReference,
    UnionAll,
    is_open,
    with_inputs,
)


def with_leaves(branch: Plan, leaf: Callable[[Plan], Plan]) -> Plan:
    """Return a branch of a recursion with its parts that do not recur replaced."""
    if isinstance(branch, RecursiveReference):
        return branch
    if is_open(branch):
        inputs = tuple(with_leaves(child, leaf) for child in branch.inputs)
        return with_inputs(branch, inputs)
    return leaf(branch)


def as_set(plan: Plan) -> Plan:
    """Return a plan with the same rows, perhaps other copies of them: a recursion counts none."""
    match plan:
        case Distinct(input=child):
            return as_set(child)
        case Filter() | Project() | UnionAll() | Join():
            return with_inputs(plan, tuple(map(as_set, plan.inputs)))
        case _:
            return plan


def agreed(plan: Fixpoint, chosen: Chosen) -> Fixpoint:
    """Return the recursion with its way written down, so that all its sites take the same."""
    choice = msgspec.structs.replace(plan.choice, way=chosen.way)
    return msgspec.structs.replace(plan, choice=choice)
