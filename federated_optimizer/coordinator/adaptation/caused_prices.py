"""Prices of what runs only for the queries of some runs, and of what would in its place.

Queries cause what would end with them: what their runs send and compute, and the nodes that only
these read. Leaves that others read are sent in any case, and so are the queries' results.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from federated_optimizer.coordinator.queries.runs.read_parts import ReadRuns, unneeded_without
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from federated_optimizer.costs.run_costs import RunCosts
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.wire.fragments import Feed, FragmentBundle


class Pricing(Protocol):
    """The facts by which bundles are priced: a `Planner`'s, or those of a benchmark."""

    def statistics(self, current: FragmentBundle | None = None) -> Statistics:
        """Return what is known now, with what a bundle runs by."""
        ...

    def estimates(self, bundle: FragmentBundle) -> Mapping[str, FragmentEstimate]:
        """Return what each fragment of a bundle is expected to send."""
        ...


class CausedPrices:
    """Prices of what the queries of some runs cause, each run's computed once.

    The milliseconds of a price are those of the longest path from a reading to the answer.

    Attributes:
        now: The price of what they cause now.
        speeds: Of sites.
        has_company: Whether nodes would end with them.
    """

    def __init__(self, planner: Pricing, runs: ReadRuns, left: Collection[str]) -> None:
        self._planner, self._runs, self._left = planner, runs, left
        self._known: dict[str, RunCosts] = {}
        self.speeds = planner.statistics().speeds
        ends = self._ends()
        self.has_company = len(self._known) > len(left)
        longest = max(self._known[run].milliseconds for run in left)
        self.now = replace(ends, milliseconds=longest)

    def caused(self, *bundles: FragmentBundle) -> Cost:
        """Return the price of what would run only for other bundles of the runs, together."""
        costs = [self.own(bundle) for bundle in bundles]
        saved = self._ends([feed for bundle in bundles for feed in bundle.feeds])
        whole = sum(costs, NOTHING) + _difference(self.now, saved)
        return replace(whole, milliseconds=max(cost.milliseconds for cost in costs))

    def own(self, bundle: FragmentBundle) -> Cost:
        """Return the price of what a bundle sends and computes itself."""
        costs = self._costs(bundle)
        own = (costs.of(fragment.id, with_result=False) for fragment in bundle.own)
        return replace(sum(own, NOTHING), milliseconds=costs.milliseconds)

    def filling(self, bundle: FragmentBundle) -> float:
        """Return the milliseconds of work until a bundle's base has processed its first rows."""
        costs = self._costs(bundle)
        return sum(costs.filling(fragment.id) for fragment in bundle.own)

    def _costs(self, bundle: FragmentBundle) -> RunCosts:
        planner = self._planner
        return RunCosts(bundle, planner.statistics(bundle), planner.estimates(bundle))

    def _ends(self, stays: Sequence[Feed] = ()) -> Cost:
        """Return the price of what ends with the queries of the runs, if others read `stays`."""
        return sum(self._ended(stays), NOTHING)

    def _ended(self, stays: Sequence[Feed]) -> Iterator[Cost]:
        for run, fragments in unneeded_without(self._runs, *self._left, stays=stays).items():
            leader = self._runs.leader(run)
            if leader is not None:
                costs = self._known.get(run) or self._costs(leader.bundle)
                self._known[run] = costs
                is_node = run not in self._left
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
