"""ARRAY_AGG: the values of a group as JSON text."""

import json
from collections.abc import Callable
from typing import Any

from stream_engine.operators.accumulator import Changes
from stream_engine.state.ranked_order import RankedOrder
from streamsql.data.types import DataType, Value

_Item = tuple[Any, str]
"""A value and how JSON writes it."""


class ArrayAggregate:
    """ARRAY_AGG(x): the values that are not NULL, in order, as a JSON array.

    State: the distinct values with their texts and weights. Work: O(log values) a changed row; the
    texts are joined once per group and batch, in the length of the group: it is the answer.
    """

    def __init__(self, position: int, dtype: DataType) -> None:
        self._position = position
        self._text_of = _WRITERS.get(dtype, int.__repr__)

    def empty(self) -> RankedOrder[_Item]:
        """Return an empty multiset."""
        return RankedOrder()

    def update(self, slot: RankedOrder[_Item], changes: Changes) -> RankedOrder[_Item]:
        """Add and remove values."""
        position, change, text_of = self._position, slot.change, self._text_of
        for row, weight in changes:
            value = row[position]
            if value is not None:
                change((value, text_of(value)), weight)
        return slot

    def result(self, slot: RankedOrder[_Item]) -> Value:
        """Return the text; NULL without values."""
        if not slot.total:
            return None
        return f"[{','.join([text for _value, text in slot.copies()])}]"

    def rows(self, slot: RankedOrder[_Item]) -> int:
        """Return the number of distinct values."""
        return len(slot)


def _double(value: float) -> str:
    """Return a double as JSON has it; a negative zero is equal to zero and written as such.

    Examples:
        >>> _double(-0.0), _double(1e300)
        ('0.0', '1e+300')
    """
    return repr(value + 0.0)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


_WRITERS: dict[DataType, Callable[[Any], str]] = {
    DataType.DOUBLE: _double,
    DataType.BOOLEAN: _boolean,
    DataType.TEXT: json.JSONEncoder(ensure_ascii=False).encode,
}
