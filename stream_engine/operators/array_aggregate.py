"""ARRAY_AGG: the values of a group as JSON text."""

import json
from typing import TYPE_CHECKING, Any

from stream_engine.state.ranked_order import RankedOrder
from streamsql.data.types import Value

if TYPE_CHECKING:
    from stream_engine.operators.accumulators import Changes

_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class ArrayAggregate:
    """ARRAY_AGG(x): the values that are not NULL, in order, as a JSON array.

    State: the distinct values with their weights. Work: O(log values) a changed row; the text is
    written once per group and batch, in the length of the group, because it is the answer.
    """

    def __init__(self, position: int, *, double: bool) -> None:
        self._position = position
        self._double = double

    def empty(self) -> RankedOrder[Any]:
        """Return an empty multiset."""
        return RankedOrder()

    def update(self, slot: RankedOrder[Any], changes: "Changes") -> RankedOrder[Any]:
        """Add and remove values."""
        position, change = self._position, slot.change
        for row, weight in changes:
            value = row[position]
            if value is not None:
                change(value, weight)
        return slot

    def result(self, slot: RankedOrder[Any]) -> Value:
        """Return the text; NULL without values. A negative zero, equal to zero, is written 0.0."""
        if not slot.total:
            return None
        values = [value for value, weight in slot for _copy in range(weight)]
        if self._double:
            values = [value + 0.0 for value in values]
        return _ENCODE(values)

    def rows(self, slot: RankedOrder[Any]) -> int:
        """Return the number of distinct values."""
        return len(slot)
