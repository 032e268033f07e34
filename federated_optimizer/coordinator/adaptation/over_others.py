"""A running query over results of others: the price of what it causes then, and now.

A query causes what would end with it: what its own run sends and computes, and the nodes that only
it reads. Leaves that others read are sent in any case, and so is the query's result.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from federated_optimizer.coordinator.adaptation.chosen_plans import Candidate, chosen
from federated_optimizer.coordinator.computations.run_nodes import number_of
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.read_parts import unneeded_without
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.effort import Effort, effort_of
from federated_optimizer.costs.run_costs import RunCosts
from federated_optimizer.costs.weighing import Weighing
from streamsql.binder import BoundQuery
from streamsql.wire.fragments import Engine, Feed, FragmentBundle

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
    prices = _Prices(planner, offers, current.query)
    is_over = (
        prices.has_company or reads_results(current) or bool(current.feeds and not is_searched)
    )
    if not (is_over or reads_results(made[1][1])):
        return None
    others = [(planned, bundle) for planned, bundle in made if not planned.bundle.runs_as(current)]
    costs = [prices.caused(bundle) for _planned, bundle in others]
    candidates = [
        Candidate(cost, reads_results(bundle), sends_nothing(bundle))
        for cost, (_planned, bundle) in zip(costs, others, strict=True)
    ]
    before = _words(current), prices.caused()
    found = chosen(before[1], candidates, weighing, prices.speeds)
    if found is None:
        stays = OverOthers(planned_of(queries[0]), current, before, before)
        return stays if is_over else None
    (planned, bundle), cost = others[found.number], costs[found.number]
    if not (is_over or reads_results(bundle)):
        return None
    work = None if found.is_much else prices.work(cost, bundle)
    return OverOthers(planned, bundle, before, (_words(bundle), cost), work)


def reads_results(bundle: FragmentBundle) -> bool:
    """Return whether a bundle reads results of other runs."""
    return bool(bundle.results_read)


def sends_nothing(bundle: FragmentBundle) -> bool:
    """Return whether only base sites run a bundle: nothing is sent again for it."""
    return all(fragment.engine == Engine.BASE for fragment in bundle.own)


class _Prices:
    """Prices of what a run causes, each run's computed once.

    The milliseconds of a price are those of the longest path from a reading to the answer.

    Attributes:
        speeds: Of sites.
        has_company: Whether nodes would end with it.
    """

    def __init__(self, planner: Planner, offers: ReadableOffers, run: str) -> None:
        self._planner, self._runs, self._run = planner, offers.runs, run
        self._known: dict[str, RunCosts] = {}
        self.speeds = planner.statistics().speeds
        ends = self._ends()
        self.has_company = len(self._known) > 1
        self._now = replace(ends, milliseconds=self._known[run].milliseconds)

    def caused(self, bundle: FragmentBundle | None = None) -> Cost:
        """Return the price of what runs only for the run; or would for another bundle of it."""
        if bundle is None:
            return self._now
        costs = self._costs(bundle)
        own = sum((costs.of(f.id, with_result=False) for f in bundle.own), NOTHING)
        saved = self._ends(bundle.feeds)
        whole = own + _difference(self._now, saved)
        return replace(whole, milliseconds=costs.milliseconds)

    def work(self, cost: Cost, bundle: FragmentBundle) -> Work:
        """Return the effort of what runs, and of a bundle that has a price."""
        before, after = (effort_of(each, self.speeds) for each in (self._now, cost))
        costs = self._costs(bundle)
        filling = sum(costs.filling(fragment.id) for fragment in bundle.own)
        return Work(before, after, filling + after.value * BESIDE_SECONDS)

    def _costs(self, bundle: FragmentBundle) -> RunCosts:
        planner = self._planner
        return RunCosts(bundle, planner.statistics(bundle), planner.estimates(bundle))

    def _ends(self, stays: Sequence[Feed] = ()) -> Cost:
        """Return the price of what ends with the queries of the run, if others read `stays`."""
        return sum(self._ended(stays), NOTHING)

    def _ended(self, stays: Sequence[Feed]) -> Iterator[Cost]:
        for run, fragments in unneeded_without(self._runs, self._run, stays).items():
            leader = self._runs.leader(run)
            if leader is not None:
                costs = self._known.get(run) or self._costs(leader.bundle)
                self._known[run] = costs
                is_node = run != self._run
                yield from (costs.of(name, with_result=is_node) for name in sorted(fragments))


def _difference(whole: Cost, part: Cost) -> Cost:
    """Return what a price has more than a part of it; nothing is said of its time."""
    return Cost(
        bytes=max(whole.bytes - part.bytes, 0.0),
        low=max(whole.low - part.low, 0.0),
        high=max(whole.high - part.high, 0.0),
        messages=max(whole.messages - part.messages, 0.0),
        energy=max(whole.energy - part.energy, 0.0),
        cpu=max(whole.cpu - part.cpu, 0.0),
        state=max(whole.state - part.state, 0.0),
        engine=max(whole.engine - part.engine, 0.0),
        derived=max(whole.derived - part.derived, 0.0),
    )


def _words(bundle: FragmentBundle) -> str:
    nodes = ", ".join(sorted(map(number_of, bundle.results_read)))
    if not nodes and bundle.feeds and not bundle.alternative:  # found without a search
        nodes = ", ".join(f"{number_of(feed.run)}/{feed.source}" for feed in bundle.feeds)
    return f"reads node {nodes}" if nodes else f"plan {bundle.alternative}, which reads no node"
