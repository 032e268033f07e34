"""Tumbling and hopping windows: which windows a row is in depends on the row alone."""

from typing import Any

from streamsql.algebra.operators import HopWindow
from streamsql.data.delta import Delta

MOST_KNOWN = 10_000
"""Windows whose bounds are remembered from one change to the next."""


class HopWindowOperator:
    """Each row once per window that holds its time, with the window's bounds appended.

    A flat map, so linear: hop(a + b) = hop(a) + hop(b). State: no rows,
    but the bounds of recent windows: changed rows are of few. Work: one output row per window, size
    / hop of them a changed row.

        size 10, hop 5   the time is the first column
        input   {(7, a): 1}                                     {(7, a): -1}
        output  {(7, a, 5, 15): 1, (7, a, 0, 10): 1}            both -1
    """

    def __init__(self, plan: HopWindow) -> None:
        self._time = plan.time
        self._size = plan.size
        self._hop = plan.hop
        self._offset = plan.offset
        self._windows: dict[int, list[tuple[int, int]]] = {}

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, _port: int, delta: Delta) -> Delta:
        """Return the changed rows with their windows; rows without time are in none."""
        position, size, hop, offset = self._time, self._size, self._hop, self._offset
        known = self._windows
        if len(known) * size > MOST_KNOWN * hop:
            known.clear()
        result: Delta = {}
        for row, weight in delta.items():
            time: Any = row[position]
            if time is None:
                continue
            start = time - (time - offset) % hop
            windows = known.get(start)
            if windows is None:
                starts = range(start, start - size, -hop)
                windows = known[start] = [(begin, begin + size) for begin in starts]
            for bounds in windows:
                if bounds[1] > time:  # the first of them has ended if hops do not divide the size
                    # Rows are distinct and so are a row's windows: nothing is added up.
                    result[row + bounds] = weight
        return result

    def state_rows(self) -> int:
        """Return 0."""
        return 0
