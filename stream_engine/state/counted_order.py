"""An ordered multiset: the state behind MIN, MAX, ARG_MIN and ARG_MAX under deletion."""

from collections.abc import Hashable
from typing import Any

from stream_engine.state.sorted_list import SortedList


class CountedOrder:
    """Hashable, comparable items with weights; those with a positive weight are kept in order.

    State: each distinct item once. Work: O(1) for another copy, O(log items) when an item appears
    or vanishes.
    """

    __slots__ = ("_counts", "order")

    def __init__(self) -> None:
        self._counts: dict[Any, int] = {}
        self.order: SortedList[Any] = SortedList()

    def change(self, item: Hashable, weight: int) -> None:
        """Add or remove copies of an item."""
        counts = self._counts
        old = counts.get(item, 0)
        new = old + weight
        if new:
            counts[item] = new
        else:
            del counts[item]
        if old <= 0 < new:
            self.order.add(item)
        elif new <= 0 < old:
            self.order.discard(item)

    def __len__(self) -> int:
        """Return the number of distinct items."""
        return len(self._counts)
