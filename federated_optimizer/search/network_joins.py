"""Sub-plans above joins that gateways compute with rows of other gateways.

Such a join leaves its rows at gateways, and what stands above it may go on there. How the rows lie
depends on the method of the join, so a sub-plan may have several pieces: one for each choice below.
"""

from collections.abc import Iterator, Mapping

from federated_optimizer.alternatives.broadcast_join import BROADCASTS, broadcast_join
from federated_optimizer.alternatives.gateway_pieces import (
    OneSided,
    TwoSided,
    unary_piece,
    union_piece,
)
from federated_optimizer.alternatives.meeting import Meeting, Move
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.pieces import GatewayPiece, Piece
from federated_optimizer.alternatives.words import join_words
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.estimates import Estimating
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import broadcast
from federated_optimizer.memo.memo import Memo
from federated_optimizer.memo.properties import Joined
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Join, Plan, UnionAll

MAX_PIECES = 16
"""Pieces of a sub-plan that are followed."""


class NetworkJoins:
    """The pieces of sub-plans above joins in the network.

    Args:
        memo: Has the groups of joins and of what is below them.
        placed: The pieces of all sub-plans where nothing is chosen.
        estimating: Of what gateways have together.
        statistics: Of the sources.
    """

    def __init__(
        self,
        memo: Memo,
        placed: Mapping[Plan, Piece],
        estimating: Estimating,
        statistics: Statistics,
    ) -> None:
        self._memo = memo
        self._placed = placed
        self._estimating = estimating
        self._statistics = statistics
        self._known: dict[Plan, dict[Joined, GatewayPiece]] = {}
        self._refused: dict[str, list[str]] = {}

    @property
    def refused(self) -> tuple[str, ...]:
        """The ways that joins met so far do not have, in words, those of one reason together."""
        return tuple(f"{' or '.join(ways)}: {why}" for why, ways in self._refused.items())

    def pieces(self, plan: Plan) -> Mapping[Joined, GatewayPiece]:
        """Return the pieces of a sub-plan that gateways do not compute by themselves."""
        if isinstance(self._placed.get(plan), GatewayPiece):
            return {}
        if plan not in self._known:
            found = dict(self._found(plan))
            self._known[plan] = dict(list(found.items())[:MAX_PIECES])
        return self._known[plan]

    def _found(self, plan: Plan) -> Iterator[tuple[Joined, GatewayPiece]]:
        match plan:
            case Join(left=left, right=right):
                sides = self._placed[left], self._placed[right]
                for method, meeting in self.meetings(plan):
                    sources = [s for side in sides for s in getattr(side, "sources", ())]
                    yield (
                        ((self._memo.group(plan)[0], method),),
                        GatewayPiece(plan, meeting.sites, tuple(sources), meeting.colocations, 1),
                    )
            case UnionAll(branches=branches):
                yield from self._of_union(branches)
            case _ if isinstance(plan, OneSided):
                for joined, below in self.pieces(plan.input).items():
                    piece = unary_piece(plan, below)
                    if isinstance(piece, GatewayPiece):
                        yield joined, piece
            case _:
                return

    def _of_union(self, branches: tuple[Plan, ...]) -> Iterator[tuple[Joined, GatewayPiece]]:
        """Yield unions in which one branch has a join in the network."""
        for number, branch in enumerate(branches):
            for joined, piece in self.pieces(branch).items():
                all_pieces = [self._placed[other] for other in branches]
                all_pieces[number] = piece
                gateways = [each for each in all_pieces if isinstance(each, GatewayPiece)]
                if len(gateways) == len(branches):
                    made = union_piece(gateways)
                    if isinstance(made, GatewayPiece):
                        yield joined, made

    def meetings(self, plan: TwoSided) -> Iterator[tuple[Method, Meeting]]:
        """Yield the ways in which gateways may join rows of other gateways."""
        left, right = self._placed[plan.left], self._placed[plan.right]
        if not (isinstance(left, GatewayPiece) and isinstance(right, GatewayPiece)):
            return
        for method in BROADCASTS:
            meeting = broadcast_join(plan, left, right, method)
            if isinstance(meeting, Meeting):
                yield method, meeting
            else:
                self._refuse(f"{join_words(plan)} by {method}", meeting)

    def _refuse(self, what: str, refused: Refused) -> None:
        ways = self._refused.setdefault(refused.reason, [])
        if what not in ways:
            ways.append(what)

    def moved(self, plan: TwoSided, meeting: Meeting) -> Cost:
        """Return the price of the rows that travel to where they are joined, on their way there."""
        return self._moved(plan.left, meeting.left, meeting.sites) + self._moved(
            plan.right, meeting.right, meeting.sites
        )

    def _moved(self, side: Plan, move: Move | None, sites: tuple[str, ...]) -> Cost:
        piece = self._placed[side]
        if move is None or not isinstance(piece, GatewayPiece):
            return NOTHING
        width = sent_bytes(side, self._statistics)
        rows, wires = self._estimating.of(side), self._statistics.wires
        return broadcast(rows, width, piece.sites, sites, wires)
