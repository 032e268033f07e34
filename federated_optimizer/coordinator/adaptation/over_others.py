"""The choice of a plan over results of others for the queries of one run, by what each causes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from federated_optimizer.coordinator.adaptation.bundle_choice import Work, bundle_choice
from federated_optimizer.coordinator.adaptation.caused_prices import CausedPrices
from federated_optimizer.coordinator.computations.run_nodes import number_of
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.weighing import Weighing
from streamsql.binder import BoundQuery
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class OverOthers:
    """A choice in which results of others play a part.

    Attributes:
        planned: The plan that is taken: what runs, if no other one is better.
        bundle: As a new run would have it.
        before: Words and price of what runs.
        after: Of what is taken.
        work: What it saves, if it is taken for that; None: it is cheaper by the metric, or stays.
    """

    planned: Planned
    bundle: FragmentBundle
    before: tuple[str, Cost]
    after: tuple[str, Cost]
    work: Work | None = None


def over_others(  # noqa: PLR0913, PLR0917 - what a choice rests on
    planner: Planner,
    bound: BoundQuery,
    queries: Sequence[RunningQuery],
    alone: Planned,
    fed: Callable[[Planned, str], FragmentBundle],
    offers: ReadableOffers,
    weighing: Weighing,
    *,
    is_searched: bool = True,
) -> OverOthers | None:
    """Return the choice for queries of one run; None: results of others are no part of it.

    Args:
        planner: Plans them over what runs.
        bound: The first query.
        queries: Those that would move.
        alone: Its plan without results of others.
        fed: Returns a plan as a new run has it: it reads nothing that ends with the one it leaves.
        offers: Of all runs.
        weighing: By what prices are compared.
        is_searched: Whether what runs is one of the plans of a search; else it was found without
            one, over rows of others.
    """
    current = queries[0].bundle
    reading = Reading(offers, offers.for_moves(queries), makes_nodes=False)
    shared = planner.placed(
        bound,
        query=current.query,
        version=current.version + 1,
        text=queries[0].text,
        current=current,
        reading=reading,
    )
    made = [(planned, fed(planned, current.query)) for planned in (alone, shared)]
    prices = CausedPrices(planner, offers.runs, (current.query,))
    (_, apart), (_, over) = made
    found = bundle_choice(current, apart, over, prices, weighing, is_searched=is_searched)
    if found is None:
        return None
    before = plan_read(current), found.before
    if found.number is None:
        return OverOthers(planned_of(queries[0]), current, before, before)
    planned, bundle = made[found.number]
    return OverOthers(planned, bundle, before, (plan_read(bundle), found.after), found.work)


def plan_read(bundle: FragmentBundle) -> str:
    """Return which plan a bundle is, or which nodes it reads, in words."""
    nodes = ", ".join(sorted(map(number_of, bundle.results_read)))
    if not nodes and bundle.feeds and not bundle.alternative:  # found without a search
        nodes = ", ".join(f"{number_of(feed.run)}/{feed.source}" for feed in bundle.feeds)
    return f"reads node {nodes}" if nodes else f"plan {bundle.alternative}, which reads no node"
