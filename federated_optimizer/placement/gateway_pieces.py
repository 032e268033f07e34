"""What gateways can do by themselves: grow a gateway piece, or say in words why not.

Everything rests on two promises. A source's key names a device that one gateway has, so rows of
equal key come from one gateway. Rows of equal value in a co-located column come from one gateway.
"""

import msgspec

from federated_optimizer.placement.fragment import Colocation, GatewayPiece
from federated_optimizer.placement.topology import Topology
from streamsql.algebra.expressions import Column, expression_text
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    UnionAll,
    Window,
    WindowKind,
)


def scan_piece(scan: Scan, topology: Topology) -> GatewayPiece:
    """Return a stream's scan at all gateways that own it."""
    groups: list[Colocation] = []
    if scan.key:
        groups.append(Colocation(f"key of {scan.source}", scan.key))
    for position, name in enumerate(scan.schema.names):
        group = topology.colocation.get((scan.source.lower(), name.lower()))
        if group is not None:
            groups.append(Colocation(group, (position,)))
    return GatewayPiece(scan, topology.owners(scan.source), (scan.source,), tuple(groups))


def window_piece(window: Window, topology: Topology) -> GatewayPiece | str:
    """Return a window at the gateways, or why it cannot stand there."""
    below = scan_piece(window.input, topology)
    piece = with_plan(below, window)
    if window.kind != WindowKind.ROWS or len(below.sites) <= 1:
        return piece
    if _covered(below, window.partition):
        return piece
    return (
        f"[ROWS {window.size}] of {window.input.source} because: it counts rows of "
        f"{len(below.sites)} gateways together, and their order is known only where all arrive"
    )


def with_plan(piece: GatewayPiece, plan: Plan) -> GatewayPiece:
    """Return the piece with a plan of the same columns."""
    return GatewayPiece(plan, piece.sites, piece.sources, piece.colocations, piece.joins)


def filter_piece(plan: Filter, below: GatewayPiece) -> GatewayPiece:
    """Return the filtered piece."""
    return with_plan(below, Filter(below.plan, plan.predicate))


def project_piece(plan: Project, below: GatewayPiece) -> GatewayPiece:
    """Return the projected piece, with the co-locations whose columns are all kept."""
    where: dict[int, int] = {}
    for new, expression in enumerate(plan.expressions):
        if isinstance(expression, Column):
            where.setdefault(expression.position, new)
    return GatewayPiece(
        msgspec.structs.replace(plan, input=below.plan),
        below.sites,
        below.sources,
        _moved(below.colocations, where),
        below.joins,
    )


def distinct_piece(below: GatewayPiece) -> GatewayPiece | str:
    """Return Distinct at the gateways when equal rows cannot come from two of them."""
    piece = with_plan(below, Distinct(below.plan))
    if len(below.sites) <= 1 or _covered(below, tuple(range(len(below.plan.schema)))):
        return piece
    return (
        f"Distinct over {_words(below)} because: two gateways may have equal rows, "
        "no column tells which gateway a row comes from"
    )


def aggregate_piece(plan: Aggregate, below: GatewayPiece) -> GatewayPiece | str:
    """Return an aggregate at the gateways when no group has rows of two gateways."""
    if not plan.group:
        return (
            f"Aggregate without groups over {_words(below)} because: "
            "it combines the rows of all gateways"
        )
    if len(below.sites) > 1 and not _covered(below, plan.group):
        names = ", ".join(below.plan.schema.names[g] for g in plan.group)
        return (
            f"Aggregate by ({names}) over {_words(below)} because: "
            "rows of one group may come from several gateways"
        )
    where = {old: new for new, old in enumerate(plan.group)}
    return GatewayPiece(
        msgspec.structs.replace(plan, input=below.plan),
        below.sites,
        below.sources,
        _moved(below.colocations, where),
        below.joins,
    )


def union_piece(pieces: list[GatewayPiece]) -> GatewayPiece | str:
    """Return a union at the gateways that own all branches."""
    first = pieces[0]
    if any(piece.sites != first.sites for piece in pieces):
        return "UnionAll because: its branches come from different gateways"
    if sum(piece.joins for piece in pieces) > 1:
        return "UnionAll because: at most one join runs in the network per fragment"
    shared = set(first.colocations).intersection(*(set(p.colocations) for p in pieces))
    return GatewayPiece(
        UnionAll(tuple(piece.plan for piece in pieces)),
        first.sites,
        tuple(dict.fromkeys(s for piece in pieces for s in piece.sources)),
        # A key of one source says nothing about another source's rows, but equal groups do.
        tuple(c for c in first.colocations if c in shared),
        max(piece.joins for piece in pieces),
    )


def join_piece(join: Join, left: GatewayPiece, right: GatewayPiece) -> GatewayPiece | str:
    """Return the join in the network, or why it is not done there."""
    refused = _join_refused(join, left, right)
    if refused:
        return f"{join_words(join)} because: {refused}"
    inner = join.kind == JoinKind.INNER
    sites = tuple(s for s in left.sites if s in right.sites) if inner else left.sites
    offset = len(left.plan.schema)
    # Padding puts NULL into the right columns at any gateway, so only the left ones tell of it.
    moved = tuple(
        Colocation(c.group, tuple(p + offset for p in c.columns)) for c in right.colocations
    )
    return GatewayPiece(
        msgspec.structs.replace(join, left=left.plan, right=right.plan),
        sites,
        tuple(dict.fromkeys(left.sources + right.sources)),
        left.colocations + (moved if inner else ()),
        1,
    )


def _join_refused(join: Join, left: GatewayPiece, right: GatewayPiece) -> str:
    """Return why two gateway pieces are not joined in the network, or an empty string."""
    if not join.keys:
        return "products and joins without an equality never run in the network"
    if left.joins + right.joins:
        return "at most one join runs in the network per fragment"
    alone = len(left.sites) == 1 and left.sites == right.sites
    if not alone and not meet_at_one_gateway(join, left, right):
        return (
            f"partners from {_words(left)} and {_words(right)} may be at different gateways, "
            "the join columns are not co-located"
        )
    if join.kind == JoinKind.INNER:
        shared = set(left.sites) & set(right.sites)
        return "" if shared else "no gateway has both sides"
    missing = set(left.sites) - set(right.sites)
    return f"{', '.join(sorted(missing))} has no {_words(right)}" if missing else ""


def meet_at_one_gateway(join: Join, left: GatewayPiece, right: GatewayPiece) -> bool:
    """Whether rows that agree on the join keys always come from one gateway."""
    keys = set(join.keys)
    return any(
        a.group == b.group
        and len(a.columns) == len(b.columns)
        and all(pair in keys for pair in zip(a.columns, b.columns, strict=True))
        for a in left.colocations
        for b in right.colocations
    )


def join_words(join: Join) -> str:
    """Return a join as reasons name it."""
    left, right = join.left.schema.names, join.right.schema.names
    keys = " AND ".join(f"{left[a]} = {right[b]}" for a, b in join.keys)
    if not keys and join.residual is not None:
        keys = expression_text(join.residual)
    return f"{join.kind.capitalize()}Join [{keys or 'product'}]"


def _covered(piece: GatewayPiece, columns: tuple[int, ...]) -> bool:
    """Whether rows that agree on the columns come from one gateway."""
    have = set(columns)
    return any(have.issuperset(c.columns) for c in piece.colocations)


def _moved(colocations: tuple[Colocation, ...], where: dict[int, int]) -> tuple[Colocation, ...]:
    return tuple(
        Colocation(c.group, tuple(where[p] for p in c.columns))
        for c in colocations
        if all(p in where for p in c.columns)
    )


def _words(piece: GatewayPiece) -> str:
    return " and ".join(piece.sources)
