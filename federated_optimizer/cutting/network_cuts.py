"""Cuts of joins that gateways compute, or prepare, with rows of other gateways or of tables."""

import dataclasses

from federated_optimizer.alternatives.gateway_pieces import TwoSided, pairs_of
from federated_optimizer.alternatives.heuristics import NONE
from federated_optimizer.alternatives.joins.keys_first import SEMI_JOINS, SemiJoin, semi_join
from federated_optimizer.alternatives.joins.meeting import Meeting, Move
from federated_optimizer.alternatives.joins.stored_at_gateways import (
    StoredSide,
    stored_meeting,
    stored_semi_join,
    stored_side,
)
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.network_methods import MEETINGS, meeting
from federated_optimizer.alternatives.pieces import (
    SOMEHOW,
    BasePiece,
    Cut,
    GatewayPiece,
    Piece,
    StaticPiece,
)
from federated_optimizer.cutting.one_sided_cuts import OneSidedCuts
from streamsql.algebra.operators import JoinKind, Plan, RemoteSource, with_inputs


class NetworkCuts(OneSidedCuts):
    """Cuts, operators over one input, and joins in the network whose method was chosen."""

    def _network_join(
        self, plan: TwoSided, left: Piece, right: Piece, method: Method | None
    ) -> Piece | None:
        """Return the join by the method that was chosen for it; None: none of these was.

        Below windows that close none is taken: progress goes straight to the base, and would
        overtake rows that make a detour.
        """
        if not self._may_look_up or method is None:
            return None
        stored = stored_side(left, right)
        if stored is not None:
            return self._with_table(plan, stored, method)
        if not (isinstance(left, GatewayPiece) and isinstance(right, GatewayPiece)):
            return None
        if method in MEETINGS:
            found = meeting(plan, left, right, method, self.topology, self.statistics, NONE)
            return self._met(plan, left, right, found) if isinstance(found, Meeting) else None
        if method in SEMI_JOINS:
            keyed = semi_join(plan, left, right, method, NONE)
            return self._found(plan, left, right, keyed) if isinstance(keyed, SemiJoin) else None
        return None

    def _with_table(self, plan: TwoSided, sides: StoredSide, method: Method) -> Piece | None:
        """Return a join at, or prepared at, gateways to which a stored table goes."""
        stream, table = sides.stream, sides.table
        left, right = (table, stream) if sides.table_first else (stream, table)
        found: Meeting | SemiJoin | Refused | None = None
        match method:
            case Method.STORED_ROWS:
                found = stored_meeting(plan, sides, self.topology, NONE)
            case Method.STORED_KEYS:
                found = stored_semi_join(plan, sides, self.topology, NONE)
            case _:
                pass
        match found:
            case Meeting():
                at = self._moved_to(left, found.left), self._moved_to(right, found.right)
                made = with_inputs(plan, at)
                joins = stream.joins + 1
                return GatewayPiece(made, found.sites, stream.sources, found.colocations, joins)
            case SemiJoin():
                keys = StaticPiece(found.keys, table.tables, table.site)
                some = self._reduced(stream, keys, found)
                if sides.table_first:
                    return self._join_at_base(plan, table, some, ())
                return self._join_at_base(plan, some, table, ())
            case _:
                return None

    def _met(
        self, plan: TwoSided, left: GatewayPiece, right: GatewayPiece, found: Meeting
    ) -> GatewayPiece:
        sides = self._moved_to(left, found.left), self._moved_to(right, found.right)
        sources = tuple(dict.fromkeys(left.sources + right.sources))
        joins = left.joins + right.joins + 1
        return GatewayPiece(
            with_inputs(plan, sides), found.sites, sources, found.colocations, joins
        )

    def _moved_to(self, piece: GatewayPiece | StaticPiece, move: Move | None) -> Plan:
        """Return a side as the join reads it: its own plan, or what comes of it."""
        if move is None:
            return piece.plan
        to_all = not move.partition
        cut = Cut(piece, move.partition, to_all=to_all, homes=move.homes, away=move.away)
        return RemoteSource(self._number(cut), piece.plan.schema)

    def _found(
        self, plan: TwoSided, left: GatewayPiece, right: GatewayPiece, found: SemiJoin
    ) -> BasePiece:
        reduced, whole = (left, right) if found.reduces_left else (right, left)
        keys = dataclasses.replace(whole, plan=found.keys, colocations=())
        some = self._reduced(reduced, keys, found)
        sides = (some, right) if found.reduces_left else (left, some)
        return self._join_at_base(plan, *sides, ())

    def _reduced(
        self, side: GatewayPiece, keys: GatewayPiece | StaticPiece, found: SemiJoin
    ) -> GatewayPiece:
        """Return the rows of a side that keys find, which go to all of its gateways."""
        leaf = RemoteSource(self._number(Cut(keys, (), to_all=True)), found.keys.schema)
        plan, joins = found.reduced(side.plan, leaf), side.joins + 1
        return dataclasses.replace(side, plan=plan, joins=joins)

    def _join_at_base(
        self, plan: TwoSided, left: Piece, right: Piece, reasons: tuple[str, ...]
    ) -> BasePiece:
        pairs = pairs_of(plan)
        at_left = self._hashed(left, tuple(a for a, _ in pairs))
        at_right = self._hashed(right, tuple(b for _, b in pairs))
        joined = with_inputs(plan, (at_left.plan, at_right.plan))
        spread = at_left.spread
        if plan.kind == JoinKind.FULL and not spread.single:
            spread = SOMEHOW  # a right row without partner is where its own key is
        return BasePiece(joined, spread, at_left.reasons + at_right.reasons + reasons)
