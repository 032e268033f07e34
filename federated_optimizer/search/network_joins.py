"""Sub-plans above joins that gateways compute with rows of other gateways.

Such a join leaves its rows at gateways, and what stands above it may go on there. How the rows lie
depends on the method of the join, so a sub-plan may have several pieces: one for each choice below.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from federated_optimizer.alternatives.gateway_pieces import (
    OneSided,
    TwoSided,
    pairs_of,
    unary_piece,
    union_piece,
)
from federated_optimizer.alternatives.key_lookup import keys_of
from federated_optimizer.alternatives.keys_first import SEMI_JOINS, SemiJoin, semi_join
from federated_optimizer.alternatives.meeting import Meeting, Move
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.network_methods import MEETINGS, meeting
from federated_optimizer.alternatives.pieces import GatewayPiece, Piece
from federated_optimizer.alternatives.words import join_words
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.estimates import Estimating, row_bytes
from federated_optimizer.costs.semi_join_estimates import keys_sent, rows_found
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import broadcast, shipment
from federated_optimizer.costs.size_and_motion import Estimate
from federated_optimizer.memo.memo import Memo
from federated_optimizer.memo.properties import Joined
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Join, Plan, Scan, UnionAll, Window, walk_plan

IN_PARTS = (
    "alarms and sinks act on each change, and of a change that gateways join with rows of other "
    "gateways one part arrives before the other"
)
"""Why a query whose changes must arrive together has no join in the network."""

READ_TWICE = Refused(
    "another part of the query reads the same rows, and may have them computed elsewhere"
)
"""Why a join has no method in the network if a plan could not say where one of its inputs is."""

MAX_PIECES = 16
"""Pieces of a sub-plan that are followed."""


class NetworkJoins:
    """The pieces of sub-plans above joins in the network.

    Args:
        memo: Has the groups of joins and of what is below them.
        placed: The pieces of all sub-plans where nothing is chosen.
        estimating: Of what gateways have together.
        topology: The sites.
        statistics: What is known of sources.
    """

    def __init__(
        self,
        memo: Memo,
        placed: Mapping[Plan, Piece],
        estimating: Estimating,
        topology: Topology,
        statistics: Statistics,
    ) -> None:
        self._memo = memo
        self._placed = placed
        self._estimating = estimating
        self._topology = topology
        self._statistics = statistics
        self._wires = statistics.wires
        self._known: dict[Plan, dict[Joined, GatewayPiece]] = {}
        self._meetings: dict[Plan, dict[Method, Meeting]] = {}
        self._refused: dict[str, list[str]] = {}
        self._none: Refused | None = None
        self._readings: Counter[Plan] = Counter()

    def read(self, nodes: Iterable[Plan]) -> None:
        """Take the operators of a query: no join is offered over what is read elsewhere as well."""
        self._readings.update(nodes)

    def refuse_all(self, reason: str) -> None:
        """Let no gateway join rows of other gateways, for a reason in words."""
        self._none = Refused(reason)

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
                for method, found in self.meetings(plan).items():
                    sources = [s for side in sides for s in getattr(side, "sources", ())]
                    yield (
                        ((self._memo.group(plan)[0], method),),
                        GatewayPiece(plan, found.sites, tuple(sources), found.colocations, 1),
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

    def meetings(self, plan: TwoSided) -> Mapping[Method, Meeting]:
        """Return the ways in which gateways may join rows of other gateways."""
        if plan not in self._meetings:
            self._meetings[plan] = dict(self._met(plan))
        return self._meetings[plan]

    def _met(self, plan: TwoSided) -> Iterator[tuple[Method, Meeting]]:
        none = self._no_method(plan)
        for left, right in self._sides(plan):
            for method in MEETINGS:
                found = meeting(plan, left, right, method, self._topology, self._statistics)
                found = found if none is None or isinstance(found, Refused) else none
                if isinstance(found, Meeting):
                    yield method, found
                else:
                    self._refuse(plan, method, found)

    def semi_joins(self, plan: TwoSided) -> Iterator[tuple[Method, Cost, str]]:
        """Yield the semi-joins before a join at the base, with prices and in words."""
        none = self._no_method(plan)
        for left, right in self._sides(plan):
            for method in SEMI_JOINS:
                found = semi_join(plan, left, right, method)
                found = found if none is None or isinstance(found, Refused) else none
                if isinstance(found, SemiJoin):
                    sides = (left, right) if found.reduces_left else (right, left)
                    yield method, self._semi_joined(plan, found, *sides), found.words
                else:
                    self._refuse(plan, method, found)

    def _no_method(self, plan: TwoSided) -> Refused | None:
        """Return why a join has none of the methods; a sub-plan has one method in a whole plan."""
        if self._none is not None:
            return self._none
        here = Counter(walk_plan(plan))
        elsewhere = (node for node, count in here.items() if self._readings[node] > count)
        return None if all(isinstance(node, Scan | Window) for node in elsewhere) else READ_TWICE

    def _sides(self, plan: TwoSided) -> Iterator[tuple[GatewayPiece, GatewayPiece]]:
        """Yield the pieces of both sides, if gateways have both but cannot join them alone."""
        left, right = self._placed[plan.left], self._placed[plan.right]
        if isinstance(left, GatewayPiece) and isinstance(right, GatewayPiece):
            yield left, right

    def _refuse(self, plan: TwoSided, method: Method, refused: Refused) -> None:
        what, ways = f"{join_words(plan)} by {method}", self._refused.setdefault(refused.reason, [])
        if what not in ways:
            ways.append(what)

    def moved(self, plan: TwoSided, found: Meeting) -> Cost:
        """Return the price of the rows that travel to where they are joined, on their way there.

        Equal sides that go the same way go once.
        """
        sides = dict.fromkeys(((plan.left, found.left), (plan.right, found.right)))
        return sum((self._moved(side, move, found.sites) for side, move in sides), NOTHING)

    def _moved(self, side: Plan, move: Move | None, sites: tuple[str, ...]) -> Cost:
        piece = self._placed[side]
        if move is None or not isinstance(piece, GatewayPiece):
            return NOTHING
        rows, width = self._estimating.of(side), sent_bytes(side, self._statistics)
        if not move.partition:
            return broadcast(rows, width, piece.sites, sites, self._wires)
        return shipment(rows, width, piece.sites, sites, self._wires, move.away)

    def _semi_joined(
        self, plan: TwoSided, found: SemiJoin, reduced: GatewayPiece, whole: GatewayPiece
    ) -> Cost:
        """Return the price of the keys, of what they find, and of the side that is sent whole."""
        some, all_ = (plan.left, plan.right) if found.reduces_left else (plan.right, plan.left)
        columns = [pair[1 if found.reduces_left else 0] for pair in pairs_of(plan)]
        keys = keys_of(all_, columns, with_null=True)
        reduction = found.reduced(some, keys)
        sent = keys_sent(reduction, self._statistics, len(whole.sites))
        asked = broadcast(sent, row_bytes(keys.schema), whole.sites, reduced.sites, self._wires)
        matched = rows_found(reduction, self._estimating)
        answered = self._to_base(some, matched, reduced)
        return answered.after(asked) + self._to_base(all_, self._estimating.of(all_), whole)

    def _to_base(self, side: Plan, rows: Estimate, piece: GatewayPiece) -> Cost:
        width = sent_bytes(side, self._statistics)
        return shipment(rows, width, piece.sites, self._topology.bases, self._wires)
