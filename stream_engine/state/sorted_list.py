"""A sorted list that stays fast when it is long: lists of bounded length in order."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_LOAD = 512
"""Block length at which inserting into a block costs about as much as finding it."""


class SortedList(Generic[T]):
    """Comparable items in order, duplicates kept.

    State: blocks of at most 1,024 items and the last item of each. Work: two binary searches and a
    move inside one block for `add` and `discard`, the searches for `below` and `above`;
    O(1) for `first` and `last`.

    Examples:
        >>> items = SortedList()
        >>> for item in (3, 1, 2):
        ...     items.add(item)
        >>> items.first(), items.last(), items.above(1), len(items)
        (1, 3, 2, 3)
    """

    __slots__ = ("_blocks", "_lasts", "_length")

    def __init__(self) -> None:
        self._blocks: list[list[Any]] = []
        self._lasts: list[Any] = []
        self._length = 0

    def add(self, item: T) -> None:
        """Insert an item after its equals."""
        self._length += 1
        blocks, lasts = self._blocks, self._lasts
        count = len(blocks)
        if count == 1:
            position = 0
        elif count:
            position = bisect_right(lasts, item)
            if position == count:
                position -= 1
        else:
            blocks.append([item])
            lasts.append(item)
            return
        block = blocks[position]
        insort(block, item)
        lasts[position] = block[-1]
        if len(block) > 2 * _LOAD:
            blocks.insert(position + 1, block[_LOAD:])
            del block[_LOAD:]
            lasts.insert(position, block[-1])

    def extend(self, items: list[T]) -> None:
        """Insert items that are in order; those after all others cost a step together."""
        blocks, lasts = self._blocks, self._lasts
        if blocks and (len(items) == 1 or items[0] < lasts[-1]):
            for item in items:
                self.add(item)
            return
        self._length += len(items)
        if blocks:
            items = blocks.pop() + items
            lasts.pop()
        for start in range(0, len(items), _LOAD):
            blocks.append(items[start : start + _LOAD])
            lasts.append(blocks[-1][-1])

    def discard(self, item: T) -> bool:
        """Remove one copy of an item; return whether there was one."""
        position = 0 if len(self._blocks) == 1 else bisect_left(self._lasts, item)
        if position == len(self._blocks):
            return False
        block = self._blocks[position]
        index = bisect_left(block, item)
        if index == len(block) or block[index] != item:
            return False
        del block[index]
        self._length -= 1
        if block:
            self._lasts[position] = block[-1]
        else:
            del self._blocks[position]
            del self._lasts[position]
        return True

    def pop_first(self) -> T:
        """Remove and return the least item; IndexError without one."""
        block = self._blocks[0]
        item: T = block.pop(0)
        self._length -= 1
        if not block:
            del self._blocks[0]
            del self._lasts[0]
        return item

    def first(self) -> T:
        """Return the least item; IndexError without one."""
        item: T = self._blocks[0][0]
        return item

    def last(self) -> T:
        """Return the greatest item; IndexError without one."""
        item: T = self._lasts[-1]
        return item

    def below(self, bound: Any) -> T | None:
        """Return the greatest item below a bound, or None."""
        lasts = self._lasts
        if not lasts:
            return None
        greatest: T = lasts[-1]
        if greatest < bound:
            return greatest
        position = min(bisect_left(lasts, bound), len(lasts) - 1)
        index = bisect_left(self._blocks[position], bound)
        if index:
            item: T = self._blocks[position][index - 1]
            return item
        return lasts[position - 1] if position else None

    def above(self, bound: Any) -> T | None:
        """Return the least item above a bound, or None."""
        position = bisect_right(self._lasts, bound)
        if position == len(self._lasts):
            return None
        block = self._blocks[position]
        item: T = block[bisect_right(block, bound)]
        return item

    def between(self, low: Any, high: Any) -> Iterator[T]:
        """Yield the items from one bound to another, both included, in order."""
        for position in range(bisect_left(self._lasts, low), len(self._blocks)):
            block = self._blocks[position]
            start = bisect_left(block, low)
            stop = bisect_right(block, high)
            yield from block[start:stop]
            if stop < len(block):
                return

    def down(self, high: Any, low: Any) -> Iterator[T]:
        """Yield the items from one bound down to another, both included, greatest first."""
        position = min(bisect_right(self._lasts, high), len(self._lasts) - 1)
        for block in reversed(self._blocks[: position + 1]):
            start = bisect_left(block, low)
            yield from reversed(block[start : bisect_right(block, high)])
            if start:
                return

    def from_end(self, position: int) -> T:
        """Return an item by its position from the greatest one (0); IndexError without one.

        Work: one step per block passed over.
        """
        for block in reversed(self._blocks):
            if position < len(block):
                item: T = block[-1 - position]
                return item
            position -= len(block)
        raise IndexError(position)

    def newest(self, count: int) -> list[T]:
        """Return the greatest items, not more than `count` of them, in order."""
        result: list[T] = []
        for block in reversed(self._blocks):
            if len(result) >= count:
                break
            result[:0] = block[max(0, len(block) - count + len(result)) :]
        return result

    def __iter__(self) -> Iterator[T]:
        """Yield all items in order."""
        return chain.from_iterable(self._blocks)

    def __len__(self) -> int:
        """Return the number of items."""
        return self._length
