"""Cuts of joins that gateways compute with rows of other gateways."""

from federated_optimizer.alternatives.broadcast_join import BROADCASTS, broadcast_join
from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.meeting import Meeting, Move
from federated_optimizer.alternatives.pieces import Cut, GatewayPiece, Piece
from federated_optimizer.cutting.one_sided_cuts import OneSidedCuts
from streamsql.algebra.operators import Plan, RemoteSource, with_inputs


class NetworkCuts(OneSidedCuts):
    """Cuts, operators over one input, and joins in the network whose method was chosen."""

    def _network_join(self, plan: TwoSided, left: Piece, right: Piece) -> Piece | None:
        """Return the join by the method that was chosen for it; None: none of these was.

        Below windows that close none is taken: progress goes straight to the base, and would
        overtake rows that make a detour.
        """
        method = self._methods.get(plan)
        if not self._may_look_up or method is None:
            return None
        if not (isinstance(left, GatewayPiece) and isinstance(right, GatewayPiece)):
            return None
        if method in BROADCASTS:
            meeting = broadcast_join(plan, left, right, method)
            return self._met(plan, left, right, meeting) if isinstance(meeting, Meeting) else None
        return None

    def _met(
        self, plan: TwoSided, left: GatewayPiece, right: GatewayPiece, meeting: Meeting
    ) -> GatewayPiece:
        joined = with_inputs(
            plan, (self._moved_to(left, meeting.left), self._moved_to(right, meeting.right))
        )
        sources = tuple(dict.fromkeys(left.sources + right.sources))
        joins = left.joins + right.joins + 1
        return GatewayPiece(joined, meeting.sites, sources, meeting.colocations, joins)

    def _moved_to(self, piece: GatewayPiece, move: Move | None) -> Plan:
        """Return a side as the join reads it: its own plan, or what comes of it."""
        if move is None:
            return piece.plan
        return RemoteSource(self._number(Cut(piece, (), to_all=True)), piece.plan.schema)
