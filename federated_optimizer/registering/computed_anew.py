"""Parts of a query that it reads, or computes anew: that which adds less to the network now.

A part that is there is read, unless computing it anew over what is there besides (rows of sources
that arrive at the base anyway, nearer nodes) sends no more and takes clearly less effort: where a
node hands on many changes of which few are wanted, and the query can leave the others out before it
joins or groups. Ties and what nobody has counted go to reading, and what a query reads it goes on
to read.

The price is that of moves (`costs/run_costs.py`, `costs/effort.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.effort import ALIKE, BYTES_SENT, effort_of, takes_less_effort
from federated_optimizer.costs.fragment_estimates import fragment_estimates
from federated_optimizer.costs.handed_rows import handed_rows, reading_price
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.run_costs import RunCosts
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.registering.lookup_shares import LookupShares
from federated_optimizer.registering.registration_terms import NewNode, Planning
from federated_optimizer.sharing.computation_index import Allowed, ComputationIndex, Found
from federated_optimizer.sharing.sharing_step import SharedPlan
from streamsql.algebra.operators import Plan, RemoteSource, Scan, Window, WindowKind, walk_plan
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle

MAX_COMPARED = 3
"""Ways of computing a query that are planned and compared with the one that reads all there is."""

MANY_ROWS = 1_000
"""A node with fewer rows is read without comparing."""

MUCH_HANDED = 0.5
"""Milliseconds a second that it takes to hand a node on, below which nothing is compared.

To plan another way takes 20 to 150 ms, as much as that costs in one to five minutes.
"""


SURE = 4.0
"""By so much more than a first guess a node may hand on."""

FEW = 0.5
"""Of the changes of a node, where a query only chooses some of its rows: else it reads them."""


@dataclass(frozen=True, slots=True)
class PlannedWay:
    """A way of computing a query.

    Attributes:
        found: Its plan.
        bundle: Of that.
        used: The offers that it reads, those of rows of sources, too.
    """

    found: SharedPlan
    bundle: FragmentBundle
    used: tuple[Found, ...]

    @property
    def offers(self) -> frozenset[str]:
        """The names of the offers that it reads."""
        return frozenset(each.offer.name for each in self.used)


@dataclass(frozen=True, slots=True)
class Choosing:
    """Facts, new nodes and ways: the basis of a choice between ways.

    Attributes:
        planning: The facts, and the metric.
        weighing: By which prices are compared.
        nodes: That would be made for the query.
        read_nodes: Returns those of them that a bundle needs.
        wanted: Returns by how many a new node is wanted: its price is divided among them.
        is_delivered: Returns whether another run has a fragment's rows already.
        ways: Returns ways of computing the query over the offers that are allowed, one at least.
        index: Of the offers of all runs.
        is_made_anyway: Whether new nodes are made, whatever they cost.
    """

    planning: Planning
    weighing: Weighing
    nodes: Sequence[NewNode]
    read_nodes: Callable[[FragmentBundle], Sequence[NewNode]]
    wanted: Callable[[NewNode], int]
    is_delivered: Callable[[FragmentBundle, str], bool]
    ways: Callable[[Allowed], Iterable[PlannedWay]]
    index: ComputationIndex
    is_made_anyway: bool


def cheaper_way(way: PlannedWay, choosing: Choosing) -> PlannedWay:
    """Return the way that adds least, if it is clearly less than what reads all there is."""
    prices = Prices(choosing)
    parts = prices.costly(way)
    if not parts:
        return way
    best, price = way, prices.added(way)
    avoided: list[Found] = []  # by the best way
    left_out: list[Found] = []
    for _ in range(MAX_COMPARED):
        if not parts:
            break
        trial = [*left_out, parts[0]]
        other, cost = prices.cheapest(trial, price)
        if prices.is_better(cost, price):
            best, price, avoided, left_out = other, cost, trial, trial
            parts = prices.costly(other)
            continue
        # Where another weak node came in its place, that is left out as well.
        known = {found.offer.name for found in (*best.used, *trial)}
        instead = [each for each in prices.costly(other) if each.offer.name not in known]
        left_out, parts = (trial, instead) if instead else (avoided, parts[1:])
    return best if best is way else _told(best, avoided, prices)


class Prices:
    """Prices of ways."""

    def __init__(self, choosing: Choosing) -> None:
        self._choosing = choosing
        self._known = choosing.planning.statistics
        self._speeds = self._known.speeds
        self._estimating = Estimating(self._known)
        self._made = {node.bundle.query for node in choosing.nodes if not node.widens}
        self._nodes: dict[str, Cost] = {}
        self._shares = LookupShares(choosing.index)

    def costly(self, way: PlannedWay) -> list[Found]:
        """Return the nodes that a way reads and that hand much on, the most first."""
        used = (each for each in way.used if self._is_costly(each))
        found = {each.offer.name: each for each in used}
        if way.found.is_thin:  # rows of a node are chosen: most of them, or few
            found = {name: each for name, each in found.items() if self._is_few(each)}
        return sorted(found.values(), key=lambda each: -self._handed(each))

    def _is_costly(self, found: Found) -> bool:
        offer = found.offer
        if self._choosing.is_made_anyway and offer.run in self._made:
            return False
        if offer.run in self._choosing.planning.reads:
            return False
        is_result = offer.is_readable and not offer.bundle.fragment(offer.fragment).consumer
        return (
            is_result
            and MANY_ROWS <= found.rows < float("inf")
            and self._may_hand_much(found)
            and self._is_counted(found)
            and self._handed(found) >= MUCH_HANDED
        )

    def _is_few(self, found: Found) -> bool:
        wanted, handed = map(self._estimating.of, (found.wanted, found.offer.plan))
        return wanted.events < FEW * handed.events

    def _is_counted(self, found: Found) -> bool:
        """Return whether all is counted that estimates of a node and of what is wanted rest on."""
        return not any(map(self._assumed, (found.offer.plan, found.wanted)))

    def _assumed(self, plan: Plan) -> tuple[str, ...]:
        return self._estimating.of(plan).assumed

    def _may_hand_much(self, found: Found) -> bool:
        """Return whether it is known how often a node's rows change, and that may be often.

        Each row changes with those that it is made of: that is as good as no work, and estimating a
        chain of joins takes a tenth of a registration.
        """
        rates = 0.0
        for node in walk_plan(found.offer.plan):
            if isinstance(node, Scan):
                facts = self._known.sources.get(node.source.lower())
                if facts is None or facts.rows is None or facts.changes is None:
                    return False
                rates += facts.changes / max(facts.rows, 1.0)
            elif isinstance(node, Window) and node.kind == WindowKind.RANGE and node.size:
                rates += 2 * MICROSECONDS / node.size
        handed = found.rows * rates * self._speeds.base.filter_row / 1_000
        return handed * SURE >= MUCH_HANDED

    def _handed(self, found: Found) -> float:
        """Return the milliseconds a second that it takes to hand an offer on to the query."""
        name = found.offer.name
        leaves = (n for n in walk_plan(found.plan) if isinstance(n, RemoteSource))
        read = [leaf for leaf in leaves if leaf.fragment == name]
        known = replace(self._known, nodes={name: found.offer.plan})
        estimating = Estimating(known)
        handed = handed_rows(found.plan, read)
        base, paid = self._speeds.base, partial(self._shares.of, found)
        micros = (
            reading_price(each, estimating, base, paid=paid(each.condition)) for each in handed
        )
        return sum(micros) / 1_000

    def is_better(self, cost: Cost, than: Cost) -> bool:
        """Return whether a way is taken in the place of another one."""
        return takes_less_effort(self._choosing.weighing, self._speeds, cost, than)

    def is_less(self, cost: Cost, than: Cost) -> bool:
        """Return whether a way adds less by the metric, or the same with clearly less effort."""
        value, much = self._choosing.weighing.value, Cost(bytes=BYTES_SENT)
        if ALIKE * value(cost) + value(much) < value(than):
            return True
        return self.is_better(cost, than)

    def cheapest(self, left_out: Sequence[Found], than: Cost) -> tuple[PlannedWay, Cost]:
        """Return the way of least effort of those that do not read some nodes.

        Ways that may be taken in the place of one of a price come first.
        """
        names = {found.offer.name for found in left_out}
        ways = self._choosing.ways(lambda offer: offer.name not in names)
        priced = [(way, self.added(way)) for way in ways]

        def order(each: tuple[PlannedWay, Cost]) -> tuple[bool, float]:
            return not self.is_better(each[1], than), effort_of(each[1], self._speeds).value

        return min(priced, key=order)

    def added(self, way: PlannedWay) -> Cost:
        """Return the price of what a way adds to the network."""
        own = self.of_bundle(way.bundle)
        nodes = self._choosing.read_nodes(way.bundle)
        return sum((self._of_node(node) for node in nodes), own)

    def made(self, way: PlannedWay) -> Cost:
        """Return the price of a way, and of all of the new nodes that it reads."""
        nodes = self._choosing.read_nodes(way.bundle)
        new = (self.of_bundle(node.bundle) for node in nodes if not node.widens)
        return sum(new, self.of_bundle(way.bundle))

    def _of_node(self, node: NewNode) -> Cost:
        run = node.bundle.query
        if run not in self._nodes:
            # A node that is there already gets columns, which are not priced.
            whole = NOTHING if node.widens else self.of_bundle(node.bundle)
            self._nodes[run] = _divided(whole, self._choosing.wanted(node))
        return self._nodes[run]

    def of_bundle(self, bundle: FragmentBundle) -> Cost:
        """Return the price of what sites do for a bundle that they do not do for others."""
        reader = self._choosing.planning.topology.coordinator
        sent = fragment_estimates(bundle, self._known, reader)
        costs = RunCosts(bundle, self._known, sent, self._shares.of_feed)
        own = (f.id for f in bundle.own if not self._choosing.is_delivered(bundle, f.id))
        whole = sum((costs.of(name, with_result=False) for name in own), NOTHING)
        return replace(whole, milliseconds=costs.milliseconds)

    def words(self, found: Found) -> str:
        """Return why a node is not read, in words."""
        offer = found.offer
        name = f"node {offer.run.removeprefix('q')}"
        name = "a node made for it" if offer.run in self._made else name
        handed = self._estimating.of(offer.plan)
        wanted = self._estimating.of(found.wanted)
        of_which = f" of which {wanted.rows:,.0f} are wanted" if found.remaining else ""
        return (
            f"computes it anew: {name} would hand on {found.rows:,.0f} rows{of_which}, "
            f"and {handed.events:,.0f} changes a second"
        )


def _divided(cost: Cost, by: int) -> Cost:
    return Cost(
        bytes=cost.bytes / by,
        low=cost.low / by,
        high=cost.high / by,
        messages=cost.messages / by,
        milliseconds=cost.milliseconds,
        energy=cost.energy / by,
        cpu=cost.cpu / by,
        state=cost.state / by,
        engine=cost.engine / by,
        derived=cost.derived / by,
    )


def _told(way: PlannedWay, left_out: Sequence[Found], prices: Prices) -> PlannedWay:
    """Return a way whose EXPLAIN says what it does not read, and why."""
    result, *others = way.bundle.fragments
    notes = (*result.notes, *map(prices.words, left_out))
    fragments = (msgspec.structs.replace(result, notes=notes), *others)
    return replace(way, bundle=msgspec.structs.replace(way.bundle, fragments=fragments))
