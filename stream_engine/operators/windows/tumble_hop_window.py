"""Tumbling and hopping windows: which windows a row is in depends on the row alone."""

from functools import lru_cache, partial
from typing import Any

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from streamsql.algebra.operators import HopWindow
from streamsql.data.delta import Delta
from streamsql.data.types import GREATEST_TIME, LEAST_TIME

MOST_KNOWN = 10_000
"""Windows whose bounds are remembered from one change to the next."""


class HopWindowOperator(Operator):
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
        self._hop = plan.hop
        self._offset = plan.offset
        most = max(MOST_KNOWN * plan.hop // plan.size, 1)
        self._windows_of = lru_cache(maxsize=most)(partial(_windows, plan.size, plan.hop))

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        position, hop, offset = self._time, self._hop, self._offset
        windows_of = self._windows_of
        result: Delta = {}
        for row, weight in delta.items():
            time: Any = row[position]
            if time is None:
                continue
            start = time - (time - offset) % hop
            for bounds in windows_of(start):
                if bounds[1] > time:  # the first of them has ended if hops do not divide the size
                    # Rows are distinct and so are a row's windows: nothing is added up.
                    result[row + bounds] = weight
        return result


def _windows(size: int, hop: int, start: int) -> list[tuple[int, int]]:
    """Return the bounds of the windows that may hold a time whose last window starts there.

    Windows whose bounds are no TIMESTAMP are none.
    """
    begins = range(start, start - size, -hop)
    return [(b, b + size) for b in begins if b >= LEAST_TIME and b + size <= GREATEST_TIME]
