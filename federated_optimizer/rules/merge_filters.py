"""Merge a filter that stands on a filter, and drop repeated conjuncts.

Precondition: none. Sound because a row passes both filters exactly when the conjunction of the two
predicates is TRUE; NULL counts as not TRUE in both forms.

Example: `Filter a > 3` over `Filter b = 1` becomes `Filter b = 1 AND a > 3`.
"""

from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Expression, conjunction, conjuncts
from streamsql.algebra.operators import Filter, Plan, transform_up


def merge_filters(plan: Plan) -> Plan:
    """Return the plan without stacked filters."""
    return transform_up(plan, _merge)


def filtered(plan: Plan, predicates: list[Expression]) -> Plan:
    """Return a plan under a filter of all the predicates, merged with a filter already there."""
    if isinstance(plan, Filter):
        predicates = conjuncts(plan.predicate) + predicates
        plan = plan.input
    predicate = conjunction(list(dict.fromkeys(predicates)))
    return plan if predicate is None else Filter(plan, predicate)


def _merge(plan: Plan) -> Plan:
    if isinstance(plan, Filter):
        return filtered(plan.input, conjuncts(plan.predicate))
    return plan


MERGE_FILTERS = Rule("merge_filters", merge_filters)
