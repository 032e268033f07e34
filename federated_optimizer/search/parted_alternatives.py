"""Alternatives of operators in parts: what gateways compute before the base."""

from collections.abc import Iterator
from dataclasses import replace

from federated_optimizer.alternatives.meeting_tree import MeetingTree, meeting_tree
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.operators_in_parts import parted
from federated_optimizer.alternatives.parted import Parted
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import shipment
from federated_optimizer.costs.work import Work
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import Plan


class PartedAlternatives:
    """The ways of operators in parts.

    Attributes:
        refused: Trees that operators do not have, with the reason in words.

    Args:
        memo: Has the groups of what is below them.
        topology: The sites.
        statistics: What is known of sources.
        at_gateways: The work of gateways.
        at_base_sites: The work of base sites.
    """

    def __init__(
        self,
        memo: Memo,
        topology: Topology,
        statistics: Statistics,
        at_gateways: Work,
        at_base_sites: Work,
    ) -> None:
        self.refused: list[str] = []
        self._memo = memo
        self._statistics = statistics
        self._topology = topology
        self._at_gateways = at_gateways
        self._at_base_sites = at_base_sites

    def of(self, plan: Plan, below: Wanted, piece: GatewayPiece) -> Iterator[Alternative]:
        """Yield an operator in parts over what gateways have, if it has parts."""
        halves = parted(plan, self._memo.plan(below))
        if not isinstance(halves, Parted):
            return
        part = estimate(halves.part, self._statistics, sites=len(piece.sites))
        width = sent_bytes(halves.part, self._statistics, part)
        sent = shipment(part, width, piece.sites, self._topology.bases, self._statistics.wires)
        cost = self._at_base_sites.merged(part).after(sent).after(self._at_gateways.here(plan))
        yield Alternative(Method.PARTS, (below,), cost, halves.words)

    def merged(self, plan: Plan, below: Wanted, piece: GatewayPiece) -> Iterator[Alternative]:
        """Yield an operator in parts that gateways merge on their way to the base."""
        halves = parted(plan, self._memo.plan(below))
        if not isinstance(halves, Parted):
            return
        tree = meeting_tree(piece, self._topology, self._statistics)
        if isinstance(tree, Refused):
            if len(piece.sites) > 1:
                self.refused.append(f"{describe(plan)} by {Method.TREE}: {tree.reason}")
            return
        sent, top = self._sent(halves.part, tree, None)
        cost = self._at_base_sites.merged(top).after(sent).after(self._at_gateways.here(plan))
        yield Alternative(Method.TREE, (below,), cost, f"{halves.words}, {tree.words}")

    def _sent(self, part: Plan, tree: MeetingTree, parent: str | None) -> tuple[Cost, Estimate]:
        """Return the price of parts on their way to a gateway or the base, and what comes there."""
        receivers = self._topology.bases if parent is None else (parent,)
        leaves = tree.leaves(parent)
        groups = [leaves] if leaves else []
        groups += [(site,) for site in tree.inner(parent)]
        wires = self._statistics.wires
        cost, coming = NOTHING, Estimate(0.0, 0.0, 0.0)
        for senders in groups:
            rows = tree.share(part, senders).rows(self._statistics)
            width = sent_bytes(part, self._statistics, rows)
            way = shipment(rows, width, senders, receivers, wires)
            if senders[0] in tree.below:
                below, merged = self._sent(part, tree, senders[0])
                way = way.after(self._at_gateways.merged(merged).after(below))
            cost += way
            coming = replace(
                rows,
                rows=rows.rows + coming.rows,
                inserts=rows.inserts + coming.inserts,
                deletes=rows.deletes + coming.deletes,
            )
        return cost, coming
