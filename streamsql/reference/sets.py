"""INTERSECT and EXCEPT."""

from collections import Counter

from streamsql.algebra.operators import SetKind, SetOperation
from streamsql.data.types import Row


def combined(plan: SetOperation, left: list[Row], right: list[Row]) -> list[Row]:
    """Return the bag that the operation gives of two bags."""
    ours, theirs = Counter(left), Counter(right)
    if not plan.all:
        wanted = plan.kind == SetKind.INTERSECT
        return [row for row in ours if (row in theirs) == wanted]
    kept = ours & theirs if plan.kind == SetKind.INTERSECT else ours - theirs
    return list(kept.elements())
