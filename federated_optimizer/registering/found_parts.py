"""Parts of a plan that others compute: an equal run, what leaves stand for, groups over a leaf."""

from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.sharing_step import SharedPlan
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Plan,
    Project,
    RemoteSource,
    transform_up,
)


def equal_run(found: SharedPlan) -> Offer | None:
    """Return the result of a query that a shared plan is, without any change; None: there is none.

    Nobody publishes the result of a node.
    """
    match found.plan:
        case RemoteSource(fragment=name) if name in found.offers:
            offer = found.offers[name]
            is_result = not offer.bundle.fragment(offer.fragment).consumer
            return offer if is_result and not offer.is_node else None
        case _:
            return None


def over_sources(plan: Plan, found: SharedPlan) -> Plan:
    """Return a plan over what its leaves stand for."""
    offers = found.offers

    def put(node: Plan) -> Plan:
        return offers[node.fragment].plan if isinstance(node, RemoteSource) else node

    return transform_up(plan, put)


def groups_over(plan: Plan) -> str:
    """Return the leaf whose rows an operator groups; empty: it is something else."""
    if not isinstance(plan, Aggregate | Distinct):
        return ""
    below = plan.input
    while isinstance(below, Filter | Project):
        below = below.input
    return below.fragment if isinstance(below, RemoteSource) else ""
