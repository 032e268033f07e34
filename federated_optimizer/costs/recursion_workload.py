"""The workload of a recursion, for its prices: sizes and rates of its inputs and of its view."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec

from federated_optimizer.costs.recursion_prices import Workload, moved_per_change
from federated_optimizer.costs.relations.estimates import Estimating, row_bytes, total
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.default_facts import DEGREE, DEPTH
from federated_optimizer.statistics.planning_statistics import RecursionFacts, Statistics
from streamsql.algebra.choices import RecursionChoice, Shipping
from streamsql.algebra.explain import explain_plan
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
)
from streamsql.algebra.operators import (
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    SourceKind,
    UnionAll,
    transform_up,
    walk_plan,
)
from streamsql.data.durations import duration_text
from streamsql.data.types import MICROSECONDS

AGED_SECONDS = 600.0
"""What was counted longer ago is said to be assumed."""


def recursion_key(node: Fixpoint) -> str:
    """Return what identifies a recursion whatever query it is in: its text without its choice.

    What was counted under a condition `column = constant` of a base branch is taken for any other
    constant: a query that asks for another one is another plan of the same recursion.
    """
    base = tuple(transform_up(branch, _of_any_constant) for branch in node.base)
    plain = msgspec.structs.replace(node, base=base, choice=RecursionChoice())
    return hashlib.sha256(explain_plan(plain).encode()).hexdigest()[:16]


def _of_any_constant(plan: Plan) -> Plan:
    """Return a filter with no constants in its equalities; other operators as they are."""
    if not isinstance(plan, Filter):
        return plan
    parts = [_without_constant(part) for part in conjuncts(plan.predicate)]
    return msgspec.structs.replace(plan, predicate=conjunction(parts))


def _without_constant(part: Expression) -> Expression:
    match part:
        case Call("=", (Column() as column, Literal() as literal)) | Call(
            "=", (Literal() as literal, Column() as column)
        ):
            unset = msgspec.structs.replace(literal, value=None)
            return msgspec.structs.replace(part, arguments=(column, unset))
        case _:
            return part


def workload(  # noqa: PLR0913  (what the estimate rests on)
    node: Fixpoint,
    leaves: tuple[Plan, ...],
    sites: tuple[str, ...],
    topology: Topology,
    statistics: Statistics,
    *,
    shown: float,
    facts: RecursionFacts | None,
) -> tuple[Workload, tuple[str, ...]]:
    """Return what the prices are computed from, and what of it is assumed, in words.

    `facts` is what has been counted of the recursion, if it ran.
    """
    links = tuple(dict.fromkeys(map(_links, leaves)))
    estimated = Estimating(statistics).of
    parts = {scan: estimated(scan) for leaf in links for scan in _sources(leaf)}
    read = _by_source(links, estimated)
    # Base and step branches mostly read the same source: once, whatever lets most rows through.
    base = total(max(found, key=_rows) for found in read)
    asked = asked_share(leaves, estimated)
    here = [e for scan, e in parts.items() if set(topology.owners(scan.source)) & set(sites)]
    moving = sum(e.inserts + e.deletes for e in parts.values())
    at_sites = sum(e.inserts + e.deletes for e in here) / moving if moving else 1.0
    rows, view_rows, assumed = _sizes(node, base, asked, facts)
    inserts, deletes = base.inserts, base.deletes
    if facts is not None:
        inserts = deletes = facts.changes / 2
        assumed = _aged(node, facts)
    # 0 is an answer: most deletions in a dense net change nothing.
    moved = facts.view_changes if facts else moved_per_change(view_rows, rows, DEGREE.value)
    load = Workload(
        sites=max(len(sites), 1),
        base_rows=rows,
        inserts=inserts,
        deletes=deletes,
        base_bytes=min((row_bytes(leaf.schema) for leaf in links), default=2.0),
        view_rows=view_rows,
        view_bytes=row_bytes(node.schema),
        view_changes=moved,
        fan=DEGREE.value,
        local=_local(leaves, sites, topology, statistics),
        at_sites=at_sites,
        shown=shown,
        whole=node.choice.ship in (Shipping.EAGER, Shipping.SHIP_ALL),
        fetched=sum(_fetched(leaf, estimated) for leaf in leaves if leaf not in links),
    )
    return load, assumed


def with_bounded(
    statistics: Statistics, whole: Fixpoint, bounded: Fixpoint, leaves: tuple[Plan, ...]
) -> Statistics:
    """Return statistics in which a bounded recursion has its share of what the whole one has.

    Both read the same links. What was counted of it, if it ran, stays.

    Args:
        statistics: What is known.
        whole: A recursion.
        bounded: What it is if only some of its rows are derived.
        leaves: Of the bounded one, those of base branches first.
    """
    key, facts = recursion_key(bounded), statistics.recursions.get(recursion_key(whole))
    if facts is None or key in statistics.recursions:
        return statistics
    share = asked_share(leaves, Estimating(statistics).of)
    part = replace(
        facts, view_rows=facts.view_rows * share, view_changes=facts.view_changes * share
    )
    return replace(statistics, recursions={**statistics.recursions, key: part})


def _aged(node: Fixpoint, facts: RecursionFacts) -> tuple[str, ...]:
    """Return that what was counted is assumed to hold still, if that is some time ago."""
    if facts.age < AGED_SECONDS:
        return ()
    minutes = int(facts.age / 60) * 60
    return (f"{node.name}: rows and rates as counted {duration_text(minutes * MICROSECONDS)} ago",)


def _local(
    leaves: tuple[Plan, ...], sites: tuple[str, ...], topology: Topology, statistics: Statistics
) -> float:
    """Return the share of derivations whose row is owned where it is derived.

    By hash one in so many; where ends of links have homes, the links that leave no gateway.
    """
    by_hash = 1.0 / max(len(sites), 1)
    if set(sites) & set(topology.bases) or not reads_links(leaves):
        return by_hash
    return max(by_hash, statistics.homes.local)


def _links(leaf: Plan) -> Plan:
    """Return what a leaf has of its own: the left side where it has only rows with a partner."""
    while isinstance(leaf, Join) and leaf.kind == JoinKind.SEMI:
        leaf = leaf.left
    return leaf


def _fetched(leaf: Plan, estimated: Callable[[Plan], Estimate]) -> float:
    """Return the rows a second that go to the base for a semi join there, and on from there."""
    before, after = estimated(_links(leaf)), estimated(leaf)
    return before.inserts + before.deletes + after.inserts + after.deletes


def _by_source(
    leaves: Iterable[Plan], estimated: Callable[[Plan], Estimate]
) -> list[list[Estimate]]:
    """Return the estimates of leaves, those over the same sources together, base branches first."""
    seen: dict[tuple[str, ...], list[Estimate]] = {}
    for leaf in leaves:
        sources = tuple(scan.source for scan in _sources(_links(leaf)))
        seen.setdefault(sources, []).append(estimated(leaf))
    return list(seen.values())


def _rows(relation: Estimate) -> float:
    return relation.rows


def asked_share(leaves: Iterable[Plan], estimated: Callable[[Plan], Estimate]) -> float:
    """Return the share of what steps read from which base branches begin: one is restricted.

    Args:
        leaves: Of the recursion, those of base branches first.
        estimated: Of a leaf.
    """
    both = [found for found in _by_source(leaves, estimated) if len(found) > 1]
    shares = [found[0].rows / max(_rows(max(found, key=_rows)), 1e-9) for found in both]
    return max(shares, default=1.0)


def _sources(plan: Plan) -> list[Scan]:
    return [node for node in walk_plan(plan) if isinstance(node, Scan)]


def _sizes(
    node: Fixpoint, base: Estimate, share: float, facts: RecursionFacts | None
) -> tuple[float, float, tuple[str, ...]]:
    """Return base rows, view rows, and what was assumed."""
    if facts is not None:
        return facts.base_rows, facts.view_rows, ()
    rows = max(base.rows, 1.0)
    view = assumed_rows(node, rows, share)
    text = (
        f"{node.name}: {view:.0f} rows, {DEGREE.value:g} of its base rows per value joined "
        f"({DEGREE.range_text})"
    )
    return rows, view, (*base.assumed, text)


def assumed_rows(node: Fixpoint, base_rows: float, share: float) -> float:
    """Return how many rows a recursion has that nobody has counted.

    Args:
        node: The recursion.
        base_rows: Rows that its steps read.
        share: Of them from which it begins.
    """
    nodes = base_rows / DEGREE.value + 1
    named = _named_columns(node)
    view: float = nodes ** min(named, 2)
    if node.selection is None:
        view *= DEPTH.value ** min(len(node.schema) - named, 1)
    return min(view * share, float(node.limit))


def _named_columns(node: Fixpoint) -> int:
    """Return how many columns hold names from the base rows; the others are computed.

    With a selection those are its groups.
    """
    if node.selection is not None:
        return len(node.selection.group)
    width = len(node.schema)
    named = set(range(width))
    for branch in _branches(node.step):
        if isinstance(branch, Project):
            named &= {i for i, e in enumerate(branch.expressions) if isinstance(e, Column)}
    return len(named)


def _branches(plans: tuple[Plan, ...]) -> list[Plan]:
    found: list[Plan] = []
    for plan in plans:
        found.extend(_branches(plan.branches) if isinstance(plan, UnionAll) else [plan])
    return found


def reads_links(leaves: tuple[Plan, ...]) -> bool:
    """Whether a source of links is among the inputs."""
    return any(s.kind == SourceKind.LINK for leaf in leaves for s in _sources(leaf))
