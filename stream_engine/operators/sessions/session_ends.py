"""The ends of sessions in order, so that what a watermark has passed is found without a search."""

from collections.abc import Iterator
from heapq import heappop, heappush

from streamsql.data.types import Row


class SessionEnds:
    """Ends, and of which sessions they are: the partition's key and a time of the session.

    Keys are never compared: they may hold NULLs. State: what was noted and is not due yet. Work:
    O(log ends) for an end that is new and for one that is due, O(1) for another session of it.

    Examples:
        >>> ends = SessionEnds()
        >>> for end, key, time in ((9, ("a",), 4), (7, (None,), 2), (7, ("b",), 2)):
        ...     ends.note(end, key, time)
        >>> list(ends.due(8)), list(ends.due(8))
        ([((None,), 2), (('b',), 2)], [])
    """

    __slots__ = ("_order", "_sessions")

    def __init__(self) -> None:
        self._order: list[int] = []
        self._sessions: dict[int, list[tuple[Row, int]]] = {}

    def note(self, end: int, key: Row, time: int) -> None:
        """Keep an end."""
        sessions = self._sessions.get(end)
        if sessions is None:
            self._sessions[end] = [(key, time)]
            heappush(self._order, end)
        else:
            sessions.append((key, time))

    def due(self, before: int) -> Iterator[tuple[Row, int]]:
        """Take out what ends by a watermark, in order of the ends; more may be noted meanwhile."""
        while self._order and self._order[0] <= before:
            yield from self._sessions.pop(heappop(self._order))
