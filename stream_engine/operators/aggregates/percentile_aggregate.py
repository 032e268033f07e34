"""PERCENTILE_CONT, MEDIAN and PERCENTILE_DISC over an ordered multiset with ranks."""

import math
from typing import Any

from stream_engine.operators.aggregates.accumulator import Changes
from stream_engine.state.ranked_order import RankedOrder
from streamsql.algebra.aggregates import AggregateCall, discrete_place
from streamsql.algebra.scalar import in_range
from streamsql.data.types import Value


class Percentile:
    """PERCENTILE_CONT(x, p): with n values the one at (n - 1) p, between neighbours in doubles.

    Holistic: no summary of fixed size tells it, so every distinct value is kept with its weight.
    State: the distinct values. Work: O(log values) a changed row and for the result.
    """

    def __init__(self, position: int, fraction: float) -> None:
        self._position = position
        self._fraction = fraction

    def empty(self) -> RankedOrder[Any]:
        """Return an empty multiset."""
        return RankedOrder()

    def update(self, slot: RankedOrder[Any], changes: Changes) -> RankedOrder[Any]:
        """Add and remove values."""
        position, change = self._position, slot.change
        for row, weight in changes:
            value = row[position]
            if value is not None:
                change(value, weight)
        return slot

    def result(self, slot: RankedOrder[Any]) -> Value:
        """Return the value at the fraction; NULL without values or beyond the range."""
        if not slot.total:
            return None
        place = (slot.total - 1) * self._fraction
        below = math.floor(place)
        low = float(slot.at(below))
        if place == below:
            return low
        return in_range(low + (float(slot.at(below + 1)) - low) * (place - below))

    def rows(self, slot: RankedOrder[Any]) -> int:
        """Return the number of distinct values."""
        return len(slot)


class DiscretePercentile(Percentile):
    """PERCENTILE_DISC(x, p): one of the values, of any type; state and work are the same."""

    def __init__(self, position: int, call: AggregateCall) -> None:
        super().__init__(position, 0.5)
        self._call = call

    def result(self, slot: RankedOrder[Any]) -> Value:
        """Return the value at the fraction; NULL without values. A negative zero is 0.0."""
        if not slot.total:
            return None
        value: Value = slot.at(discrete_place(slot.total, self._call))
        return value + 0.0 if isinstance(value, float) else value
