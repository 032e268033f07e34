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
    found: Bounds = {}
    for first, second, bound in bounds:
        old = found.get((first, second))
        if old is None or bound < old:
            found[first, second] = bound
    for middle in nodes:
        into = [(n, found[n, middle]) for n in nodes if n != middle and (n, middle) in found]
        out = [(n, found[middle, n]) for n in nodes if n != middle and (middle, n) in found]
        for first, one in into:
            for second, other in out:
                if first == second:
                    if one + other < 0:
                        return None
                elif (first, second) not in found or one + other < found[first, second]:
                    found[first, second] = one + other
    return found


def pairs(nodes: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Return all pairs of values in both directions, those with the constant 0 left out."""
    return permutations([node for node in nodes if node], 2)
