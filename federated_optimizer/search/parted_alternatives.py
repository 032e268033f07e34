"""Alternatives of operators in parts: what gateways compute before the base."""

from collections.abc import Iterator

from federated_optimizer.alternatives.method import Method
from federated_optimizer.alternatives.operators_in_parts import parted
from federated_optimizer.alternatives.parted import Parted
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.costs.estimates import estimate
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import shipment
from federated_optimizer.costs.work import Work
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Plan


class PartedAlternatives:
    """The ways of operators in parts.

    Args:
        memo: Has the groups of what is below them.
        statistics: What is known of sources.
        bases: The base sites.
        at_gateways: The work of gateways.
        at_base_sites: The work of base sites.
    """

    def __init__(
        self,
        memo: Memo,
        statistics: Statistics,
        bases: tuple[str, ...],
        at_gateways: Work,
        at_base_sites: Work,
    ) -> None:
        self._memo = memo
        self._statistics = statistics
        self._bases = bases
        self._at_gateways = at_gateways
        self._at_base_sites = at_base_sites

    def of(self, plan: Plan, below: Wanted, piece: GatewayPiece) -> Iterator[Alternative]:
        """Yield an operator in parts over what gateways have, if it has parts."""
        halves = parted(plan, self._memo.plan(below))
        if not isinstance(halves, Parted):
            return
        part = estimate(halves.part, self._statistics, sites=len(piece.sites))
        width = sent_bytes(halves.part, self._statistics)
        sent = shipment(part, width, piece.sites, self._bases, self._statistics.wires)
        cost = self._at_base_sites.merged(part).after(sent).after(self._at_gateways.here(plan))
        yield Alternative(Method.PARTS, (below,), cost, halves.words)
