"""Cut a plan: find for every sub-plan the engine that has its data, bottom-up.

Gateway and static pieces grow as long as their engine can do the next operator by itself; the
first operator that cannot becomes a base piece over cuts. With several base sites, base pieces
are cut again wherever rows must be re-partitioned: joins by key, aggregates by group, sessions,
window functions and TopN by partition, Distinct, set operations and the leaves of a recursion by
whole row. A TopN whose rows lie in several parts is taken of every part first. Below windows that
close nothing is spread: what closes them must not overtake what is in them. A recursion that
gateways compute together reads what is theirs where it is; the rest of its leaves is cut.

That is the placement where nobody has chosen. Methods that were chosen by costs cut an operator off
below its gateways, or compute it in parts.
"""

import dataclasses

from federated_optimizer.alternatives.gateway_pieces import (
    TwoSided,
    join_piece,
    scan_piece,
    union_piece,
    window_piece,
)
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.method import Method
from federated_optimizer.alternatives.pieces import (
    SINGLE,
    SOMEHOW,
    BasePiece,
    Cut,
    GatewayPiece,
    NetworkPiece,
    Piece,
    StaticPiece,
)
from federated_optimizer.alternatives.recursion.recursions import Chosen, choose, leaves_of
from federated_optimizer.alternatives.words import (
    different_places,
    join_words,
    materialized_reason,
    names_text,
)
from federated_optimizer.costs.relations.estimates import selectivity
from federated_optimizer.cutting.network_cuts import NetworkCuts
from federated_optimizer.cutting.recursion_leaves import agreed, as_set, at_one_base, with_leaves
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.network.topology import Topology
from federated_optimizer.sharing.node_offers import is_node_leaf
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN, Statistics
from streamsql.algebra.choices import Way
from streamsql.algebra.explain import describe, window_text
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    SourceKind,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    Younger,
    walk_plan,
    with_inputs,
)
from streamsql.catalog.system import is_site_source
from streamsql.errors import InternalError, UnsupportedError
from streamsql.wire.fragments import RecursionPlan


class Cutter(NetworkCuts):
    """Cuts one plan.

    Attributes:
        recursions: How the recursions met so far are computed.
        chosen: The same by recursion, with their other ways.
        placed: The piece of every sub-plan met so far.
    """

    def __init__(
        self,
        topology: Topology,
        statistics: Statistics = NOTHING_KNOWN,
        apart: frozenset[str] = frozenset(),
        kept: Heuristics = ALL,
    ) -> None:
        """Prepare to cut.

        Args:
            topology: The sites.
            statistics: What is known of sources and recursions that run.
            apart: Materialized tables to be fragments of their own. What reads them, and all
                else, is at the first base site.
            kept: Rules that hold where no method was chosen.
        """
        super().__init__(topology.bases[:1] if apart else topology.bases, topology, statistics)
        self.recursions: list[RecursionPlan] = []
        self.chosen: dict[Fixpoint, Chosen] = {}
        self.placed: dict[Plan, Piece] = {}
        self._apart = apart
        self._kept = kept

    def piece(self, plan: Plan) -> Piece:
        """Return the largest piece that computes a plan, cut where it must be."""
        return self.taken(Taken(plan))

    def taken(self, taken: Taken, shown: float = 1.0) -> Piece:
        """Return the largest piece that computes a plan with methods that were chosen.

        Args:
            taken: Whole, or the input of an operator.
            shown: Share of its rows that filters right above it let through.
        """
        placed = self.placed[taken.plan] = self._placed(taken, shown)
        return placed

    def _placed(self, taken: Taken, shown: float) -> Piece:
        plan, below, method = taken.plan, taken.below, taken.method
        match plan:
            case Scan():
                return self._scan(plan)
            case Window():
                return self._window(plan)
            case Filter(predicate=predicate):
                passing = shown * selectivity(predicate)
                return self._unary(plan, self.taken(below[0], passing), method)
            case Project():
                return self._unary(plan, self.taken(below[0], shown), method)
            case Materialize():
                return self._materialize(plan)
            case Distinct() | Aggregate() | TopN() | OverWindow() | HopWindow() | SessionWindow():
                return self._unary(plan, self.taken(below[0]), method)
            case Join() | AsOfJoin() | SetOperation():
                return self._join(plan, self.taken(below[0]), self.taken(below[1]), method)
            case OnClose():
                return self._on_close(plan)
            case ToStream():
                return self._to_stream(plan)
            case StreamWindow():
                rows = self.gathered(self.piece(plan.input))
                return BasePiece(with_inputs(plan, (rows.plan,)), SINGLE, rows.reasons)
            case UnionAll():
                return self._union(plan, list(map(self.taken, below)), method)
            case Fixpoint():
                return self._fixpoint(plan, shown, method)
            case Values() | RemoteSource() | RecursiveReference() | WindowBounds() | Younger():
                if isinstance(plan, Values) or is_node_leaf(plan):
                    return BasePiece(plan, SINGLE)
                raise InternalError(f"{describe(plan)} outside its recursion or bundle")

    # --- operators ---------------------------------------------------------------------------

    def _scan(self, plan: Scan) -> Piece:
        if plan.kind == SourceKind.TABLE:
            return StaticPiece(plan, (plan.source,), self.topology.keeper(plan.source))
        return scan_piece(plan, self.topology)

    def _materialize(self, plan: Materialize) -> Piece:
        """Return the table where its input is, or a cut of it, which all readings share."""
        placed = self._unary(plan, self.piece(plan.input))
        if plan.name not in self._apart:
            return placed
        cut = self._at_base(placed, SOMEHOW)
        return dataclasses.replace(cut, reasons=(*cut.reasons, materialized_reason(plan.name)))

    def _window(self, plan: Window) -> Piece:
        if plan.input.kind == SourceKind.TABLE:
            table = plan.input.source
            return StaticPiece(plan, (table,), self.topology.keeper(table))
        placed = window_piece(plan, self.topology)
        if isinstance(placed, GatewayPiece):
            return placed
        if is_site_source(plan.input.source):
            raise UnsupportedError(
                f"{plan.input.source} [{window_text(plan)}] counts rows of several sites "
                f"together, but rows of {plan.input.source} stay at the site that they "
                "describe",
                hint="write [PARTITION BY site ROWS n] for the last n rows of each site, or "
                "[RANGE …]",
                code="unsupported_query",
            )
        return BasePiece(plan, SINGLE, (placed.reason,))

    def _join(self, plan: TwoSided, left: Piece, right: Piece, method: Method | None) -> Piece:
        networked = self._network_join(plan, left, right, method)
        if networked is not None:
            return networked
        reason = f"{join_words(plan)} because: {different_places(left, right)}"
        if (
            isinstance(left, StaticPiece)
            and isinstance(right, StaticPiece)
            and left.site == right.site
        ):
            if not _is_product(plan):
                joined = with_inputs(plan, (left.plan, right.plan))
                tables = tuple(dict.fromkeys(left.tables + right.tables))
                return StaticPiece(joined, tables, left.site)
            reason = f"{join_words(plan)} because: a product is larger than its inputs"
        if isinstance(left, GatewayPiece) and isinstance(right, GatewayPiece):
            local = join_piece(plan, left, right, self._kept)
            placed = self._unless_chosen(plan, local, method)
            if isinstance(placed, GatewayPiece):
                return placed
            reason = placed.reason
        reasons = () if _both_base(left, right) else (reason,)
        keyed = self._keyed_join(plan, left, right, reasons, method)
        if keyed is not None:
            return keyed
        return self._join_at_base(plan, left, right, reasons)

    def _on_close(self, plan: OnClose) -> Piece:
        """Return windows that close where the progress of all sites is known: at one base site.

        Progress travels the path of the rows: both go straight to that site, and a site sends its
        cuts in order, rows first. Rows spread over the base sites on their way would be overtaken.
        """
        with self._at_first_base():
            (rows,) = (self.gathered(self.piece(child)) for child in plan.left.inputs)
            progress = self.gathered(self.piece(plan.right))
        made = with_inputs(plan, (with_inputs(plan.left, (rows.plan,)), progress.plan))
        reason = f"{describe(plan)} because: a window closes when all sites have passed its end"
        return BasePiece(made, SINGLE, rows.reasons + progress.reasons + (reason,))

    def _to_stream(self, plan: ToStream) -> Piece:
        """Return a stream where the events and the progress of all sites are known.

        The events are cut before the progress, and go straight there, as for windows that close.
        """
        with self._at_first_base():
            feeds = [self.gathered(self.piece(feed)) for feed in plan.feeds]
            progress = [self.gathered(self.piece(part)) for part in plan.progress]
        made = with_inputs(plan, tuple(piece.plan for piece in (*feeds, *progress)))
        reason = f"{describe(plan)} because: an instant is over when all sites have passed it"
        return BasePiece(made, SINGLE, (reason,))

    def _union(self, plan: UnionAll, pieces: list[Piece], method: Method | None) -> Piece:
        statics = [p for p in pieces if isinstance(p, StaticPiece)]
        if len(statics) == len(pieces) and len({p.site for p in statics}) == 1:
            tables = tuple(dict.fromkeys(t for p in statics for t in p.tables))
            return StaticPiece(UnionAll(tuple(p.plan for p in statics)), tables, statics[0].site)
        gateways = [p for p in pieces if isinstance(p, GatewayPiece)]
        reasons: tuple[str, ...] = ()
        if len(gateways) == len(pieces):
            placed = self._unless_chosen(plan, union_piece(gateways, self._kept), method)
            if isinstance(placed, GatewayPiece):
                return placed
            reasons = (placed.reason,)
        bases = [self._at_base(piece, SOMEHOW) for piece in pieces]
        same = all(base.spread == bases[0].spread for base in bases)
        if not same and any(base.spread.single for base in bases):
            bases = [self.gathered(base) for base in bases]
            same = True
        return BasePiece(
            UnionAll(tuple(base.plan for base in bases)),
            bases[0].spread if same else SOMEHOW,
            sum((base.reasons for base in bases), ()) + reasons,
        )

    def _fixpoint(self, plan: Fixpoint, shown: float, method: Method | None) -> Piece:
        past = self._of_past(plan)
        if past is not None:
            return past
        topology = dataclasses.replace(self.topology, bases=self._bases)
        read = (node.name for node in walk_plan(plan) if isinstance(node, Materialize))
        table = next((name for name in read if name in self._apart), "")
        together = f"it reads {table}, which is MATERIALIZED for other readers too"
        chosen = choose(
            plan,
            topology,
            self.statistics,
            shown=shown,
            together=together if table else "",
            way=None if method is None else Way(method.value),
        )
        self.recursions.append(chosen.plan)
        self.chosen[plan] = chosen
        if chosen.sites:
            return self._at_gateways(plan, chosen)
        spread = SINGLE if chosen.way == Way.CENTRE else SOMEHOW
        reasons: list[str] = []
        leaves = leaves_of(plan)

        def moved(part: Plan) -> Plan:
            if spread.single:
                placed = self.gathered(self.piece(part))
            else:
                placed = self._hashed(self.piece(part), tuple(range(len(part.schema))))
            reasons.extend(placed.reasons)
            return placed.plan

        def leaf(part: Plan) -> Plan:
            return at_one_base(part, leaves, moved) if spread.single else moved(part)

        inputs = tuple(with_leaves(branch, leaf) for branch in plan.inputs)
        reasons.append(f"Fixpoint {plan.name} because: {chosen.plan.why}")
        made = with_inputs(plan if spread.single else agreed(plan, chosen), inputs)
        return BasePiece(made, spread, tuple(dict.fromkeys(reasons)))

    def _of_past(self, plan: Fixpoint) -> StaticPiece | None:
        """Return a recursion over the past, with stored tables or alone: nothing of it moves."""
        nodes = list(walk_plan(plan))
        scans = [node for node in nodes if isinstance(node, Scan)]
        apart = any(isinstance(node, Materialize) and node.name in self._apart for node in nodes)
        keepers = {self.topology.keeper(scan.source) for scan in scans}
        if apart or keepers != {self.topology.static}:
            return None
        tables = all(scan.kind == SourceKind.TABLE for scan in scans)
        if not tables or all(scan.history is None for scan in scans):
            return None
        names = tuple(dict.fromkeys(scan.source for scan in scans))
        return StaticPiece(plan, names, self.topology.static)

    def _at_gateways(self, plan: Fixpoint, chosen: Chosen) -> NetworkPiece:
        """Return a recursion at its gateways: leaves that are all theirs stay local."""
        reasons: list[str] = []

        def leaf(part: Plan) -> Plan:
            if isinstance(part, UnionAll):  # a recursion takes its branches one by one
                return with_inputs(part, tuple(leaf(branch) for branch in part.branches))
            placed = self.piece(as_set(part))
            if isinstance(placed, GatewayPiece):
                if set(placed.sites) - self.topology.absent == set(chosen.sites):
                    return placed.plan
                missing = ", ".join(sorted(set(chosen.sites) - set(placed.sites)))
                reasons.append(f"{names_text(placed.sources)} because: {missing} has none of it")
            placed = self._sender(placed)
            columns = tuple(range(len(part.schema)))
            return RemoteSource(self._number(Cut(placed, columns)), part.schema)

        inputs = tuple(with_leaves(branch, leaf) for branch in plan.inputs)
        made = with_inputs(agreed(plan, chosen), inputs)
        return NetworkPiece(made, chosen.sites, tuple(dict.fromkeys(reasons)), chosen.homes)


def _is_product(plan: TwoSided) -> bool:
    if not isinstance(plan, Join) or plan.kind.is_filter:
        return False
    return not plan.keys and plan.residual is None


def _both_base(left: Piece, right: Piece) -> bool:
    return isinstance(left, BasePiece) and isinstance(right, BasePiece)
