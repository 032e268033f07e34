"""The way of a recursion: the sites that compute it, the way taken, and why.

A recursion runs at the base unless another way is cheaper or asked for and several gateways have
what it reads; then those gateways compute it together. Several base sites are there to share the
work: without other wishes they compute it together, each a part.
"""

from collections.abc import Callable
from dataclasses import dataclass

from federated_optimizer.alternatives.recursion.recursion_ways import Ways, ways_of
from federated_optimizer.costs.recursion_prices import (
    Price,
    prices,
    times_text,
)
from federated_optimizer.costs.recursion_workload import (
    reads_links,
    recursion_key,
    workload,
)
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Placed, Statistics
from streamsql.algebra.choices import Copies, Way
from streamsql.algebra.operators import (
    Fixpoint,
    Plan,
    RecursiveReference,
    Scan,
    SourceKind,
    is_open,
    walk_plan,
)
from streamsql.wire.fragments import RecursionPlan, WayPrice

Foresee = Callable[[Fixpoint, tuple[str, ...]], str]
"""Tells, of a fixpoint as sites get it, how an engine will maintain it, or refuses it with
`UnsupportedError`. It is handed in, because this package does not know the engine."""

MAX_HOMES = 5_000
"""Values with a home in a plan; the plan goes to every site."""

MUCH = 2.0
"""A query that runs changes its way for one that costs at most one part in so many."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The outcome.

    Attributes:
        way: Concrete; "centre" for one place.
        sites: The gateways that compute it together; empty for the base.
        plan: For EXPLAIN.
        ways: That it could take.
        prices: Of all ways.
        homes: Values with the index of the gateway where rows about them are kept.
    """

    way: Way
    sites: tuple[str, ...]
    plan: RecursionPlan
    ways: Ways
    prices: tuple[Price, ...]
    homes: tuple[tuple[str, int], ...] = ()


def leaves_of(node: Fixpoint) -> tuple[Plan, ...]:
    """Return the distinct largest plans inside a recursion that do not read it."""
    found: dict[Plan, None] = {}

    def visit(plan: Plan) -> None:
        if isinstance(plan, RecursiveReference):
            return
        if is_open(plan):
            for child in plan.inputs:
                visit(child)
        else:
            found[plan] = None

    for branch in node.inputs:
        visit(branch)
    return tuple(found)


def owners_of(leaves: tuple[Plan, ...], topology: Topology) -> frozenset[str]:
    """Return the gateways that own a stream which leaves read."""
    return frozenset(
        site
        for leaf in leaves
        for scan in walk_plan(leaf)
        if isinstance(scan, Scan) and scan.kind != SourceKind.TABLE
        for site in topology.owners(scan.source)
    )


def choose(  # noqa: PLR0913  (what a choice rests on)
    node: Fixpoint,
    topology: Topology,
    statistics: Statistics,
    *,
    shown: float,
    together: str = "",
    way: Way | None = None,
) -> Chosen:
    """Choose the way of a recursion.

    Args:
        node: The recursion.
        topology: The sites.
        statistics: What is known of sources and recursions that run.
        shown: Share of its rows that is wanted at the base.
        together: Why it stays at one place unless the query asks for another way; or empty.
        way: Taken if it is legal; None: the cheapest, or the one that runs.

    Raises:
        UnsupportedError: The query asks for a strategy and a way that do not go together.
    """
    leaves = leaves_of(node)
    owners = owners_of(leaves, topology)
    gateways = tuple(sorted(owners - topology.absent)) or tuple(sorted(owners))
    bases = topology.bases
    spread = len(bases) > 1
    candidates = bases if spread else gateways
    key = recursion_key(node)
    facts = statistics.recursions.get(key)
    load, assumed = workload(
        node, leaves, candidates, topology, statistics, shown=shown, facts=facts
    )
    priced = prices(load)
    placed = statistics.placed.get(key)
    current = placed.way if placed else None
    ways = ways_of(node, candidates, bases, together)
    legal = tuple(price for price in priced if price.way in ways.legal)
    way = way if way in ways.legal else _default(legal, current)
    if node.copies != Copies.ONE:
        priced = tuple(price for price in priced if price.way == way)
    at_gateways = way != Way.CENTRE and not spread
    sites = candidates if way != Way.CENTRE else bases[:1]
    plan = RecursionPlan(
        name=node.name,
        key=key,
        way=way,
        sites=sites,
        forced=node.choice.way != Way.AUTO,
        why=ways.only or _why(way, current, legal),
        prices=tuple(_way_price(p, candidates, bases) for p in priced),
        assumed=assumed,
        measured=facts is not None,
        without=tuple(sorted(owners - set(gateways))) if at_gateways else (),
    )
    if not at_gateways:
        return Chosen(way, (), plan, ways, priced)
    return Chosen(way, gateways, plan, ways, priced, _homes(leaves, gateways, statistics, placed))


def _homes(
    leaves: tuple[Plan, ...],
    gateways: tuple[str, ...],
    statistics: Statistics,
    placed: Placed | None,
) -> tuple[tuple[str, int], ...]:
    """Return where rows about the ends of links are kept: as long as sites stay, they stay."""
    if placed is not None and placed.sites == gateways and placed.homes:
        return placed.homes
    if not reads_links(leaves):
        return ()
    index = {gateway: number for number, gateway in enumerate(gateways)}
    known = sorted(statistics.homes.gateway.items())
    return tuple((name, index[at]) for name, at in known if at in index)[:MAX_HOMES]


def _default(legal: tuple[Price, ...], current: Way | None) -> Way:
    """Return the cheapest way; one that runs stays unless another costs at most half as much."""
    best = _best(legal)
    running = next((price for price in legal if price.way == current), best)
    stays = best.bytes_per_second * MUCH > running.bytes_per_second
    return running.way if stays else best.way


def _best(prices_: tuple[Price, ...]) -> Price:
    return min(prices_, key=lambda price: (price.bytes_per_second, price.milliseconds))


def _why(way: Way, current: Way | None, legal: tuple[Price, ...]) -> str:
    """Return why a way of several is taken."""
    best = _best(legal)
    known = {price.way: price.bytes_per_second for price in legal}
    if way != best.way:
        if way == current and best.bytes_per_second * MUCH > known[way]:
            return f"it already runs this way, and {best.way} would cost more than half of it"
        factor = known[way] / max(best.bytes_per_second, 1e-9)
        return (
            f"the chosen plan takes it; it costs {times_text(factor)} as much as {best.way}, "
            "the cheapest"
        )
    if current in known and way != current:
        factor = known[current] / max(best.bytes_per_second, 1e-9)
        return f"{way} is cheapest: {current}, its current way, costs {times_text(factor)} as much"
    others = tuple(price for price in legal if price.way != way)
    if not others or not best.bytes_per_second:
        return f"{way} is cheapest"
    second = min(others, key=lambda price: price.bytes_per_second)
    factor = second.bytes_per_second / best.bytes_per_second
    return (
        f"{way} is cheapest: {second.way}, the second cheapest, costs {times_text(factor)} as much"
    )


def _way_price(price: Price, sites: tuple[str, ...], bases: tuple[str, ...]) -> WayPrice:
    where = bases[0] if price.way == Way.CENTRE else f"{len(sites)} sites"
    return WayPrice(
        way=price.way,
        bytes_per_second=round(price.bytes_per_second, 1),
        milliseconds=round(price.milliseconds, 1),
        where=where,
    )
