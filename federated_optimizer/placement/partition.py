"""Where to cut: find for every sub-plan the engine that has its data, bottom-up.

Gateway and static pieces grow as long as their engine can do the next operator by itself; the
first operator that cannot becomes a base piece over cuts. With several base sites, base pieces
are cut again wherever rows must be re-partitioned: joins by key, aggregates by group, Distinct and
the leaves of a recursion by whole row. A recursion that gateways compute together reads what is
theirs where it is; the rest of its leaves is cut.
"""

from collections.abc import Callable, Iterable

import msgspec

from federated_optimizer.placement.estimates import selectivity
from federated_optimizer.placement.fragment import (
    SINGLE,
    SOMEHOW,
    BasePiece,
    Cut,
    GatewayPiece,
    NetworkPiece,
    Piece,
    Spread,
    StaticPiece,
)
from federated_optimizer.placement.gateway_pieces import (
    aggregate_piece,
    distinct_piece,
    filter_piece,
    join_piece,
    join_words,
    project_piece,
    scan_piece,
    union_piece,
    window_piece,
)
from federated_optimizer.placement.recursions import Chosen, choose
from federated_optimizer.placement.statistics import NOTHING_KNOWN, Statistics
from federated_optimizer.placement.topology import Topology
from streamsql.algebra.explain import describe
from streamsql.algebra.expressions import Column, expression_text
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SourceKind,
    UnionAll,
    Values,
    Window,
    is_open,
    with_inputs,
)
from streamsql.errors import InternalError
from streamsql.wire.fragments import RecursionPlan


class Cutter:
    """Cuts one plan.

    Attributes:
        cuts: What the leaves `RemoteSource("#n")` of base pieces stand for. Equal sub-plans cut
            for the same partitioning share a number.
        recursions: How the recursions met so far are computed.
    """

    def __init__(self, topology: Topology, statistics: Statistics = NOTHING_KNOWN) -> None:
        self.topology = topology
        self.statistics = statistics
        self.cuts: dict[str, Cut] = {}
        self.recursions: list[RecursionPlan] = []
        self._numbers: dict[Cut, str] = {}

    def piece(self, plan: Plan, shown: float = 1.0) -> Piece:
        """Return the largest piece that computes a plan, cut where it must be.

        Args:
            plan: Whole, or the input of an operator.
            shown: Share of its rows that filters right above it let through.
        """
        match plan:
            case Scan(kind=SourceKind.TABLE):
                return StaticPiece(plan, (plan.source,))
            case Scan():
                return scan_piece(plan, self.topology)
            case Window():
                return self._window(plan)
            case Filter(predicate=predicate):
                return self._unary(plan, self.piece(plan.input, shown * selectivity(predicate)))
            case Project():
                return self._unary(plan, self.piece(plan.input, shown))
            case Distinct() | Aggregate():
                return self._unary(plan, self.piece(plan.input))
            case Join():
                return self._join(plan, self.piece(plan.left), self.piece(plan.right))
            case UnionAll():
                return self._union(plan)
            case Fixpoint():
                return self._fixpoint(plan, shown)
            case Values():
                return BasePiece(plan, SINGLE)
            case RecursiveReference() | RemoteSource():
                raise InternalError(f"{describe(plan)} outside of its recursion or bundle")

    def gathered(self, piece: Piece) -> BasePiece:
        """Return the piece with all rows at the first base site."""
        return self._at_base(piece, SINGLE)

    # --- operators ---------------------------------------------------------------------------

    def _window(self, plan: Window) -> Piece:
        if plan.input.kind == SourceKind.TABLE:
            return StaticPiece(plan, (plan.input.source,))
        placed = window_piece(plan, self.topology)
        return BasePiece(plan, SINGLE, (placed,)) if isinstance(placed, str) else placed

    def _unary(self, plan: Filter | Project | Distinct | Aggregate, below: Piece) -> Piece:
        match below:
            case StaticPiece():
                return StaticPiece(with_inputs(plan, (below.plan,)), below.tables)
            case GatewayPiece():
                placed = _unary_at_gateways(plan, below)
                if not isinstance(placed, str):
                    return placed
                return self._unary_at_base(plan, below, (placed,))
            case NetworkPiece() if isinstance(plan, Filter | Project):
                # Every row of the relation is shown by one of its sites.
                made = with_inputs(plan, (below.plan,))
                return NetworkPiece(made, below.sites, below.reasons, below.homes)
            case NetworkPiece():
                return self._unary_at_base(plan, below, (_network_reason(plan),))
            case BasePiece():
                return self._unary_at_base(plan, below, ())

    def _unary_at_base(
        self, plan: Filter | Project | Distinct | Aggregate, below: Piece, reasons: tuple[str, ...]
    ) -> BasePiece:
        base = self._input_at_base(plan, below)
        spread = base.spread
        match plan:
            case Filter(predicate=predicate):
                reasons += (_filter_reason(expression_text(predicate)),)
            case Project():
                spread = _projected(spread, plan)
            case Aggregate(group=group):
                spread = _regrouped(spread, group)
            case Distinct():
                pass
        made = with_inputs(plan, (base.plan,))
        return BasePiece(made, spread, base.reasons + reasons)

    def _input_at_base(
        self, plan: Filter | Project | Distinct | Aggregate, below: Piece
    ) -> BasePiece:
        match plan:
            case Filter() | Project():
                return self._at_base(below, SOMEHOW)
            case Distinct():
                return self._hashed(below, tuple(range(len(plan.schema))), subset=True)
            case Aggregate(group=group):
                return self._hashed(below, group, subset=True)

    def _join(self, plan: Join, left: Piece, right: Piece) -> Piece:
        reason = f"{join_words(plan)} because: {_different_places(left, right)}"
        if isinstance(left, StaticPiece) and isinstance(right, StaticPiece):
            if plan.keys or plan.residual is not None:
                joined = with_inputs(plan, (left.plan, right.plan))
                tables = tuple(dict.fromkeys(left.tables + right.tables))
                return StaticPiece(joined, tables)
            reason = f"{join_words(plan)} because: a product is larger than what it is made of"
        if isinstance(left, GatewayPiece) and isinstance(right, GatewayPiece):
            placed = join_piece(plan, left, right)
            if not isinstance(placed, str):
                return placed
            reason = placed
        reasons = () if _both_base(left, right) else (reason,)
        return self._join_at_base(plan, left, right, reasons)

    def _join_at_base(
        self, plan: Join, left: Piece, right: Piece, reasons: tuple[str, ...]
    ) -> BasePiece:
        left_keys = tuple(a for a, _ in plan.keys)
        right_keys = tuple(b for _, b in plan.keys)
        at_left = self._hashed(left, left_keys)
        at_right = self._hashed(right, right_keys)
        joined = with_inputs(plan, (at_left.plan, at_right.plan))
        return BasePiece(joined, at_left.spread, at_left.reasons + at_right.reasons + reasons)

    def _union(self, plan: UnionAll) -> Piece:
        pieces = [self.piece(branch) for branch in plan.branches]
        statics = [p for p in pieces if isinstance(p, StaticPiece)]
        if len(statics) == len(pieces):
            tables = tuple(dict.fromkeys(t for p in statics for t in p.tables))
            return StaticPiece(UnionAll(tuple(p.plan for p in statics)), tables)
        gateways = [p for p in pieces if isinstance(p, GatewayPiece)]
        reasons: tuple[str, ...] = ()
        if len(gateways) == len(pieces):
            placed = union_piece(gateways)
            if not isinstance(placed, str):
                return placed
            reasons = (placed,)
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

    def _fixpoint(self, plan: Fixpoint, shown: float) -> Piece:
        chosen = choose(plan, self.topology, self.statistics, shown=shown)
        self.recursions.append(chosen.plan)
        if chosen.sites:
            return self._at_gateways(plan, chosen)
        spread = SINGLE if chosen.way == "centre" else SOMEHOW
        reasons: list[str] = []

        def leaf(part: Plan) -> Plan:
            if spread.single:
                placed = self.gathered(self.piece(part))
            else:
                placed = self._hashed(self.piece(part), tuple(range(len(part.schema))))
            reasons.extend(placed.reasons)
            return placed.plan

        inputs = tuple(_with_leaves(branch, leaf) for branch in plan.inputs)
        reasons.append(f"Fixpoint {plan.name} because: {chosen.plan.why}")
        made = with_inputs(plan if spread.single else _agreed(plan, chosen), inputs)
        return BasePiece(made, spread, tuple(dict.fromkeys(reasons)))

    def _at_gateways(self, plan: Fixpoint, chosen: Chosen) -> NetworkPiece:
        """Return a recursion at its gateways: leaves that are all theirs stay local."""
        reasons: list[str] = []

        def leaf(part: Plan) -> Plan:
            if isinstance(part, UnionAll):  # a recursion takes its branches one by one
                return with_inputs(part, tuple(leaf(branch) for branch in part.branches))
            placed = self.piece(_as_set(part))
            if isinstance(placed, GatewayPiece):
                if set(placed.sites) - self.topology.absent == set(chosen.sites):
                    return placed.plan
                missing = ", ".join(sorted(set(chosen.sites) - set(placed.sites)))
                reasons.append(f"{_names(placed.sources)} because: {missing} has none of it")
            if isinstance(placed.plan, RemoteSource):
                placed = self.cuts[placed.plan.fragment].piece  # sent there directly
            columns = tuple(range(len(part.schema)))
            return RemoteSource(self._number(Cut(placed, columns)), part.schema)

        inputs = tuple(_with_leaves(branch, leaf) for branch in plan.inputs)
        made = with_inputs(_agreed(plan, chosen), inputs)
        return NetworkPiece(made, chosen.sites, tuple(dict.fromkeys(reasons)), chosen.homes)

    # --- cutting -----------------------------------------------------------------------------

    def _hashed(self, piece: Piece, columns: tuple[int, ...], *, subset: bool = False) -> BasePiece:
        """Return the piece spread by hash of the columns, or gathered when there are none.

        Args:
            piece: Any piece.
            columns: Rows that agree on them must be at one site.
            subset: Whether a hash of some of the columns will do.
        """
        if not columns or len(self.topology.bases) == 1:
            return self.gathered(piece)
        if isinstance(piece, BasePiece) and not piece.spread.single:
            have = piece.spread.columns
            if have == columns or (subset and have and set(have) <= set(columns)):
                return piece
        return self._at_base(piece, Spread(single=False, columns=columns), move=True)

    def _at_base(self, piece: Piece, spread: Spread, *, move: bool = False) -> BasePiece:
        """Return the piece as part of a base fragment, cutting it off where needed."""
        if isinstance(piece, BasePiece) and not move and _fits(piece.spread, spread):
            return piece
        if len(self.topology.bases) == 1:
            spread = SINGLE
        elif spread == SOMEHOW:
            spread = Spread(single=False, columns=tuple(range(len(piece.plan.schema))))
        if isinstance(piece, BasePiece) and spread.single and piece.spread.single:
            return piece
        if isinstance(piece.plan, RemoteSource):
            piece = self.cuts[piece.plan.fragment].piece  # sent there directly, without a hop
        leaf = RemoteSource(self._number(Cut(piece, spread.columns)), piece.plan.schema)
        return BasePiece(leaf, spread)

    def _number(self, cut: Cut) -> str:
        if cut not in self._numbers:
            self._numbers[cut] = f"#{len(self._numbers) + 1}"
            self.cuts[self._numbers[cut]] = cut
        return self._numbers[cut]


def _unary_at_gateways(
    plan: Filter | Project | Distinct | Aggregate, below: GatewayPiece
) -> GatewayPiece | str:
    match plan:
        case Filter():
            return filter_piece(plan, below)
        case Project():
            return project_piece(plan, below)
        case Distinct():
            return distinct_piece(below)
        case Aggregate():
            return aggregate_piece(plan, below)


def _with_leaves(branch: Plan, leaf: Callable[[Plan], Plan]) -> Plan:
    """Return a branch of a recursion with its parts that do not recur replaced."""
    if isinstance(branch, RecursiveReference):
        return branch
    if is_open(branch):
        inputs = tuple(_with_leaves(child, leaf) for child in branch.inputs)
        return with_inputs(branch, inputs)
    return leaf(branch)


def _as_set(plan: Plan) -> Plan:
    """Return a plan with the same rows, perhaps other copies of them: a recursion counts none."""
    match plan:
        case Distinct(input=child):
            return _as_set(child)
        case Filter() | Project() | UnionAll() | Join():
            return with_inputs(plan, tuple(map(_as_set, plan.inputs)))
        case _:
            return plan


def _agreed(plan: Fixpoint, chosen: Chosen) -> Fixpoint:
    """Return the recursion with its way written down, so that all its sites take the same."""
    choice = msgspec.structs.replace(plan.choice, way=chosen.way)
    return msgspec.structs.replace(plan, choice=choice)


def _network_reason(plan: Plan) -> str:
    return f"{describe(plan)} because: it combines rows that different gateways show"


def _fits(have: Spread, wanted: Spread) -> bool:
    return wanted == SOMEHOW or have.single == wanted.single


def _filter_reason(predicate: str) -> str:
    return f"[{predicate}] because: what it reads is known only after the operators below it"


def _projected(spread: Spread, plan: Project) -> Spread:
    where: dict[int, int] = {}
    for new, expression in enumerate(plan.expressions):
        if isinstance(expression, Column):
            where.setdefault(expression.position, new)
    return _mapped(spread, where)


def _regrouped(spread: Spread, group: tuple[int, ...]) -> Spread:
    return _mapped(spread, {old: new for new, old in enumerate(group)})


def _mapped(spread: Spread, where: dict[int, int]) -> Spread:
    if spread.single or not all(c in where for c in spread.columns):
        return spread if spread.single else SOMEHOW
    return Spread(single=False, columns=tuple(where[c] for c in spread.columns))


def _both_base(left: Piece, right: Piece) -> bool:
    return isinstance(left, BasePiece) and isinstance(right, BasePiece)


def _different_places(left: Piece, right: Piece) -> str:
    return f"{_place_words(left)}, {_place_words(right)}"


def _place_words(piece: Piece) -> str:
    match piece:
        case GatewayPiece(sources=sources):
            return f"{_names(sources)} {_verb(sources)} at gateways"
        case StaticPiece(tables=tables):
            return f"{_names(tables)} {_verb(tables)} stored at the static engine"
        case NetworkPiece():
            return "one side is a recursion that gateways compute together"
        case BasePiece():
            return "one side is put together at the base"


def _names(names: Iterable[str]) -> str:
    return " and ".join(names)


def _verb(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"
