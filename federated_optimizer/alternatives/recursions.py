"""Where a recursion is computed and what travels between its sites: prices, choice, and why.

A recursion runs at the base unless another way is cheaper or asked for and several gateways have
what it reads; then those gateways compute it together. Several base sites are there to share the
work: without other wishes they compute it together, each a part.
"""

from collections.abc import Callable
from dataclasses import dataclass

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
from streamsql.algebra.choices import (
    WITH_ANNOTATIONS,
    Copies,
    RecursionChoice,
    Strategy,
    Way,
)
from streamsql.algebra.operators import (
    Fixpoint,
    Plan,
    RecursiveReference,
    Scan,
    SourceKind,
    is_open,
    walk_plan,
)
from streamsql.errors import UnsupportedError
from streamsql.wire.fragments import RecursionPlan, WayPrice

DERIVED = (Way.WITNESS, Way.ANNOTATIONS)
"""Ways in which derived rows travel, with their provenance."""

AT_ONE_PLACE = (Strategy.KERNEL, Strategy.RANKED, Strategy.RECOMPUTE)
"""Strategies that compute from base rows and know nothing of derived rows from elsewhere."""

BASELINES = (Strategy.DRED, Strategy.SET)
"""Strategies that can ship derived rows, but do so only when asked: for comparison."""

Foresee = Callable[[Fixpoint, tuple[str, ...]], str]
"""Tells, of a fixpoint as sites get it, how an engine will maintain it, or refuses it with
`UnsupportedError`. It is handed in, because this package does not know the engine."""

MAX_SITES = 256
"""Sites that tokens can tell apart (`stream_engine.provenance.tokens`)."""

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
        homes: Values with the index of the gateway where rows about them are kept.
    """

    way: Way
    sites: tuple[str, ...]
    plan: RecursionPlan
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


def choose(
    node: Fixpoint,
    topology: Topology,
    statistics: Statistics,
    *,
    shown: float,
    together: str = "",
) -> Chosen:
    """Choose the way of a recursion.

    `shown` is the share of its rows that is wanted at the base; `together` says why it stays at one
    place unless the query asks for another way.

    Raises:
        UnsupportedError: The query asks for a strategy and a way that do not go together.
    """
    _check(node)
    leaves = leaves_of(node)
    owners = owners_of(leaves, topology)
    gateways = tuple(sorted(owners - topology.absent)) or tuple(sorted(owners))
    bases = topology.bases
    spread = len(bases) > 1
    candidates = bases if spread else gateways
    facts = statistics.recursions.get(recursion_key(node))
    load, assumed = workload(node, leaves, candidates, topology, statistics, shown=shown)
    priced = prices(load)
    placed = statistics.placed.get(recursion_key(node))
    current = placed.way if placed else None
    way, why = _decided(node, current, priced, candidates, bases, together)
    if node.copies != Copies.ONE:
        priced = tuple(price for price in priced if price.way == way)
    at_gateways = way != Way.CENTRE and not spread
    sites = candidates if way != Way.CENTRE else bases[:1]
    plan = RecursionPlan(
        name=node.name,
        key=recursion_key(node),
        way=way,
        sites=sites,
        forced=node.choice.way != Way.AUTO,
        why=why,
        prices=tuple(_way_price(p, candidates, bases) for p in priced),
        assumed=assumed,
        measured=facts is not None,
        without=tuple(sorted(owners - set(gateways))) if at_gateways else (),
    )
    if not at_gateways:
        return Chosen(way, (), plan)
    return Chosen(way, gateways, plan, _homes(leaves, gateways, statistics, placed))


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


def _check(node: Fixpoint) -> None:
    choice = node.choice
    if choice.strategy in AT_ONE_PLACE and choice.way in DERIVED:
        raise UnsupportedError(
            f"way = '{choice.way}' ships derived rows, but strategy = '{choice.strategy}' "
            "computes from base rows only",
            hint="choose way = 'flood' or 'centre', or strategy = 'absorption'",
        )
    if choice.way == Way.FLOOD and _keeps_provenance(choice):
        raise UnsupportedError(
            "way = 'flood' ships base rows, but the options strategy, ship, annotations "
            "and order apply to shipped derived rows",
            hint="choose way = 'witness' or 'annotations', or strategy = 'ranked'",
        )
    if node.copies != Copies.ONE:
        _check_copies(choice)


def _check_copies(choice: RecursionChoice) -> None:
    wanted = {choice.strategy, choice.ship, choice.annotations, choice.order} - {"auto"}
    if wanted or choice.way not in (Way.AUTO, Way.CENTRE):
        raise UnsupportedError(
            "UNION ALL in a recursion counts copies at one site: the options strategy, "
            "way, ship, annotations and order apply to sets",
            hint="remove these options, or write UNION",
        )


def _keeps_provenance(choice: RecursionChoice) -> bool:
    """Whether the query asks for annotations, by the strategy or by saying how they are kept."""
    if choice.strategy == Strategy.AUTO:
        return {choice.ship, choice.annotations, choice.order} != {"auto"}
    return choice.strategy in WITH_ANNOTATIONS


def _ships(choice: RecursionChoice) -> bool:
    """Whether the strategy ships derived rows without being asked."""
    return choice.strategy not in AT_ONE_PLACE + BASELINES


def _decided(  # noqa: PLR0913, PLR0917  (what a choice rests on)
    node: Fixpoint,
    current: Way | None,
    priced: tuple[Price, ...],
    sites: tuple[str, ...],
    bases: tuple[str, ...],
    together: str,
) -> tuple[Way, str]:
    """Return way and reason."""
    choice = node.choice
    if node.copies != Copies.ONE:
        return Way.CENTRE, "UNION ALL counts copies, which needs one site"
    if together and choice.way == Way.AUTO:
        return Way.CENTRE, together
    if len(bases) > 1 and choice.way == Way.AUTO and _ships(choice):
        return Way.WITNESS, f"{len(bases)} base sites share the work: each keeps a part"
    if not 1 < len(sites) <= MAX_SITES:
        reason = "fewer than two gateways have its inputs, or more than tokens can distinguish"
        return Way.CENTRE, reason
    if choice.way != Way.AUTO:
        return choice.way, "the query sets it"
    return _cheapest(choice, current, priced)


def _cheapest(
    choice: RecursionChoice, current: Way | None, priced: tuple[Price, ...]
) -> tuple[Way, str]:
    ways = [p for p in priced if _ships(choice) or p.way not in DERIVED]
    if _keeps_provenance(choice):
        ways = [p for p in ways if p.way != Way.FLOOD]
    best = min(ways, key=lambda p: (p.bytes_per_second, p.milliseconds))
    known = {p.way: p.bytes_per_second for p in ways}
    if current in known and best.way != current:
        if best.bytes_per_second * MUCH > known[current]:
            return (
                current,
                f"it already runs this way, and {best.way} would cost more than half of it",
            )
        factor = known[current] / max(best.bytes_per_second, 1e-9)
        return (
            best.way,
            f"{best.way} is cheapest: {current}, its current way, costs "
            f"{times_text(factor)} as much",
        )
    others = [p for p in ways if p.way != best.way]
    if not others or not best.bytes_per_second:
        return best.way, f"{best.way} is cheapest"
    second = min(others, key=lambda p: p.bytes_per_second)
    factor = second.bytes_per_second / best.bytes_per_second
    return (
        best.way,
        f"{best.way} is cheapest: {second.way}, the second cheapest, costs "
        f"{times_text(factor)} as much",
    )


def _way_price(price: Price, sites: tuple[str, ...], bases: tuple[str, ...]) -> WayPrice:
    where = bases[0] if price.way == Way.CENTRE else f"{len(sites)} sites"
    return WayPrice(
        way=price.way,
        bytes_per_second=round(price.bytes_per_second, 1),
        milliseconds=round(price.milliseconds, 1),
        where=where,
    )
