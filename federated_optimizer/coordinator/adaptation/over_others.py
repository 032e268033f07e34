"""The choice of a plan over results of others for the queries of one run, by what each causes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from federated_optimizer.coordinator.adaptation.caused_prices import CausedPrices
from federated_optimizer.coordinator.adaptation.chosen_plans import Candidate, chosen
from federated_optimizer.coordinator.computations.run_nodes import number_of
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.effort import Effort, effort_of
from federated_optimizer.costs.weighing import Weighing
from streamsql.binder import BoundQuery
from streamsql.wire.fragments import Engine, FragmentBundle

BESIDE_SECONDS = 60.0
"""Time for which both runs are taken to work."""


@dataclass(frozen=True, slots=True)
class Work:
    """Effort of sites: the reason for a choice where the metric has none.

    Attributes:
        before: Of what runs.
        after: Of what is taken.
        filling: Milliseconds of work until the new run has processed all that there is, while the
            old one works, too.
    """

    before: Effort
    after: Effort
    filling: float


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
    is_over = (
        prices.has_company or reads_results(current) or bool(current.feeds and not is_searched)
    )
    rests = reads_results(made[1][1]) or _reads_more(made[1][1], made[0][1])
    if not (is_over or rests):
        return None
    others = [(planned, bundle) for planned, bundle in made if not planned.bundle.runs_as(current)]
    costs = [prices.caused(bundle) for _planned, bundle in others]
    candidates = [
        Candidate(cost, reads_results(bundle), sends_nothing(bundle))
        for cost, (_planned, bundle) in zip(costs, others, strict=True)
    ]
    before = plan_read(current), prices.now
    found = chosen(before[1], candidates, weighing, prices.speeds)
    if found is None:
        stays = OverOthers(planned_of(queries[0]), current, before, before)
        return stays if is_over else None
    (planned, bundle), cost = others[found.number], costs[found.number]
    if not (is_over or reads_results(bundle) or _reads_more(bundle, made[0][1])):
        return None
    work = None if found.is_much else _work(prices, cost, bundle)
    return OverOthers(planned, bundle, before, (plan_read(bundle), cost), work)


def reads_results(bundle: FragmentBundle) -> bool:
    """Return whether a bundle reads results of other runs."""
    return bool(bundle.results_read)


def _reads_more(bundle: FragmentBundle, alone: FragmentBundle) -> bool:
    """Return whether a bundle reads rows that others receive and a plan alone does not read."""
    read, given = ({(f.run, f.source) for f in each.feeds} for each in (bundle, alone))
    return not read <= given


def sends_nothing(bundle: FragmentBundle) -> bool:
    """Return whether only base sites run a bundle: nothing is sent again for it."""
    return all(fragment.engine == Engine.BASE for fragment in bundle.own)


def _work(prices: CausedPrices, cost: Cost, bundle: FragmentBundle) -> Work:
    """Return the effort of what runs, and of a bundle that has a price."""
    before, after = (effort_of(each, prices.speeds) for each in (prices.now, cost))
    return Work(before, after, prices.filling(bundle) + after.value * BESIDE_SECONDS)


def plan_read(bundle: FragmentBundle) -> str:
    """Return which plan a bundle is, or which nodes it reads, in words."""
    nodes = ", ".join(sorted(map(number_of, bundle.results_read)))
    if not nodes and bundle.feeds and not bundle.alternative:  # found without a search
        nodes = ", ".join(f"{number_of(feed.run)}/{feed.source}" for feed in bundle.feeds)
    return f"reads node {nodes}" if nodes else f"plan {bundle.alternative}, which reads no node"
