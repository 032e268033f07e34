"""Operators that gateways run by themselves: grow a gateway piece, or say in words why not.

Everything rests on two promises. A source's key names a device that one gateway has, so rows of
equal key come from one gateway. Rows of equal value in a co-located column come from one gateway.
"""

from collections.abc import Sequence
from itertools import islice, product

import msgspec

from federated_optimizer.alternatives.heuristics import ALL, Heuristic, Heuristics
from federated_optimizer.alternatives.method import Refused, not_considered
from federated_optimizer.alternatives.pieces import Colocation, GatewayPiece
from federated_optimizer.alternatives.words import join_words
from federated_optimizer.network.topology import Topology
from streamsql.algebra.explain import describe, window_text
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    OverWindow,
    Plan,
    Project,
    Scan,
    SessionWindow,
    SetKind,
    SetOperation,
    TopN,
    UnionAll,
    Window,
    WindowKind,
    with_inputs,
)

OneSided = (
    Filter
    | Project
    | Materialize
    | Distinct
    | Aggregate
    | TopN
    | OverWindow
    | HopWindow
    | SessionWindow
)
TwoSided = Join | AsOfJoin | SetOperation
MAX_COLOCATIONS = 64
"""Co-locations of a piece that are followed; what is beyond is treated as not known."""


def scan_piece(scan: Scan, topology: Topology) -> GatewayPiece:
    """Return a stream's scan at all gateways that own it."""
    groups: list[Colocation] = []
    if scan.key:
        groups.append(Colocation(f"key of {scan.source}", scan.key))
    for position, name in enumerate(scan.schema.names):
        group = topology.group(scan.source, name)
        if group is not None:
            groups.append(Colocation(group, (position,)))
    return GatewayPiece(scan, topology.owners(scan.source), (scan.source,), tuple(groups))


def window_piece(window: Window, topology: Topology) -> GatewayPiece | Refused:
    """Return a window at the gateways, or why it cannot stand there."""
    below = scan_piece(window.input, topology)
    piece = with_plan(below, window)
    if window.kind != WindowKind.ROWS or len(below.sites) <= 1:
        return piece
    if _covered(below, window.partition):
        return piece
    return Refused(
        f"[{window_text(window)}] of {window.input.source} because: it counts the rows of "
        f"{len(below.sites)} gateways together, and only the base sees their order"
    )


def with_plan(piece: GatewayPiece, plan: Plan) -> GatewayPiece:
    """Return the piece with a plan of the same columns."""
    return GatewayPiece(plan, piece.sites, piece.sources, piece.colocations, piece.joins)


def filter_piece(plan: Filter, below: GatewayPiece) -> GatewayPiece:
    """Return the filtered piece."""
    return with_plan(below, Filter(below.plan, plan.predicate))


def unary_piece(plan: OneSided, below: GatewayPiece) -> GatewayPiece | Refused:
    """Return an operator over one input at the gateways, or why it cannot stand there."""
    match plan:
        case Filter():
            return filter_piece(plan, below)
        case Project():
            return project_piece(plan, below)
        case Distinct():
            return distinct_piece(below)
        case Aggregate():
            return aggregate_piece(plan, below)
        case HopWindow() | Materialize():
            return with_plan(below, with_inputs(plan, (below.plan,)))
        case TopN() | OverWindow() | SessionWindow():
            return partitioned_piece(plan, below)


def project_piece(plan: Project, below: GatewayPiece) -> GatewayPiece:
    """Return the projected piece, with the co-locations whose columns are all kept."""
    kept = [e.position if isinstance(e, Column) else None for e in plan.expressions]
    return GatewayPiece(
        msgspec.structs.replace(plan, input=below.plan),
        below.sites,
        below.sources,
        _moved(below.colocations, kept),
        below.joins,
    )


def distinct_piece(below: GatewayPiece) -> GatewayPiece | Refused:
    """Return Distinct at the gateways when equal rows cannot come from two of them."""
    piece = with_plan(below, Distinct(below.plan))
    if len(below.sites) <= 1 or _covered(below, tuple(range(len(below.plan.schema)))):
        return piece
    return Refused(
        f"Distinct over {_words(below)} because: two gateways may have equal rows, and no "
        "column identifies the gateway of a row"
    )


def partitioned_piece(
    plan: TopN | OverWindow | SessionWindow, below: GatewayPiece
) -> GatewayPiece | Refused:
    """Return an operator by partitions at the gateways when none has rows of two of them."""
    if len(below.sites) <= 1 or (plan.partition and _covered(below, plan.partition)):
        return with_plan(below, with_inputs(plan, (below.plan,)))
    if isinstance(plan, SessionWindow):
        reason = "rows of one session may come from several gateways"
    elif plan.partition:
        reason = "rows of one partition may come from several gateways"
    else:
        reason = "it orders the rows of all gateways"
    return Refused(f"{describe(plan)} over {_words(below)} because: {reason}")


def aggregate_piece(plan: Aggregate, below: GatewayPiece) -> GatewayPiece | Refused:
    """Return an aggregate at the gateways when no group has rows of two gateways."""
    if not plan.group:
        return Refused(
            f"Aggregate without groups over {_words(below)} because: "
            "it combines the rows of all gateways"
        )
    if len(below.sites) > 1 and not _covered(below, plan.group):
        names = ", ".join(below.plan.schema.names[g] for g in plan.group)
        return Refused(
            f"Aggregate by ({names}) over {_words(below)} because: "
            "rows of one group may come from several gateways"
        )
    return GatewayPiece(
        msgspec.structs.replace(plan, input=below.plan),
        below.sites,
        below.sources,
        _moved(below.colocations, plan.group),
        below.joins,
    )


def union_piece(pieces: list[GatewayPiece], kept: Heuristics = ALL) -> GatewayPiece | Refused:
    """Return a union at the gateways that own all branches."""
    first = pieces[0]
    if any(piece.sites != first.sites for piece in pieces):
        return Refused("UnionAll because: its branches come from different gateways")
    if sum(piece.joins for piece in pieces) > 1 and Heuristic.ONE_JOIN in kept:
        refused = not_considered(Heuristic.ONE_JOIN)
        return Refused(f"UnionAll because: {refused.reason}", refused.heuristic)
    shared = set(first.colocations).intersection(*(set(p.colocations) for p in pieces))
    return GatewayPiece(
        UnionAll(tuple(piece.plan for piece in pieces)),
        first.sites,
        tuple(dict.fromkeys(s for piece in pieces for s in piece.sources)),
        # A key of one source says nothing about another source's rows, but equal groups do.
        tuple(c for c in first.colocations if c in shared),
        sum(piece.joins for piece in pieces),
    )


def join_piece(
    plan: TwoSided, left: GatewayPiece, right: GatewayPiece, kept: Heuristics = ALL
) -> GatewayPiece | Refused:
    """Return a join or set operation in the network, or why it is not done there."""
    refused = _not_considered(plan, left, right, kept)
    if refused is None and (reason := _join_refused(plan, left, right)):
        refused = Refused(reason)
    if refused is not None:
        return Refused(f"{join_words(plan)} because: {refused.reason}", refused.heuristic)
    offset = len(left.plan.schema)
    moved = tuple(
        Colocation(c.group, tuple(p + offset for p in c.columns)) for c in right.colocations
    )
    # Padding puts NULL into the padded columns at any gateway, so they do not tell of it.
    colocations = () if plan.kind == JoinKind.FULL else left.colocations
    return GatewayPiece(
        msgspec.structs.replace(plan, left=left.plan, right=right.plan),
        left.sites if _keeps_lonely(plan) else tuple(s for s in left.sites if s in right.sites),
        tuple(dict.fromkeys(left.sources + right.sources)),
        colocations + (moved if plan.kind == JoinKind.INNER else ()),
        left.joins + right.joins + 1,
    )


def pairs_of(plan: TwoSided) -> tuple[tuple[int, int], ...]:
    """Return the pairs of columns in which rows that meet agree."""
    if isinstance(plan, SetOperation):
        return tuple((c, c) for c in range(len(plan.schema)))
    return plan.keys


def _keeps_lonely(plan: TwoSided) -> bool:
    """Whether left rows that meet no right row may be in the result."""
    return plan.kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI, SetKind.EXCEPT)


def _not_considered(
    plan: TwoSided, left: GatewayPiece, right: GatewayPiece, kept: Heuristics
) -> Refused | None:
    if not pairs_of(plan) and Heuristic.NO_PRODUCT in kept:
        return not_considered(Heuristic.NO_PRODUCT)
    if left.joins + right.joins and Heuristic.ONE_JOIN in kept:
        return not_considered(Heuristic.ONE_JOIN)
    return None


def _join_refused(plan: TwoSided, left: GatewayPiece, right: GatewayPiece) -> str:
    """Return why two gateway pieces cannot be joined where they are, or an empty string."""
    alone = len(left.sites) == 1 and left.sites == right.sites
    if not alone and not meet_at_one_gateway(plan, left, right):
        return (
            f"matching rows of {_words(left)} and {_words(right)} may be at different "
            "gateways, because the join columns are not co-located"
        )
    if not _keeps_lonely(plan):
        shared = set(left.sites) & set(right.sites)
        return "" if shared else "no gateway has both sides"
    missing = set(left.sites) - set(right.sites)
    if missing:
        return f"{', '.join(sorted(missing))} has no {_words(right)}"
    beyond = set(right.sites) - set(left.sites) if plan.kind == JoinKind.FULL else set()
    return f"{', '.join(sorted(beyond))} has no {_words(left)}" if beyond else ""


def meet_at_one_gateway(plan: TwoSided, left: GatewayPiece, right: GatewayPiece) -> bool:
    """Whether rows that meet always come from one gateway."""
    keys = set(pairs_of(plan))
    return any(
        a.group == b.group
        and len(a.columns) == len(b.columns)
        and all(pair in keys for pair in zip(a.columns, b.columns, strict=True))
        for a in left.colocations
        for b in right.colocations
    )


def _covered(piece: GatewayPiece, columns: tuple[int, ...]) -> bool:
    """Whether rows that agree on the columns come from one gateway."""
    have = set(columns)
    return any(have.issuperset(c.columns) for c in piece.colocations)


def _moved(
    colocations: tuple[Colocation, ...], kept: Sequence[int | None]
) -> tuple[Colocation, ...]:
    """Return the co-locations by the new positions of their columns.

    Of a column that is there twice each copy tells where a row comes from.
    """
    copies: dict[int, list[int]] = {}
    for new, old in enumerate(kept):
        if old is not None:
            copies.setdefault(old, []).append(new)
    found = (
        Colocation(colocation.group, columns)
        for colocation in colocations
        for columns in product(*(copies.get(p, ()) for p in colocation.columns))
    )
    return tuple(islice(found, MAX_COLOCATIONS))


def _words(piece: GatewayPiece) -> str:
    return " and ".join(piece.sources)
