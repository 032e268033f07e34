"""Operators over one input: where the input is, in parts, or at the base.

Nobody has to choose: then an operator stands where its input is, first rows are taken in parts, and
all else that gateways cannot do by themselves is at the base.
"""

import dataclasses

from federated_optimizer.alternatives.first_k import shortened
from federated_optimizer.alternatives.gateway_pieces import OneSided, unary_piece
from federated_optimizer.alternatives.meeting_tree import MeetingTree, meeting_tree
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.operators_in_parts import parted
from federated_optimizer.alternatives.parted import Parted
from federated_optimizer.alternatives.pieces import (
    SOMEHOW,
    BasePiece,
    Cut,
    GatewayPiece,
    NetworkPiece,
    Piece,
    StaticPiece,
    moved,
    projected,
    regrouped,
)
from federated_optimizer.alternatives.words import chosen_reason, filter_reason, network_reason
from federated_optimizer.cutting.keyed_joins import KeyedCuts
from streamsql.algebra.expressions import expression_text
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    HopWindow,
    Materialize,
    OverWindow,
    Plan,
    Project,
    RemoteSource,
    SessionWindow,
    TopN,
    UnionAll,
    with_inputs,
)


class OneSidedCuts(KeyedCuts):
    """Cuts, and operators over one input."""

    @staticmethod
    def _unless_chosen(
        plan: Plan, placed: GatewayPiece | Refused, method: Method | None
    ) -> GatewayPiece | Refused:
        """Return a piece, or that another method was chosen for what gateways can do."""
        if isinstance(placed, GatewayPiece) and method is not None:
            return Refused(chosen_reason(plan))
        return placed

    def _unary(self, plan: OneSided, below: Piece, method: Method | None = None) -> Piece:
        match below:
            case StaticPiece():
                return StaticPiece(with_inputs(plan, (below.plan,)), below.tables, below.site)
            case GatewayPiece():
                return self._over_gateways(plan, below, method)
            case NetworkPiece() if isinstance(plan, Filter | Project | HopWindow | Materialize):
                # Every row of the relation is shown by one of its sites.
                made = with_inputs(plan, (below.plan,))
                return NetworkPiece(made, below.sites, below.reasons, below.homes)
            case NetworkPiece():
                return self._unary_at_base(plan, below, (network_reason(plan),))
            case BasePiece():
                return self._unary_at_base(plan, below, ())

    def _over_gateways(self, plan: OneSided, below: GatewayPiece, method: Method | None) -> Piece:
        placed = self._unless_chosen(plan, unary_piece(plan, below), method)
        if isinstance(placed, GatewayPiece):
            return placed
        in_parts = method in (Method.PARTS, Method.TREE)
        in_parts = in_parts or (method is None and isinstance(plan, TopN))
        halves = parted(plan, below.plan) if in_parts else None
        if not isinstance(halves, Parted):
            return self._unary_at_base(plan, below, (placed.reason,))
        part = GatewayPiece(halves.part, below.sites, below.sources, (), below.joins)
        sent = [part]
        if method == Method.TREE:
            tree = meeting_tree(below, self.topology, self.statistics)
            sent = sent if isinstance(tree, Refused) else self._merged(part, halves, tree, None)
        parts = [self._hashed(each, halves.together, subset=True) for each in sent]
        base = parts[0].plan if len(parts) == 1 else UnionAll(tuple(each.plan for each in parts))
        lie = dict(zip(halves.together, halves.in_whole, strict=True))
        return BasePiece(halves.whole(base), moved(parts[0].spread, lie), (placed.reason,))

    def _merged(
        self, part: GatewayPiece, halves: Parted, tree: MeetingTree, parent: str | None
    ) -> list[GatewayPiece]:
        """Return what comes to a gateway of a tree, or to the base, from the gateways below it."""
        found = []
        if leaves := tree.leaves(parent):
            found.append(
                dataclasses.replace(part, sites=leaves, share=tree.share(part.plan, leaves))
            )
        for site in tree.inner(parent):
            cuts = [Cut(each, ()) for each in self._merged(part, halves, tree, site)]
            read = (RemoteSource(self._number(cut), part.plan.schema) for cut in cuts)
            merged = halves.merged(UnionAll((part.plan, *read)))
            share = tree.share(part.plan, (site,))
            found.append(dataclasses.replace(part, plan=merged, sites=(site,), share=share))
        return found

    def _unary_at_base(self, plan: OneSided, below: Piece, reasons: tuple[str, ...]) -> BasePiece:
        base = self._input_at_base(plan, below)
        spread = base.spread
        match plan:
            case Filter(predicate=predicate):
                reasons += (filter_reason(expression_text(predicate)),)
            case Project():
                spread = projected(spread, plan)
            case Aggregate(group=group):
                spread = regrouped(spread, group)
            case Distinct() | TopN() | OverWindow() | HopWindow() | SessionWindow() | Materialize():
                pass  # rows stay where they are
        made = with_inputs(plan, (base.plan,))
        return BasePiece(made, spread, base.reasons + reasons)

    def _input_at_base(self, plan: OneSided, below: Piece) -> BasePiece:
        match plan:
            case Filter() | Project() | HopWindow() | Materialize():
                return self._at_base(below, SOMEHOW)
            case Distinct():
                return self._hashed(below, tuple(range(len(plan.schema))), subset=True)
            case Aggregate(group=group):
                return self._hashed(below, group, subset=True)
            case TopN(partition=partition):
                return self._hashed(self._first_of_each(plan, below), partition, subset=True)
            case SessionWindow(partition=partition) | OverWindow(partition=partition):
                return self._hashed(below, partition, subset=True)

    @staticmethod
    def _first_of_each(plan: TopN, piece: Piece) -> Piece:
        """Return a piece whose parts send only rows that may be among the first ones."""
        by = set(plan.partition)
        match piece:
            case BasePiece(spread=spread) if spread.single or (
                spread.columns and set(spread.columns) <= by
            ):
                return piece
            case GatewayPiece():
                return piece  # in parts if they were chosen
            case _:
                return dataclasses.replace(piece, plan=shortened(plan, piece.plan))
