"""The next time of each of many keys, without asking all of them."""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

MOST_STALE = 64
"""Max stale heap entries, beyond as many as there are keys."""


class Wakeups(Generic[K]):
    """The next time of each key; the earliest of all is at hand.

    State: one entry a key, and at most as many old ones. Work: O(log keys) to set a time,
    amortised; O(1) to ask for the earliest.

    Examples:
        >>> wakeups = Wakeups()
        >>> wakeups.set("a", 30), wakeups.set("b", 20), wakeups.set("b", 40)
        (None, None, None)
        >>> wakeups.earliest, wakeups.take_due(35), wakeups.earliest
        (30, ['a'], 40)
    """

    __slots__ = ("_count", "_heap", "_times")

    def __init__(self) -> None:
        self._times: dict[K, tuple[int, int]] = {}  # time and number of the entry that counts
        self._heap: list[tuple[int, int, K]] = []
        self._count = 0

    def set(self, key: K, time: int | None) -> None:
        """Set a key's next time; None: never."""
        known = self._times.get(key)
        if time is None:
            if known is not None:
                del self._times[key]
                self._tidy()
            return
        if known is not None and known[0] == time:
            return
        self._count += 1
        self._times[key] = (time, self._count)
        heappush(self._heap, (time, self._count, key))  # keys need no order: numbers differ
        self._tidy()

    @property
    def earliest(self) -> int | None:
        """The earliest time of any key, or None."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: int) -> list[K]:
        """Remove and return the keys whose time has come, the earliest first."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            _time, _number, key = heappop(self._heap)
            del self._times[key]
            due.append(key)
            self._tidy()
        return due

    def _tidy(self) -> None:
        """Drop old entries: those at the top, and all if there are too many."""
        heap, times = self._heap, self._times
        if len(heap) > 2 * len(times) + MOST_STALE:
            self._heap = heap = [(time, number, key) for key, (time, number) in times.items()]
            heapify(heap)
        while heap and times.get(heap[0][2], _NONE)[1] != heap[0][1]:
            heappop(heap)


_NONE = (0, 0)
