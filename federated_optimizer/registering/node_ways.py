"""Ways over new nodes that a query and an older one read, where gateways send less for both.

| node of       | read where                                                                      |
|---------------|---------------------------------------------------------------------------------|
| groups        | gateways compute parts of those of two queries, by other functions              |
| rows          | gateways send rows of a source to both, in other columns, or of a shorter window |
| rows          | they send rows for one, and parts of groups, distinct or first rows of these     |
"""

from itertools import islice
from typing import Protocol

from msgspec.structs import replace

from federated_optimizer.cutting.rows_to_base import has_parts
from federated_optimizer.network.shareable import why_alone
from federated_optimizer.registering.computed_anew import Choosing, PlannedWay, Prices
from federated_optimizer.registering.group_nodes import GroupNodes
from federated_optimizer.registering.registration_terms import NewNode, Sharing
from federated_optimizer.registering.rows_there import computed_there
from federated_optimizer.registering.run_bundles import RunBundles
from federated_optimizer.registering.selection_nodes import SAVES, SelectionNodes, WiderSelection
from federated_optimizer.sharing.node_columns import narrowed
from federated_optimizer.sharing.sharing_step import SharedPlan
from streamsql.algebra.operators import Plan
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle

MAX_MADE = 8
"""Nodes of rows that are made at once for a query."""


class Makes(Protocol):
    """A registration, which makes nodes, and plans its query over them."""

    nodes: list[NewNode]

    def make(self, logical: Plan, tells: frozenset[Read] = frozenset(), widens: str = "") -> bool:
        """Make a node, or give one columns; return whether others may read it.

        `tells` are the relations that queries of others read whose columns it has.
        """

    def forget(self, count: int) -> None:
        """Forget all new nodes but the first ones."""

    def shared(self, logical: Plan) -> SharedPlan:
        """Return a plan over what runs, and the nodes that were made."""

    def planned(self, logical: Plan, found: SharedPlan, *, to_base: bool = False) -> PlannedWay:
        """Return the query by a shared plan; `to_base`, gateways deliver rows and no parts."""


class NodeWays:
    """Choice of the nodes that are made for a query besides what it wants as it is."""

    def __init__(
        self, choosing: Choosing, sharing: Sharing, bundles: RunBundles, making: Makes
    ) -> None:
        self._choosing, self._sharing, self._bundles = choosing, sharing, bundles
        self._making = making

    def over(self, way: PlannedWay, logical: Plan) -> PlannedWay:
        """Return the way over new nodes that adds less than another one; else that."""
        way = self._of_groups(way, logical)
        way = self._of_rows_for_parts(way, logical)
        return self._of_rows(way)

    def _of_groups(self, way: PlannedWay, logical: Plan) -> PlannedWay:
        """Return the way over a node of groups with the functions of two queries."""
        groups, making = GroupNodes(self._choosing, self._sharing), self._making
        for found in groups.of(way, logical):
            count = len(making.nodes)
            if making.make(narrowed(found), found.offer.tells):
                other = making.planned(logical, making.shared(logical))
                if groups.is_worth_it(other, way, found.offer):
                    return other
            making.forget(count)
        return way

    def _of_rows_for_parts(self, way: PlannedWay, logical: Plan) -> PlannedWay:
        """Return the way that computes at the base what gateways would compute parts of."""
        is_wanted = self._sharing.moves and not why_alone(way.bundle) and has_parts(way.found.plan)
        if not is_wanted or next(computed_there(way, self._choosing), None) is None:
            return way
        making, count = self._making, len(self._making.nodes)
        nodes = self._made(making.planned(logical, way.found, to_base=True).bundle)
        if nodes:
            other = making.planned(logical, way.found, to_base=True)
            if self._is_worth_it(other, way, nodes):
                return other
        making.forget(count)
        return way

    def _is_worth_it(self, other: PlannedWay, way: PlannedWay, nodes: list[WiderSelection]) -> bool:
        """Return whether rows of nodes cost less than parts; see `GroupNodes.is_worth_it`."""
        prices, value = Prices(self._choosing), self._choosing.weighing.value
        made, alone = value(prices.made(other)), value(prices.added(way))
        if other.offers <= way.offers or made > self._choosing.planning.much * alone:
            return False
        return made + sum(node.added - node.made for node in nodes) < SAVES * alone

    def _of_rows(self, way: PlannedWay) -> PlannedWay:
        """Return the way whose selections of sources are read from nodes with their columns."""
        if not self._made(way.bundle):
            return way
        bundle = replace(way.bundle, query=self._bundles.next_run())
        bundle, more = self._bundles.over_rows(bundle, way.found)
        return PlannedWay(way.found, bundle, (*way.used, *more))

    def _made(self, bundle: FragmentBundle) -> list[WiderSelection]:
        """Make the nodes that selections of a bundle are read from; return those."""
        whole = self._bundles.query.whole_changes
        may_read, moves = self._bundles.may_read, self._sharing.moves
        nodes = SelectionNodes(self._choosing, may_read, moves=moves, whole_changes=whole)
        wanted = list(islice(nodes.of(bundle), MAX_MADE))
        return [node for node in wanted if self._making.make(node.plan, node.tells, node.widens)]
