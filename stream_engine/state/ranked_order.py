"""An ordered multiset with weights and ranks: behind extrema, percentiles and the first n rows.

Most groups are small: a list in order, and beside it the weights once one of them is not 1. A long
one moves to blocks (`ranked_blocks`), where it stays.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from stream_engine.state import ranked_blocks
from stream_engine.state.ranked_blocks import RankedBlocks

T = TypeVar("T")


class RankedOrder(Generic[T]):
    """Hashable, comparable items with weights, in order; an item counts once per weight.

    Copies taken before they came are owed: they are made up for by the next ones that come.

    State: each distinct item once, and the weights if they differ. Work: O(log items) for `change`,
    `place` and `at`, plus a move inside a list of at most 512 items. Copies cost nothing.

    Examples:
        >>> order = RankedOrder()
        >>> for item, weight in (("b", 3), ("a", 1), ("c", 1), ("b", -1)):
        ...     _ = order.change(item, weight)
        >>> order.total, order.at(2), order.place("c"), list(order.between(1, 4))
        (4, 'b', (3, 1), [('b', 2), ('c', 1)])
    """

    __slots__ = ("_items", "_many", "_owed", "_weights", "total")

    def __init__(self) -> None:
        self.total = 0
        self._items: list[Any] = []
        self._weights: list[int] | None = None  # all are 1
        self._many: RankedBlocks[T] | None = None
        self._owed: dict[Any, int] | None = None  # most never owe anything

    def change(self, item: T, weight: int) -> int:
        """Add or remove copies of an item; return how many really came (or went, negative)."""
        if self._owed and item in self._owed:
            weight += self._owed.pop(item)
        if self._many is not None:
            came = self._many.change(item, weight)
        else:
            items = self._items
            index = bisect_left(items, item)
            if index < len(items) and items[index] == item:
                came = self._reweigh(index, weight)
            else:
                came = max(weight, 0)
                if came:
                    self._insert(index, item, weight)
        self.total += came
        if came != weight:
            if self._owed is None:
                self._owed = {}
            self._owed[item] = weight - came
        return came

    def place(self, item: T) -> tuple[int, int]:
        """Return how many copies of lesser items there are, and how many of this one."""
        if self._many is not None:
            return self._many.place(item)
        items, weights = self._items, self._weights
        index = bisect_left(items, item)
        known = index < len(items) and items[index] == item
        if weights is None:
            return (index, int(known))
        return (sum(weights[:index]), weights[index] if known else 0)

    def at(self, rank: int) -> T:
        """Return the item that stands at a rank, counted from 0; IndexError without one."""
        if self._many is not None:
            return self._many.at(rank)
        if not 0 <= rank < self.total:
            raise IndexError(f"rank {rank} of {self.total}")
        if self._weights is None:
            item: T = self._items[rank]
            return item
        return next(self.between(rank, rank + 1))[0]

    def first(self) -> T:
        """Return the least item; IndexError without one."""
        item: T = self._items[0] if self._many is None else self._many.first()
        return item

    def last(self) -> T:
        """Return the greatest item; IndexError without one."""
        item: T = self._items[-1] if self._many is None else self._many.last()
        return item

    def at_least(self, bound: Any) -> T:
        """Return the least item not below a bound; IndexError if all are below."""
        if self._many is not None:
            return self._many.at_least(bound)
        item: T = self._items[bisect_left(self._items, bound)]
        return item

    def between(self, start: int, stop: int) -> Iterator[tuple[T, int]]:
        """Yield the items at the ranks from start to before stop, with their copies there."""
        if self._many is not None:
            yield from self._many.between(start, stop)
            return
        if self._weights is None:
            for item in self._items[start : max(stop, start)]:
                yield item, 1
            return
        begin = 0
        for item, weight in zip(self._items, self._weights, strict=True):
            end = begin + weight
            copies = min(end, stop) - max(begin, start)
            if copies > 0:
                yield item, copies
            if end >= stop:
                return
            begin = end

    def copies(self) -> list[T]:
        """Return all items in order, each as often as it counts."""
        if self._many is not None:
            return self._many.copies()
        if self._weights is None:
            return list(self._items)
        pairs = zip(self._items, self._weights, strict=True)
        return [item for item, weight in pairs for _copy in range(weight)]

    def __len__(self) -> int:
        """Return the number of distinct items, those owed included."""
        kept = len(self._items) if self._many is None else len(self._many)
        return kept + len(self._owed or ())

    def __bool__(self) -> bool:
        """Whether anything is kept."""
        return bool(self.total or self._owed)

    def _insert(self, index: int, item: T, weight: int) -> None:
        items, weights = self._items, self._weights
        items.insert(index, item)
        if weights is not None:
            weights.insert(index, weight)
        elif weight != 1:
            weights = self._weights = [1] * len(items)
            weights[index] = weight
        if len(items) > 2 * ranked_blocks.LOAD:
            self._many = RankedBlocks(items, weights or [1] * len(items))
            self._items, self._weights = [], None

    def _reweigh(self, index: int, weight: int) -> int:
        items, weights = self._items, self._weights
        old = 1 if weights is None else weights[index]
        new = old + weight
        if new > 0:
            if weights is None and weight:
                weights = self._weights = [1] * len(items)
            if weights is not None:
                weights[index] = new
            return weight
        del items[index]
        if weights is not None:
            del weights[index]
            if not items:
                self._weights = None
        return -old
