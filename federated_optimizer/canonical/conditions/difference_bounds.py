"""Differences of integers and times bounded by constants, closed: the tightest that follow.

Whole numbers have one closed form for all sets of bounds of one meaning, so it serves to compare.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations

MAX_NODES = 12
"""Most values whose differences are combined: the time grows with the third power."""

Bounds = dict[tuple[int, int], int]
"""Greatest differences first - second, by number; 0 stands for the constant 0."""


def closed(bounds: Iterable[tuple[int, int, int]], nodes: Sequence[int]) -> Bounds | None:
    """Return the tightest bounds of all pairs; None if they contradict.

    Args:
        bounds: Of (first, second): first - second <= bound.
        nodes: All numbers, 0 among them.
    """
    rows: dict[int, dict[int, int]] = {node: {} for node in nodes}
    for first, second, bound in bounds:
        old = rows[first].get(second)
        if old is None or bound < old:
            rows[first][second] = bound
    for middle in nodes:
        out = [(second, bound) for second, bound in rows[middle].items() if second != middle]
        for first, row in rows.items():
            one = row.get(middle)
            if one is None or first == middle:
                continue
            for second, other in out:
                if first == second:
                    if one + other < 0:
                        return None
                    continue
                old = row.get(second)
                if old is None or one + other < old:
                    row[second] = one + other
    return {(first, second): bound for first, row in rows.items() for second, bound in row.items()}


def pairs(nodes: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Return all pairs of values in both directions, those with the constant 0 left out."""
    return permutations([node for node in nodes if node], 2)
