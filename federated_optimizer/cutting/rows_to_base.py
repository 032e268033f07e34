"""Plans by which gateways deliver rows of sources, and the base groups them, or keeps the first."""

from federated_optimizer.alternatives.method import Method
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.sharing.run_offers import is_selection_of_sources
from streamsql.algebra.operators import Aggregate, Distinct, Plan, TopN, walk_plan

_IN_PARTS = (Aggregate, Distinct, TopN)
"""Operators of which gateways may compute parts."""


def rows_to_base(plan: Plan) -> Taken:
    """Return a plan with its groups, distinct and first rows of single sources at the base."""
    if _is_over_selection(plan):
        return Taken(plan, Method.BASE, tuple(map(Taken, plan.inputs)))
    return Taken(plan, None, tuple(map(rows_to_base, plan.inputs)))


def has_parts(plan: Plan) -> bool:
    """Return whether `rows_to_base` has a say in a plan."""
    return any(map(_is_over_selection, walk_plan(plan)))


def _is_over_selection(plan: Plan) -> bool:
    return isinstance(plan, _IN_PARTS) and is_selection_of_sources(plan.inputs[0])
