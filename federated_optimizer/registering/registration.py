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
from collections.abc import Callable
from dataclasses import dataclass, field

from federated_optimizer.cutting.base_parts import parts_at_base
from federated_optimizer.network.run_ages import is_older
from federated_optimizer.network.shareable import why_alone
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import guarded, normalize
from federated_optimizer.registering.registration_terms import (
    NewNode,
    Planning,
    Registration,
    Sharing,
)
from federated_optimizer.registering.run_bundles import RunBundles
from federated_optimizer.sharing.computation_index import Allowed
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.node_columns import narrowed, widened
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.rules.more_functions import groups_to_share
from federated_optimizer.sharing.run_offers import offers_of
from federated_optimizer.sharing.sharing_step import SharedPlan, share
from federated_optimizer.sharing.strategy import Materialize, Strategy
from streamsql.algebra.choices import RecursionChoice
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    OnClose,
    Plan,
    Project,
    RemoteSource,
    StreamWindow,
    ToStream,
    transform_up,
    walk_plan,
)
from streamsql.binder import BoundQuery

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
    before: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)

    @property
    def _topology(self) -> Topology:
        return self.planning.topology

    def registration(self) -> Registration:
        logical = normalize(self.bound.plan, self._topology)
        if not self.bound.shared or not is_shareable(logical):
            bundle = self.bundles.bundle(self.bound, SharedPlan(logical), logical, "")
            return Registration((), bundle, logical, ())
        found = self._shared(logical)
        if self.sharing.makes_nodes:
            equal = equal_run(found)
            if equal is not None:
                return Registration((), equal.bundle, logical, found.used, equal.run)
            found = self._with_nodes(logical, found)
        bundle = self.bundles.bundle(self.bound, found, logical, "")
        bundle, used = self.bundles.over_rows(bundle, found)
        return Registration(tuple(self.nodes), bundle, logical, used)

    def undo(self) -> None:
        """Leave the index as it was."""
        for run, offers in self.before.items():
            self.sharing.index.remove(run)
            for offer in offers:
                self.sharing.index.add(offer)

    # --- sharing -----------------------------------------------------------------------------

    def _shared(self, plan: Plan, allowed: Allowed | None = None) -> SharedPlan:
        strategy = self.sharing.strategy
        if strategy.matches_plan and strategy != Strategy.OFF:
            plan = self.bundles.ordered(plan)
        index, rows = self.sharing.index, self.sharing.rows
        return share(plan, index, strategy, allowed or self.bundles.may_read, rows)

    def _with_nodes(self, logical: Plan, found: SharedPlan) -> SharedPlan:
        """Return the shared plan after nodes are made, and read."""
        if found.is_there and not any(each.regroups for each in found.used):
            return found
        eager = self.sharing.materialize == Materialize.EAGER
        while len(self.nodes) < MAX_NODES:
            # A node that lacks columns is given them before another one is made of its rows.
            if not self._make_wanted(logical) and not (eager and self._make_eagerly(found)):
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
            return inside(offer) and self.sharing.allowed(offer)

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
            return self._make(narrowed(best))
        return self._make(wider, node.run)

    def _make_eagerly(self, found: SharedPlan) -> bool:
        """Make a node of the first operator of a query at the base; return whether there was one.

        The last operator is none: the query's own result has its rows. Groups that would be
        computed over finer ones are a node without what stands above them, even as the last.
        """
        for each in found.used:
            if each.regroups and self._make_operator(normalize(each.wanted, self._topology)):
                return True
        regrouped = {each.offer.name for each in found.used if each.regroups}
        plan = found.plan if found.is_there else self.bundles.ordered(found.plan, found.offers)
        for part in parts_at_base(plan, self._topology, self.planning.statistics):
            if _groups_over(part) in regrouped:
                continue  # it was tried above, as what it is over sources
            logical = normalize(over_sources(part, found), self._topology)
            known = self.sharing.index.find(logical, self.bundles.may_read)
            is_there = known is not None and not known.remaining
            if not is_there and self._make_operator(logical):
                return True
        return False

    def _make_operator(self, logical: Plan) -> bool:
        """Make a node of an operator unless that was tried; return whether there is one now."""
        # Coarser groups come from statistics, not from results.
        plan = groups_to_share(logical) or logical
        form = canonical_plan(plan).form
        if form in self.made:
            return False
        self.made.add(form)
        return self._make(plan)

    # --- bundles -----------------------------------------------------------------------------

    def _make(self, logical: Plan, widens: str = "") -> bool:
        """Make a node, and let what follows read it; return whether others may read it at all."""
        logical = normalize(logical, self._topology)
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
        bundle, _ = self.bundles.over_rows(bundle, found, run)
        self.nodes.append(NewNode(logical, bundle, widens))
        self.before.setdefault(run, older)
        self.sharing.index.remove(run)
        known = self.planning.statistics
        reads = self.bound.reads
        for offer in offers_of(bundle, logical, reads=reads, is_node=True, statistics=known):
            self.sharing.index.add(offer)
        return True


def equal_run(found: SharedPlan) -> Offer | None:
    """Return the result of a query that a shared plan is, without any change; None: there is none.

    Nobody publishes the result of a node.
    """
    match found.plan:
        case RemoteSource(fragment=name) if name in found.offers:
            offer = found.offers[name]
            is_result = not offer.bundle.fragment(offer.fragment).consumer
            return offer if is_result and not offer.is_node else None
        case _:
            return None


def over_sources(plan: Plan, found: SharedPlan) -> Plan:
    """Return a plan over what its leaves stand for."""
    offers = found.offers

    def put(node: Plan) -> Plan:
        return offers[node.fragment].plan if isinstance(node, RemoteSource) else node

    return transform_up(plan, put)


def _groups_over(plan: Plan) -> str:
    """Return the leaf whose rows an operator groups; empty: it is something else."""
    if not isinstance(plan, Aggregate | Distinct):
        return ""
    below = plan.input
    while isinstance(below, Filter | Project):
        below = below.input
    return below.fragment if isinstance(below, RemoteSource) else ""


def is_shareable(plan: Plan) -> bool:
    """Return whether others may compute a plan: rows of now, by no way that the query asks for."""
    return not any(
        isinstance(node, ToStream | OnClose | StreamWindow)
        or (isinstance(node, Fixpoint) and node.choice != RecursionChoice())
        for node in walk_plan(plan)
    )
