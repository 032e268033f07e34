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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from federated_optimizer.alternatives.heuristics import heuristics_of
from federated_optimizer.alternatives.recursion.recursions import MUCH, Foresee
from federated_optimizer.cutting.base_parts import parts_at_base
from federated_optimizer.cutting.placing import place
from federated_optimizer.cutting.read_rows import reading
from federated_optimizer.network.run_ages import is_older
from federated_optimizer.network.shareable import why_alone
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import guarded, normalize, plan, search_of
from federated_optimizer.search.choosing import NOTHING_RUNS, Running
from federated_optimizer.sharing.computation_index import (
    Allowed,
    ComputationIndex,
    Found,
    Rows,
    rows_told,
)
from federated_optimizer.sharing.delivered_rows import delivered_once, rows_of_others
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.node_columns import narrowed, widened
from federated_optimizer.sharing.node_offers import NO_OFFERS, Offer
from federated_optimizer.sharing.rules.more_functions import groups_to_share
from federated_optimizer.sharing.run_offers import offers_of
from federated_optimizer.sharing.sharing_step import SharedPlan, share
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN, Statistics
from streamsql.algebra.choices import RecursionChoice
from streamsql.algebra.column_origins import column_units
from streamsql.algebra.metrics import BY_BYTES, Metric
from streamsql.algebra.operators import (
    Fixpoint,
    OnClose,
    Plan,
    RemoteSource,
    StreamWindow,
    ToStream,
    transform_up,
    walk_plan,
)
from streamsql.binder import BoundQuery
from streamsql.wire.fragments import FragmentBundle

MAX_NODES = 32
"""Nodes that one query makes; what is beyond stays part of it."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """The rules of sharing, and the index of what runs.

    Attributes:
        index: Of the offers of all runs.
        strategy: The parts that are looked for.
        materialize: When a part becomes a node.
        allowed: Returns whether the query may read an offer.
        rows: Returns how many rows an offer has.
        makes_nodes: False where only what is there may be read, as for a query that runs already.
    """

    index: ComputationIndex
    strategy: Strategy = Strategy.ALL
    materialize: Materialize = Materialize.WANTED_TWICE
    allowed: Allowed = lambda _offer: True
    rows: Rows = rows_told
    makes_nodes: bool = True


@dataclass(frozen=True, slots=True)
class Planning:
    """Everything that plans rest on, as for `planning.plan`."""

    topology: Topology
    statistics: Statistics = NOTHING_KNOWN
    metric: Metric = BY_BYTES
    foresee: Foresee | None = None
    running: Running = NOTHING_RUNS
    version: int = 1
    text: str = ""
    replanned: bool = False
    much: float = MUCH


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that has to run before those that read it.

    Attributes:
        plan: What it computes, over sources.
        bundle: Of its run.
        widens: The run that it takes the place of, under that name and its next version; empty:
            none. The columns of that run stay in their places, and new ones follow.
    """

    plan: Plan
    bundle: FragmentBundle
    widens: str = ""


@dataclass(frozen=True, slots=True)
class Registration:
    """A query over what runs.

    Attributes:
        nodes: New ones, in the order in which they have to be deployed.
        bundle: Of the query.
        logical: The query's plan over sources.
        used: The offers that it reads, with what it does to their rows.
        equal: The run whose result is the query's, with the same columns and names; empty: none.
            Then `bundle` is that run's, and there is nothing to deploy.
    """

    nodes: tuple[NewNode, ...]
    bundle: FragmentBundle
    logical: Plan
    used: tuple[Found, ...]
    equal: str = ""


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
        making = _Making(bound, sharing, planning, next_run)
        try:
            return making.registration()
        finally:
            making.undo()


@dataclass(slots=True)
class _Making:
    bound: BoundQuery
    sharing: Sharing
    planning: Planning
    next_run: Callable[[], str]
    nodes: list[NewNode] = field(default_factory=list)
    before: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)

    @property
    def _topology(self) -> Topology:
        return self.planning.topology

    def registration(self) -> Registration:
        logical = normalize(self.bound.plan, self._topology)
        if not self.bound.shared or not is_shareable(logical):
            bundle = self._bundle(self.bound, SharedPlan(logical), logical, "")
            return Registration((), bundle, logical, ())
        found = self._shared(logical)
        if self.sharing.makes_nodes:
            equal = equal_run(found)
            if equal is not None:
                return Registration((), equal.bundle, logical, found.used, equal.run)
            found = self._with_nodes(logical, found)
        bundle = self._bundle(self.bound, found, logical, "")
        bundle, used = self._over_rows(bundle, found)
        return Registration(tuple(self.nodes), bundle, logical, used)

    def undo(self) -> None:
        """Leave the index as it was."""
        for run, offers in self.before.items():
            self.sharing.index.remove(run)
            for offer in offers:
                self.sharing.index.add(offer)

    # --- sharing -----------------------------------------------------------------------------

    def _may_read(self, offer: Offer) -> bool:
        return offer.is_at(self._topology.bases[0]) and self.sharing.allowed(offer)

    def _shared(self, plan: Plan, allowed: Allowed | None = None) -> SharedPlan:
        strategy = self.sharing.strategy
        if strategy.matches_plan and strategy != Strategy.OFF:
            plan = self._ordered(plan)
        index, rows = self.sharing.index, self.sharing.rows
        return share(plan, index, strategy, allowed or self._may_read, rows)

    def _ordered(self, plan: Plan, offers: Mapping[str, Offer] = NO_OFFERS) -> Plan:
        """Return a plan with its joins in the order that is chosen for it."""
        nodes = {name: offer.plan for name, offer in offers.items()}
        search = search_of(
            dataclasses.replace(self.bound, plan=plan, asked=0),
            self._topology,
            dataclasses.replace(self.planning.statistics, nodes=nodes),
            self.planning.metric,
        )
        return search.taken().plan

    def _with_nodes(self, logical: Plan, found: SharedPlan) -> SharedPlan:
        """Return the shared plan after nodes are made, and read."""
        if found.is_there:
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
                return self._may_read(offer)
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
        node = next((o for o in alike if o.is_node and self._may_read(o)), None)
        wider = None if node is None else widened(node.plan, best)
        if node is None or wider is None:
            return self._make(narrowed(best))
        return self._make(wider, node.run)

    def _make_eagerly(self, found: SharedPlan) -> bool:
        """Make a node of the first operator of a query at the base; return whether there was one.

        The last operator is none: the query's own result has its rows.
        """
        plan = found.plan if found.is_there else self._ordered(found.plan, found.offers)
        for part in parts_at_base(plan, self._topology, self.planning.statistics):
            logical = normalize(over_sources(part, found), self._topology)
            known = self.sharing.index.find(logical, self._may_read)
            form = canonical_plan(logical).form
            if form not in self.made and (known is None or known.remaining):
                self.made.add(form)
                # Coarser groups come from statistics, not from results.
                if self._make(groups_to_share(logical) or logical):
                    return True
        return False

    # --- bundles -----------------------------------------------------------------------------

    def _make(self, logical: Plan, widens: str = "") -> bool:
        """Make a node, and let what follows read it; return whether others may read it at all."""
        logical = normalize(logical, self._topology)
        bound = dataclasses.replace(
            self.bound, plan=logical, schema=logical.schema, asked=0, order=()
        )
        run = widens or self.next_run()
        older = self.sharing.index.of_run(widens)
        version = max((o.bundle.version for o in older), default=0) + 1
        form = canonical_plan(logical).form

        def is_below(offer: Offer) -> bool:
            """Return whether a node that the new one may read lacks columns alone."""
            other = canonical_plan(offer.plan).form
            return offer.is_node and is_older(offer.run, run) and other != form

        while len(self.nodes) < MAX_NODES and self._make_wanted(logical, is_below):
            pass
        found = self._shared(logical, lambda o: self._may_read(o) and is_older(o.run, run))
        bundle = self._bundle(bound, found, logical, run, version)
        if why_alone(bundle):
            return False
        bundle, _ = self._over_rows(bundle, found, run)
        self.nodes.append(NewNode(logical, bundle, widens))
        self.before.setdefault(run, older)
        self.sharing.index.remove(run)
        known = self.planning.statistics
        reads = self.bound.reads
        for offer in offers_of(bundle, logical, reads=reads, is_node=True, statistics=known):
            self.sharing.index.add(offer)
        return True

    def _bundle(
        self, bound: BoundQuery, found: SharedPlan, logical: Plan, run: str, version: int = 0
    ) -> FragmentBundle:
        """Return the bundle of a plan: without a search where all of it is there."""
        known = self.planning
        version = version or known.version
        run = run or self.next_run()
        if found.is_there:
            bundle = place(
                found.plan,
                self._topology,
                query=run,
                version=version,
                text=known.text,
                emit=bound.emit,
                statistics=known.statistics,
                kept=heuristics_of(bound.heuristics),
                offers=found.offers,
            )
        else:
            own = bound is self.bound
            bundle = plan(
                dataclasses.replace(bound, plan=found.plan),
                self._topology,
                query=run,
                version=version,
                text=known.text if own else "",
                statistics=known.statistics,
                foresee=known.foresee,
                running=known.running if own else NOTHING_RUNS,
                replanned=known.replanned if own else False,
                much=known.much,
                metric=known.metric,
                offers=found.offers,
            )
        units = column_units(logical) if found.used else bundle.units
        return replace(bundle, units=units if any(units) else ())

    def _over_rows(
        self, bundle: FragmentBundle, found: SharedPlan, run: str = ""
    ) -> tuple[FragmentBundle, tuple[Found, ...]]:
        """Return a bundle whose selections of sources are computed from rows that are there."""
        if found.is_there or self.sharing.strategy == Strategy.OFF or why_alone(bundle):
            return bundle, found.used

        def allowed(offer: Offer) -> bool:
            return self._may_read(offer) and (not run or is_older(offer.run, run))

        bundle = delivered_once(bundle, self.planning.statistics)
        read = rows_of_others(
            bundle,
            self.sharing.index,
            allowed,
            self.sharing.rows,
            canonical=self.sharing.strategy.is_canonical,
        )
        if not read:
            return bundle, found.used
        offers = {each.offer.name: each.offer for each in read.values()}
        answers = {name: each.plan for name, each in read.items()}
        return reading(bundle, answers, offers), (*found.used, *read.values())


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


def is_shareable(plan: Plan) -> bool:
    """Return whether others may compute a plan: rows of now, by no way that the query asks for."""
    return not any(
        isinstance(node, ToStream | OnClose | StreamWindow)
        or (isinstance(node, Fixpoint) and node.choice != RecursionChoice())
        for node in walk_plan(plan)
    )
