"""Prices of what travels between the pieces of a plan that is cut."""

from collections.abc import Mapping

from federated_optimizer.alternatives.method import Method
from federated_optimizer.alternatives.pieces import (
    BasePiece,
    Cut,
    GatewayPiece,
    NetworkPiece,
    Piece,
    StaticPiece,
)
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.estimates import estimate
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import broadcast, shipment
from federated_optimizer.costs.size_and_motion import Estimate
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Plan, RemoteSource, walk_plan


class CutPrices:
    """Prices of the cuts of a cutter."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._bases = cutter.topology.bases

    @classmethod
    def of(
        cls,
        plan: Plan,
        topology: Topology,
        statistics: Statistics,
        methods: Mapping[Plan, Method],
    ) -> Cost:
        """Return the price of all that travels in a plan with chosen methods."""
        cutter = Cutter(topology, statistics, methods=methods)
        return cls(cutter).received(cutter.gathered(cutter.piece(plan)))

    def shipped(self, piece: Piece, receivers: tuple[str, ...], *, to_all: bool = False) -> Cost:
        """Return the price of a piece's rows on their way to one, or all, of some other sites."""
        rows = self._of_piece(piece.plan)
        width = sent_bytes(piece.plan, self._cutter.statistics)
        send = broadcast if to_all else shipment
        return send(rows, width, self._sites(piece), receivers)

    def received(self, piece: Piece) -> Cost:
        """Return the price of all that travels to a piece, and to what travels."""
        return sum(
            (
                self.shipped(cut.piece, self._sites(piece), to_all=cut.to_all)
                + self.received(cut.piece)
                for cut in self.cuts_of(piece.plan)
            ),
            NOTHING,
        )

    def _of_piece(self, plan: Plan) -> Estimate:
        leaves = {
            node.fragment: self._of_leaf(node.fragment)
            for node in walk_plan(plan)
            if isinstance(node, RemoteSource)
        }
        return estimate(plan, self._cutter.statistics, leaves=leaves)

    def _of_leaf(self, name: str) -> Estimate:
        keys = self._cutter.keys.get(name)
        return self._of_piece(self._cutter.cuts[name].piece.plan if keys is None else keys.plan)

    def cuts_of(self, plan: Plan) -> list[Cut]:
        """Return the cuts that a piece's plan reads."""
        names = dict.fromkeys(n.fragment for n in walk_plan(plan) if isinstance(n, RemoteSource))
        return [self._cutter.cuts[name] for name in names if name in self._cutter.cuts]

    def keys_of(self, plan: Plan) -> list[BasePiece]:
        """Return the pieces whose keys a piece's plan reads."""
        names = dict.fromkeys(n.fragment for n in walk_plan(plan) if isinstance(n, RemoteSource))
        return [self._cutter.keys[name] for name in names if name in self._cutter.keys]

    def _sites(self, piece: Piece) -> tuple[str, ...]:
        match piece:
            case GatewayPiece(sites=sites) | NetworkPiece(sites=sites):
                return sites
            case StaticPiece(site=site):
                return (site,)
            case BasePiece(spread=spread):
                return self._bases[:1] if spread.single else self._bases
