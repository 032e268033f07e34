"""Columns of stored tables in joins with streams: a reading that changes them has another key."""

from streamsql.algebra.operators import Join, Plan, Scan, SourceKind, walk_plan


def finding(plan: Plan, table: str) -> tuple[Plan, tuple[int, ...]] | None:
    """Return what a stored table is joined with, and by which of its columns; None: nothing is."""
    for node in walk_plan(plan):
        if isinstance(node, Join) and node.keys:
            for side, other, own in ((node.left, node.right, 1), (node.right, node.left, 0)):
                is_there = any(scan.source == table for scan in _scans(side))
                if is_there and _is_stored(side) and not _is_stored(other):
                    return other, tuple(pair[own] for pair in node.keys)
    return None


def _is_stored(plan: Plan) -> bool:
    return all(scan.kind == SourceKind.TABLE for scan in _scans(plan))


def _scans(plan: Plan) -> list[Scan]:
    return [node for node in walk_plan(plan) if isinstance(node, Scan)]
