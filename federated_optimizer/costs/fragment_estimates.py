"""Estimates of what the fragments of a bundle send."""

from dataclasses import dataclass, replace

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.relations.estimates import Estimating, estimate
from federated_optimizer.costs.relations.semi_join_estimates import keys_sent, rows_found
from federated_optimizer.costs.relations.size_and_motion import UNKNOWN, Estimate
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import mixed_bytes, shipment
from federated_optimizer.costs.tree_shares import tree_shares
from federated_optimizer.statistics.default_facts import STEP_SECONDS
from federated_optimizer.statistics.planning_statistics import Statistics
from federated_optimizer.statistics.wires import Wires
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    RemoteSource,
    TopN,
    transform_up,
    walk_plan,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle, RecursionPlan

STEP_MILLISECONDS = 1_000 * STEP_SECONDS.value

TABLE_AT_GATEWAYS = (Engine.STATIC, Engine.GATEWAY)
"""Engines of a fragment with rows of a table and of its reader."""

_PUT_TOGETHER = (Aggregate, Distinct, TopN)
"""Operators of which gateways may give parts."""


@dataclass(frozen=True, slots=True)
class FragmentEstimate:
    """The rows that all sites of a fragment send to other sites, and their price.

    Attributes:
        rows: A second that come or go; None of a recursion that several sites compute.
        cost: A second; `milliseconds` is from a reading until rows that it changes are sent.
        factor: By which the numbers may be wrong, either way.
        assumed: What they rest on that nobody has counted, in words.
    """

    rows: float | None
    cost: Cost
    factor: float
    assumed: tuple[str, ...] = ()


def fragment_estimates(
    bundle: FragmentBundle, statistics: Statistics, reader: str
) -> dict[str, FragmentEstimate]:
    """Return the estimate of every fragment, by id; `reader` is the site that takes the result."""
    return _Estimates(bundle, statistics, reader).all()


class _Estimates:
    def __init__(self, bundle: FragmentBundle, statistics: Statistics, reader: str) -> None:
        self._bundle, self._statistics, self._reader = bundle, statistics, reader
        self._fragments = {fragment.id: fragment for fragment in bundle.fragments}
        self._shares = tree_shares(bundle, statistics.wires)
        self._plans: dict[str, Plan] = {}
        self._delays: dict[str, float] = {}
        read = {feed.fragment for feed in bundle.feeds}
        self._in_step = {n for n in read if self._fragments[n].engine == Engine.BASE}

    def all(self) -> dict[str, FragmentEstimate]:
        """Return the estimate of every fragment."""
        return {name: self._of(fragment) for name, fragment in self._fragments.items()}

    def _of(self, fragment: Fragment) -> FragmentEstimate:
        relation, delay = self._relation(fragment), self._delay(fragment)
        together = self._computed_together(fragment)
        if together is not None:
            cost = _priced(together, self._statistics.wires)
            return FragmentEstimate(None, cost, UNKNOWN, together.assumed)
        share = self._shares.get(fragment.id)
        sent_plan = self._whole(fragment) if share is None else share.part
        width = sent_bytes(sent_plan, self._statistics, relation)
        receivers = fragment.destinations if fragment.consumer else (self._reader,)
        to_each = not fragment.partition and len(receivers) > 1
        targets = [(receiver,) for receiver in receivers] if to_each else [tuple(receivers)]
        wires = self._statistics.wires
        prices = [shipment(relation, width, fragment.sites, to, wires) for to in targets]
        away = sum(_away(fragment.sites, target) for target in targets)
        sent = sum(prices, NOTHING)
        cost = replace(sent, milliseconds=delay)
        rows = away * (relation.inserts + relation.deletes)
        return FragmentEstimate(rows, cost, relation.factor, relation.assumed)

    def _relation(self, fragment: Fragment) -> Estimate:
        """Return what all sites of a fragment have together."""
        share = self._shares.get(fragment.id)
        if share is not None:
            return share.rows(self._statistics)
        sites = len(fragment.sites) if is_part(fragment, self._bundle) else 1
        found = self._reduction(fragment)
        if found is not None:
            return rows_found(found, Estimating(self._statistics))
        for reader in _readers(fragment, self._bundle):
            reduction = self._reduction(reader)
            if reduction is not None and fragment.id in _read_as_keys(reader):
                return keys_sent(reduction, self._statistics, len(fragment.sites))
        return estimate(self._whole(fragment), self._statistics, sites=sites)

    def _reduction(self, fragment: Fragment) -> Join | None:
        """Return the rows that keys of other gateways find; None: a fragment is something else."""
        keys = [self._fragments.get(name) for name in _read_as_keys(fragment)]
        if not any(f is not None and isinstance(f.plan, Distinct) for f in keys):
            return None
        found = self._whole(fragment)
        return found if isinstance(found, Join) else None

    def _whole(self, fragment: Fragment) -> Plan:
        """Return a fragment's plan over sources: what is known of their columns counts above."""
        found = self._plans.get(fragment.id)
        if found is None:
            self._plans[fragment.id] = fragment.plan
            found = self._plans[fragment.id] = transform_up(fragment.plan, self._opened)
        return found

    def _opened(self, node: Plan) -> Plan:
        below = self._fragments.get(node.fragment) if isinstance(node, RemoteSource) else None
        return node if below is None else self._whole(below)

    def _delay(self, fragment: Fragment) -> float:
        """Return the milliseconds from a reading until the fragment sends what it changes."""
        found = self._delays.get(fragment.id)
        if found is None:
            self._delays[fragment.id] = 0.0
            hop = self._statistics.wires.hop_milliseconds
            read = [self._fragments[n] for n in _read(fragment) if n in self._fragments]
            # Rows of a table are at gateways before a reading comes.
            late = [f for f in read if (f.engine, fragment.engine) != TABLE_AT_GATEWAYS]
            # Results of other runs are read in the step that makes them.
            hops = [
                self._delay(f) + hop * _is_sent(f) + STEP_MILLISECONDS * (f.id not in self._in_step)
                for f in late
            ]
            found = self._delays[fragment.id] = max(hops, default=STEP_MILLISECONDS)
        return found

    def _computed_together(self, fragment: Fragment) -> RecursionPlan | None:
        """Return the recursion that the sites of a fragment compute together, if they do."""
        names = {node.name for node in walk_plan(fragment.plan) if isinstance(node, Fixpoint)}
        if len(fragment.sites) < 2:
            return None
        return next((r for r in self._bundle.recursions if r.name in names), None)


def _priced(recursion: RecursionPlan, wires: Wires) -> Cost:
    """Return the price of a recursion that several sites compute, with its way to the base."""
    price = next((p for p in recursion.prices if p.way == recursion.way), None)
    if price is None:
        return NOTHING
    middle = price.bytes_per_second
    messages = middle / mixed_bytes(wires)
    return Cost(middle, middle / UNKNOWN, middle * UNKNOWN, messages, price.milliseconds)


def _read(fragment: Fragment) -> tuple[str, ...]:
    """Return the fragments that a fragment reads."""
    nodes = (n for n in walk_plan(fragment.plan) if isinstance(n, RemoteSource))
    return tuple(dict.fromkeys(node.fragment for node in nodes))


def _readers(fragment: Fragment, bundle: FragmentBundle) -> tuple[Fragment, ...]:
    return tuple(map(bundle.fragment, dict.fromkeys(bundle.readers(fragment.id))))


def _read_as_keys(fragment: Fragment) -> tuple[str, ...]:
    """Return the fragment whose rows find those of a semi-join at gateways, if it is one."""
    match fragment:
        case Fragment(
            engine=Engine.GATEWAY, plan=Join(kind=JoinKind.SEMI, right=RemoteSource(fragment=name))
        ):
            return (name,)
        case _:
            return ()


def is_part(fragment: Fragment, bundle: FragmentBundle) -> bool:
    """Whether each gateway gives its part of groups, distinct or first rows to who reads them."""
    if fragment.engine != Engine.GATEWAY or not fragment.consumer:
        return False
    if fragment.id in tree_shares(bundle):
        return True
    if len(fragment.sites) < 2:
        return False
    to_all = not fragment.partition and len(fragment.destinations) > 1
    above = (reader.plan for reader in _readers(fragment, bundle))
    return any(gives_parts(fragment.plan, plan, fragment.id, to_all=to_all) for plan in above)


def gives_parts(plan: Plan, above: Plan, name: str, *, to_all: bool) -> bool:
    """Whether sites that compute a plan give parts of groups, distinct or first rows.

    Args:
        plan: Of each site.
        above: That reads its rows.
        name: Of the leaf that stands for it there.
        to_all: Each row goes to all sites that read it.
    """
    if not any(isinstance(node, _PUT_TOGETHER) for node in walk_plan(plan)):
        return False
    if isinstance(plan, Distinct) and to_all:
        return True  # keys of every gateway, for those of the other side of a join
    nodes = walk_plan(above)
    return any(isinstance(n, _PUT_TOGETHER) and _reads_directly(n, name) for n in nodes)


def _reads_directly(plan: Plan, fragment: str) -> bool:
    """Whether an operator reads a fragment through operators of one input alone."""
    while len(plan.inputs) == 1:
        (plan,) = plan.inputs
    return isinstance(plan, RemoteSource) and plan.fragment == fragment


def _away(senders: tuple[str, ...], receivers: tuple[str, ...]) -> float:
    """Return the share of rows that leave their site."""
    if not senders or not receivers:
        return 0.0
    return 1.0 - len(set(senders) & set(receivers)) / (len(senders) * len(receivers))


def _is_sent(fragment: Fragment) -> bool:
    return _away(fragment.sites, fragment.destinations) > 0.0
