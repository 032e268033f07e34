"""Sub-plans above joins that gateways compute with rows of other gateways, or of stored tables.

Such a join leaves its rows at gateways, and what stands above it may go on there. How the rows lie
depends on the method of the join, so a sub-plan may have several pieces: one for each choice below.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import TypeVar

from federated_optimizer.alternatives.gateway_pieces import (
    OneSided,
    TwoSided,
    join_piece,
    pairs_of,
    unary_piece,
    union_piece,
)
from federated_optimizer.alternatives.heuristics import NONE, Heuristic, Heuristics
from federated_optimizer.alternatives.joins.keys_first import SEMI_JOINS, SemiJoin, semi_join
from federated_optimizer.alternatives.joins.meeting import Meeting, Move
from federated_optimizer.alternatives.joins.stored_at_gateways import (
    OUTGROWN,
    StoredSide,
    sent_of,
    stored_meeting,
    stored_semi_join,
    why_too_large,
)
from federated_optimizer.alternatives.key_lookup import keys_of
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.network_methods import MEETINGS, meeting
from federated_optimizer.alternatives.pieces import GatewayPiece, Piece, StaticPiece
from federated_optimizer.alternatives.words import join_words
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.sent_columns import SentBytes, sent_bytes
from federated_optimizer.costs.shipments import broadcast, shipment
from federated_optimizer.costs.stored_reads import sent_to_gateways
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.memo.properties import STORED, Joined, Place, Properties, Sent
from federated_optimizer.network.topology import Topology
from federated_optimizer.search.joins.semi_join_prices import keys_cost, stored_keys_cost
from federated_optimizer.search.search_bounds import Budget
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import (
    AsOfJoin,
    Join,
    Plan,
    SetOperation,
    UnionAll,
)

TABLE_IN_PARTS = (
    "alarms and sinks act on each change, and a change of a table reaches one gateway before the "
    "other"
)
"""Why a query whose changes must arrive together has no join with a table at gateways."""

IN_PARTS = (
    "alarms and sinks act on each change, and of a change that gateways join with rows of other "
    "gateways one part arrives before the other"
)
"""Why a query whose changes must arrive together has no join in the network."""

MAX_PIECES = 16
"""Pieces of a sub-plan that are followed."""

_OF_CHAINS = frozenset({Heuristic.ONE_JOIN, Heuristic.TO_BASE})
"""Rules by which nothing is joined with rows that gateways have joined."""

_Way = TypeVar("_Way", Meeting, SemiJoin)

_Sites = tuple[str, ...]

Below = tuple[Joined, Joined]
"""Joins in the network below both sides of a join."""

_Side = tuple[Joined, GatewayPiece]
"""A side of a join that gateways have, with the joins in the network below it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A sub-plan at gateways that have joined rows of others, and how it comes about.

    Attributes:
        piece: What gateways have then.
        below: Of each input, the joins in the network that it has; none: it has none.
        meeting: Of a join in the network; None: gateways compute the operator of what they have.
    """

    piece: GatewayPiece
    below: tuple[Joined, ...]
    meeting: Meeting | None = None


class NetworkJoins:
    """The pieces of sub-plans above joins in the network.

    Attributes:
        widths: Of the rows that are sent.

    Args:
        memo: Has the groups of joins and of what is below them.
        placed: The pieces of all sub-plans where nothing is chosen.
        estimating: Of what gateways have together.
        topology: The sites.
        statistics: What is known of sources.
        budget: Of the search, with the rules by which joins are not considered.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (what pieces depend on)
        self,
        memo: Memo,
        placed: Mapping[Plan, Piece],
        estimating: Estimating,
        topology: Topology,
        statistics: Statistics,
        budget: Budget,
    ) -> None:
        self._memo = memo
        self._placed = placed
        self._estimating = estimating
        self._topology = topology
        self._statistics = statistics
        self._wires = statistics.wires
        self._budget = budget
        self._known: dict[Plan, dict[Joined, Found]] = {}
        self._refused: dict[str, list[str]] = {}
        self._left_out: dict[Heuristic, list[str]] = {}
        self._none: Refused | None = None
        self.widths = SentBytes(statistics, estimating)
        # Pieces of a sub-plan mostly lie at the same sites: each of these is priced once.
        self._asked: dict[tuple[int, Method, _Sites, _Sites], Cost] = {}
        self._moved: dict[tuple[int, _Sites, Sent, Move | None], Cost] = {}

    def refuse_all(self, reason: str) -> None:
        """Let no gateway join rows of other gateways, for a reason in words."""
        self._none = Refused(reason)

    @property
    def refused(self) -> tuple[str, ...]:
        """The ways that joins met so far do not have, in words, those of one reason together."""
        return tuple(f"{' or '.join(ways)}: {why}" for why, ways in self._refused.items())

    @property
    def not_considered(self) -> tuple[str, ...]:
        """Right ways that joins met so far do not have because of a heuristic, in words."""
        return self._budget.words(self._left_out)

    def pieces(self, plan: Plan) -> Mapping[Joined, Found]:
        """Return the pieces of a sub-plan that gateways do not compute by themselves."""
        if isinstance(self._placed.get(plan), GatewayPiece):
            return {}
        if plan not in self._known:
            self._known[plan] = dict(islice(self._found(plan), MAX_PIECES))
            self._budget.spend(len(self._known[plan]))
        return self._known[plan]

    def _options(self, plan: Plan) -> list[tuple[Joined, GatewayPiece]]:
        """Return the pieces of an input: its own one, or those with joins in the network."""
        placed = self._placed[plan]
        if isinstance(placed, GatewayPiece):
            return [((), placed)]
        return [(joined, found.piece) for joined, found in self.pieces(plan).items()]

    def _found(self, plan: Plan) -> Iterator[tuple[Joined, Found]]:
        match plan:
            case Join() | AsOfJoin() | SetOperation():
                yield from self._of_join(plan)
            case UnionAll(branches=branches):
                yield from self._of_union(branches)
            case _ if isinstance(plan, OneSided):
                for joined, below in self.pieces(plan.input).items():
                    piece = unary_piece(plan, below.piece)
                    if isinstance(piece, GatewayPiece):
                        yield joined, Found(piece, (joined,))
            case _:
                return

    def _of_join(self, plan: TwoSided) -> Iterator[tuple[Joined, Found]]:
        """Yield joins of rows of different gateways, and joins above such joins."""
        group = self._memo.group(plan)
        for (a, left), (b, right) in self._sides(plan):
            local = self._local(plan, left, right)
            if isinstance(local, GatewayPiece) and (a or b):
                yield (*a, *b), Found(local, (a, b))
            for method in MEETINGS:
                places = method, self._topology, self._statistics
                meet = partial(meeting, plan, left, right, *places)
                found = self._considered(plan, method, meet)
                if isinstance(found, Meeting):
                    sources, joins = left.sources + right.sources, left.joins + right.joins + 1
                    piece = GatewayPiece(plan, found.sites, sources, found.colocations, joins)
                    yield (*a, *b, (group, method)), Found(piece, (a, b), found)
        for below, sides in self._stored(plan):
            found = self._fitting(plan, Method.STORED_ROWS, sides, stored_meeting)
            if isinstance(found, Meeting):
                stream, table_joins = sides.stream, (group, Method.STORED_ROWS)
                joins = stream.joins + 1
                piece = GatewayPiece(plan, found.sites, stream.sources, found.colocations, joins)
                yield (*below[0], *below[1], table_joins), Found(piece, below, found)

    def _local(
        self, plan: TwoSided, left: GatewayPiece, right: GatewayPiece
    ) -> GatewayPiece | Refused:
        """Return a join of what gateways have, or why it is not there."""
        local = join_piece(plan, left, right, self._budget.kept)
        rule = local.heuristic if isinstance(local, Refused) else None
        if rule is not None and isinstance(join_piece(plan, left, right, NONE), GatewayPiece):
            self._leave_out(f"{join_words(plan)} at its gateways", rule)
        return local if self._none is None else self._none

    def _considered(
        self, plan: TwoSided, method: Method, find: Callable[[Heuristics], _Way | Refused]
    ) -> _Way | Refused:
        """Return how a method joins two pieces, or why it does not, which is noted."""
        what, found = f"{join_words(plan)} by {method}", find(self._budget.kept)
        rule = found.heuristic if isinstance(found, Refused) else None
        right = found if rule is None else find(NONE)
        if not isinstance(right, Refused):
            right = self._none or right
        if isinstance(right, Refused):
            self._refuse(what, right)
            return right
        if rule is not None:
            self._leave_out(what, rule)
        return found

    def _of_union(self, branches: tuple[Plan, ...]) -> Iterator[tuple[Joined, Found]]:
        """Yield unions of which branches have joins in the network."""
        every = [self._options(branch) for branch in branches]
        for chosen in islice(product(*every), MAX_PIECES):
            pieces = [piece for _, piece in chosen]
            made = union_piece(pieces, self._budget.kept)
            rule = made.heuristic if isinstance(made, Refused) else None
            if rule is not None and isinstance(union_piece(pieces, NONE), GatewayPiece):
                self._leave_out("UnionAll of rows that gateways have joined", rule)
            below = tuple(joined for joined, _ in chosen)
            if any(below) and isinstance(made, GatewayPiece):
                yield tuple(each for joined in below for each in joined), Found(made, below)

    def semi_joins(self, plan: TwoSided) -> Iterator[tuple[Method, tuple[Wanted, ...], Cost, str]]:
        """Yield semi-joins before a join at the base: what it reads, price, and words."""
        for sides in self._sides(plan):
            (_, left), (_, right) = sides
            for method in SEMI_JOINS:
                keyed = partial(semi_join, plan, left, right, method)
                found = self._considered(plan, method, keyed)
                if isinstance(found, SemiJoin):
                    self._budget.spend()
                    yield method, self._keyed(plan, method, found, sides), NOTHING, found.words
        for below, stored in self._stored(plan):
            found = self._fitting(plan, Method.STORED_KEYS, stored, stored_semi_join)
            if isinstance(found, SemiJoin):
                self._budget.spend()
                places = self._topology.bases, self._statistics, self._estimating
                cost = stored_keys_cost(plan, stored, found, *places)
                here = map(self._here, plan.inputs, below)
                yield Method.STORED_KEYS, tuple(here), cost, found.words

    def _stored(self, plan: TwoSided) -> Iterator[tuple[Below, StoredSide]]:
        """Yield the sides of a join of what gateways have with a stored table, if it is one."""
        both = ((plan.left, plan.right, True), (plan.right, plan.left, False))
        for side, other, table_first in both:
            table = self._placed[side]
            if isinstance(table, StaticPiece):
                for joined, stream in self._options(other):
                    below = ((), joined) if table_first else (joined, ())
                    yield below, StoredSide(stream, table, table_first)

    def _fitting(
        self,
        plan: TwoSided,
        method: Method,
        sides: StoredSide,
        find: Callable[[TwoSided, StoredSide, Topology, Heuristics], _Way | Refused],
    ) -> _Way | Refused:
        """Return how gateways join a table, or why not: they keep no large one."""

        def fitting(kept: Heuristics) -> _Way | Refused:
            found = find(plan, sides, self._topology, kept)
            if isinstance(found, Refused):
                return found
            if self._none is not None:
                return Refused(TABLE_IN_PARTS)
            if self._statistics.outgrown:
                return Refused(OUTGROWN)
            sent = sent_of(sides, found)
            width = sent_bytes(sent, self._statistics)
            reason = why_too_large(sides, self._estimating.of(sent), width)
            return Refused(reason) if reason else found

        return self._considered(plan, method, fitting)

    def _sides(self, plan: TwoSided) -> Iterator[tuple[_Side, _Side]]:
        """Yield pieces of both sides that gateways have, if they cannot join them alone."""
        found = product(self._options(plan.left), self._options(plan.right))
        for left, right in islice(found, MAX_PIECES):
            if not self._budget.kept & _OF_CHAINS or not (left[0] or right[0]):
                yield left, right
            elif self._would_chain(plan, left[1], right[1]):
                what = f"{join_words(plan)} of rows that gateways have joined with others"
                self._leave_out(what, Heuristic.ONE_JOIN)

    def _would_chain(self, plan: TwoSided, left: GatewayPiece, right: GatewayPiece) -> bool:
        """Whether only heuristics forbid a join of what gateways have joined."""
        if self._none is not None:
            return False
        if isinstance(join_piece(plan, left, right, NONE), GatewayPiece):
            return True
        places = self._topology, self._statistics
        ways = (Method.BROADCAST_RIGHT, Method.HASHED)
        found = (meeting(plan, left, right, way, *places, NONE) for way in ways)
        return any(isinstance(each, Meeting) for each in found)

    def _refuse(self, what: str, refused: Refused) -> None:
        ways = self._refused.setdefault(refused.reason, [])
        if what not in ways:
            ways.append(what)

    def _leave_out(self, what: str, rule: Heuristic) -> None:
        ways = self._left_out.setdefault(rule, [])
        if what not in ways:
            ways.append(what)

    def moved(self, plan: TwoSided, found: Found) -> tuple[Wanted, ...]:
        """Return both sides of a join where gateways join them; what does not move is there."""
        assert found.meeting is not None  # noqa: S101  (else nothing moves)
        moves, sites = (found.meeting.left, found.meeting.right), found.meeting.sites
        return tuple(
            self._here(side, joined)
            if move is None
            else self._sent(side, joined, (sites, move.partition, move.homes), move)
            for side, joined, move in zip(plan.inputs, found.below, moves, strict=True)
        )

    def to_base(self, plan: Plan, joined: Joined = ()) -> Wanted:
        """Return rows that gateways have where the base has them."""
        return self._sent(plan, joined, (self._topology.bases, (), ()))

    def _sent(self, plan: Plan, joined: Joined, way: Sent, move: Move | None = None) -> Wanted:
        """Return rows of gateways at other sites: those who read them there pay once together."""
        piece = self.pieces(plan)[joined].piece if joined else self._placed[plan]
        assert isinstance(piece, GatewayPiece | StaticPiece)  # noqa: S101  (whose rows move)
        at = (piece.site,) if isinstance(piece, StaticPiece) else piece.sites
        key = self._memo.group(plan), at, way, move
        if key not in self._moved:
            self._moved[key] = self._moving(plan, piece, way[0], move)
        to = Properties(Place.SITES, joined=joined, sent=way)
        return self._shipped(plan, joined, to, self._moved[key])

    def _moving(
        self, plan: Plan, piece: GatewayPiece | StaticPiece, sites: _Sites, move: Move | None
    ) -> Cost:
        """Return the price of rows on their way to sites."""
        rows, width = self._estimating.of(plan), self.widths.of(plan)
        if isinstance(piece, StaticPiece):
            return sent_to_gateways(rows, width, piece.site, sites, self._wires)
        if move is not None and not move.partition:
            return broadcast(rows, width, piece.sites, sites, self._wires)
        away = None if move is None else move.away
        return shipment(rows, width, piece.sites, sites, self._wires, away)

    def _shipped(self, plan: Plan, joined: Joined, to: Properties, cost: Cost) -> Wanted:
        here = self._here(plan, joined)
        there = Wanted(here.group, to)
        self._memo.alternatives[there] = (Alternative(Method.SHIP, (here,), cost),)
        return there

    def _here(self, plan: Plan, joined: Joined) -> Wanted:
        """Return rows where they come from, or where gateways have joined them with others."""
        stored = isinstance(self._placed[plan], StaticPiece)
        properties = STORED if stored else Properties(Place.SITES, joined=joined)
        return Wanted(self._memo.group(plan), properties)

    def _keyed(
        self, plan: TwoSided, method: Method, found: SemiJoin, sides: tuple[_Side, ...]
    ) -> tuple[Wanted, ...]:
        """Return what the base joins: the rows of a side that keys find, and the other side."""
        (joined, reduced), (other, whole) = sides if found.reduces_left else sides[::-1]
        some, all_ = (plan.left, plan.right) if found.reduces_left else (plan.right, plan.left)
        group = self._memo.group(plan), method
        key = *group, whole.sites, reduced.sites
        if key not in self._asked:
            columns = [pair[1 if found.reduces_left else 0] for pair in pairs_of(plan)]
            reduction = found.reduced(some, keys_of(all_, columns, with_null=True))
            places = whole.sites, reduced.sites, self._topology.bases
            self._asked[key] = keys_cost(reduction, *places, self._statistics, self._estimating)
        by = (*joined, *other, group)
        there = self._shipped(some, joined, Properties(Place.BASE, joined=by), self._asked[key])
        both = (there, self.to_base(all_, other))
        return both if found.reduces_left else both[::-1]
