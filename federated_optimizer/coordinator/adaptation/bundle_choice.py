"""The choice between the bundle that runs and others that read results, by what each causes.

Nothing here asks who reads a run or why it is looked at: bundles, runs and prices are given.
"""

from dataclasses import dataclass

from federated_optimizer.coordinator.adaptation.caused_prices import CausedPrices
from federated_optimizer.coordinator.adaptation.chosen_plans import Candidate, chosen
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.effort import Effort, effort_of
from federated_optimizer.costs.weighing import Weighing
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
class BundleChoice:
    """A choice in which results of others play a part.

    Attributes:
        number: Of the bundle that is taken; None: what runs stays.
        before: Price of what runs.
        after: Of what is taken.
        work: What it saves, if it is taken for that; None: it is cheaper by the metric, or stays.
    """

    number: int | None
    before: Cost
    after: Cost
    work: Work | None = None


def bundle_choice(  # noqa: PLR0913 - what a choice rests on
    current: FragmentBundle,
    alone: FragmentBundle,
    shared: FragmentBundle,
    prices: CausedPrices,
    weighing: Weighing,
    *,
    is_searched: bool = True,
) -> BundleChoice | None:
    """Return the choice for queries of one run; None: results of others are no part of it.

    Args:
        current: What they run.
        alone: As a new run, which reads no results: number 0.
        shared: As a new run over what others have: number 1.
        prices: Of what their run causes.
        weighing: By what prices are compared.
        is_searched: Whether what runs is one of the plans of a search; else it was found without
            one, over rows of others.
    """
    is_over = (
        prices.has_company or reads_results(current) or bool(current.feeds and not is_searched)
    )
    if not (is_over or reads_results(shared) or _reads_more(shared, alone)):
        return None
    others = [(n, made) for n, made in enumerate((alone, shared)) if not made.runs_as(current)]
    costs = [prices.caused(made) for _number, made in others]
    candidates = [
        Candidate(cost, reads_results(made), sends_nothing(made))
        for cost, (_number, made) in zip(costs, others, strict=True)
    ]
    found = chosen(prices.now, candidates, weighing, prices.speeds)
    if found is None:
        return BundleChoice(None, prices.now, prices.now) if is_over else None
    (number, taken), cost = others[found.number], costs[found.number]
    if not (is_over or reads_results(taken) or _reads_more(taken, alone)):
        return None
    work = None if found.is_much else _work(prices, cost, taken)
    return BundleChoice(number, prices.now, cost, work)


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
