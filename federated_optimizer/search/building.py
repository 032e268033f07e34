"""The memo of a query: its sub-plans, and what may compute each.

What gateways can compute by themselves is found by cutting the plan with nothing chosen. From there
an operator over rows of gateways may stay there and ship its rows, be computed in parts, or be at
the base. A recursion has its ways. A stored table that a stream joins travels or is asked for keys.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import prod

from federated_optimizer.alternatives.early_aggregate import early_aggregates
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.key_lookup import Sides, sides_of
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.pieces import (
    BasePiece,
    GatewayPiece,
    NetworkPiece,
    StaticPiece,
)
from federated_optimizer.alternatives.recursion.recursion_bounds import is_bounded
from federated_optimizer.alternatives.words import names_text
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.shipments import shipment
from federated_optimizer.costs.work import Work
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.memo.properties import (
    AT_BASE,
    AT_SITES,
    STORED,
    Joined,
    Place,
    Properties,
)
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules import WIDTH_RULES, run_rules
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.search.joins.join_orders import block_tops, join_orders
from federated_optimizer.search.joins.network_joins import IN_PARTS, Found, NetworkJoins
from federated_optimizer.search.keyed_alternatives import keyed_cost, keyed_words
from federated_optimizer.search.parted_alternatives import PartedAlternatives
from federated_optimizer.search.recursion_alternatives import (
    Sending,
    bound_alternatives,
    recursion_alternatives,
    recursions_refused,
)
from federated_optimizer.search.search_bounds import (
    ENDS_ONLY,
    MAX_OPERATORS,
    MAX_PLANS,
    NO_FILTERS,
    NO_ORDERS,
    PUSHED_ONLY,
    Budget,
    is_deep,
)
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OverWindow,
    Plan,
    Project,
    SessionWindow,
    SetOperation,
    TopN,
    UnionAll,
    walk_plan,
)

_SEARCHED = (
    Filter,
    Project,
    Distinct,
    Aggregate,
    TopN,
    OverWindow,
    HopWindow,
    SessionWindow,
    Join,
    AsOfJoin,
    SetOperation,
    UnionAll,
)
"""Operators that may be at the base over rows of gateways."""


class _TooManyError(Exception):
    """A part has more complete plans than may have numbers."""


def build(
    plan: Plan,
    topology: Topology,
    statistics: Statistics,
    *,
    whole_changes: bool = False,
    kept: Heuristics = ALL,
) -> Memo:
    """Return the memo of a plan that is ready to be cut.

    Of more than `MAX_PLANS` complete plans those are left out that join in another order or at
    gateways with rows of other gateways, then those that filter or project at the base what
    gateways have. If there are still too many, all are left out but the one that pushes
    everything and the one that ships everything, which are never left out. `refused` says so.

    Args:
        plan: Of the query.
        topology: The sites.
        statistics: What is known of sources.
        whole_changes: Whether changes of one reading must arrive together at the base: then no
            gateway joins rows of other gateways, as these arrive later than its own, nor tables.
        kept: Rules by which plans are not considered.
    """
    few = False
    while True:
        building = _Building(topology, statistics, kept, whole_changes=whole_changes, few=few)
        try:
            return building.of(plan)
        except _TooManyError:
            few = True


class _Building:
    """One memo.

    Args:
        topology: The sites.
        statistics: What is known of sources.
        kept: See `build`.
        whole_changes: Likewise.
        few: Whether orders and joins in the network are left out, since there are too many plans.
    """

    def __init__(
        self,
        topology: Topology,
        statistics: Statistics,
        kept: Heuristics,
        *,
        whole_changes: bool,
        few: bool,
    ) -> None:
        self._budget = Budget(kept)
        self._few = few
        self._begun: set[Wanted] = set()
        self._bases = topology.bases
        self._statistics = statistics
        self._estimating = Estimating(statistics)
        speeds = statistics.speeds
        self._at_gateways = Work(self._estimating, speeds.gateway, speeds.kept)
        self._at_base_sites = Work(self._estimating, speeds.base, speeds.kept)
        self._cutter = Cutter(topology, statistics, kept=kept)
        self._prices = CutPrices(self._cutter)
        self._memo = Memo()
        self._parts = PartedAlternatives(
            self._memo, topology, statistics, self._at_gateways, self._at_base_sites
        )
        self._network = NetworkJoins(
            self._memo, self._cutter.placed, self._estimating, topology, statistics, self._budget
        )
        if whole_changes:
            self._network.refuse_all(IN_PARTS)
        self._refused: list[str] = []
        self._blocks = frozenset[Plan]()
        self._own: Counter[Plan] = Counter()

    def of(self, plan: Plan) -> Memo:
        """Return the memo of a plan.

        Raises:
            _TooManyError: It has more than `MAX_PLANS` complete plans, and may have fewer.
        """
        piece = self._cutter.gathered(self._cutter.piece(plan))
        nodes = list(walk_plan(plan))
        shared = any(isinstance(node, Materialize) for node in nodes)
        large = len(nodes) > MAX_OPERATORS or is_deep(plan)
        if large:
            self._refused.append(PUSHED_ONLY)
        if large or shared:
            root = Wanted(self._memo.group(plan), AT_BASE)
            whole = Alternative(Method.BASE, cost=self._prices.whole(piece))
            self._memo.alternatives[root] = (whole,)
        else:
            self._own.update(nodes)
            self._blocks = frozenset() if self._few else block_tops(plan)
            root = self._at_base(plan)
        self._memo.root = root
        self._memo.assumed = self._estimating.of(plan).assumed
        self._check(root)
        reasons = [*recursions_refused(self._cutter.chosen.values()), *self._refused]
        reasons += self._parts.refused
        if self._few:
            reasons.append(f"{self._narrowed()}: the query has more than {MAX_PLANS:,} plans then")
        self._memo.refused = tuple(dict.fromkeys((*reasons, *self._network.refused)))
        self._memo.not_considered = self._network.not_considered
        return self._memo

    def _narrowed(self) -> str:
        """Leave plans out until there are not too many; return which, in words."""
        if self._memo.count() <= MAX_PLANS:
            return NO_ORDERS
        groups = tuple(self._memo.alternatives)
        filters = (w for w in groups if isinstance(self._memo.plan(w), Filter | Project))
        gateways = (
            w for w in filters if isinstance(self._cutter.placed[self._memo.plan(w)], GatewayPiece)
        )
        self._memo.narrow(dict.fromkeys(gateways, 1))
        if self._memo.count() <= MAX_PLANS:
            return NO_FILTERS
        self._memo.narrow(dict.fromkeys(groups, 1))
        return ENDS_ONLY

    def _at_base(self, plan: Plan) -> Wanted:
        wanted = Wanted(self._memo.group(plan), AT_BASE)
        if wanted not in self._begun:  # an order of joins may ask for the group that is being made
            self._begun.add(wanted)
            self._memo.alternatives[wanted] = self._alternatives(plan, wanted.group)
        return wanted

    def _at_sites(self, plan: Plan) -> Wanted:
        stored = isinstance(self._cutter.placed[plan], StaticPiece)
        return replace(self._at_base(plan), properties=STORED if stored else AT_SITES)

    def _alternatives(self, plan: Plan, number: int) -> tuple[Alternative, ...]:
        piece = self._cutter.placed[plan]
        match piece:
            case GatewayPiece():
                here = Wanted(number, AT_SITES)
                work = self._at_gateways.of(plan)
                self._memo.alternatives[here] = (Alternative(Method.SITES, cost=work),)
                ship = Alternative(Method.SHIP, (self._network.to_base(plan),))
                return (ship, *self._over(plan)) if isinstance(plan, _SEARCHED) else (ship,)
            case StaticPiece():
                here = Wanted(number, STORED)
                work = self._prices.evaluated(piece)
                self._memo.alternatives[here] = (Alternative(Method.SITES, cost=work),)
                return (Alternative(Method.SHIP, (here,), self._shipped(plan, (piece.site,))),)
            case NetworkPiece() | BasePiece() if isinstance(plan, Fixpoint):
                return self._recursion(plan)
            case NetworkPiece():  # its way is chosen with what stands above it at the base
                return (*self._bounded(plan), *self._over(plan))
            case BasePiece() if not isinstance(plan, _SEARCHED):
                return (Alternative(Method.BASE, cost=self._prices.whole(piece)),)
            case BasePiece():
                found = (*self._bounded(plan), *self._in_parts(plan), *self._over(plan))
                found = (*found, *self._in_network(plan, number), *self._in_order(plan))
                return (*found, *self._early(plan), *self._in_parts(plan, merged=True))

    def _recursion(self, plan: Fixpoint) -> tuple[Alternative, ...]:
        """Return the ways of a recursion, with what its sites compute."""
        wires, gateways = self._statistics.wires, tuple(self._cutter.topology.gateways)
        hops = wires.distances(gateways, (*gateways, *self._bases))[0]
        searched = len(self._bases) == 1
        ways = recursion_alternatives(
            plan, self._cutter.chosen, Sending(wires, hops), searched=searched
        )
        works = {Method.CENTRE: self._at_base_sites.of(plan)}
        other = self._at_gateways.of(plan)
        return tuple(replace(way, cost=works.get(way.method, other) + way.cost) for way in ways)

    def _over(self, plan: Plan) -> tuple[Alternative, ...]:
        """Return an operator at the base, over inputs that are there."""
        inputs: tuple[Wanted, ...] = ()
        for child in plan.inputs:
            inputs = (*inputs, self._at_base(child))
            self._check(*inputs)
        whole = Alternative(Method.BASE, inputs, self._at_base_sites.here(plan))
        return (*self._by_keys(plan), whole)

    def _check(self, *parts: Wanted) -> None:
        """Stop where there are too many plans already of what an operator reads."""
        if not self._few and prod(map(self._memo.count, parts)) > MAX_PLANS:
            raise _TooManyError

    def _in_parts(self, plan: Plan, *, merged: bool = False) -> Iterator[Alternative]:
        """Yield an operator in parts, or these merged on their way, over rows of gateways."""
        piece = self._cutter.placed[plan.inputs[0]] if len(plan.inputs) == 1 else None
        if isinstance(piece, GatewayPiece):
            ways = self._parts.merged if merged else self._parts.of
            yield from ways(plan, self._at_sites(plan.inputs[0]), piece)

    def _in_network(self, plan: Plan, number: int) -> Iterator[Alternative]:
        """Yield a sub-plan at gateways that join rows of other gateways, and in parts above."""
        if self._few:
            return
        for joined, found in self._network.pieces(plan).items():
            here = Wanted(number, _after(joined))
            self._memo.alternatives[here] = (self._joined(plan, joined, found),)
            yield Alternative(Method.SHIP, (here,), self._shipped(plan, found.piece.sites))
        if isinstance(plan, Join):
            for method, sides, cost, words in self._network.semi_joins(plan):
                at_base = self._at_base_sites.here(plan).after(cost)
                yield Alternative(method, sides, at_base, words)
        for child in plan.inputs[:1] if len(plan.inputs) == 1 else ():
            group = self._memo.group(child)
            for joined, found in self._network.pieces(child).items():
                wanted = Wanted(group, _after(joined))
                yield from self._parts.of(plan, wanted, found.piece)

    def _after_joins(self, plan: Plan, below: tuple[Joined, ...]) -> tuple[Wanted, ...]:
        """Return the inputs of an operator at gateways, each after its joins in the network."""
        return tuple(
            Wanted(self._memo.group(child), _after(joined)) if joined else self._at_sites(child)
            for child, joined in zip(plan.inputs, below, strict=True)
        )

    def _joined(self, plan: Plan, joined: Joined, found: Found) -> Alternative:
        """Return how gateways compute a sub-plan above, or with, a join of others' rows."""
        meeting = found.meeting
        if meeting is None or not isinstance(plan, Join):
            inputs = self._after_joins(plan, found.below)
            return Alternative(Method.SITES, inputs, self._at_gateways.here(plan))
        _, method = joined[-1]
        others = len(meeting.sites) - 1
        work = sum(
            (
                self._at_gateways.copied(side, others)
                for side, move in ((plan.left, meeting.left), (plan.right, meeting.right))
                if move is not None and not move.partition
            ),
            self._at_gateways.here(plan),
        )
        return Alternative(method, self._network.moved(plan, found), work, meeting.words)

    def _in_order(self, plan: Plan) -> Iterator[Alternative]:
        """Yield the other orders of a block of joins but those that the query has elsewhere."""
        if plan not in self._blocks:
            return
        below = {node for child in plan.inputs for node in walk_plan(child)}
        for made, words in join_orders(plan, self._cutter, self._budget.kept):
            # Another block's alternatives might be this order again.
            if not any(node in self._blocks and node not in below for node in walk_plan(made)):
                yield Alternative(Method.ORDER, (self._made(made),), words=words)

    def _early(self, plan: Plan) -> Iterator[Alternative]:
        """Yield an aggregate of the query with parts of one side before the join below it."""
        if not isinstance(plan, Aggregate) or plan not in self._own:
            return
        join = plan.input.input if isinstance(plan.input, Project) else plan.input
        if not isinstance(join, Join) or not isinstance(self._cutter.placed[join], BasePiece):
            return
        for found in early_aggregates(plan):
            if isinstance(found, Refused):
                self._refused.append(found.reason)
                continue
            side, made = found
            moved = self._cutter.placed[join.inputs[side]]
            if isinstance(moved, GatewayPiece) and made.schema == plan.schema:
                words = f"parts of {names_text(moved.sources)} by key before the join"
                children = (self._made(run_rules(made, WIDTH_RULES)),)
                yield Alternative(Method.EARLY, children, words=words)

    def _bounded(self, plan: Plan) -> Iterator[Alternative]:
        """Yield an operator of the query over a recursion that derives only what is asked for."""
        if plan in self._own:
            yield from bound_alternatives(plan, self._own, self._cutter, self._made, self._refused)

    def _made(self, plan: Plan) -> Wanted:
        """Return an equal plan that the query does not have, at the base."""
        self._cutter.piece(plan)
        return self._at_base(plan)

    def _by_keys(self, plan: Plan) -> tuple[Alternative, ...]:
        """Return a join with a table whose stream side sends keys, where it has one."""
        if not isinstance(plan, Join | AsOfJoin | SetOperation) or is_bounded(plan):
            return ()
        left, right = (self._cutter.placed[child] for child in plan.inputs)
        sides = sides_of(plan, left, right, self._cutter.topology)
        if isinstance(sides, Refused):
            self._refused.append(sides.reason)
        if not isinstance(sides, Sides) or not isinstance(plan, Join):
            return ()
        asked = keyed_cost(plan, sides, self._bases, self._statistics, self._estimating)
        cost = self._at_base_sites.here(plan).after(asked)
        stream = self._at_base(plan.right if sides.table_first else plan.left)
        return (Alternative(Method.KEYS, (stream,), cost, keyed_words(sides)),)

    def _shipped(self, plan: Plan, sites: tuple[str, ...]) -> Cost:
        """Return the price of a sub-plan's rows on their way to the base."""
        rows, wires = self._estimating.of(plan), self._statistics.wires
        return shipment(rows, self._network.widths.of(plan), sites, self._bases, wires)


def _after(joined: Joined) -> Properties:
    return Properties(Place.SITES, joined=joined)
