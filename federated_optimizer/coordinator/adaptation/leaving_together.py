"""Plans of all readers of a node without it, made together, and their price against its own.

None of several readers causes a node. When the one has gone for which it has many columns or a weak
bound, it may be far too wide for those who are left, and none of them can say so alone. So all are
planned as if it were not there, the most expensive one first; the others may read what that one
would deliver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from federated_optimizer.alternatives.recursion.recursions import MUCH
from federated_optimizer.coordinator.adaptation.caused_prices import CausedPrices
from federated_optimizer.coordinator.adaptation.filled_runs import too_long, when_alike
from federated_optimizer.coordinator.adaptation.move_gains import HORIZON_SECONDS
from federated_optimizer.coordinator.adaptation.reconsidered import filling_cost, why_fixed
from federated_optimizer.coordinator.contract.coordinator_model import ACTING
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.new_nodes import given_by
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.costs.cost import NOTHING
from federated_optimizer.costs.weighing import Weighing
from streamsql.algebra.metrics import Metric
from streamsql.binder import BoundQuery
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import Feed, FragmentBundle

_FIRST_THOUGHT_OF = 10**29
"""Names of runs that are only thought of begin here: newer than all that there are."""


@dataclass(frozen=True, slots=True)
class Together:
    """Plans of all readers of a node without it.

    Attributes:
        members: Of each run that reads it, in the order in which they move: each may read what
            those before it deliver.
        left: Runs of which they read nothing: the node and their own.
        before: By the metric what they cause now, all together.
        after: What they would.
        filling: The price of the move.
    """

    members: Mapping[str, Planned]
    left: frozenset[str]
    before: float
    after: float
    filling: float

    @property
    def is_worth_it(self) -> bool:
        """Return whether they cost much less, and save more in ten minutes than moving costs."""
        saved = (self.before - self.after) * HORIZON_SECONDS
        return MUCH * self.after < self.before and saved > self.filling


@dataclass(frozen=True, slots=True)
class _Member:
    queries: Sequence[RunningQuery]
    bound: BoundQuery
    alone: Planned

    @property
    def current(self) -> FragmentBundle:
        return self.queries[0].bundle


def leave_together(
    planner: Planner,
    node: str,
    groups: Mapping[str, Sequence[RunningQuery]],
    metric: Metric,
    offers: ReadableOffers,
) -> Together | None:
    """Return plans of all readers of a node without it; None: some cannot leave it.

    Args:
        planner: Plans them.
        node: The run that would end.
        groups: Queries of each run that reads it.
        metric: Of queries that ask for none.
        offers: Of all runs; left as they were.

    Raises:
        QueryError: A text does not bind any more.
        UnsupportedError: There is no plan for it.
    """
    members = [_member(planner, queries) for queries in groups.values()]
    metrics = {m.bound.metric or metric for m in members if m is not None}
    found = [member for member in members if member is not None]
    if len(found) < len(members) or len(metrics) > 1:
        return None
    weighing = Weighing(metrics.pop())
    prices = CausedPrices(planner, offers.runs, tuple(groups))
    found.sort(key=lambda m: weighing.value(prices.own(m.alone.bundle)), reverse=True)
    rest = (offers.runs.resting_on(run) for run in (node, *groups))
    made = _Made(planner, offers, prices, weighing, frozenset().union(*rest))
    try:
        for member in found:
            made.add(member)
    finally:
        made.undo()
    alike = [when_alike(bundle) for bundle in made.bundles]
    if any(each.never or too_long(each) for each in alike):
        return None
    beside = max(each.microseconds for each in alike) / MICROSECONDS  # both send meanwhile
    statistics = planner.statistics()
    filling = sum((filling_cost(bundle, statistics) for bundle in made.bundles), NOTHING)
    after = weighing.value(prices.caused(*made.bundles))
    return Together(
        dict(zip((m.current.query for m in found), made.planned, strict=True)),
        made.left,
        weighing.value(prices.now),
        after,
        weighing.value(filling) + after * beside,
    )


def _member(planner: Planner, queries: Sequence[RunningQuery]) -> _Member | None:
    """Return queries of one run with their plan alone; None: not all of them may have it."""
    first = queries[0]
    if len({query.text for query in queries}) > 1 or why_fixed(planner, first.text):
        return None
    whole = any(query.origin in ACTING for query in queries)
    bound = planner.bound(first.text, current=first.bundle, whole_changes=whole)
    alone = _placed(planner, bound, first)
    return None if alone.alone else _Member(queries, bound, alone)


def _placed(
    planner: Planner, bound: BoundQuery, query: RunningQuery, reading: Reading | None = None
) -> Planned:
    bundle = query.bundle
    return planner.placed(
        bound,
        query=bundle.query,
        version=bundle.version + 1,
        text=query.text,
        current=bundle,
        reading=reading,
    )


class _Made:
    """Plans that are made one after the other, each over what those before it would deliver.

    Attributes:
        left: Runs of which nothing is read.
        planned: The plans so far.
        bundles: As they would run.
    """

    def __init__(
        self,
        planner: Planner,
        offers: ReadableOffers,
        prices: CausedPrices,
        weighing: Weighing,
        left: frozenset[str],
    ) -> None:
        self._planner, self._offers, self._prices = planner, offers, prices
        self._weighing = weighing
        self.left = left
        self.planned: list[Planned] = []
        self.bundles: list[FragmentBundle] = []
        self._given: dict[str, Feed] = {}

    def add(self, member: _Member) -> None:
        """Plan one more: alone, or over what there is, whichever costs less."""
        may_read = self._offers.for_moves(member.queries)
        reading = Reading(
            self._offers,
            lambda offer: offer.run not in self.left and may_read(offer),
            makes_nodes=False,
        )
        over = _placed(self._planner, member.bound, member.queries[0], reading)
        name = f"q{_FIRST_THOUGHT_OF + len(self.planned)}"
        ways = [
            (p, self._offers.runs.named(p, name, self._given, self.left))
            for p in (member.alone, over)
        ]
        planned, bundle = min(ways, key=lambda way: self._weighing.value(self._prices.own(way[1])))
        self.planned.append(planned)
        self.bundles.append(bundle)
        self._given |= given_by(bundle)
        self._offers.offer(planned, bundle)

    def undo(self) -> None:
        """Take back what was only thought of."""
        for bundle in self.bundles:
            self._offers.take_back(bundle.query)
