"""MODE: the value of a group that comes most often."""

from typing import Any

from stream_engine.operators.aggregates.accumulator import Changes
from stream_engine.state.ranked_order import RankedOrder
from streamsql.data.types import Value

_Slot = tuple[dict[Any, int], RankedOrder[Any]]


class Mode:
    """MODE(x): the most frequent value, ties by least value.

    State: every distinct value twice, by value with its weight and in order of (-weight, value),
    so that the first entry is the answer. Work: O(log values) a changed value and O(1) for the
    result.
    """

    def __init__(self, position: int) -> None:
        self._position = position

    def empty(self) -> _Slot:
        """Return no values."""
        return ({}, RankedOrder())

    def update(self, slot: _Slot, changes: Changes) -> _Slot:
        """Move the values whose weights change."""
        position = self._position
        weights, order = slot
        for row, weight in changes:
            value: Any = row[position]
            if value is None:
                continue
            old = weights.get(value, 0)
            new = old + weight
            if old:
                order.change((-old, value), -1)
            if new:
                weights[value] = new
                order.change((-new, value), 1)
            else:
                weights.pop(value, None)
        return slot

    def result(self, slot: _Slot) -> Value:
        """Return the first value; NULL without values. A negative zero is 0.0."""
        order = slot[1]
        if not order.total:
            return None
        value: Value = order.first()[1]
        return value + 0.0 if isinstance(value, float) else value

    def rows(self, slot: _Slot) -> int:
        """Return the number of distinct values."""
        return len(slot[0])
