"""Plans of running queries as they would be made now."""

from collections.abc import Iterable
from math import inf

from federated_optimizer.coordinator.contract.coordinator_model import ACTING, Origin
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.network.run_ages import age_of
from streamsql.errors import FederationError


def changed_plans(
    planner: Planner, queries: Iterable[RunningQuery], offers: ReadableOffers
) -> dict[str, Planned | FederationError]:
    """Return the plans of queries whose fragments would be others by now, and what fails, by id.

    Queries of one run that have the same text are planned once. Each reads what it does now, where
    that is still so. What is read is planned before its readers, which are planned over its new
    plan.
    """
    found: dict[str, Planned | FederationError] = {}
    known: dict[tuple[str, str, bool, Origin | bool], Planned | FederationError] = {}
    for query in sorted(queries, key=lambda query: age_of(query.run)):
        kind = query.origin if query.origin == Origin.NODE else query.origin in ACTING
        key = (query.run, query.text, query.gathered, kind)
        if key not in known:
            known[key] = _planned_again(planner, query, offers)
        planned = known[key]
        if isinstance(planned, FederationError) or not planned.bundle.runs_as(query.bundle):
            found[query.id] = planned
            if isinstance(planned, Planned) and not planned.alone:
                offers.plan_again(query.run, planned.bundle)
    offers.look_again()
    return found


def _planned_again(
    planner: Planner, query: RunningQuery, offers: ReadableOffers
) -> Planned | FederationError:
    offers.index()  # by now all that runs is in it
    reading = Reading(offers, offers.for_running(query), makes_nodes=False)
    try:
        if query.origin == Origin.NODE:
            return planner.planned_node(query, reading)
        return planner.planned(
            query.text,
            query=query.run,
            version=query.bundle.version + 1,
            current=query.bundle,
            gathered=query.gathered,
            whole_changes=query.whole_changes,
            much=inf,  # for a cheaper one it moves with care: see `adaptation`
            reading=reading,
        )
    except FederationError as error:
        return error
