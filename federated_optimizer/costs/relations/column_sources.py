"""Sources of a plan's columns, and what stored tables among them are joined with.

A reading that changes columns of a stored table has another key.
"""

from collections.abc import Mapping
from typing import NamedTuple

from streamsql.algebra.column_origins import Origin, column_origins
from streamsql.algebra.operators import Join, Plan, Scan, SourceKind, walk_plan


class Sources(NamedTuple):
    """Scans of a plan, and the origins of its columns.

    Attributes:
        leaves: Its scans, by source.
        origins: Of each column, the source's column that it is.
    """

    leaves: Mapping[str, Scan]
    origins: tuple[Origin | None, ...]


class ColumnSources:
    """The sources of plans, each looked for once: a plan is asked about for every column."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Plan, Sources]] = {}  # by id: the plan keeps it from reuse

    def of(self, plan: Plan) -> Sources:
        """Return what a plan reads."""
        known = self._known.get(id(plan))
        if known is None:
            leaves = {node.source: node for node in walk_plan(plan) if isinstance(node, Scan)}
            known = self._known[id(plan)] = (plan, Sources(leaves, column_origins(plan)))
        return known[1]


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
