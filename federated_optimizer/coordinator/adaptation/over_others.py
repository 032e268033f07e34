"""A running query over results of others: what its own fragments would send then, and do now."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from federated_optimizer.alternatives.recursion.recursions import MUCH
from federated_optimizer.coordinator.computations.run_nodes import number_of
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.weighing import Weighing
from streamsql.binder import BoundQuery
from streamsql.wire.fragments import Engine, FragmentBundle


@dataclass(frozen=True, slots=True)
class OverOthers:
    """A choice in which results of others play a part.

    Attributes:
        planned: The plan that is taken: what runs, if no other one is much cheaper.
        bundle: As a new run would have it.
        before: Words and price of what runs.
        after: Of what is taken.
    """

    planned: Planned
    bundle: FragmentBundle
    before: tuple[str, Cost]
    after: tuple[str, Cost]


def over_others(  # noqa: PLR0913, PLR0917 - what a choice rests on
    planner: Planner,
    bound: BoundQuery,
    queries: Sequence[RunningQuery],
    alone: Planned,
    fed: Callable[[Planned, str], FragmentBundle],
    offers: ReadableOffers,
    weighing: Weighing,
) -> OverOthers | None:
    """Return the choice for queries of one run; None: results of others are no part of it.

    Args:
        planner: Plans them over what runs.
        bound: The first query.
        queries: Those that would move.
        alone: Its plan without results of others.
        fed: Returns a plan as a new run would have it, which reads nothing of the one it leaves.
        offers: Of all runs.
        weighing: By what prices are compared.
    """
    current = queries[0].bundle
    allowed = [offers.for_move(query) for query in queries]
    reading = Reading(offers, lambda offer: all(may(offer) for may in allowed), makes_nodes=False)
    shared = planner.placed(
        bound,
        query=current.query,
        version=current.version + 1,
        text=queries[0].text,
        current=current,
        reading=reading,
    )
    choices = [(planned, fed(planned, current.query)) for planned in (alone, shared)]
    if not any(map(reads_results, (current, choices[1][1]))):
        return None
    taken, price = (planned_of(queries[0]), current), _own_cost(planner, current)
    before = _words(current), price
    for planned, bundle in choices:
        cost = _own_cost(planner, bundle)
        if MUCH * weighing.value(cost) < weighing.value(price):
            taken, price = (planned, bundle), cost
    if not (reads_results(current) or reads_results(taken[1])):
        return None
    return OverOthers(*taken, before, (_words(taken[1]), price))


def reads_results(bundle: FragmentBundle) -> bool:
    """Return whether a bundle reads results of other runs."""
    return any(bundle.fragment(f.fragment).engine == Engine.BASE for f in bundle.feeds)


def _own_cost(planner: Planner, bundle: FragmentBundle) -> Cost:
    """Return the price of what sites send for a bundle alone."""
    estimates = planner.estimates(bundle)
    return sum((estimates[fragment.id].cost for fragment in bundle.own), NOTHING)


def _words(bundle: FragmentBundle) -> str:
    results = [f for f in bundle.feeds if bundle.fragment(f.fragment).engine == Engine.BASE]
    nodes = ", ".join(sorted({number_of(feed.run) for feed in results}))
    return f"reads node {nodes}" if nodes else f"plan {bundle.alternative}, which reads no node"
