"""Filters over rows of other runs, without what is true of all of these.

Rules look at a leaf alone, so a bound of one side of a join may come back to a leaf whose rows keep
to it already.
"""

from collections.abc import Mapping

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.canonical.implications import Implications
from federated_optimizer.canonical.row_facts import Facts, facts_above
from streamsql.algebra.expressions import conjunction, conjuncts
from streamsql.algebra.operators import Filter, Plan, RemoteSource, transform_up


@exactly_cached(4_096)
def facts_of(plan: Plan) -> Facts:
    """Return predicates over the columns of a plan that are TRUE for all of its rows."""
    return facts_above(plan, [facts_of(child) for child in plan.inputs]) if plan.inputs else ()


def without_known(plan: Plan, nodes: Mapping[str, Plan]) -> Plan:
    """Return a plan without filters that all rows of a leaf pass.

    Args:
        plan: Any.
        nodes: The plans of what leaves stand for, by name.
    """

    def change(node: Plan) -> Plan:
        match node:
            case Filter(input=RemoteSource(fragment=name) as leaf) if name in nodes:
                known = Implications(facts_of(nodes[name]))
                parts = conjuncts(node.predicate)
                rest = conjunction([part for part in parts if part not in known])
                return leaf if rest is None else Filter(leaf, rest)
            case _:
                return node

    return transform_up(plan, change) if nodes else plan
