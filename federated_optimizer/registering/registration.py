"""Registration: a new query, and the nodes that it wants, as bundles over what runs.

A node is a run without a query of its own, whose result others read. Nodes come before those that
read them, so runs only read older ones.

| nodes are made | of                                                                             |
|----------------|--------------------------------------------------------------------------------|
| wanted twice   | parts that a run computes inside, and a new query wants as well                |
| eager          | all that a new query computes at the base, but its last operator, which it is; |
|                | and what is wanted twice                                                       |
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.cutting.eager_parts import eager_parts
from federated_optimizer.cutting.rows_to_base import has_parts
from federated_optimizer.network.run_ages import is_older
from federated_optimizer.network.shareable import why_alone
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import guarded, normalize
from federated_optimizer.registering.computed_anew import Choosing, PlannedWay, Prices, cheaper_way
from federated_optimizer.registering.found_parts import equal_run, groups_over, over_sources
from federated_optimizer.registering.node_ways import NodeWays
from federated_optimizer.registering.registration_terms import (
    NewNode,
    Planning,
    Registration,
    Sharing,
)
from federated_optimizer.registering.rows_there import over_rows_there
from federated_optimizer.registering.run_bundles import RunBundles
from federated_optimizer.sharing.computation_index import Allowed
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.node_columns import narrowed, widened, with_checked
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.partner_joins import with_joins
from federated_optimizer.sharing.rules.more_functions import groups_to_share
from federated_optimizer.sharing.run_offers import is_selection_of_sources, offers_of
from federated_optimizer.sharing.sharing_step import SharedPlan, share
from federated_optimizer.sharing.strategy import Strategy
from streamsql.algebra.choices import RecursionChoice
from streamsql.algebra.operators import (
    Fixpoint,
    OnClose,
    Plan,
    StreamWindow,
    ToStream,
    walk_plan,
)
from streamsql.binder import BoundQuery
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle

MAX_NODES = 32
"""Nodes that one query makes; what is beyond stays part of it."""


def register(
    bound: BoundQuery, sharing: Sharing, planning: Planning, next_run: Callable[[], str]
) -> Registration:
    """Return a bound query, and the nodes that it wants, over what runs.

    Args:
        bound: The query.
        sharing: What may be shared. The index is left as it was.
        planning: What plans rest on.
        next_run: Returns names of runs, each greater than those before; the query's is the last.

    Raises:
        UnsupportedError: As for `planning.plan`.
    """
    with guarded():
        bundles = RunBundles(bound, sharing, planning, next_run)
        making = _Making(bound, sharing, planning, bundles)
        try:
            return making.registration()
        finally:
            making.undo()


@dataclass(slots=True)
class _Making:
    bound: BoundQuery
    sharing: Sharing
    planning: Planning
    bundles: RunBundles
    nodes: list[NewNode] = field(default_factory=list)
    replaced: list[tuple[Offer, ...]] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    makes_joins: bool = False  # also of joins that older queries only ask for partners

    @property
    def _topology(self) -> Topology:
        return self.planning.topology

    def _normal(self, plan: Plan) -> Plan:
        # A semi join has fewer rows than the join, but stronger conditions cannot be checked on it.
        return normalize(plan, self._topology, unread_sides=not self.sharing.is_eager)

    def registration(self) -> Registration:
        logical = self._normal(self.bound.plan)
        if not self.bound.shared or not is_shareable(logical):
            bundle = self.bundles.bundle(self.bound, SharedPlan(logical), logical, "")
            return Registration((), bundle, logical, ())
        found = self._selected(logical) or self._shared(logical)
        if self.sharing.makes_nodes:
            equal = equal_run(found)
            if equal is not None:
                return Registration((), equal.bundle, logical, found.used, equal.run)
            found = self._with_nodes(logical, found)
        bundle = self.bundles.bundle(self.bound, found, logical, "")
        way = found_way = PlannedWay(found, *self.bundles.over_rows(bundle, found))
        if self._compares:
            choosing = self._choosing(logical, bundle.query)
            way = cheaper_way(way, choosing)
            if way is found_way:  # else it is computed of rows that are there already
                way = self._over_rows_there(way, choosing, logical)
            way = self._over_joins(way, choosing, logical)
            if self.sharing.makes_nodes:
                way = NodeWays(choosing, self.sharing, self.bundles, self).over(way, logical)
        nodes = self._read_nodes(way.bundle, widened=way.found is found_way.found)
        return Registration(nodes, way.bundle, logical, way.used)

    @property
    def _compares(self) -> bool:
        """True if ways of computing something are compared by what they add to the network."""
        return self.sharing.strategy.compares_prices and not self.bound.asked

    def _over_rows_there(
        self, way: PlannedWay, choosing: Choosing, logical: Plan, node: BoundQuery | None = None
    ) -> PlannedWay:
        """Return the way over rows of sources that are at the base if it adds less.

        `node` is what is computed if that is a node and not the query.
        """
        run, version = way.bundle.query, way.bundle.version

        def allowed(offer: Offer) -> bool:
            return self.bundles.may_read(offer) and (node is None or is_older(offer.run, run))

        def over() -> PlannedWay | None:
            found, read = self._shared(logical, allowed, sources=True), way.offers
            # Of a longer window there are rows, but not just those: the base has to be given some.
            to_base = found.offers.keys() <= read
            if to_base and not has_parts(found.plan):
                return None
            bundle = self.bundles.bundle(
                node or self.bound, found, logical, run, version, to_base=to_base
            )
            own = "" if node is None else run
            other = PlannedWay(found, *self.bundles.over_rows(bundle, found, own))
            return None if other.offers <= read else other

        return over_rows_there(way, choosing, over)

    def _over_joins(self, way: PlannedWay, choosing: Choosing, logical: Plan) -> PlannedWay:
        """Return the way over joins where the query computes semi joins, if it adds less.

        Semi joins come from the join; those of an older query, too, which moves onto a node of it.
        """
        joined = normalize(self.bound.plan, self._topology, unread_sides=False)
        joined = joined if self.sharing.is_eager else with_joins(joined)
        if joined == logical:
            return way
        count, made, self.makes_joins = len(self.nodes), set(self.made), self.sharing.moves
        found = self._shared(joined)
        if self.sharing.makes_nodes:
            found = self._with_nodes(joined, found)
        if not found.offers.keys() <= way.offers:
            other, prices = self.planned(joined, found), Prices(choosing)
            if prices.is_less(prices.added(other), prices.added(way)):
                return other
        self.forget(count)
        self.made, self.makes_joins = made, False
        return way

    def planned(self, logical: Plan, found: SharedPlan, *, to_base: bool = False) -> PlannedWay:
        """Return the query by a shared plan, as a run that is younger than all nodes."""
        bundle = self.bundles.bundle(self.bound, found, logical, "", to_base=to_base)
        return PlannedWay(found, *self.bundles.over_rows(bundle, found))

    def shared(self, logical: Plan) -> SharedPlan:
        """Return a plan over what runs, and the nodes that were made."""
        return self._shared(logical)

    def _choosing(self, logical: Plan, run: str) -> Choosing:
        """Return by what the ways of computing the query are compared."""
        made = {node.bundle.query for node in self.nodes if not node.widens}

        def is_delivered(bundle: FragmentBundle, fragment: str) -> bool:
            read = {node.bundle.query for node in self._read_nodes(bundle)}
            return self.bundles.is_delivered(bundle, fragment, made - read | {bundle.query})

        def ways(allowed: Allowed) -> Iterator[PlannedWay]:
            def may_read(offer: Offer) -> bool:
                return self.bundles.may_read(offer) and allowed(offer)

            found = self._shared(logical, may_read)
            for searched in (True, False)[: 1 if found.is_there else 2]:
                bundle = self.bundles.bundle(self.bound, found, logical, run, searched=searched)
                yield PlannedWay(found, *self.bundles.over_rows(bundle, found, "", may_read))

        return Choosing(
            self.planning,
            Weighing(self.bound.metric or self.planning.metric),
            self.nodes,
            self._read_nodes,
            self._wanted,
            is_delivered,
            ways,
            self.sharing.index,
            is_made_anyway=self.sharing.is_eager,
        )

    def _wanted(self, node: NewNode) -> int:
        """Return by how many a new node is wanted: runs that compute it inside, and the query."""
        alike = self.sharing.index.of_form(canonical_plan(node.plan).form)
        inside = (o for o in alike if not o.is_readable and not o.is_node)
        return 1 + len({o.run for o in inside if self.makes_joins or not o.for_partners})

    def _read_nodes(self, bundle: FragmentBundle, *, widened: bool = False) -> tuple[NewNode, ...]:
        """Return the new nodes that a query reads, or those below it, perhaps all widened ones.

        A node may be read no more when a later one was found to have its rows.
        """
        read = {feed.run for feed in bundle.feeds}
        kept: list[NewNode] = []
        for node in reversed(self.nodes):
            if (widened and node.widens) or node.bundle.query in read:
                read |= {feed.run for feed in node.bundle.feeds}
                kept.append(node)
        return tuple(reversed(kept))

    def forget(self, count: int) -> None:
        """Forget all new nodes but the first ones."""
        self.undo(count)
        del self.nodes[count:], self.replaced[count:]

    def undo(self, count: int = 0) -> None:
        """Leave the index as it was with the first nodes alone."""
        made = zip(self.nodes[count:], self.replaced[count:], strict=True)
        for node, offers in reversed(list(made)):
            self.sharing.index.remove(node.bundle.query)
            for offer in offers:
                self.sharing.index.add(offer)

    # --- sharing -----------------------------------------------------------------------------

    def _selected(self, plan: Plan) -> SharedPlan | None:
        """Return a selection of a source over rows of another run, without a search; None: not so.

        Most queries that vary each other are that. What sites deliver just so is left to the
        bundle: they hand it over as it arrives.
        """
        strategy = self.sharing.strategy
        if strategy == Strategy.OFF or not is_selection_of_sources(plan):
            return None
        index, rows = self.sharing.index, self.sharing.rows
        best = index.find(plan, self.bundles.may_read, rows, canonical=strategy.is_canonical)
        if best is None or (not best.remaining and best.offer.is_delivered):
            return None
        return SharedPlan(best.plan, (best,))

    def _shared(
        self, plan: Plan, allowed: Allowed | None = None, *, sources: bool = False
    ) -> SharedPlan:
        strategy = self.sharing.strategy
        if strategy.matches_plan and strategy != Strategy.OFF:
            plan = self.bundles.ordered(plan)
        index, rows = self.sharing.index, self.sharing.rows
        may_read = allowed or self.bundles.may_read
        return share(plan, index, strategy, may_read, rows, sources=sources)

    def _with_nodes(self, logical: Plan, found: SharedPlan) -> SharedPlan:
        """Return the shared plan after nodes are made, and read."""
        if found.is_thin:
            return found
        while len(self.nodes) < MAX_NODES:
            # A node that lacks columns is given them before another one is made of its rows.
            if not self._make_wanted(logical) and not (
                self.sharing.is_eager and self._make_eagerly(logical, found)
            ):
                break
            found = self._shared(logical)
        return found

    def _make_wanted(self, logical: Plan, inside: Allowed = lambda _offer: True) -> bool:
        """Make a node of a part that a run computes inside; return whether there was one.

        `inside` returns whether a part that nobody can read yet is looked at.
        """

        def allowed(offer: Offer) -> bool:
            if offer.is_readable:
                return self.bundles.may_read(offer)
            is_made = self.makes_joins or not offer.for_partners
            return is_made and inside(offer) and self.sharing.allowed(offer)

        unread = self._shared(logical, allowed).unread
        if not unread:
            return False
        best = unread[0]
        form = canonical_plan(best.offer.plan).form
        if form in self.made:
            return False  # nobody can read the node where it is
        self.made.add(form)
        alike = self.sharing.index.of_form(form)
        node = next((o for o in alike if o.is_node and self.bundles.may_read(o)), None)
        wider = None if node is None else widened(node.plan, best)
        if node is None or wider is None:
            return self.make(narrowed(best), best.offer.tells)
        return self.make(wider, best.offer.tells, node.run)

    def _make_eagerly(self, whole: Plan, found: SharedPlan) -> bool:
        """Make a node of the first operator of a query; return whether there was one.

        The last operator is none if the query's own result has its rows and columns. Groups that
        would be computed over finer ones are a node without what stands above them.
        """
        for each in found.used:
            if each.regroups and self._make_operator(self._normal(each.wanted), whole):
                return True
        regrouped = {each.offer.name for each in found.used if each.regroups}
        plan = found.plan if found.is_there else self.bundles.ordered(found.plan, found.offers)
        known = self.bundles.statistics_of(found.offers)
        for part in eager_parts(plan, self._topology, known):
            if groups_over(part) in regrouped:
                continue  # it was tried above, as what it is over sources
            logical = self._normal(over_sources(part, found))
            there = self.sharing.index.find(logical, self.bundles.may_read)
            is_there = there is not None and not there.remaining
            if not is_there and self._make_operator(logical, whole):
                return True
        return False

    def _make_operator(self, logical: Plan, whole: Plan) -> bool:
        """Make a node of an operator of a query; return whether there is a new one now."""
        # Coarser groups come from statistics, narrower joins from the columns that are checked.
        plan = groups_to_share(logical) or with_checked(logical)
        shape = canonical_plan(plan)
        own = canonical_plan(whole)
        if shape.form in self.made or (
            shape.form == own.form and len(shape.columns) == len(own.columns)
        ):
            return False
        self.made.add(shape.form)
        return self.make(plan)

    # --- bundles -----------------------------------------------------------------------------

    def make(self, logical: Plan, tells: frozenset[Read] = frozenset(), widens: str = "") -> bool:
        """Make a node, and let what follows read it; return whether others may read it at all."""
        logical = self._normal(logical)
        if len(self.nodes) >= MAX_NODES:
            return False
        bound = dataclasses.replace(
            self.bound, plan=logical, schema=logical.schema, asked=0, order=()
        )
        run = widens or self.bundles.next_run()
        older = self.sharing.index.of_run(widens)
        version = max((o.bundle.version for o in older), default=0) + 1
        form = canonical_plan(logical).form

        def is_below(offer: Offer) -> bool:
            """Return whether a node that the new one may read lacks columns alone."""
            other = canonical_plan(offer.plan).form
            return offer.is_node and is_older(offer.run, run) and other != form

        while len(self.nodes) < MAX_NODES and self._make_wanted(logical, is_below):
            pass
        found = self._shared(logical, lambda o: self.bundles.may_read(o) and is_older(o.run, run))
        bundle = self.bundles.bundle(bound, found, logical, run, version)
        if why_alone(bundle):
            return False
        way = PlannedWay(found, *self.bundles.over_rows(bundle, found, run))
        if self._compares:
            way = self._over_rows_there(way, self._choosing(logical, run), logical, bound)
        bundle = way.bundle
        tells = tells.union(*(offer.tells for offer in older))
        self.nodes.append(NewNode(logical, bundle, widens, tells))
        self.replaced.append(older)
        self.sharing.index.remove(run)
        reads, known = self.bound.reads, self.planning.statistics
        for offer in offers_of(
            bundle, logical, reads=reads, tells=tells, is_node=True, statistics=known
        ):
            self.sharing.index.add(offer)
        return True


def is_shareable(plan: Plan) -> bool:
    """Return whether others may compute a plan: rows of now, by no way that the query asks for."""
    return not any(
        isinstance(node, ToStream | OnClose | StreamWindow)
        or (isinstance(node, Fixpoint) and node.choice != RecursionChoice())
        for node in walk_plan(plan)
    )
