"""Directed weighted graphs with parallel edges, under insertions and deletions."""

from collections.abc import Hashable, Iterable
from typing import Any

Change = tuple[int, int, Any]
"""From node, to node, and the weight that came or went."""

Counted = tuple[int, int, Any, int]
"""From node, to node, weight, and how many such edges come (positive) or go."""


class Numbering:
    """Small integers for values; a released number is used again.

    Attributes:
        values: The value of every number; None where there is none.
        number_of: The number of every value that has one.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.number_of: dict[Hashable, int] = {}
        self._free: list[int] = []

    def number(self, value: Hashable) -> int:
        """Give a value that has none a number; return it."""
        if self._free:
            number = self._free.pop()
            self.values[number] = value
        else:
            number = len(self.values)
            self.values.append(value)
        self.number_of[value] = number
        return number

    def release(self, number: int) -> None:
        """Take a number away from its value."""
        del self.number_of[self.values[number]]
        self.values[number] = None
        self._free.append(number)


class Graph:
    """The edges of a graph; of parallel ones the lightest counts.

    State: two entries per connected pair, and a map per pair with parallel edges.

    Attributes:
        out: Per node, its successors with the least weight of an edge there.
        inn: Per node, its predecessors likewise.
    """

    def __init__(self) -> None:
        self.out: list[dict[int, Any]] = []
        self.inn: list[dict[int, Any]] = []
        self._parallel: dict[tuple[int, int], dict[Any, int]] = {}

    def make_room(self, nodes: int) -> None:
        """Let there be nodes 0 … nodes - 1."""
        while len(self.out) < nodes:
            self.out.append({})
            self.inn.append({})

    def apply(self, changes: Iterable[Counted]) -> tuple[list[Change], list[Change]]:
        """Add and remove edges; return how the least weights change: those that went, and came."""
        out, inn, parallel = self.out, self.inn, self._parallel
        before: dict[tuple[int, int], Any] = {}
        for a, b, weight, count in changes:
            pair = (a, b)
            old = out[a].get(b)
            if pair not in before:
                before[pair] = old
            if old is None and count == 1:
                out[a][b] = inn[b][a] = weight
                continue
            if count == -1 and pair not in parallel:
                del out[a][b], inn[b][a]
                continue
            new = changed_best(parallel, pair, old, weight, count)
            if new is None:
                del out[a][b], inn[b][a]
            elif new != old:
                out[a][b] = inn[b][a] = new
        gone: list[Change] = []
        come: list[Change] = []
        for (a, b), old in before.items():
            new = out[a].get(b)
            if new != old:
                if old is not None:
                    gone.append((a, b, old))
                if new is not None:
                    come.append((a, b, new))
        return gone, come

    def is_isolated(self, node: int) -> bool:
        """Whether no edge touches a node."""
        return not self.out[node] and not self.inn[node]


def changed_best(
    parallel: dict[tuple[Any, int], dict[Any, int]],
    key: tuple[Any, int],
    best: Any,
    weight: Any,
    count: int,
) -> Any:
    """Change how often a key has a weight; return the least weight it has then, or None.

    A key with one weight, once, needs no entry.

    Args:
        parallel: Weights with their counts, of keys that have more than one.
        key: What changes.
        best: Its least weight so far, or None.
        weight: The weight that comes or goes.
        count: How many times; negative when it goes.
    """
    if best is None:
        if count > 1:
            parallel[key] = {weight: count}
        return weight
    counts = parallel.get(key)
    if counts is None:
        if count == -1:
            return None
        counts = parallel[key] = {best: 1}
    left = counts.get(weight, 0) + count
    if left:
        counts[weight] = left
    else:
        del counts[weight]
    if len(counts) <= 1:
        if not counts:
            del parallel[key]
            return None
        ((best, times),) = counts.items()
        if times == 1:
            del parallel[key]
        return best
    return min(counts)
