"""Prices of the pieces of a plan that is cut, and of what travels between them."""

from collections.abc import Iterable
from dataclasses import replace

from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.key_lookup import estimated_keys
from federated_optimizer.alternatives.pieces import (
    BasePiece,
    Cut,
    GatewayPiece,
    NetworkPiece,
    Piece,
    StaticPiece,
)
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.fragment_estimates import gives_parts
from federated_optimizer.costs.relations.estimates import Estimating, estimate
from federated_optimizer.costs.relations.semi_join_estimates import keys_sent, rows_found
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import broadcast, shipment
from federated_optimizer.costs.stored_reads import evaluated, looked_up, sent_to_gateways
from federated_optimizer.costs.work import Work
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.network.topology import Topology
from federated_optimizer.search.keyed_alternatives import answers, is_counted
from federated_optimizer.sharing.node_offers import is_node_name
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import (
    Distinct,
    Join,
    JoinKind,
    Plan,
    RemoteSource,
    transform_up,
    walk_plan,
)

_Way = tuple[str, tuple[str, ...]]
"""The leaf that stands for rows, and the sites to which they go."""


class CutPrices:
    """Prices of the pieces and cuts of a cutter."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._bases = cutter.topology.bases
        self._estimating = Estimating(cutter.statistics)
        self._leaves: dict[str, Plan] = {}

    @classmethod
    def of(
        cls,
        taken: Taken,
        topology: Topology,
        statistics: Statistics,
        kept: Heuristics = ALL,
    ) -> Cost:
        """Return the price of a plan with chosen methods."""
        cutter = Cutter(topology, statistics, kept=kept)
        return cls(cutter).whole(cutter.gathered(cutter.taken(taken)))

    def whole(self, piece: Piece) -> Cost:
        """Return the price of a piece: of what it computes, and of all that travels to it.

        What two fragments read at the same sites is paid once.
        """
        return self._whole_of(piece, {})

    def _whole_of(self, piece: Piece, paid: dict[_Way, Cost]) -> Cost:
        return self.computed(piece).after(self._received(piece, paid))

    def shipped(self, piece: Piece, receivers: tuple[str, ...]) -> Cost:
        """Return the price of a piece's rows on their way, each to one of some other sites."""
        return self._moved(self._sent(piece), piece, receivers)

    def _moved(
        self, rows: Estimate, piece: Piece, receivers: tuple[str, ...], cut: Cut | None = None
    ) -> Cost:
        """Return the price of rows of a piece on their way to one, or all, of some other sites."""
        statistics = self._cutter.statistics
        share = piece.share if isinstance(piece, GatewayPiece) else None
        sent_plan = self._whole(piece.plan) if share is None else share.part
        width = sent_bytes(sent_plan, statistics, rows)
        wires = statistics.wires
        if cut is not None and cut.to_all and isinstance(piece, StaticPiece):
            return sent_to_gateways(rows, width, piece.site, receivers, wires)
        if cut is not None and cut.to_all:
            return broadcast(rows, width, self._sites(piece), receivers, wires)
        away = None if cut is None else cut.away
        return shipment(rows, width, self._sites(piece), receivers, wires, away)

    def _received(self, piece: Piece, paid: dict[_Way, Cost]) -> Cost:
        """Return the price of all that travels to a piece, and to what travels."""
        sites = self._sites(piece)
        found = NOTHING
        for name in _leaves(piece.plan):
            if is_node_name(name):
                continue  # its rows are there already
            if (name, sites) not in paid:
                cost = paid[name, sites] = self._of_leaf(name, piece, sites, paid)
            else:
                cost = Cost(milliseconds=paid[name, sites].milliseconds)
            found += cost
        return found

    def _of_leaf(
        self, name: str, above: Piece, sites: tuple[str, ...], paid: dict[_Way, Cost]
    ) -> Cost:
        """Return the price of what a leaf stands for, and of its way to the sites that read it."""
        cut = self._cutter.cuts.get(name)
        if cut is None:
            return self.shipped(self._cutter.keys[name], sites)
        sent = self._moved(self._of_cut(name, above.plan), cut.piece, sites, cut)
        return sent.after(self._whole_of(cut.piece, paid))

    def _of_cut(self, name: str, above: Plan) -> Estimate:
        """Return what all sites of a cut send: where each gives its part, as many parts."""
        cut = self._cutter.cuts[name]
        piece = cut.piece
        if isinstance(piece, GatewayPiece) and piece.share is not None:
            return piece.share.rows(self._cutter.statistics)
        if not isinstance(piece, GatewayPiece) or len(piece.sites) < 2:
            return self._sent(piece)
        if not gives_parts(piece.plan, above, name, to_all=cut.to_all):
            return self._sent(piece)
        plan, statistics = self._whole(piece.plan), self._cutter.statistics
        reduction = self._reduction(above) if cut.to_all and isinstance(plan, Distinct) else None
        if reduction is not None:
            return keys_sent(reduction, statistics, len(piece.sites))
        return estimate(plan, statistics, sites=len(piece.sites))

    def computed(self, piece: Piece) -> Cost:
        """Return the price of what the sites of a piece compute."""
        if isinstance(piece, StaticPiece):
            keys, sites = self.keys_of(piece.plan), self._sites(piece)
            asked = sum(self.shipped(key, sites).messages for key in keys)
            return looked_up(asked, self._cutter.statistics) if keys else self.evaluated(piece)
        speeds = self._cutter.statistics.speeds
        micros = speeds.base if isinstance(piece, BasePiece) else speeds.gateway
        share = piece.share if isinstance(piece, GatewayPiece) else None
        plan = self._whole(piece.plan) if share is None else share.part
        work = Work(self._estimating, micros, speeds.kept, self._leaves.values()).of(plan)
        if share is None:
            return work
        by = share.sites / share.all
        return replace(work, cpu=work.cpu * by, state=work.state * by)

    def evaluated(self, piece: StaticPiece) -> Cost:
        """Return the price of evaluating the tables of a piece as a whole."""
        if piece.site != self._cutter.topology.static:
            return NOTHING  # the coordinator has what its tables say
        return evaluated(piece.plan, self._estimating, self._cutter.statistics)

    def _sent(self, piece: Piece) -> Estimate:
        """Return what a piece sends; of a table that nobody has counted keys may match all."""
        plan = piece.plan
        keys = self._asked(plan)
        reduction = self._reduction(plan)
        if reduction is not None:
            return rows_found(reduction, self._estimating)
        if keys is None or not isinstance(plan, Join) or not isinstance(piece, StaticPiece):
            return self._of_piece(plan)
        stored = self._of_piece(plan.right if keys is plan.left else plan.left)
        if not is_counted(piece.tables, self._cutter.statistics):
            return stored
        return answers(plan, keys, self._of_piece(keys), stored, self._estimating)

    def _reduction(self, plan: Plan) -> Join | None:
        """Return the rows that keys of other gateways find; None: a plan is something else."""
        if not isinstance(plan, Join) or plan.kind != JoinKind.SEMI:
            return None
        leaf = plan.right
        cut = self._cutter.cuts.get(leaf.fragment) if isinstance(leaf, RemoteSource) else None
        if cut is None or not cut.to_all or not isinstance(cut.piece.plan, Distinct):
            return None
        made = self._whole(plan)
        return made if isinstance(made, Join) else None

    def _asked(self, plan: Plan) -> Plan | None:
        """Return the side of a join with a stored table that is keys; None: no side is."""
        return next((child for child in plan.inputs if self.keys_of(child)), None)

    def _of_piece(self, plan: Plan) -> Estimate:
        return self._estimating.of(self._whole(plan))

    def _whole(self, plan: Plan) -> Plan:
        return transform_up(plan, self._without_cut)

    def _without_cut(self, node: Plan) -> Plan:
        """Return what a cut's leaf stands for: what its columns hold decides what they meet."""
        if not isinstance(node, RemoteSource):
            return node
        name = node.fragment
        if is_node_name(name) and name not in self._cutter.statistics.nodes:
            return node
        if name not in self._leaves:
            self._leaves[name] = transform_up(self._stands_for(name), self._without_cut)
        return self._leaves[name]

    def _stands_for(self, name: str) -> Plan:
        """Return the plan of a leaf; rows found by keys meet what all rows of their table meet."""
        node = self._cutter.statistics.nodes.get(name)
        if node is not None:
            return node
        keys = self._cutter.keys.get(name)
        if keys is not None:
            return estimated_keys(keys.plan)
        plan = self._cutter.cuts[name].piece.plan
        asked = self._asked(plan)
        found = isinstance(plan, Join) and asked is plan.right
        return plan.inputs[0] if found else plan

    def keys_of(self, plan: Plan) -> list[BasePiece]:
        """Return the pieces whose keys a piece's plan reads."""
        return [self._cutter.keys[name] for name in _leaves(plan) if name in self._cutter.keys]

    def _sites(self, piece: Piece) -> tuple[str, ...]:
        match piece:
            case GatewayPiece(sites=sites) | NetworkPiece(sites=sites):
                return sites
            case StaticPiece(site=site):
                return (site,)
            case BasePiece(spread=spread):
                return self._bases[:1] if spread.single else self._bases


def _leaves(plan: Plan) -> Iterable[str]:
    """Return the names of the leaves that stand for what comes from other sites."""
    return dict.fromkeys(n.fragment for n in walk_plan(plan) if isinstance(n, RemoteSource))
