"""Nodes of groups that gateways compute in parts: with the functions of two queries.

A query whose groups another one computes, but for a function, would have gateways send parts of the
same groups again, with the same keys. A node with the functions of both may cost less than both
queries do: the older one moves onto it, and what it had sent ends. That is only counted where the
older query can move, and reads nothing but rows of others then.
"""

from collections.abc import Iterator
from dataclasses import replace

from federated_optimizer.costs.cost import Cost
from federated_optimizer.network.shareable import why_alone
from federated_optimizer.registering.computed_anew import Choosing, PlannedWay, Prices
from federated_optimizer.registering.registration_terms import Sharing
from federated_optimizer.sharing.computation_index import Found
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.sharing_step import share
from streamsql.algebra.operators import Aggregate, Plan, walk_plan
from streamsql.wire.fragments import Engine

SAVES = 0.9
"""A node may cost so much of what it saves: prices are no better than that."""

MAX_WIDENED = 8
"""Groups of others whose functions one grouping of a query is compared with."""

MOVES_FOR = 4.0
"""Bytes a second for which a query moves: in ten minutes they pay for the bundle of its new run."""

MAX_PLANNED = 2
"""Nodes that are planned for one query: each takes a search among its plans."""


class GroupNodes:
    """Choice of the nodes that groups of a query are read from.

    Args:
        choosing: The basis of the choice.
        sharing: The rules of sharing.
    """

    def __init__(self, choosing: Choosing, sharing: Sharing) -> None:
        self._choosing, self._sharing = choosing, sharing
        self._prices = Prices(choosing)

    def of(self, way: PlannedWay, logical: Plan) -> Iterator[Found]:
        """Yield groups that would be a node, with an answer over each, those alike first.

        Args:
            way: As the query is planned.
            logical: The query over sources.
        """
        if not self._sharing.moves or why_alone(way.bundle) or not self._has_parts(way):
            return
        planned = 0
        for groups in walk_plan(logical):
            if not isinstance(groups, Aggregate):
                continue
            index = self._sharing.index
            for found in index.lacking_functions(groups, self._may_move, MAX_WIDENED):
                if planned == MAX_PLANNED:
                    return
                planned += 1
                yield found

    def is_worth_it(self, other: PlannedWay, way: PlannedWay, older: Offer) -> bool:
        """Return whether a way over a new node costs less, with what ends for an older query.

        Until that has moved, the new query causes the node alone. It would leave what costs much
        more than to do without.
        """
        if not self._choosing.read_nodes(other.bundle):
            return False
        made, alone = map(self._value, (self._prices.made(other), self._prices.added(way)))
        if made > self._choosing.planning.much * alone:
            return False
        return made - self._ended(older) < SAVES * alone

    def _value(self, cost: Cost) -> float:
        return self._choosing.weighing.value(cost)

    def _has_parts(self, way: PlannedWay) -> bool:
        """Return whether gateways compute groups for a way that nobody else has them compute."""
        return any(
            fragment.engine == Engine.GATEWAY
            and any(isinstance(node, Aggregate) for node in walk_plan(fragment.plan))
            and not self._choosing.is_delivered(way.bundle, fragment.id)
            for fragment in way.bundle.own
        )

    def _may_move(self, offer: Offer) -> bool:
        """Return whether the query that computes groups inside may be read, and moves for sure."""
        return self._sharing.allowed(offer) and not self._sharing.index.readers(offer.run)

    def _ended(self, older: Offer) -> float:
        """Return the price of an older query as it runs, if it reads rows of others then alone."""
        index = self._sharing.index
        results = (o for o in index.of_run(older.run) if o.is_readable and not o.is_delivered)
        for result in results:

            def is_another(offer: Offer, own: str = result.run) -> bool:
                return offer.is_readable and offer.run != own and self._sharing.allowed(offer)

            found = share(
                result.plan, index, self._sharing.strategy, is_another, self._sharing.rows
            )
            if found.is_there:
                return self._value(replace(self._prices.of_bundle(older.bundle), milliseconds=0.0))
        return 0.0
