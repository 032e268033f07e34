"""Nodes of selections of one source: rows that arrive at the base with too few columns.

A query whose rows another run receives, but for a column that it shows or compares, would have
gateways send these rows again. A node with the columns of both, and under the weaker condition, may
cost less than both selections: the older query moves onto it, and its own selection ends. That is
only counted where the older query can move. A node that is there is given the columns instead.

A shorter window needs the event time of the longer one, and the bounds of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.fragment_estimates import fragment_estimates
from federated_optimizer.costs.relations.estimates import estimate, row_bytes
from federated_optimizer.cutting.placing import place
from federated_optimizer.network.shareable import why_alone
from federated_optimizer.registering.computed_anew import Choosing
from federated_optimizer.sharing.computation_index import Allowed
from federated_optimizer.sharing.delivered_rows import delivered_at, selections, showing
from federated_optimizer.sharing.forms.blocks import block_of
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.rules.select_project_join import answer
from federated_optimizer.sharing.rules.shorter_windows import (
    bounds_of,
    length_of,
    over_longer,
    why_not,
    window_of,
)
from streamsql.algebra.operators import Plan
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SAVES = 0.9
"""A node may cost so much of what it saves: prices are no better than that."""

MAX_WIDENED = 8
"""Selections with which one of a query is compared: a node may have the columns of both."""


@dataclass(frozen=True, slots=True)
class WiderSelection:
    """A node that is worth it.

    Attributes:
        plan: What it selects.
        widens: The run of a node that is given columns; empty: it is a new one.
        tells: The relations that queries of others read whose columns it has.
        made: By the metric, the price of a new node as long as nobody else reads it.
        added: By the metric, what it adds to what is sent now: less than `made` where others move.
    """

    plan: Plan
    widens: str
    tells: frozenset[Read]
    made: float = 0.0
    added: float = 0.0


class SelectionNodes:
    """Choice of the nodes that selections of a query are read from.

    Args:
        choosing: The basis of the choice.
        may_read: Returns whether the query may read an offer.
        moves: Whether running queries move to what costs less.
        whole_changes: Whether the changes of one reading have to arrive together: then the rows of
            a shorter window are its own.
    """

    def __init__(
        self, choosing: Choosing, may_read: Allowed, *, moves: bool, whole_changes: bool
    ) -> None:
        self._choosing, self._may_read = choosing, may_read
        self._moves, self._whole_changes = moves, whole_changes
        self._planning = choosing.planning
        self._known = choosing.planning.statistics
        self._prices: dict[Plan, float] = {}

    def _stays(self, made: float, sent: float) -> bool:
        """Return whether a query stays with nodes until others have moved onto them, too.

        Until then it causes them alone, and leaves what costs much more than to do without.
        """
        return made <= self._planning.much * sent

    def of(self, bundle: FragmentBundle) -> Iterator[WiderSelection]:
        """Yield a node for each selection of a bundle that costs less with it."""
        if why_alone(bundle):
            return
        own = {fragment.id for fragment in bundle.own}
        for fragment in selections(bundle):
            if (
                fragment.id in own
                and fragment.engine == Engine.GATEWAY
                and not self._choosing.is_delivered(bundle, fragment.id)
            ):
                found = self._node(fragment)
                if found is not None and self._stays(found.made, self._sent(fragment.plan)):
                    yield found

    def _node(self, fragment: Fragment) -> WiderSelection | None:
        """Return the cheapest node for a selection; None: the query has it sent by itself."""
        index, plan = self._choosing.index, fragment.plan
        found: list[tuple[float, str, WiderSelection]] = []

        def consider(wanted: Plan, more: Sequence[int], told: float) -> None:
            for offer in index.weaker(wanted, self._at(fragment), MAX_WIDENED):
                node = self._considered(offer, wanted, more)
                if node is not None:
                    added = self._price(node, offer, fragment)
                    found.append((added + told, offer.name, replace(node, added=added)))

        consider(plan, (), 0.0)
        window = window_of(plan)
        if window is not None and not self._whole_changes:
            longer_ones = (w for w in index.rows_of(window.input) if not why_not(window, w))
            for longer in sorted(longer_ones, key=length_of)[:MAX_WIDENED]:
                if longer != window:
                    time = window.input.time_column
                    told = self._told(plan)
                    consider(over_longer(plan, longer), () if time is None else (time,), told)
        price, _name, node = min(found, key=lambda each: each[:2], default=(0.0, "", None))
        alone = self._sent(plan)
        if node is None or price >= SAVES * alone:
            return None
        made = 0.0 if node.widens else self._sent(node.plan)
        return replace(node, made=made)

    def _at(self, fragment: Fragment) -> Allowed:
        """Return which offers have rows that the sites of a selection send to its reader's."""

        def is_at(offer: Offer) -> bool:
            if not offer.is_readable or not self._may_read(offer):
                return False
            sender = offer.bundle.fragment(offer.fragment)
            if sender.consumer:
                return delivered_at(sender) == delivered_at(fragment)
            return offer.is_node

        return is_at

    def _considered(self, offer: Offer, wanted: Plan, more: Sequence[int]) -> WiderSelection | None:
        """Return the node that would have the columns of an offer and what else is wanted of it."""
        columns = block_of(offer.plan).columns
        plan = showing(wanted, offer.plan, tuple(columns[each] for each in more))
        if plan is None or plan == offer.plan:
            return None
        of_run = self._choosing.index.of_run(offer.run)
        node = next((o for o in of_run if o.is_node and o.is_readable), None)
        if node is None:
            return WiderSelection(plan, "", offer.tells)
        return WiderSelection(plan, offer.run, offer.tells) if node is offer else None

    def _price(self, node: WiderSelection, offer: Offer, fragment: Fragment) -> float:
        """Return what a node adds to what is sent now."""
        sent = self._sent(node.plan)
        if node.widens:
            return sent - self._sent(offer.plan)
        return sent - sum(map(self._sent, self._ended(node.plan, offer, fragment)))

    def _ended(self, plan: Plan, offer: Offer, fragment: Fragment) -> set[Plan]:
        """Return the selections that nobody would have sent any more, certainly.

        Who delivers one moves if nobody else reads its rows: then it causes nothing by the node.
        """
        found: set[Plan] = set()
        index = self._choosing.index
        for each in index.of_form(canonical_plan(offer.plan).form) if self._moves else ():
            if not each.is_delivered or index.readers(each.run):
                continue
            sender = each.bundle.fragment(each.fragment)
            has_it = answer(each.plan, plan, plan) is not None
            if has_it and delivered_at(sender) == delivered_at(fragment):
                found.add(each.plan)
        return found

    def _sent(self, plan: Plan) -> float:
        """Return the price by the metric of what gateways send for a selection."""
        if plan not in self._prices:
            planning = self._planning
            bundle = place(plan, planning.topology, query="", statistics=self._known)
            reader = planning.topology.coordinator
            costs = fragment_estimates(bundle, self._known, reader)
            sent = (costs[f.id].cost for f in bundle.fragments if f.consumer)
            self._prices[plan] = self._choosing.weighing.value(sum(sent, NOTHING))
        return self._prices[plan]

    def _told(self, plan: Plan) -> float:
        """Return the price by the metric of the bounds of a window."""
        bounds = bounds_of(plan)
        sent = estimate(bounds, self._known).events * row_bytes(bounds.schema)
        return self._choosing.weighing.value(Cost(bytes=sent))
