"""A long ordered multiset with weights and ranks.

Blocks of items in order, a weight beside each item, the sum of every block, and a Fenwick tree over
those sums, which answers how many copies stand before a block and in which block a rank lies.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LOAD = 256
"""Blocks hold at most twice as many items."""


class RankedBlocks(Generic[T]):
    """Comparable items with weights, in order; an item counts once per weight.

    State: each distinct item once, with its weight. Work: O(log items) plus a move inside one block
    for `change`, `place` and `at`; a block that splits or empties costs O(blocks) once, which its
    hundreds of changes share. Copies of an item cost nothing.
    """

    __slots__ = ("_blocks", "_lasts", "_sums", "_tree", "_weights", "total")

    def __init__(self, items: list[T], weights: list[int]) -> None:
        """Take items in order with their weights; there is at least one."""
        self.total = sum(weights)
        parts = [slice(start, start + LOAD) for start in range(0, len(items), LOAD)]
        self._blocks: list[list[Any]] = [items[part] for part in parts]
        self._weights: list[list[int]] = [weights[part] for part in parts]
        self._lasts: list[Any] = [block[-1] for block in self._blocks]
        self._sums: list[int] = list(map(sum, self._weights))
        self._tree: list[int] | None = None

    def change(self, item: T, weight: int) -> int:
        """Add or remove copies of an item; return how many really came (or went, negative)."""
        blocks, lasts = self._blocks, self._lasts
        position = bisect_left(lasts, item)
        index = 0
        if position < len(blocks):
            block = blocks[position]
            index = bisect_left(block, item)
            if block[index] == item:
                return self._reweigh(position, index, weight)
        elif weight > 0:
            if not blocks:
                blocks.append([])
                self._weights.append([])
                lasts.append(item)
                self._sums.append(0)
                self._tree = None
            position = len(blocks) - 1
            lasts[position] = item
            index = len(blocks[position])
        if weight <= 0:
            return 0
        blocks[position].insert(index, item)
        self._weights[position].insert(index, weight)
        self._add_to_sum(position, weight)
        if len(blocks[position]) > 2 * LOAD:
            self._split(position)
        return weight

    def place(self, item: T) -> tuple[int, int]:
        """Return how many copies of lesser items there are, and how many of this one."""
        position = bisect_left(self._lasts, item)
        if position == len(self._blocks):
            return (self.total, 0)
        block, weights = self._blocks[position], self._weights[position]
        index = bisect_left(block, item)
        rank = self._before(position)
        rank += index if self._sums[position] == len(block) else sum(weights[:index])
        return (rank, weights[index] if block[index] == item else 0)

    def at(self, rank: int) -> T:
        """Return the item that stands at a rank, counted from 0; IndexError without one."""
        position, index, _skipped = self._find(rank)
        item: T = self._blocks[position][index]
        return item

    def first(self) -> T:
        """Return the least item; IndexError without one."""
        item: T = self._blocks[0][0]
        return item

    def last(self) -> T:
        """Return the greatest item; IndexError without one."""
        item: T = self._lasts[-1]
        return item

    def at_least(self, bound: Any) -> T:
        """Return the least item not below a bound; IndexError if all are below."""
        block = self._blocks[bisect_left(self._lasts, bound)]
        item: T = block[bisect_left(block, bound)]
        return item

    def between(self, start: int, stop: int) -> Iterator[tuple[T, int]]:
        """Yield the items at the ranks from start to before stop, with their copies there."""
        stop = min(stop, self.total)
        if start >= stop:
            return
        left = stop - start
        position, index, skip = self._find(start)
        while left > 0:
            block, weights = self._blocks[position], self._weights[position]
            for place in range(index, len(block)):
                copies = min(weights[place] - skip, left)
                yield block[place], copies
                left -= copies
                skip = 0
                if not left:
                    return
            position += 1
            index = 0

    def copies(self) -> list[T]:
        """Return all items in order, each as often as it counts."""
        result: list[T] = []
        for block, weights, total in zip(self._blocks, self._weights, self._sums, strict=True):
            if total == len(block):
                result += block
            else:
                for item, weight in zip(block, weights, strict=True):
                    result += [item] * weight
        return result

    def __len__(self) -> int:
        """Return the number of distinct items."""
        return sum(map(len, self._blocks))

    def _reweigh(self, position: int, index: int, weight: int) -> int:
        weights = self._weights[position]
        old = weights[index]
        new = old + weight
        if new > 0:
            weights[index] = new
            self._add_to_sum(position, weight)
            return weight
        block = self._blocks[position]
        del block[index], weights[index]
        self._add_to_sum(position, -old)
        if block:
            self._lasts[position] = block[-1]
        else:
            del self._blocks[position], self._weights[position]
            del self._lasts[position], self._sums[position]
            self._tree = None
        return -old

    def _split(self, position: int) -> None:
        block, weights = self._blocks[position], self._weights[position]
        upper = weights[LOAD:]
        self._blocks.insert(position + 1, block[LOAD:])
        self._weights.insert(position + 1, upper)
        del block[LOAD:], weights[LOAD:]
        self._lasts.insert(position, block[-1])
        above = sum(upper)
        self._sums[position] -= above
        self._sums.insert(position + 1, above)
        self._tree = None

    def _add_to_sum(self, position: int, weight: int) -> None:
        self.total += weight
        self._sums[position] += weight
        tree = self._tree
        if tree is not None:
            node = position + 1
            while node < len(tree):
                tree[node] += weight
                node += node & -node

    def _before(self, position: int) -> int:
        """Return the copies in the blocks before one."""
        if not position:
            return 0
        tree = self._tree or self._planted()
        total = 0
        while position:
            total += tree[position]
            position &= position - 1
        return total

    def _find(self, rank: int) -> tuple[int, int, int]:
        """Return block and index of a rank, and how many copies of that item stand before it."""
        if not 0 <= rank < self.total:
            raise IndexError(f"rank {rank} of {self.total}")
        position = 0
        if len(self._blocks) > 1:
            tree = self._tree or self._planted()
            step = 1 << (len(tree) - 1).bit_length() - 1
            while step:
                node = position + step
                if node < len(tree) and tree[node] <= rank:
                    position = node
                    rank -= tree[node]
                step >>= 1
        weights = self._weights[position]
        if self._sums[position] == len(weights):
            return (position, rank, 0)
        for index, until in enumerate(accumulate(weights)):
            if until > rank:
                return (position, index, rank - until + weights[index])
        raise AssertionError("sums and weights of a block differ")

    def _planted(self) -> list[int]:
        """Return the Fenwick tree of the blocks' sums, made anew."""
        tree = [0, *self._sums]
        for node in range(1, len(tree)):
            parent = node + (node & -node)
            if parent < len(tree):
                tree[parent] += tree[node]
        self._tree = tree
        return tree
