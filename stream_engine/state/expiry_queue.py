"""Items by the time at which they fall due."""

import heapq
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_SLACK = 64
"""Stale heap entries that are never worth a rebuild."""


class ExpiryQueue(Generic[T]):
    """A multiset of items, each due at a time, with removal before its time.

    Items of equal time share a bucket, so the heap holds times only. A bucket that empties early
    leaves its time in the heap (lazy deletion); the heap is rebuilt once more than half of it is
    such garbage, so it stays within twice the live buckets.

    State: one bucket entry per distinct item. Work: O(log buckets) for a new time, O(1) otherwise,
    amortized.
    """

    __slots__ = ("_buckets", "_heap")

    def __init__(self) -> None:
        self._buckets: dict[int, dict[T, int]] = {}
        self._heap: list[int] = []

    def add(self, time: int, item: T, weight: int) -> None:
        """Add copies of an item due at `time`, or remove some (negative weight)."""
        bucket = self._buckets.get(time)
        if bucket is None:
            self._buckets[time] = {item: weight}
            heapq.heappush(self._heap, time)
            return
        new = bucket.get(item, 0) + weight
        if new:
            bucket[item] = new
            return
        del bucket[item]
        if not bucket:
            del self._buckets[time]
            self._collect()

    def due(self, now: int) -> list[tuple[int, dict[T, int]]]:
        """Remove and return the buckets whose time has come, earliest first."""
        heap, buckets = self._heap, self._buckets
        result = []
        while heap and heap[0] <= now:
            time = heapq.heappop(heap)
            bucket = buckets.pop(time, None)
            if bucket is not None:
                result.append((time, bucket))
        return result

    def next_time(self) -> int | None:
        """Return the earliest time of an item, or None."""
        heap, buckets = self._heap, self._buckets
        while heap and heap[0] not in buckets:
            heapq.heappop(heap)
        return heap[0] if heap else None

    def next_items(self) -> Iterable[T]:
        """Return the items of the earliest time, without removing them; nothing if there is none.

        They are not to be kept over a change.
        """
        time = self.next_time()
        return () if time is None else self._buckets[time]

    def items(self) -> list[tuple[int, dict[T, int]]]:
        """Return all buckets with their times, without removing them."""
        return list(self._buckets.items())

    def __len__(self) -> int:
        """Return the number of distinct (time, item) pairs."""
        return sum(map(len, self._buckets.values()))

    def _collect(self) -> None:
        if len(self._heap) > 2 * len(self._buckets) + _SLACK:
            self._heap = list(self._buckets)
            heapq.heapify(self._heap)
